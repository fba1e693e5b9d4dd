/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How many claims address_owners_each() has shown: what looking at others has cost. For a test that wraps it. */

#include "plan/address_owners.h"

static size_t n_visits;

struct visit {
	address_owners_fn *fn;
	void *arg;
};

static void visit_claim(void *arg, const struct service *service, bool external, bool balancer)
{
	const struct visit *visit = arg;

	n_visits++;
	visit->fn(visit->arg, service, external, balancer);
}

void __real_address_owners_each(const struct address_owners *owners,
				const struct destination *destination, address_owners_fn *fn,
				void *arg);
void __wrap_address_owners_each(const struct address_owners *owners,
				const struct destination *destination, address_owners_fn *fn,
				void *arg);

void __wrap_address_owners_each(const struct address_owners *owners,
				const struct destination *destination, address_owners_fn *fn,
				void *arg)
{
	struct visit visit = {fn, arg};

	__real_address_owners_each(owners, destination, visit_claim, &visit);
}

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A ServiceCIDR: ranges that the addresses of Services are taken from. Plain data, immutable, shared
 * by reference; and all of them together.
 */

#include "base/addr.h"
#include "base/map.h"

#define SERVICE_CIDR_MAX 2 /* one of each family: an API server takes no more */

struct service_cidr {
	unsigned int refs;
	struct prefix cidrs[SERVICE_CIDR_MAX];
	size_t n_cidrs;
	char name[];
};

struct service_cidr *service_cidr_new(const char *name);
struct service_cidr *service_cidr_ref(struct service_cidr *object);
struct service_cidr *
service_cidr_unref(struct service_cidr *object); /* accepts NULL, returns NULL */
bool service_cidr_equal(const struct service_cidr *a, const struct service_cidr *b);

/*
 * All ServiceCIDRs. A range counts as long as one of them has it. (kube-proxy forgets a range that
 * two of them have as soon as one goes.)
 */
struct service_cidr_set {
	struct map objects; /* by name */
	/* what they come to: sorted, none inside another */
	struct prefix *ranges[FAMILY_COUNT];
	size_t n_ranges[FAMILY_COUNT];
};

/*
 * Both return a bit set with bit (1 << family) for each family whose ranges are now others. The
 * first takes over the reference.
 */
unsigned int service_cidr_set_put(struct service_cidr_set *set, struct service_cidr *cidr);
unsigned int service_cidr_set_remove(struct service_cidr_set *set, const char *name);
void service_cidr_set_done(struct service_cidr_set *set);

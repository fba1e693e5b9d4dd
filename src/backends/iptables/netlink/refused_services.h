/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Services that the kernel refused. They are in `left` until they change, or until the next audit of everything:
 * each of those tries them again (refused_services_retry()). `told` remembers them until the kernel accepts
 * them, so that the same refusal is told once.
 */

#include "backends/backend.h"
#include "base/err.h"
#include "base/map.h"
#include "plan/plan_store.h"

struct refused_services {
	enum family family;
	void (*refused)(void *arg, const struct backend_refusal *refusal);
	void *arg;
	struct map left; /* by the key of the Service; the values are those of `told` */
	struct map told;
};

void refused_services_done(struct refused_services *services);

/* False: it is in `left` already, or too many are, so that something else is wrong. */
bool refused_services_add(struct refused_services *services, const char *key,
			  const struct err *err);
/* All get another chance: nothing is left out any more. */
void refused_services_retry(struct refused_services *services);
/* All have had their chance: those that are not in `left` again were accepted. */
void refused_services_tell_accepted(struct refused_services *services);
/* Did one that is left out change? delta: not a full one, after which all are tried again anyway. */
bool refused_services_any_changed(const struct refused_services *services,
				  const struct plan_delta *delta);

/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/nftables/refusals.h"

#include <stdlib.h>

void refusals_done(struct refusals *refusals)
{
	map_free_values(&refusals->all);
}

bool refusals_add(struct refusals *refusals, const char *service, int64_t now_ns)
{
	struct refusal *refusal = map_ensure(&refusals->all, service, sizeof(*refusal),
					     offsetof(struct refusal, service));
	bool first = refusal->delay_ns == 0;
	bool bared = refusal->retry_ns > now_ns && !refusal->bare;

	refusal->bare |= bared;
	refusal->delay_ns =
		first ? REFUSALS_FIRST_NS : MIN(2 * refusal->delay_ns, REFUSALS_LAST_NS);
	refusal->retry_ns = now_ns + refusal->delay_ns;
	return first || bared;
}

bool refusals_wait(const struct refusals *refusals, const char *service, int64_t now_ns)
{
	const struct refusal *refusal = NULL;

	if (refusals->all.count > 0)
		refusal = map_get(&refusals->all, service);
	return refusal && refusal->retry_ns > now_ns;
}

bool refusals_is_bare(const struct refusals *refusals, const char *service)
{
	const struct refusal *refusal = map_get(&refusals->all, service);

	return refusal && refusal->bare;
}

void refusals_hurry(struct refusals *refusals, const char *service)
{
	struct refusal *refusal = map_get(&refusals->all, service);

	if (refusal)
		refusal->retry_ns = 0;
}

void refusals_each_due(const struct refusals *refusals, int64_t now_ns, refusals_fn *fn, void *arg)
{
	const struct refusal *refusal;
	size_t at = 0;

	while ((refusal = map_next(&refusals->all, &at)))
		if (refusal->retry_ns <= now_ns)
			fn(arg, refusal->service);
}

void refusals_forget_due(struct refusals *refusals, int64_t now_ns)
{
	struct refusal *refusal;
	size_t at = 0;

	while ((refusal = map_next(&refusals->all, &at))) {
		if (refusal->retry_ns > now_ns)
			continue;
		map_remove(&refusals->all, refusal->service);
		free(refusal);
	}
}

int64_t refusals_next_ns(const struct refusals *refusals)
{
	const struct refusal *refusal;
	int64_t next = REFUSALS_NONE;
	size_t at = 0;

	while ((refusal = map_next(&refusals->all, &at)))
		next = MIN(next, refusal->retry_ns);
	return next;
}

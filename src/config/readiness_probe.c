/* SPDX-License-Identifier: Apache-2.0 */

#include "config/readiness_probe.h"

#include <assert.h>

bool readiness_probe_parse(const char *name, enum readiness_probe *ret)
{
	static const char *const names[] = {"off", "rules", "connect"};

	static_assert(ARRAY_SIZE(names) == READINESS_PROBE_COUNT, "a name for each");
	return word_parse(name, names, ret);
}

bool readiness_target_is_good(const char *target)
{
	size_t ns = strcspn(target, "/:");
	const char *name = target + ns + 1;
	size_t n;

	if (ns == 0 || target[ns] != '/')
		return false;
	n = strcspn(name, "/:");
	return n > 0 &&
	       (!name[n] || (name[n] == ':' && name[n + 1] && !strpbrk(name + n + 1, "/:")));
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/open_files.h"

#include <limits.h>
#include <sys/resource.h>

static struct rlimit found; /* all zero: nothing was raised */

size_t open_files_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 0; /* it has no way to fail */
	return (size_t)MIN(limit.rlim_cur, (rlim_t)INT_MAX);
}

size_t open_files_raise(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 0;
	if (limit.rlim_cur < limit.rlim_max) {
		const struct rlimit raised = {limit.rlim_max, limit.rlim_max};

		if (setrlimit(RLIMIT_NOFILE, &raised) == 0)
			found = limit;
	}
	return open_files_limit();
}

void open_files_restore(void)
{
	if (found.rlim_max > 0)
		setrlimit(RLIMIT_NOFILE, &found); /* it only lowers, which no process is refused */
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/backend.h"

const struct backend_ops *backend_find(const char *name)
{
	for (size_t i = 0; backend_modes[i]; i++)
		if (streq(backend_modes[i]->name, name))
			return backend_modes[i];
	return NULL;
}

static void ignore_result(void *arg attr_unused, const struct backend_result *result attr_unused)
{
}

static void ignore_words(void *arg attr_unused, const char *what attr_unused)
{
}

static void ignore_check(void *arg attr_unused, int r attr_unused,
			 const struct err *err attr_unused)
{
}

static void ignore_refusal(void *arg attr_unused, const struct backend_refusal *refusal attr_unused)
{
}

static void ignore(void *arg attr_unused)
{
}

const struct backend_events backend_no_events = {
	.synced = ignore_result,
	.flushed = ignore_words,
	.checked = ignore_check,
	.refused = ignore_refusal,
	.wanted = ignore,
};

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "backends/modes.h"

extern const struct backend_ops backend_null;

struct null_backend_counts {
	size_t syncs, services; /* of all families */
	size_t cleanups;
	void (*synced)(void); /* called after each sync; may be NULL */
};

extern struct null_backend_counts null_backend_counts;

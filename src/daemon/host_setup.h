/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a configuration asks of the host beside rules. */

#include "base/err.h"

struct config;

/* Connection tracking: limits and times. An error ends the start. */
int host_setup_conntrack(const struct config *config, struct err *err);
/* How likely the kernel ends this process when memory is short; a failure is only logged. */
void host_setup_oom_score(const struct config *config);
/* As many files open at once as this process is allowed; says so where that is little. Returns how many. */
size_t host_setup_open_files(void);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the families of iptables mode share: the variant of iptables that they are written with. */

#include "base/variant.h"
#include "plan/settings.h"

struct backend_host {
	enum iptables_variant variant; /* AUTO only in tests: whatever `iptables` is */
};

/*
 * The variant that the options ask for, or else the node's. Which and why is logged from this level on, and in
 * any case when the answer is doubtful.
 */
struct backend_host *host_open(const struct mode_options *options, int level);
void host_close(struct backend_host *host); /* accepts NULL */

/* As backend_ops.leftovers(): a bit for each variant. */
unsigned int host_leftovers(enum family family, unsigned int *ret_needs);

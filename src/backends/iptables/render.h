/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A dry run of iptables mode: what a first, full sync of one family would write, as text. Touches
 * nothing and starts nothing.
 */

#include "backends/iptables/ruleset.h"
#include "base/text.h"

enum render_format {
	RENDER_RESTORE = 0, /* exactly the input of iptables-restore --noflush --counters */
	RENDER_SAVE, /* what iptables-save shows afterwards, on a host that had no rules before */
	RENDER_FORMAT_COUNT,
};

extern const char *const render_formats[]; /* "restore", "save", NULL */

struct render_input {
	const struct settings *settings;
	const struct ruleset_host *host;
	/* addresses of the node's interfaces, for node ports limited to CIDRs; NULL: not known */
	const struct addr *addresses;
	size_t n_addresses;
};

/* Appends to *ret. delta: a full one. */
void render(const struct render_input *input, const struct plan_delta *delta,
	    enum render_format format, struct text *ret);

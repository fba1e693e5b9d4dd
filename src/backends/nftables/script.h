/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What is written, as commands for `nft -f`. */

#include "backends/nftables/writer.h"
#include "base/text.h"
#include "plan/plan_store.h"

struct script_writer {
	struct writer writer;
	struct text *text;
	struct element_list added; /* written at the end, in their order */
};

/* Begins with the table, empty whatever it was. The text is borrowed and appended to. */
void script_writer_init(struct script_writer *script, enum family family, struct text *text);
void script_writer_finish(struct script_writer *script);

/*
 * A dry run: what a first, full sync of one family would write, appended to *ret. delta: a full one. addresses: of the
 * node's interfaces.
 */
void script_render(const struct settings *settings, const struct plan_delta *delta,
		   const struct addr *addresses, size_t n_addresses, struct text *ret);

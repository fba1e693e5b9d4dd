/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/nftables/script.h"

#include "backends/nftables/layout.h"
#include "backends/nftables/script_writer.h"
#include "backends/nftables/state.h"

void script_render(const struct settings *settings, const struct plan_delta *delta,
		   const struct addr *addresses, size_t n_addresses, struct text *ret)
{
	struct state *state = state_new(settings);
	struct script_writer script;

	state_begin(state, &(struct state_input){.delta = delta,
						 .full = true,
						 .addresses = addresses,
						 .n_addresses = n_addresses});
	script_writer_init(&script, settings->family, ret);
	layout_containers(&script.writer);
	state_write_chains(state, &script.writer);
	state_write_elements(state, &script.writer);
	script_writer_finish(&script);
	state_free(state);
}

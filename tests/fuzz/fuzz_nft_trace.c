/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bytes as what the kernel tells of traced packets: each message is read, and given to the trace of
 * one packet. Handles say what rules do.
 *
 *	meson setup -Dfuzz=true build-fuzz && ninja -C build-fuzz fuzz_nft_trace
 *	build-fuzz/tests/fuzz/fuzz_nft_trace tests/fuzz/corpus/nft_trace
 */

#include <assert.h>
#include <libmnl/libmnl.h>
#include <stdio.h>

#include "inspect/trace.h"
#include "kernel/nft_message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool any_hook(void *arg attr_unused, const struct nft_trace *event, enum hook *ret)
{
	*ret = (enum hook)(strlen(event->chain) % HOOK_COUNT);
	return event->handle % 2;
}

static void any_rule(void *arg attr_unused, const struct nft_trace *event, struct trace_rule *ret)
{
	*ret = (struct trace_rule){
		.position = 1,
		.length = 1,
		.text = event->chain,
		.effect = (enum effect)(event->handle % EFFECT_COUNT),
		.recalls = event->handle % 3 == 0,
	};
}

static bool any_interface(void *arg attr_unused, uint32_t index,
			  char name[static PACKET_INTERFACE_MAX])
{
	snprintf(name, PACKET_INTERFACE_MAX, "%s", index % 2 ? "lo" : "eth0");
	return true;
}

static const struct trace_ops ops = {any_hook, any_rule, any_interface};

static void check(const struct trace *trace)
{
	assert(trace->settled <= trace->n_steps);
	assert(trace->masqueraded_at == SIZE_MAX || trace->masqueraded_at < trace->n_steps);
	for (size_t i = 0; i < trace->n_steps; i++)
		assert(trace->steps[i].table && trace->steps[i].chain &&
		       trace->steps[i].effect < EFFECT_COUNT);
	assert(trace_verdict_name(trace));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_free char *copy = xmalloc(MAX(size, 1)); /* as in fuzz_nft.c */
	struct nft_datagram datagram = {copy, size, false};
	const struct nlmsghdr *message;
	struct trace *trace = NULL;
	struct nft_trace event;

	memcpy(copy, data, size);
	while ((message = nft_datagram_next(&datagram))) {
		if (nft_trace_decode(message, &event) < 0)
			continue;
		if (!trace && event.has_packet)
			trace = trace_new(&ops, NULL, PROTOCOL_TCP, &event);
		else if (trace && trace_goes_on(trace, &event))
			trace_take(trace, &event);
	}
	if (trace && trace->end == TRACE_UNDER_WAY)
		trace_give_up(trace);
	if (trace)
		check(trace);
	trace_free(trace);
	return 0;
}

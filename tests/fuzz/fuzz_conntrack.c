/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bytes as messages of connection tracking, one behind the other.
 *
 *	meson setup -Dfuzz=true build-fuzz && ninja -C build-fuzz fuzz_conntrack
 *	build-fuzz/tests/fuzz/fuzz_conntrack tests/fuzz/corpus/conntrack
 */

#include <assert.h>
#include <errno.h>

#include "kernel/conntrack.h"
#include "netlink_messages.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct nlmsghdr *message)
{
	struct conntrack_flow flow;
	int r = conntrack_decode(message, &flow);

	assert(r == 0 || r == -EBADMSG);
	if (r < 0)
		return;
	assert(flow.original.src.family < FAMILY_COUNT);
	assert(flow.original.src.family == flow.original.dst.family);
	assert(flow.reply.src.family == flow.reply.dst.family);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	netlink_messages_each(data, size, check);
	return 0;
}

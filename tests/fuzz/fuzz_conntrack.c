/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bytes as messages of connection tracking, one behind the other.
 *
 *	meson setup -Dfuzz=true build-fuzz && ninja -C build-fuzz fuzz_conntrack
 *	build-fuzz/tests/fuzz/fuzz_conntrack tests/fuzz/corpus/conntrack
 */

#include <assert.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <stdlib.h>

#include "kernel/conntrack.h"

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
	cleanup_free char *copy = xmalloc(size + !size);
	const struct nlmsghdr *message = (const struct nlmsghdr *)copy;
	int left = (int)size;

	memcpy(copy, data, size);
	while (mnl_nlmsg_ok(message, left)) {
		check(message);
		message = mnl_nlmsg_next(message, &left);
	}
	return 0;
}

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

/* libmnl's own check takes a length beyond 2 GiB for a negative one, and lets it pass. */
static bool fits(const struct nlmsghdr *message, size_t left)
{
	return left >= sizeof(*message) && message->nlmsg_len >= sizeof(*message) &&
	       message->nlmsg_len <= left;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_free char *copy = xmalloc(size + !size);
	size_t at = 0;

	memcpy(copy, data, size);
	while (at < size && fits((const struct nlmsghdr *)(copy + at), size - at)) {
		const struct nlmsghdr *message = (const struct nlmsghdr *)(copy + at);

		check(message);
		at += MNL_ALIGN(message->nlmsg_len);
	}
	return 0;
}

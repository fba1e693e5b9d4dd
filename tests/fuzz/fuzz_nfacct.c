/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bytes as the kernel's answer to a question for an nfacct counter, one message behind the other.
 *
 *	meson setup -Dfuzz=true build-fuzz && ninja -C build-fuzz fuzz_nfacct
 *	build-fuzz/tests/fuzz/fuzz_nfacct tests/fuzz/corpus/nfacct
 */

#include <assert.h>
#include <errno.h>

#include "kernel/nfacct.h"
#include "netlink_messages.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct nlmsghdr *message)
{
	struct nfacct_counter counter;
	struct err err;
	int r = nfacct_decode(message, &counter, &err);

	assert(r == 0 || (r == -EBADMSG && err.text[0]));
	if (r == 0)
		assert(strnlen(counter.name, sizeof(counter.name)) < sizeof(counter.name));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	netlink_messages_each(data, size, check);
	return 0;
}

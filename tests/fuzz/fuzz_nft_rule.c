/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bytes as a rule that the kernel lists or tells of: whatever they are, the digest reads nothing
 * behind them, and says the same of the same bytes twice.
 *
 *	meson setup -Dfuzz=true build-fuzz && ninja -C build-fuzz fuzz_nft_rule
 *	build-fuzz/tests/fuzz/fuzz_nft_rule tests/fuzz/corpus/nft_rule
 */

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "backends/iptables/nft_rule.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const struct nlmsghdr *message, const char *text)
{
	const char *first = (const char *)message, *last = first + message->nlmsg_len;

	assert(text > first && text < last);
	assert(memchr(text, '\0', (size_t)(last - text)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nft_rule_seen seen, again;
	struct nlmsghdr *message;
	int r;

	if (size < sizeof(*message))
		return 0;
	message = xmalloc(size); /* of its exact size, and aligned */
	memcpy(message, data, size);
	message->nlmsg_len = (uint32_t)size;
	r = nft_rule_digest_message(message, &seen);
	assert(r == 0 || r == -EBADMSG || r == -EAFNOSUPPORT);
	if (r == 0) {
		check_text(message, seen.table);
		check_text(message, seen.chain);
		assert(nft_rule_digest_message(message, &again) == 0);
		assert(seen.digest == again.digest && seen.handle == again.handle);
	}
	free(message);
	return 0;
}

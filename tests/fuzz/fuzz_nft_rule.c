/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bytes as a rule that the kernel lists or tells of: whatever they are, the digest reads nothing
 * behind them, and says the same of the same bytes twice. As a notification, too, it is either damage
 * to our chains or none.
 *
 *	meson setup -Dfuzz=true build-fuzz && ninja -C build-fuzz fuzz_nft_rule
 *	build-fuzz/tests/fuzz/fuzz_nft_rule tests/fuzz/corpus/nft_rule
 */

#include <assert.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <stdlib.h>

#include "backends/iptables/netlink/nft_damage.h"
#include "xtables/nft_rule.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const struct nlmsghdr *message, const char *text)
{
	const char *first = (const char *)message, *last = first + message->nlmsg_len;

	assert(text > first && text < last);
	assert(memchr(text, '\0', (size_t)(last - text)));
}

static void notify(const struct nlmsghdr *message)
{
	static struct nft_link link;
	static struct nft_damage_jumps jumps;
	struct nft_damage damage = {0};

	if (!link.state) {
		link.state = nft_state_new();
		nft_state_chain(link.state, TABLE_NAT, CHAIN_SERVICES);
		nft_damage_jumps_init(&jumps, FAMILY_IPV4);
	}
	for (link.family = 0; link.family < FAMILY_COUNT; link.family++)
		nft_damage_take(&damage, &link, &jumps, message);
	assert(damage.n_messages <= 1);
	nft_damage_done(&damage);
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
	notify(message);
	free(message);
	return 0;
}

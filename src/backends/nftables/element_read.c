/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/nftables/element_read.h"

#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>

#include "backends/nftables/statement_text.h"
#include "kernel/nft_message.h"

/* The bytes of NFTA_DATA_VALUE inside a key or data; NULL: it is something else. */
static const uint8_t *value_of(const struct nlattr *nest, size_t *ret_n)
{
	return nl_attr_bytes(nl_attr_find(nl_attr_nest(nest), NFTA_DATA_VALUE), ret_n);
}

static struct nft_verdict verdict_of(const struct nlattr *data)
{
	return nft_verdict_of(nl_attr_find(nl_attr_nest(data), NFTA_DATA_VERDICT));
}

/* The prefix that a range is, by its first and last key; false: it is none. */
static bool read_prefix(struct element *element, enum family family, const uint8_t *last)
{
	size_t from = element->key_size - addr_bytes(family);
	uint8_t bits = addr_bits(family), length = 0;

	for (; length < bits; length++)
		if ((element->bytes[from + length / 8] ^ last[from + length / 8]) &
		    0x80 >> length % 8)
			break;
	for (uint8_t i = length; i < bits; i++) {
		uint8_t bit = (uint8_t)(0x80 >> i % 8);

		if (element->bytes[from + i / 8] & bit || !(last[from + i / 8] & bit))
			return false;
	}
	element->prefix = length;
	return memcmp(element->bytes, last, from) == 0;
}

static bool read_key(struct element_read *read, enum family family)
{
	struct element *element = &read->element;
	size_t n, n_last;
	const uint8_t *key = value_of(read->key, &n), *last = value_of(read->key_end, &n_last);

	if (n != container_key_size(element->container, family))
		return false;
	memcpy(element->bytes, key, n);
	element->key_size = (uint8_t)n;
	if (!container_types[element->container].ranges)
		return true;
	if (!last || n_last != n) {
		element->prefix = addr_bits(family);
		return true;
	}
	if (read_prefix(element, family, last))
		return true;
	element->key_size = 0;
	return false;
}

static bool read_verdict(struct element_read *read)
{
	struct nft_verdict verdict = verdict_of(read->data);

	for (enum element_verdict i = VERDICT_GOTO; i < VERDICT_COUNT; i++) {
		if (!verdict.known || verdict.code != element_verdicts[i].code)
			continue;
		read->element.verdict = (uint8_t)i;
		return !element_verdicts[i].has_chain ||
		       (verdict.chain && chain_parse(verdict.chain, &read->element.chain));
	}
	return false;
}

static bool read_data(struct element_read *read, enum family family)
{
	struct element *element = &read->element;
	size_t n;
	const uint8_t *data = value_of(read->data, &n);

	if (container_types[element->container].data == DATA_VERDICT)
		return read_verdict(read);
	if (n != container_data_size(element->container, family))
		return false;
	if (data)
		memcpy(element->bytes + element->key_size, data, n);
	element->data_size = (uint8_t)n;
	return true;
}

static int read_element(const struct nlattr *nest, enum family family, enum container container,
			struct element_read *ret, struct err *err)
{
	const struct nlattr *v[NFTA_SET_ELEM_KEY_END + 1];
	size_t n;

	nl_attr_by_type(nl_attr_nest(nest), v, NFTA_SET_ELEM_KEY_END);
	if (!value_of(v[NFTA_SET_ELEM_KEY], &n))
		return err_set(err, -EBADMSG, "the kernel lists an element without a key");
	element_begin(&ret->element, container);
	ret->key = v[NFTA_SET_ELEM_KEY];
	ret->key_end = v[NFTA_SET_ELEM_KEY_END];
	ret->data = v[NFTA_SET_ELEM_DATA];
	ret->is_raw = !read_key(ret, family) || !read_data(ret, family);
	ret->timeout_ms = nl_attr_u64(v[NFTA_SET_ELEM_TIMEOUT]);
	ret->expires_ms = nl_attr_u64(v[NFTA_SET_ELEM_EXPIRATION]);
	if (user_data_read_comment(v[NFTA_SET_ELEM_USERDATA], ret->comment))
		ret->element.comment = ret->comment;
	return 0;
}

int element_read_each(const struct nlmsghdr *message, enum family family, enum container container,
		      element_read_fn *fn, void *arg, struct err *err)
{
	/* an empty set is listed without any */
	struct nl_attrs list = nl_attr_nest(nft_message_attr(message, NFTA_SET_ELEM_LIST_ELEMENTS));
	const struct nlattr *attribute;
	struct element_read read;
	int r = 0;

	while (r == 0 && nl_attr_next(&list, &attribute) > 0) {
		if (nl_attr_type(attribute) != NFTA_LIST_ELEM)
			continue;
		r = read_element(attribute, family, container, &read, err);
		if (r == 0)
			fn(arg, &read);
	}
	return r;
}

/* -- in words */

static void put_bytes(struct text *text, const char *before, const struct nlattr *nest)
{
	size_t n;
	const uint8_t *bytes = value_of(nest, &n);

	if (n > 0)
		text_str(text, before);
	for (size_t i = 0; i < n; i++)
		text_printf(text, "%02x", bytes[i]);
}

/* A range that is no prefix: FIRST-LAST, LAST being an address. */
static void put_range(struct text *text, enum family family, const struct element_read *read)
{
	struct addr last = {.family = (uint8_t)family};
	struct element first = read->element;
	char out[ADDR_TEXT_MAX];
	size_t n;
	const uint8_t *bytes = value_of(read->key_end, &n);

	first.prefix = addr_bits(family);
	memcpy(last.bytes, bytes + n - addr_bytes(family), addr_bytes(family));
	addr_print(&last, out);
	statement_text_key(text, family, &first);
	text_printf(text, "-%s", out);
}

static void put_raw_data(struct text *text, const struct element_read *read)
{
	struct nft_verdict verdict = verdict_of(read->data);

	put_bytes(text, " : 0x", read->data);
	if (verdict.chain)
		text_printf(text, " : %s %s", verdict.code == NFT_JUMP ? "jump" : "goto",
			    verdict.chain);
	else if (verdict.known)
		text_printf(text, " : verdict %d", verdict.code);
}

void element_read_text(struct text *text, enum family family, const struct element_read *read)
{
	size_t n, n_last;

	value_of(read->key, &n);
	value_of(read->key_end, &n_last);
	if (!read->is_raw) {
		statement_text_element(text, family, &read->element);
		return;
	}
	if (read->element.key_size > 0)
		statement_text_key(text, family, &read->element);
	else if (n == container_key_size(read->element.container, family) && n_last == n)
		put_range(text, family, read);
	else
		put_bytes(text, "0x", read->key);
	put_raw_data(text, read);
}

/* SPDX-License-Identifier: Apache-2.0 */

/* Elements of every set and map, as messages and back; and what is not as we would write it. */

#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>

#include "backends/nftables/element_read.h"
#include "build.h"
#include "kernel/nft_message.h"

#define MESSAGE_SIZE 1024

struct written {
	_Alignas(struct nlmsghdr) char buffer[MESSAGE_SIZE];
	struct nlmsghdr *message;
	struct nlattr *list, *one;
};

static void begin(struct written *written)
{
	memset(written->buffer, 0, sizeof(written->buffer));
	written->message = mnl_nlmsg_put_header(written->buffer);
	written->message->nlmsg_type = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWSETELEM;
	mnl_nlmsg_put_extra_header(written->message, sizeof(struct nfgenmsg));
	written->list = mnl_attr_nest_start(written->message, NFTA_SET_ELEM_LIST_ELEMENTS);
	written->one = mnl_attr_nest_start(written->message, NFTA_LIST_ELEM);
}

static const struct nlmsghdr *end(struct written *written)
{
	mnl_attr_nest_end(written->message, written->one);
	mnl_attr_nest_end(written->message, written->list);
	return written->message;
}

/* -- reading */

struct seen {
	size_t n;
	enum family family;
	struct element element; /* without its comment */
	bool is_raw;
	char comment[USER_DATA_COMMENT_MAX];
	char *words;
};

static void see(void *arg, const struct element_read *read)
{
	struct seen *seen = arg;
	cleanup_text struct text text = {0};

	seen->n++;
	seen->element = read->element;
	seen->is_raw = read->is_raw;
	if (read->element.comment)
		snprintf(seen->comment, sizeof(seen->comment), "%s", read->element.comment);
	seen->element.comment = read->element.comment ? seen->comment : NULL;
	element_read_text(&text, seen->family, read);
	free(seen->words);
	seen->words = text_dup(&text);
}

static struct seen read_one(const struct nlmsghdr *message, enum family family,
			    enum container container)
{
	struct seen seen = {.family = family};
	struct err err;

	assert_int_equal(element_read_each(message, family, container, see, &seen, &err), 0);
	assert_int_equal(seen.n, 1);
	return seen;
}

/* -- any element of ours */

static uint32_t dice = 7;

static uint32_t throw(uint32_t n)
{
	dice = dice * 1664525 + 1013904223;
	return (dice >> 8) % n;
}

static struct addr any_addr(enum family family)
{
	struct addr addr = {.family = (uint8_t)family};

	for (size_t i = 0; i < addr_bytes(family); i++)
		addr.bytes[i] = (uint8_t) throw(256);
	return addr;
}

static void add_field(struct element *element, enum family family, enum container_field field)
{
	struct addr addr = any_addr(family);

	if (field == FIELD_ADDRESS)
		element_key_addr(element, &addr);
	else if (field == FIELD_PROTOCOL)
		element_key_protocol(element, throw(PROTOCOL_COUNT));
	else if (field == FIELD_PORT)
		element_key_port(element, (uint16_t) throw(65536));
	else
		element_key_id(element, throw(1000));
}

static void add_data(struct element *element, enum family family)
{
	struct addr addr = any_addr(family);

	switch (container_types[element->container].data) {
	case DATA_VERDICT:
		element_goto(element, CHAIN_PICK, 1 + throw(100));
		element->verdict = (uint8_t)(VERDICT_GOTO + throw(VERDICT_COUNT - VERDICT_GOTO));
		if (!element_verdicts[element->verdict].has_chain)
			element->chain = (struct chain){0};
		break;
	case DATA_ENDPOINT:
		element_data_endpoint(element, &addr, (uint16_t) throw(65536));
		break;
	case DATA_ID:
		element_data_id(element, throw(1000));
		break;
	default:
		break;
	}
}

/* The address that ends the key becomes that of a prefix; returns the last key of it. */
static void make_range(struct element *element, enum family family, uint8_t *ret_last)
{
	size_t from = element->key_size - addr_bytes(family);

	element->prefix = (uint8_t) throw(addr_bits(family) + 1u);
	memcpy(ret_last, element->bytes, element->key_size);
	for (size_t i = element->prefix; i < addr_bits(family); i++) {
		uint8_t bit = (uint8_t)(0x80 >> i % 8);

		element->bytes[from + i / 8] &= (uint8_t)~bit;
		ret_last[from + i / 8] |= bit;
	}
}

static void check(enum family family, enum container container)
{
	const struct container_type *type = &container_types[container];
	uint8_t last[ELEMENT_BYTES];
	struct element element;
	struct written written;
	struct seen seen;

	element_begin(&element, container);
	for (size_t i = 0; i < CONTAINER_FIELDS && type->key[i]; i++)
		add_field(&element, family, type->key[i]);
	if (type->ranges)
		make_range(&element, family, last);
	add_data(&element, family);
	element.comment = throw(2) ? "shop/cart:http" : NULL;
	begin(&written);
	nft_put_value(written.message, NFTA_SET_ELEM_KEY, element.bytes, element.key_size);
	if (type->ranges)
		nft_put_value(written.message, NFTA_SET_ELEM_KEY_END, last, element.key_size);
	if (type->data == DATA_VERDICT) {
		char name[CHAIN_NAME_MAX];

		chain_name(element.chain, name);
		nft_put_verdict(written.message, NFTA_SET_ELEM_DATA,
				element_verdicts[element.verdict].code,
				element_verdicts[element.verdict].has_chain ? name : NULL);
	} else if (type->data != DATA_NONE) {
		nft_put_value(written.message, NFTA_SET_ELEM_DATA, element.bytes + element.key_size,
			      element.data_size);
	}
	if (element.comment)
		user_data_comment(written.message, NFTA_SET_ELEM_USERDATA, element.comment);
	seen = read_one(end(&written), family, container);
	if (seen.element.comment)
		seen.element.comment = seen.comment; /* which was copied with the rest */
	assert_false(seen.is_raw);
	assert_int_equal(seen.element.key_size, element.key_size);
	assert_int_equal(element_compare(&seen.element, &element), 0);
	assert_true(element_same_data(&seen.element, &element));
	free(seen.words);
}

static void any_element_is_read_as_it_was_written(void **state attr_unused)
{
	for (size_t i = 0; i < 200; i++)
		for (enum container container = 0; container < CONTAINER_COUNT; container++)
			check(i % FAMILY_COUNT, container);
}

/* -- what is not ours */

static const uint8_t destination[] = {10, 96, 0, 1, 6, 0, 0, 0, 0, 80, 0, 0};

static void expect_verdict(int code, const char *chain, bool is_raw, const char *words)
{
	struct written written;
	struct seen seen;

	begin(&written);
	nft_put_value(written.message, NFTA_SET_ELEM_KEY, destination, sizeof(destination));
	nft_put_verdict(written.message, NFTA_SET_ELEM_DATA, code, chain);
	seen = read_one(end(&written), FAMILY_IPV4, CONTAINER_SERVICE_IPS);
	assert_int_equal(seen.is_raw, is_raw);
	assert_int_equal(seen.element.key_size, sizeof(destination));
	assert_string_equal(seen.words, words);
	free(seen.words);
}

static void other_verdicts_are_raw_but_their_keys_are_not(void **state attr_unused)
{
	expect_verdict(NFT_GOTO, "pick-2", false, "10.96.0.1 . tcp . 80 : goto pick-2");
	expect_verdict(NF_ACCEPT, NULL, false, "10.96.0.1 . tcp . 80 : accept");
	expect_verdict(NFT_GOTO, "theirs", true, "10.96.0.1 . tcp . 80 : goto theirs");
	expect_verdict(NFT_JUMP, "theirs", true, "10.96.0.1 . tcp . 80 : jump theirs");
	expect_verdict(NFT_RETURN, NULL, true, "10.96.0.1 . tcp . 80 : verdict -5");
	expect_verdict(NFT_GOTO, NULL, true, "10.96.0.1 . tcp . 80 : verdict -4");
}

static void other_sizes_are_raw(void **state attr_unused)
{
	struct written written;
	struct seen seen;

	begin(&written);
	nft_put_value(written.message, NFTA_SET_ELEM_KEY, destination, 7);
	nft_put_value(written.message, NFTA_SET_ELEM_DATA, destination, 2);
	seen = read_one(end(&written), FAMILY_IPV4, CONTAINER_SERVICE_IPS);
	assert_true(seen.is_raw);
	assert_int_equal(seen.element.key_size, 0);
	assert_string_equal(seen.words, "0x0a600001060000 : 0x0a60");
	free(seen.words);
	begin(&written); /* data where there should be none */
	nft_put_value(written.message, NFTA_SET_ELEM_KEY, destination, sizeof(destination));
	nft_put_value(written.message, NFTA_SET_ELEM_DATA, destination, 2);
	seen = read_one(end(&written), FAMILY_IPV4, CONTAINER_FIREWALLED);
	assert_true(seen.is_raw);
	assert_string_equal(seen.words, "10.96.0.1 . tcp . 80 : 0x0a60");
	free(seen.words);
}

static void an_element_without_a_key_is_refused(void **state attr_unused)
{
	struct seen seen = {.n = 0};
	struct written written;
	struct err err;

	begin(&written);
	assert_int_equal(element_read_each(end(&written), FAMILY_IPV4, CONTAINER_CLUSTER_IPS, see,
					   &seen, &err),
			 -EBADMSG);
	written.message->nlmsg_len = MNL_NLMSG_HDRLEN + sizeof(struct nfgenmsg); /* an empty set */
	assert_int_equal(element_read_each(written.message, FAMILY_IPV4, CONTAINER_CLUSTER_IPS, see,
					   &seen, &err),
			 0);
	assert_int_equal(seen.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_element_is_read_as_it_was_written),
		cmocka_unit_test(other_verdicts_are_raw_but_their_keys_are_not),
		cmocka_unit_test(other_sizes_are_raw),
		cmocka_unit_test(an_element_without_a_key_is_refused),
	};

	return cmocka_run_group_tests_name("element_read", tests, NULL, NULL);
}

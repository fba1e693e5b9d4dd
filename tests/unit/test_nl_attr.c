/* SPDX-License-Identifier: Apache-2.0 */

/* Attributes whose lengths are true, and such as are not. Each message is as long as it says: a
 * sanitizer minds a byte more. */

#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "kernel/nft_expr.h"

/* A message of head and the given bytes, of its exact size; the caller frees it. */
static struct nlmsghdr *message_of(const void *bytes, size_t n)
{
	struct nlmsghdr *message = xmalloc(sizeof(*message) + n);

	*message = (struct nlmsghdr){.nlmsg_len = (uint32_t)(sizeof(*message) + n)};
	memcpy(message + 1, bytes, n);
	return message;
}

#define MESSAGE(...) \
	message_of((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

static void attributes_are_told_in_their_order(void **state attr_unused)
{
	cleanup_free struct nlmsghdr *message =
		MESSAGE(5, 0, 1, 0, 'x', 0, 0, 0, 4, 0, 9, 0, 6, 0, 2, 0x80, 0, 7);
	struct nl_attrs attrs = nl_attr_message(message, 0);
	const struct nlattr *attr;

	assert_int_equal(nl_attr_next(&attrs, &attr), 1);
	assert_int_equal(nl_attr_u8(attr), 'x');
	assert_int_equal(nl_attr_next(&attrs, &attr), 1);
	assert_int_equal(attr->nla_type, 9);
	assert_int_equal(nl_attr_next(&attrs, &attr), 1);
	assert_int_equal(nl_attr_u16(attr), 7); /* without its padding */
	assert_int_equal(nl_attr_next(&attrs, &attr), 0);
	assert_int_equal(nl_attr_next(&attrs, &attr), 0);
}

static void a_length_that_cannot_be_right_ends_the_list(void **state attr_unused)
{
	struct nlmsghdr *messages[] = {
		MESSAGE(4, 0, 1, 0, 3, 0, 2, 0),       /* shorter than its own head */
		MESSAGE(4, 0, 1, 0, 0, 0, 2, 0),       /* which would be walked for ever */
		MESSAGE(4, 0, 1, 0, 5, 0, 2, 0),       /* longer than the message */
		MESSAGE(4, 0, 1, 0, 0xff, 0xff, 2, 0), /* by far */
		MESSAGE(4, 0, 1, 0, 4, 0, 2),          /* no room for a head */
	};

	for (size_t i = 0; i < ARRAY_SIZE(messages); i++) {
		const struct nlattr *v[3];
		struct nl_attrs attrs = nl_attr_message(messages[i], 0);

		assert_int_equal(nl_attr_by_type(attrs, v, 2), -EBADMSG);
		assert_non_null(v[1]);
		assert_null(v[2]);
		assert_null(nl_attr_find(attrs, 2));
		assert_ptr_equal(nl_attr_find(attrs, 1), v[1]);
		free(take(messages[i]));
	}
}

static void of_one_type_the_last_counts(void **state attr_unused)
{
	cleanup_free struct nlmsghdr *message =
		MESSAGE(5, 0, 1, 0, 'a', 0, 0, 0, 5, 0, 1, 0, 'b', 0, 0, 0, 4, 0, 3, 0);
	const struct nlattr *v[4];

	assert_int_equal(nl_attr_by_type(nl_attr_message(message, 0), v, 3), 0);
	assert_int_equal(nl_attr_u8(v[1]), 'b');
	assert_null(v[0]);
	assert_null(v[2]);
	assert_non_null(v[3]);
	assert_int_equal(nl_attr_by_type(nl_attr_message(message, 0), v, 2), 1); /* 3 is higher */
}

static void a_value_of_another_size_is_none(void **state attr_unused)
{
	cleanup_free struct nlmsghdr *message = MESSAGE(8, 0, 1, 0, 0, 0, 0x12, 0x34);
	const struct nlattr *attr = nl_attr_find(nl_attr_message(message, 0), 1);
	uint16_t small = 7;

	assert_int_equal(nl_attr_u32(attr), 0x1234);
	assert_int_equal(nl_attr_u8(attr), 0);
	assert_int_equal(nl_attr_u16(attr), 0);
	assert_int_equal(nl_attr_u64(attr), 0);
	assert_false(nl_attr_copy(attr, &small, sizeof(small)));
	assert_int_equal(small, 7);
}

static void a_text_ends_where_its_attribute_does(void **state attr_unused)
{
	cleanup_free struct nlmsghdr *message =
		MESSAGE(7, 0, 1, 0, 'a', 'b', 0, 0, 6, 0, 2, 0, 'a', 'b', 0, 0, 4, 0, 3, 0);
	struct nl_attrs attrs = nl_attr_message(message, 0);

	assert_string_equal(nl_attr_text(nl_attr_find(attrs, 1)), "ab");
	assert_null(nl_attr_text(nl_attr_find(attrs, 2)));
	assert_null(nl_attr_text(nl_attr_find(attrs, 3)));
}

static void what_is_not_there_has_nothing(void **state attr_unused)
{
	cleanup_free struct nlmsghdr *message = MESSAGE(2, 0, 0, 0);
	const struct nlattr *attr;
	struct nl_attrs attrs = nl_attr_message(message, 8); /* a head longer than the message */
	size_t n = 1;

	assert_int_equal(nl_attr_next(&attrs, &attr), 0);
	attrs = nl_attr_nest(NULL);
	assert_int_equal(nl_attr_next(&attrs, &attr), 0);
	assert_null(nl_attr_bytes(NULL, &n));
	assert_int_equal(n, 0);
	assert_null(nl_attr_text(NULL));
	assert_int_equal(nl_attr_u64(NULL), 0);
}

/* -- expressions */

static void expressions_have_a_name_and_attributes(void **state attr_unused)
{
	_Alignas(struct nlmsghdr) char buffer[1024];
	struct nlmsghdr *message = mnl_nlmsg_put_header(buffer);
	struct nl_attrs list;
	struct nft_expr expr;

	nft_expr_meta(message, NFT_REG_1, NFT_META_MARK);
	nft_expr_verdict(message, NFT_RETURN, NULL);
	list = nl_attr_message(message, 0);
	assert_int_equal(nft_expr_next(&list, &expr), 1);
	assert_string_equal(expr.name, "meta");
	assert_int_equal(expr.parsed, 0);
	assert_int_equal(nl_attr_u32(expr.v[NFTA_META_KEY]), NFT_META_MARK);
	assert_int_equal(nl_attr_u32(expr.v[NFTA_META_DREG]), NFT_REG_1);
	assert_null(expr.v[NFTA_META_SREG]);
	assert_int_equal(nft_expr_next(&list, &expr), 1);
	assert_string_equal(expr.name, "immediate");
	assert_int_equal(nft_expr_next(&list, &expr), 0);
}

static void data_of_an_expression_may_be_anything(void **state attr_unused)
{
	cleanup_free struct nlmsghdr *without =
		MESSAGE(12, 0, 1, 0, 6, 0, NFTA_EXPR_NAME, 0, 'x', 0, 0, 0);
	cleanup_free struct nlmsghdr *broken = MESSAGE(20, 0, 1, 0, 6, 0, NFTA_EXPR_NAME, 0, 'x', 0,
						       0, 0, 8, 0, NFTA_EXPR_DATA, 0, 9, 0, 1, 0);
	cleanup_free struct nlmsghdr *higher =
		MESSAGE(20, 0, 1, 0, 6, 0, NFTA_EXPR_NAME, 0, 'x', 0, 0, 0, 8, 0, NFTA_EXPR_DATA, 0,
			4, 0, NFT_EXPR_ATTR_MAX + 1, 0);
	struct nl_attrs list = nl_attr_message(without, 0);
	struct nft_expr expr;

	assert_int_equal(nft_expr_next(&list, &expr), 1);
	assert_null(expr.data);
	assert_int_equal(expr.parsed, 0);
	list = nl_attr_message(broken, 0);
	assert_int_equal(nft_expr_next(&list, &expr), 1);
	assert_non_null(expr.data);
	assert_int_equal(expr.parsed, -EBADMSG);
	list = nl_attr_message(higher, 0);
	assert_int_equal(nft_expr_next(&list, &expr), 1);
	assert_int_equal(expr.parsed, 1);
}

static void an_expression_without_a_name_is_none(void **state attr_unused)
{
	struct nlmsghdr *messages[] = {
		MESSAGE(4, 0, 1, 0),                                           /* empty */
		MESSAGE(12, 0, 1, 0, 5, 0, NFTA_EXPR_NAME, 0, 'x', 0, 0, 0),   /* no NUL */
		MESSAGE(12, 0, 1, 0, 200, 0, NFTA_EXPR_NAME, 0, 'x', 0, 0, 0), /* too long */
		MESSAGE(16, 0, 1, 0, 6, 0, NFTA_EXPR_NAME, 0, 'x', 0, 0, 0, 1, 0, 2, 0),
		MESSAGE(13, 0, 1, 0, 6, 0, NFTA_EXPR_NAME, 0, 'x', 0, 0, 0), /* beyond the list */
	};

	for (size_t i = 0; i < ARRAY_SIZE(messages); i++) {
		struct nl_attrs list = nl_attr_message(messages[i], 0);
		struct nft_expr expr;

		assert_int_equal(nft_expr_next(&list, &expr), -EBADMSG);
		free(take(messages[i]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(attributes_are_told_in_their_order),
		cmocka_unit_test(a_length_that_cannot_be_right_ends_the_list),
		cmocka_unit_test(of_one_type_the_last_counts),
		cmocka_unit_test(a_value_of_another_size_is_none),
		cmocka_unit_test(a_text_ends_where_its_attribute_does),
		cmocka_unit_test(what_is_not_there_has_nothing),
		cmocka_unit_test(expressions_have_a_name_and_attributes),
		cmocka_unit_test(data_of_an_expression_may_be_anything),
		cmocka_unit_test(an_expression_without_a_name_is_none),
	};

	return cmocka_run_group_tests_name("nl_attr", tests, NULL, NULL);
}

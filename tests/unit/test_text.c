/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/text.h"

#define BLOCK sizeof(((struct text_block *)NULL)->data)

static void assert_text(const struct text *text, const char *wanted)
{
	cleanup_free char *copy = text_dup(text);

	assert_int_equal(text->size, strlen(wanted));
	assert_string_equal(copy, wanted);
}

static void pieces_follow_one_another(void **state attr_unused)
{
	cleanup_text struct text text;

	text_init(&text);
	assert_text(&text, "");
	text_str(&text, "-A ");
	text_printf(&text, "%s -p %d", "KUBE", 6);
	text_printf(&text, "%s", "");
	text_add(&text, "\nmore", 1);
	assert_text(&text, "-A KUBE -p 6\n");
}

static void block_is_64_kib(void **state attr_unused)
{
	assert_int_equal(sizeof(struct text_block), 64 * 1024);
}

/* Numbers of many lengths, so that some line lies across each end of a block. */
static void text_larger_than_a_block_keeps_its_bytes(void **state attr_unused)
{
	cleanup_text struct text text;
	cleanup_free char *copy = NULL;
	char *at;

	text_init(&text);
	for (unsigned int i = 0; i < 60000; i++)
		text_printf(&text, "%u\n", i);
	assert_true(text.size > 4 * BLOCK);
	at = copy = text_dup(&text);
	assert_int_equal(strlen(copy), text.size);
	for (unsigned int i = 0; i < 60000; i++, at++)
		assert_int_equal(strtoul(at, &at, 10), i);
	assert_int_equal(*at, '\0');
}

static void one_piece_may_be_larger_than_a_block(void **state attr_unused)
{
	cleanup_text struct text text;
	cleanup_free char *piece = xcalloc(1, 3 * BLOCK);

	text_init(&text);
	memset(piece, 'x', 3 * BLOCK - 1);
	text_str(&text, piece);
	text_printf(&text, "%s", piece);
	assert_int_equal(text.size, 6 * BLOCK - 2);
}

static void consuming_drops_from_the_start(void **state attr_unused)
{
	cleanup_text struct text text;
	size_t n, total = 0;

	text_init(&text);
	for (unsigned int i = 0; i < 40000; i++)
		text_printf(&text, "%07u\n", i);
	while (text_head(&text, &n)) {
		const char *head = text_head(&text, &n);
		size_t part = MIN(n, 4096);

		assert_int_equal(strtoul(head, NULL, 10), total / 8);
		text_consume(&text, part);
		total += part;
	}
	assert_int_equal(total, 40000 * 8);
	assert_int_equal(text.size, 0);
	assert_int_equal(n, 0);
	text_str(&text, "again");
	assert_text(&text, "again");
}

static void moving_appends_and_leaves_nothing(void **state attr_unused)
{
	cleanup_text struct text to, from;

	text_init(&to);
	text_init(&from);
	text_move(&to, &from);
	assert_text(&to, "");
	text_str(&from, "one ");
	text_move(&to, &from);
	assert_text(&from, "");
	text_str(&from, "two ");
	text_move(&to, &from);
	text_str(&to, "three");
	text_str(&from, "free again");
	assert_text(&to, "one two three");
	assert_text(&from, "free again");
	text_consume(&to, 5);
	assert_text(&to, "wo three");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_follow_one_another),
		cmocka_unit_test(block_is_64_kib),
		cmocka_unit_test(text_larger_than_a_block_keeps_its_bytes),
		cmocka_unit_test(one_piece_may_be_larger_than_a_block),
		cmocka_unit_test(consuming_drops_from_the_start),
		cmocka_unit_test(moving_appends_and_leaves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */

/* Documents as JSON and as YAML: the exact text, and strings that would break it. */

#include "base/doc.h"
#include "build.h"

static void write_all(struct doc *doc)
{
	doc_open_map(doc, NULL);
	doc_string(doc, "name", "web");
	doc_open_list(doc, "ports");
	doc_number(doc, NULL, 80);
	doc_open_map(doc, NULL);
	doc_bool(doc, "udp", true);
	doc_real(doc, "percent", 100.0 / 3);
	doc_close(doc);
	doc_open_list(doc, NULL);
	doc_close(doc);
	doc_close(doc);
	doc_open_map(doc, "empty");
	doc_close(doc);
	doc_string(doc, "none", NULL);
	doc_close(doc);
}

static void assert_document(enum doc_format format, const char *expected)
{
	cleanup_text struct text text = {0};
	cleanup_free char *printed = NULL;
	struct doc doc;

	doc_init(&doc, &text, format);
	write_all(&doc);
	printed = text_dup(&text);
	assert_string_equal(printed, expected);
}

static void json_is_indented(void **state)
{
	(void)state;
	assert_document(DOC_JSON, "{\n"
				  "  \"name\": \"web\",\n"
				  "  \"ports\": [\n"
				  "    80,\n"
				  "    {\n"
				  "      \"udp\": true,\n"
				  "      \"percent\": 33.3333\n"
				  "    },\n"
				  "    []\n"
				  "  ],\n"
				  "  \"empty\": {},\n"
				  "  \"none\": null\n"
				  "}\n");
}

static void yaml_says_the_same(void **state)
{
	(void)state;
	assert_document(DOC_YAML, "name: \"web\"\n"
				  "ports:\n"
				  "  - 80\n"
				  "  - udp: true\n"
				  "    percent: 33.3333\n"
				  "  - []\n"
				  "empty: {}\n"
				  "none: null\n");
}

static void assert_quoted(const char *value, const char *expected)
{
	cleanup_text struct text text = {0};
	cleanup_free char *printed = NULL;

	doc_quote(&text, value);
	printed = text_dup(&text);
	assert_string_equal(printed, expected);
}

static void strings_cannot_break_out(void **state)
{
	(void)state;
	assert_quoted("a\"b\\c", "\"a\\\"b\\\\c\"");
	assert_quoted("a\nb\tc\x01", "\"a\\nb\\tc\\u0001\"");
	assert_quoted("gr\xc3\xbc\xc3\x9f", "\"gr\xc3\xbc\xc3\x9f\"");
}

static void bytes_that_are_no_utf8_are_replaced(void **state)
{
	(void)state;
	assert_quoted("\xff", "\"\\ufffd\"");
	assert_quoted("a\xc3", "\"a\\ufffd\"");
	assert_quoted("\xc0\x80", "\"\\ufffd\\ufffd\"");
	assert_quoted("\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\"");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(json_is_indented),
		cmocka_unit_test(yaml_says_the_same),
		cmocka_unit_test(strings_cannot_break_out),
		cmocka_unit_test(bytes_that_are_no_utf8_are_replaced),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

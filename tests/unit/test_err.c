/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"

static void error_holds_code_and_text(void **state attr_unused)
{
	struct err err;

	assert_int_equal(err_set(&err, -ENOENT, "no file '%s'", "x"), -ENOENT);
	assert_int_equal(err.code, -ENOENT);
	assert_string_equal(err.text, "no file 'x'");
}

static void each_level_adds_its_part_in_front(void **state attr_unused)
{
	struct err err;

	err_set(&err, -EPERM, "refused");
	assert_int_equal(err_wrap(&err, -EIO, "writing rule %d", 3), -EIO);
	err_wrap(&err, err.code, "syncing %s", "IPv4");
	assert_int_equal(err.code, -EIO);
	assert_string_equal(err.text, "syncing IPv4: writing rule 3: refused");
}

static void system_errors_end_in_their_text(void **state attr_unused)
{
	struct err err;

	assert_int_equal(err_sys(&err, -ENOENT, "opening '%s'", "/x"), -ENOENT);
	assert_string_equal(err.text, "opening '/x': No such file or directory");
}

static void text_that_does_not_fit_is_cut(void **state attr_unused)
{
	char longest[2000];
	struct err err;

	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	err_set(&err, -EINVAL, "%s", longest);
	assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
	err_wrap(&err, -EINVAL, "reading");
	assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
	assert_memory_equal(err.text, "reading: xxx", 12);
	err_wrap(&err, -EINVAL, "%s", longest);
	assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
	err_sys(&err, -EINVAL, "%s", longest);
	assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(error_holds_code_and_text),
		cmocka_unit_test(each_level_adds_its_part_in_front),
		cmocka_unit_test(system_errors_end_in_their_text),
		cmocka_unit_test(text_that_does_not_fit_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

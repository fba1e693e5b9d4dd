/* SPDX-License-Identifier: Apache-2.0 */

/* Replays the seeds of the fuzz target, and what it found: nothing may crash or leak. */

#include "../fuzz/fuzz_http_connection.c" /* NOLINT(bugprone-suspicious-include): the target itself */
#include "replay.h"

static void http_connection_seeds_are_read(void **state attr_unused)
{
	assert_true(replay_folder("corpus/http_connection") > 0);
}

static void http_connection_regressions_stay_mended(void **state attr_unused)
{
	assert_true(replay_folder("regressions/http_connection") > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(http_connection_seeds_are_read),
		cmocka_unit_test(http_connection_regressions_stay_mended),
	};

	return cmocka_run_group_tests_name("fuzz_http_connection", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Replays what the fuzz target found, or would have, and its seeds: nothing may crash, leak, or be
 * let through.
 */

#include "../fuzz/fuzz_manifest.c" /* NOLINT(bugprone-suspicious-include): the target itself */
#include "replay.h"

static void manifest_regressions_stay_mended(void **state attr_unused)
{
	assert_true(replay_folder("regressions/manifest") > 0);
}

static void manifest_seeds_are_read(void **state attr_unused)
{
	assert_true(replay_folder("corpus/manifest") > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(manifest_regressions_stay_mended),
		cmocka_unit_test(manifest_seeds_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */

/* Replays the seeds of the fuzz target, and what it found: nothing may crash or leak. */

#include "../fuzz/fuzz_nfacct.c" /* NOLINT(bugprone-suspicious-include): the target itself */
#include "replay.h"

static void nfacct_seeds_are_read(void **state attr_unused)
{
	assert_true(replay_folder("corpus/nfacct") > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nfacct_seeds_are_read),
	};

	return cmocka_run_group_tests_name("fuzz_nfacct", tests, NULL, NULL);
}

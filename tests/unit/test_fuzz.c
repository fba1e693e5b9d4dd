/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Replays the seeds of one fuzz target (FUZZ_TARGET, with which this file is linked), and what it found or would have: nothing
 * may crash, leak, or be let through.
 */

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/util.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void replay(const char *path)
{
	FILE *file = fopen(path, "r");
	static uint8_t data[1 << 20];
	size_t n;

	assert_non_null(file);
	n = fread(data, 1, sizeof(data), file);
	assert_true(feof(file));
	fclose(file);
	LLVMFuzzerTestOneInput(data, n);
}

/* The number of files; 0 also where the folder is not there. */
static size_t replay_folder(const char *folder)
{
	const char *source = getenv("PORTOLAN_SOURCE");
	char *path cleanup_free =
		xasprintf("%s/tests/fuzz/%s/" FUZZ_TARGET, source ? source : ".", folder);
	DIR *dir = opendir(path);
	struct dirent *entry;
	size_t n = 0;

	while (dir && (entry = readdir(dir))) {
		char *file cleanup_free = xasprintf("%s/%s", path, entry->d_name);

		if (entry->d_name[0] == '.')
			continue;
		replay(file);
		n++;
	}
	if (dir)
		closedir(dir);
	return n;
}

static void seeds_are_read_and_regressions_stay_mended(void **state attr_unused)
{
	if (replay_folder("corpus") == 0)
		fail_msg("no seeds; PORTOLAN_SOURCE should name the source folder");
	replay_folder("regressions");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(seeds_are_read_and_regressions_stay_mended),
	};

	return cmocka_run_group_tests_name("fuzz_" FUZZ_TARGET, tests, NULL, NULL);
}

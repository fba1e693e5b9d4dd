/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Replays what the fuzz target found, or would have, and its seeds: nothing may crash, leak, or be
 * let through.
 */

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../fuzz/fuzz_manifest.c" /* NOLINT(bugprone-suspicious-include): the target itself */

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

static size_t replay_folder(const char *folder)
{
	const char *source = getenv("PORTOLAN_SOURCE");
	char *path cleanup_free = xasprintf("%s/tests/fuzz/%s", source ? source : ".", folder);
	DIR *dir = opendir(path);
	struct dirent *entry;
	size_t n = 0;

	if (!dir)
		fail_msg("%s is not there; PORTOLAN_SOURCE should name the source folder", path);
	while (dir && (entry = readdir(dir))) {
		char *file cleanup_free = xasprintf("%s/%s", path, entry->d_name);

		if (entry->d_name[0] == '.')
			continue;
		replay(file);
		n++;
	}
	closedir(dir);
	return n;
}

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

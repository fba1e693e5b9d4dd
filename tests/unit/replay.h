/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Gives the files of a folder under tests/fuzz to a fuzz target's function. */

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

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Commands of the shell, for tests. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/text.h"

/* What it writes, to be freed by the caller. It must end well. */
attr_unused static char *shell_output(const char *command)
{
	cleanup_text struct text text = {0};
	char part[4096];
	FILE *pipe = popen(command, "re");
	size_t n;

	text_init(&text);
	assert_non_null(pipe);
	while ((n = fread(part, 1, sizeof(part), pipe)) > 0)
		text_add(&text, part, n);
	if (pclose(pipe) != 0)
		fail_msg("%s failed", command);
	return text_dup(&text);
}

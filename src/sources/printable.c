/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/printable.h"

const char *printable(const char *text, char *out, size_t size)
{
	size_t n = strlen(text);
	size_t keep = n < size ? n : size - 4; /* "..." and NUL */

	for (size_t i = 0; i < keep; i++)
		out[i] = (char)(text[i] >= ' ' && text[i] <= '~' ? text[i] : '?');
	memcpy(out + keep, n < size ? "" : "...", n < size ? 1 : 4);
	return out;
}

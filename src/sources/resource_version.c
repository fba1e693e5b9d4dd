/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/resource_version.h"

#define DIGITS "0123456789"

/* Its digits without leading zeros; NULL: it is no number. */
static const char *digits_of(const char *version)
{
	if (!version || !*version || version[strspn(version, DIGITS)])
		return NULL;
	return version + strspn(version, "0");
}

bool resource_version_is_older(const char *a, const char *b)
{
	const char *left = digits_of(a), *right = digits_of(b);

	if (!left || !right)
		return false;
	if (strlen(left) != strlen(right))
		return strlen(left) < strlen(right);
	return strcmp(left, right) < 0;
}

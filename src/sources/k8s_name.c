/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/k8s_name.h"

static bool is_alphanumeric(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* Is s[0..n) a label, were there no limit to its length? A part of a subdomain has none of its own.
 */
static bool is_label(const char *s, size_t n)
{
	if (n == 0 || !is_alphanumeric(s[0]) || !is_alphanumeric(s[n - 1]))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!is_alphanumeric(s[i]) && s[i] != '-')
			return false;
	return true;
}

bool k8s_name_is_label(const char *name)
{
	size_t n = strlen(name);

	return n <= K8S_LABEL_MAX && is_label(name, n);
}

bool k8s_name_is_subdomain(const char *name)
{
	if (strlen(name) > K8S_SUBDOMAIN_MAX)
		return false;
	for (;;) {
		size_t n = strcspn(name, ".");

		if (!is_label(name, n))
			return false;
		if (!name[n])
			return true;
		name += n + 1;
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/iptables_features.h"

#include <ctype.h>
#include <stdlib.h>

struct version {
	unsigned long part[4];
};

/* The first "v1.2..." with two numbers at least. */
static bool version_parse(const char *text, struct version *ret)
{
	for (const char *at = strchr(text, 'v'); at; at = strchr(at + 1, 'v')) {
		struct version version = {{0}};
		size_t n = 0;
		const char *digits = at + 1;

		while (isdigit((unsigned char)*digits)) {
			char *end;
			unsigned long number = strtoul(digits, &end, 10);

			if (n < ARRAY_SIZE(version.part))
				version.part[n] = number;
			n++;
			digits = *end == '.' ? end + 1 : end;
			if (*end != '.')
				break;
		}
		if (n < 2)
			continue;
		*ret = version;
		return true;
	}
	return false;
}

static bool version_at_least(const struct version *version, unsigned long major,
			     unsigned long minor, unsigned long patch)
{
	const unsigned long wanted[] = {major, minor, patch};

	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		if (version->part[i] != wanted[i])
			return version->part[i] > wanted[i];
	return true;
}

void iptables_features_init(struct iptables_features *features, const char *version,
			    const char *restore_version)
{
	struct version v, unused;

	*features = (struct iptables_features){0};
	if (!version_parse(version, &v))
		return;
	features->check = version_at_least(&v, 1, 4, 11);
	features->random_fully = version_at_least(&v, 1, 6, 2);
	if (version_at_least(&v, 1, 4, 22))
		features->wait = IPTABLES_WAIT_SECONDS;
	else if (version_at_least(&v, 1, 4, 20))
		features->wait = IPTABLES_WAIT_PLAIN;
	if (version_at_least(&v, 1, 6, 2))
		features->restore_wait = IPTABLES_WAIT_SECONDS;
	else if (restore_version && version_parse(restore_version, &unused))
		features->restore_wait =
			IPTABLES_WAIT_PLAIN; /* backported together with --version */
}

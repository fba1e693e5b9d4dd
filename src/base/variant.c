/* SPDX-License-Identifier: Apache-2.0 */
#include "base/variant.h"

static const char *const names[] = {"auto", "nft", "legacy"};
_Static_assert(ARRAY_SIZE(names) == IPTABLES_VARIANT_COUNT, "a variant without a name");

const char *iptables_variant_name(enum iptables_variant variant)
{
	return names[variant];
}

bool iptables_variant_parse(const char *name, enum iptables_variant *ret)
{
	return word_parse(name, names, ret);
}

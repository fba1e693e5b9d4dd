/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/settings.h"

bool settings_localhost_node_ports(const struct settings *settings)
{
	return settings->localhost_node_ports && settings->family == FAMILY_IPV4 &&
	       node_ports_contain_loopback(&settings->node_ports, FAMILY_IPV4);
}

static const char *const writer_names[] = {"auto", "netlink", "restore"};
_Static_assert(ARRAY_SIZE(writer_names) == IPTABLES_WRITER_COUNT, "a writer without a name");

bool iptables_writer_parse(const char *name, enum iptables_writer *ret)
{
	for (enum iptables_writer i = 0; i < IPTABLES_WRITER_COUNT; i++) {
		if (!streq(name, writer_names[i]))
			continue;
		*ret = i;
		return true;
	}
	return false;
}

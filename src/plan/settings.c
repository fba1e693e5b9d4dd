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
	return word_parse(name, writer_names, ret);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/settings.h"

bool settings_localhost_node_ports(const struct settings *settings)
{
	return settings->localhost_node_ports && settings->family == FAMILY_IPV4 &&
	       node_ports_contain_loopback(&settings->node_ports, FAMILY_IPV4);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/nftables/localhost/localhost_policy.h"

bool localhost_is_on(const struct settings *settings)
{
	return settings->mode.localhost_proxy;
}

bool localhost_is_carried(const struct settings *settings)
{
	return localhost_is_on(settings) && settings->node_ports.names_loopback;
}

bool localhost_is_refused(const struct settings *settings, enum protocol protocol)
{
	return localhost_is_on(settings) &&
	       !(protocol == PROTOCOL_TCP && localhost_is_carried(settings));
}

struct addr localhost_address(enum family family)
{
	struct addr addr = {.family = (uint8_t)family};

	if (family == FAMILY_IPV4)
		addr.bytes[0] = 127;
	addr.bytes[addr_bytes(family) - 1] = 1;
	return addr;
}

struct prefix localhost_prefix(enum family family)
{
	struct prefix prefix = {.addr.family = (uint8_t)family, .length = addr_bits(family)};

	if (family == FAMILY_IPV4) {
		prefix.addr.bytes[0] = 127;
		prefix.length = 8;
	} else {
		prefix.addr.bytes[15] = 1;
	}
	return prefix;
}

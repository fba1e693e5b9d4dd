/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/interfaces.h"

#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>

static bool take_address(const struct ifaddrs *entry, enum family family, struct addr *ret)
{
	sa_family_t wanted = family == FAMILY_IPV4 ? AF_INET : AF_INET6;

	if (!entry->ifa_addr || entry->ifa_addr->sa_family != wanted)
		return false;
	*ret = (struct addr){.family = (uint8_t)family};
	if (family == FAMILY_IPV4)
		memcpy(ret->bytes,
		       &((const struct sockaddr_in *)(const void *)entry->ifa_addr)->sin_addr, 4);
	else
		memcpy(ret->bytes,
		       &((const struct sockaddr_in6 *)(const void *)entry->ifa_addr)->sin6_addr,
		       16);
	return true;
}

int interfaces_addresses(enum family family, struct addr **ret, size_t *ret_n, struct err *err)
{
	cleanup_free struct addr *addresses = NULL;
	size_t capacity = 0, n = 0;
	struct ifaddrs *list;
	struct addr address;

	if (getifaddrs(&list) < 0)
		return err_sys(err, -errno, "reading the addresses of the interfaces");
	for (const struct ifaddrs *entry = list; entry; entry = entry->ifa_next) {
		if (!take_address(entry, family, &address))
			continue;
		array_grow(&addresses, &capacity, n, sizeof(*addresses));
		addresses[n++] = address;
	}
	freeifaddrs(list);
	*ret = take(addresses);
	*ret_n = n;
	return 0;
}

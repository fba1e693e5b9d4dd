/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * An IP address or prefix of either family, as one value.
 *
 * Text follows Go's rules, not libc's, because chain names are hashes of it: decimal octets may
 * have leading zeros (and are never octal), IPv4-mapped IPv6 is IPv4, IPv6 prints in lower case
 * with the longest run of two or more zero groups compressed and never with a dotted tail.
 */

#include "base/util.h"

enum family {
	FAMILY_IPV4 = 0,
	FAMILY_IPV6,
	FAMILY_COUNT,
};

const char *family_name(enum family family); /* "IPv4", "IPv6": as logs and metrics spell them */

struct addr {
	uint8_t family;    /* enum family */
	uint8_t bytes[16]; /* network order; IPv4 uses the first 4, the rest is zero */
};

struct prefix {
	struct addr addr;
	uint8_t length;
};

#define ADDR_TEXT_MAX      40 /* "ffff:...:ffff" and NUL */
#define PREFIX_TEXT_MAX    (ADDR_TEXT_MAX + 4)
#define ADDR_PORT_TEXT_MAX (ADDR_TEXT_MAX + 8) /* "[ip]:65535" and NUL */

/* All parsers return 0 or -EINVAL and leave *ret alone on failure. */
int addr_parse(const char *s, struct addr *ret);
int prefix_parse(const char *s, struct prefix *ret); /* masks host bits off */

/* All printers return the length; the buffer has the size named above. */
size_t addr_print(const struct addr *addr, char out[static ADDR_TEXT_MAX]);
size_t addr_port_print(const struct addr *addr, uint16_t port, char out[static ADDR_PORT_TEXT_MAX]);
size_t prefix_print(const struct prefix *prefix, char out[static PREFIX_TEXT_MAX]);

int addr_compare(const struct addr *a, const struct addr *b);
bool addr_is_loopback(const struct addr *addr);                /* 127.0.0.0/8, ::1 */
bool addr_is_unspecified(const struct addr *addr);             /* 0.0.0.0, :: */
void prefix_mask(uint8_t length, uint8_t ret_mask[static 16]); /* so many ones, then zeros */
bool prefix_contains(const struct prefix *prefix, const struct addr *addr);
bool prefix_equal(const struct prefix *a, const struct prefix *b);

static inline bool addr_equal(const struct addr *a, const struct addr *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

bool addr_among(const struct addr *v, size_t n, const struct addr *addr); /* is it one of them? */

/* For bind(2) and connect(2); returns its size. */
struct sockaddr_storage;
unsigned int addr_socket(const struct addr *addr, uint16_t port, struct sockaddr_storage *ret);

static inline size_t addr_bytes(enum family family)
{
	return family == FAMILY_IPV4 ? 4 : 16;
}

static inline uint8_t addr_bits(enum family family)
{
	return family == FAMILY_IPV4 ? 32 : 128;
}

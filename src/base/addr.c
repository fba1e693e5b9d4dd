/* SPDX-License-Identifier: Apache-2.0 */
#include "base/addr.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>

const char *family_name(enum family family)
{
	return family == FAMILY_IPV4 ? "IPv4" : "IPv6";
}

/* Reads a decimal number up to max; returns the first byte behind it, or NULL. */
static const char *read_decimal(const char *s, unsigned int max, unsigned int *ret)
{
	unsigned int n = 0;
	const char *start = s;

	for (; *s >= '0' && *s <= '9'; s++) {
		n = n * 10 + (unsigned int)(*s - '0');
		if (n > max)
			return NULL;
	}
	if (s == start)
		return NULL;
	*ret = n;
	return s;
}

/* Reads four octets; returns the first byte behind them, or NULL. */
static const char *read_dotted(const char *s, uint8_t out[4])
{
	for (int i = 0; i < 4; i++) {
		unsigned int n;

		if (i > 0 && *s++ != '.')
			return NULL;
		s = read_decimal(s, 255, &n);
		if (!s)
			return NULL;
		out[i] = (uint8_t)n;
	}
	return s;
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* Reads a hex number up to 0xffff, leading zeros at will; the first byte behind it, or NULL. */
static const char *read_group(const char *s, unsigned int *ret)
{
	unsigned int n = 0;
	const char *start = s;

	for (; hex_value(*s) >= 0; s++) {
		n = n * 16 + (unsigned int)hex_value(*s);
		if (n > 0xffff)
			return NULL;
	}
	*ret = n;
	return s == start ? NULL : s;
}

/*
 * Reads a run of groups with single colons between, from *at on. Four dotted octets may end it,
 * where they end the address: at any place behind "::", else only in the last four bytes.
 */
static const char *read_groups(const char *s, bool compressed, uint8_t out[16], int *at)
{
	for (;;) {
		unsigned int group;
		const char *end = read_group(s, &group);

		if (!end || *at == 16)
			return NULL;
		if (*end == '.') {
			if (compressed ? *at > 12 : *at != 12)
				return NULL;
			*at += 4;
			return read_dotted(s, out + *at - 4);
		}
		out[(*at)++] = (uint8_t)(group >> 8);
		out[(*at)++] = (uint8_t)group;
		if (end[0] != ':' || end[1] == ':')
			return end;
		s = end + 1;
	}
}

/* Groups, and where "::" stands between or beside them, zeros in its place (at least one group). */
static const char *read_ipv6(const char *s, uint8_t out[16])
{
	int at = 0;   /* bytes written */
	int ellipsis; /* where "::" stood */

	if (!has_prefix(s, "::")) {
		s = read_groups(s, false, out, &at);
		if (!s || !has_prefix(s, "::"))
			return at == 16 ? s : NULL;
	}
	ellipsis = at;
	s += 2;
	if (hex_value(*s) >= 0) {
		s = read_groups(s, true, out, &at);
		if (!s)
			return NULL;
	}
	if (at == 16)
		return NULL;
	memmove(out + 16 - (at - ellipsis), out + ellipsis, (size_t)(at - ellipsis));
	memset(out + ellipsis, 0, (size_t)(16 - at));
	return s;
}

/* Parses an address at the start of s; returns the first byte behind it, or NULL. */
static const char *read_addr(const char *s, struct addr *ret)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	struct addr addr = {0};
	const char *end;

	if (!s[strcspn(s, ":")]) {
		addr.family = FAMILY_IPV4;
		end = read_dotted(s, addr.bytes);
	} else {
		addr.family = FAMILY_IPV6;
		end = read_ipv6(s, addr.bytes);
		if (end && memcmp(addr.bytes, mapped, sizeof(mapped)) == 0) {
			addr.family = FAMILY_IPV4;
			memmove(addr.bytes, addr.bytes + 12, 4);
			memset(addr.bytes + 4, 0, 12);
		}
	}
	if (end)
		*ret = addr;
	return end;
}

int addr_parse(const char *s, struct addr *ret)
{
	struct addr addr;
	const char *end = read_addr(s, &addr);

	if (!end || *end)
		return -EINVAL;
	*ret = addr;
	return 0;
}

static void mask_bytes(uint8_t *bytes, size_t n, unsigned int length)
{
	for (size_t i = 0; i < n; i++) {
		unsigned int keep = length >= 8 ? 8 : length;

		bytes[i] &= (uint8_t)(0xff << (8 - keep));
		length -= keep;
	}
}

void prefix_mask(uint8_t length, uint8_t ret_mask[static 16])
{
	memset(ret_mask, 0xff, 16);
	mask_bytes(ret_mask, 16, length);
}

int prefix_parse(const char *s, struct prefix *ret)
{
	struct prefix prefix = {0};
	unsigned int length;
	const char *end = read_addr(s, &prefix.addr);

	if (!end || *end != '/')
		return -EINVAL;
	/* written as IPv6, read as IPv4: the length still counts 128 bits */
	if (prefix.addr.family == FAMILY_IPV4 && memchr(s, ':', (size_t)(end - s)))
		return -EINVAL;
	end = read_decimal(end + 1, addr_bits(prefix.addr.family), &length);
	if (!end || *end)
		return -EINVAL;
	prefix.length = (uint8_t)length;
	mask_bytes(prefix.addr.bytes, addr_bytes(prefix.addr.family), length);
	*ret = prefix;
	return 0;
}

static size_t print_number(char *out, unsigned int n)
{
	char digits[10];
	size_t count = 0;

	do {
		digits[count++] = (char)('0' + n % 10);
		n /= 10;
	} while (n);
	for (size_t i = 0; i < count; i++)
		out[i] = digits[count - 1 - i];
	return count;
}

static size_t print_ipv4(const uint8_t bytes[4], char *out)
{
	size_t at = 0;

	for (int i = 0; i < 4; i++) {
		if (i)
			out[at++] = '.';
		at += print_number(out + at, bytes[i]);
	}
	return at;
}

static size_t print_ipv6(const uint8_t bytes[16], char *out)
{
	unsigned int groups[8];
	int best = -1, best_length = 1; /* a run of one is not compressed */
	size_t at = 0;

	for (int i = 0; i < 8; i++)
		groups[i] = (unsigned int)bytes[2 * i] << 8 | bytes[2 * i + 1];
	for (int i = 0; i < 8; i++) {
		int n = 0;

		while (i + n < 8 && groups[i + n] == 0)
			n++;
		if (n > best_length) {
			best = i;
			best_length = n;
		}
		i += n;
	}
	for (int i = 0; i < 8; i++) {
		if (i == best) {
			out[at++] = ':';
			out[at++] = ':';
			i += best_length - 1;
			continue;
		}
		if (i && i != best + (best < 0 ? 0 : best_length))
			out[at++] = ':';
		at += (size_t)sprintf(out + at, "%x", groups[i]);
	}
	return at;
}

size_t addr_print(const struct addr *addr, char out[static ADDR_TEXT_MAX])
{
	size_t n = addr->family == FAMILY_IPV4 ? print_ipv4(addr->bytes, out)
					       : print_ipv6(addr->bytes, out);

	out[n] = '\0';
	return n;
}

size_t addr_port_print(const struct addr *addr, uint16_t port, char out[static ADDR_PORT_TEXT_MAX])
{
	size_t at = 0;

	if (addr->family == FAMILY_IPV6)
		out[at++] = '[';
	at += addr->family == FAMILY_IPV4 ? print_ipv4(addr->bytes, out + at)
					  : print_ipv6(addr->bytes, out + at);
	if (addr->family == FAMILY_IPV6)
		out[at++] = ']';
	out[at++] = ':';
	at += print_number(out + at, port);
	out[at] = '\0';
	return at;
}

size_t prefix_print(const struct prefix *prefix, char out[static PREFIX_TEXT_MAX])
{
	size_t at = addr_print(&prefix->addr, out);

	out[at++] = '/';
	at += print_number(out + at, prefix->length);
	out[at] = '\0';
	return at;
}

int addr_compare(const struct addr *a, const struct addr *b)
{
	return memcmp(a, b, sizeof(*a));
}

bool addr_is_loopback(const struct addr *addr)
{
	static const struct addr ipv6 = {.family = FAMILY_IPV6, .bytes = {[15] = 1}};

	return addr->family == FAMILY_IPV4 ? addr->bytes[0] == 127 : addr_equal(addr, &ipv6);
}

bool addr_among(const struct addr *v, size_t n, const struct addr *addr)
{
	for (size_t i = 0; i < n; i++)
		if (addr_equal(&v[i], addr))
			return true;
	return false;
}

bool addr_is_unspecified(const struct addr *addr)
{
	static const uint8_t zero[16];

	return memcmp(addr->bytes, zero, sizeof(zero)) == 0;
}

bool prefix_contains(const struct prefix *prefix, const struct addr *addr)
{
	struct addr masked = *addr;

	if (addr->family != prefix->addr.family)
		return false;
	mask_bytes(masked.bytes, addr_bytes(addr->family), prefix->length);
	return addr_equal(&masked, &prefix->addr);
}

bool prefix_equal(const struct prefix *a, const struct prefix *b)
{
	return a->length == b->length && addr_equal(&a->addr, &b->addr);
}

unsigned int addr_socket(const struct addr *addr, uint16_t port, struct sockaddr_storage *ret)
{
	struct sockaddr_in *in = (struct sockaddr_in *)ret;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)ret;

	*ret = (struct sockaddr_storage){0};
	if (addr->family == FAMILY_IPV4) {
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		memcpy(&in->sin_addr, addr->bytes, sizeof(in->sin_addr));
		return sizeof(*in);
	}
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons(port);
	memcpy(&in6->sin6_addr, addr->bytes, sizeof(in6->sin6_addr));
	return sizeof(*in6);
}

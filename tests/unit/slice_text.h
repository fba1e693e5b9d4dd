/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Slices and endpoint lists as one line of text, for tests with many of them.
 *
 *	"ns/slice service http=80/tcp,dns=53/udp 10.1.0.1@node-a,10.1.0.2!t"
 *
 * is a slice with two ports and two endpoints, the first on node-a, the second terminating. "-" is
 * an empty list; a port without a name begins with "=". A slice with an address like fd00::1 is
 * IPv6.
 *
 *	"10.1.0.1:80* 10.1.0.2:80!t"
 *
 * is an endpoint list: * is local; behind ! stand the conditions, when they are not "ready and
 * serving": u unready, t terminating, s terminating but still serving.
 */

#include <stdio.h>

#include "build.h"

attr_unused static unsigned int conditions_from_letter(char letter)
{
	switch (letter) {
	case 'u':
		return BUILD_UNREADY;
	case 't':
		return BUILD_TERMINATING;
	case 's':
		return BUILD_SERVING_TERMINATING;
	default:
		fail_msg("no condition '%c'", letter);
		return 0;
	}
}

attr_unused static void slice_text_port(struct draft *slice, char *text)
{
	char *number = strchr(text, '='), *protocol = strchr(text, '/');

	assert_true(number && protocol);
	*number++ = *protocol++ = '\0';
	build_slice_port(slice, text,
			 streq(protocol, "udp")    ? PROTOCOL_UDP
			 : streq(protocol, "sctp") ? PROTOCOL_SCTP
						   : PROTOCOL_TCP,
			 (uint16_t)atoi(number));
}

attr_unused static void slice_text_endpoint(struct draft *slice, char *text)
{
	char *letter = strchr(text, '!'), *node = strchr(text, '@');

	if (letter)
		*letter++ = '\0';
	if (node)
		*node++ = '\0';
	build_endpoint(slice, text, node, letter ? conditions_from_letter(*letter) : BUILD_READY);
}

attr_unused static struct draft *slice_from_text(const char *text)
{
	cleanup_free char *copy = strdup(text);
	char *rest = copy, *part;
	const char *key = strsep(&rest, " "), *service = strsep(&rest, " ");
	char *ports = strsep(&rest, " "), *endpoints = strsep(&rest, " ");
	struct draft *slice;

	assert_true(endpoints && !rest);
	slice = build_slice(key, service, strchr(endpoints, ':') ? FAMILY_IPV6 : FAMILY_IPV4);
	while (!streq(ports ? ports : "-", "-") && (part = strsep(&ports, ",")))
		slice_text_port(slice, part);
	while (!streq(endpoints ? endpoints : "-", "-") && (part = strsep(&endpoints, ",")))
		slice_text_endpoint(slice, part);
	return slice;
}

/* NULL is an empty list. The result is the caller's to free. */
attr_unused static char *list_to_text(const struct endpoints *list)
{
	char *text = xstrdup("");

	for (size_t i = 0; list && i < list->n; i++) {
		const struct endpoint *endpoint = &list->v[i];
		unsigned int conditions = endpoint->flags & (unsigned int)~ENDPOINT_LOCAL;
		char *before = text, where[ADDR_PORT_TEXT_MAX];

		addr_port_print(&endpoint->addr, endpoint->port, where);
		text = xasprintf("%s%s%s%s%s", before, i ? " " : "", where,
				 endpoint->flags & ENDPOINT_LOCAL ? "*" : "",
				 conditions == BUILD_READY                 ? ""
				 : conditions == BUILD_UNREADY             ? "!u"
				 : conditions == BUILD_TERMINATING         ? "!t"
				 : conditions == BUILD_SERVING_TERMINATING ? "!s"
									   : "!?");
		free(before);
	}
	return text;
}

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The input of a fuzz target as netlink messages, one behind the other. */

#include <libmnl/libmnl.h>

#include "base/util.h"

typedef void netlink_message_fn(const struct nlmsghdr *message);

/* libmnl's own check takes a length beyond 2 GiB for a negative one, and lets it pass. */
static inline bool netlink_message_fits(const struct nlmsghdr *message, size_t left)
{
	return left >= sizeof(*message) && message->nlmsg_len >= sizeof(*message) &&
	       message->nlmsg_len <= left;
}

/* Up to the first that does not fit. */
static inline void netlink_messages_each(const uint8_t *data, size_t size, netlink_message_fn *fn)
{
	cleanup_free char *copy = xmalloc(size + !size);
	size_t at = 0;

	memcpy(copy, data, size);
	while (at < size && netlink_message_fits((const struct nlmsghdr *)(copy + at), size - at)) {
		const struct nlmsghdr *message = (const struct nlmsghdr *)(copy + at);

		fn(message);
		at += MNL_ALIGN(message->nlmsg_len);
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * `portolan explain` for the page: one question, answered inside the running daemon, whose loop has
 * rules to write. So only Services that have the destination are planned, in an excerpt of the model; a packet
 * never matches an entry of any other one, and the way is the same. What differs from the rules as a
 * whole: how many entries stand before one's own (which is not told), the levels of a service index, and in
 * clusters of more than 1000 endpoints the comments, which rules of endpoints do not have there.
 *
 * The rules are those that are wanted. Whether the kernel has them, `portolan explain` tells.
 */

#include "base/text.h"
#include "page/status_source.h"

/*
 * Walking the rules of iptables mode costs the square of the endpoints. This many take some 5 ms, and for more the
 * page names the command.
 */
#define STATUS_WAY_ENDPOINTS 250

/* As the query has them; NULL: not given. */
struct status_way_question {
	const char *destination; /* see packet_destination.h */
	const char *from;        /* pod (also NULL), node, outside, or an address */
	const char *protocol;    /* "tcp" ...; NULL: that of the Service's port */
};

/*
 * Appends an object: summary, packet, steps, backends, left_out. -EINVAL: it is no question; -ENOENT: there is no
 * such Service, or its family is not proxied; -E2BIG: too many endpoints.
 */
int status_way_print(const struct status_source *source, const struct status_way_question *question,
		     struct text *ret, struct err *err);

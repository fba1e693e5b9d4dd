/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A connection and the requests on it: any number by HTTP/2, one after the other by HTTP/1.1.
 * Which of the two it will be is known once it is open.
 *
 * changed() is called when it has opened, has room again, or is closed. Neither that nor a handler of
 * a request may free the link; both may cancel requests.
 */

#include "sources/api_conn.h"
#include "sources/api_exchange.h"

struct api_link;

enum api_link_state {
	API_LINK_OPENING = 0,
	API_LINK_OPEN,
	API_LINK_CLOSED,
	API_LINK_STATE_COUNT,
};

struct api_link_owner {
	struct api_exchange_handler handler; /* of all requests */
	void (*changed)(void *arg);
	void *arg;
};

struct api_link *api_link_new(struct event_base *loop, struct api_route *route,
			      const struct api_link_owner *owner);
/* Requests under way are not told. Accepts NULL, returns NULL. */
struct api_link *api_link_free(struct api_link *link);

const struct api_route *api_link_route(const struct api_link *link);
enum api_link_state api_link_state(const struct api_link *link);
bool api_link_is_h2(const struct api_link *link);
bool api_link_has_room(const struct api_link *link); /* it is open and takes a request now */
/* Why it is closed. */
const char *api_link_problem(const struct api_link *link, enum api_failure *ret_failure);

/* Only where there is room. The exchange's body must stay until its end; arg is for the handler. */
int api_link_start(struct api_link *link, const struct api_exchange *exchange, void *arg,
		   struct err *err);
void api_link_cancel(struct api_link *link, const void *arg); /* its handler is not called again */
void api_link_flush(struct api_link *link); /* after these; not from inside a handler */

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

struct api_link {
	struct api_link *next; /* in a list of the owner */
	struct api_route *route;
	enum api_link_state state;
	enum api_failure failure; /* of a closed one */
	char *problem;
	struct api_h2 *h2; /* NULL: HTTP/1.1 */

	/* api_link.c's own */
	struct api_link_owner owner;
	struct api_conn *conn;
	struct api_h1 *h1;
	void *arg;          /* of the request under way by HTTP/1.1; NULL: none */
	bool repeatable;    /* it may be sent again if nothing of an answer has come */
	bool answered;      /* something has */
	unsigned int n_old; /* requests before it */
	struct text out;
};

struct api_link *api_link_new(struct event_base *loop, struct api_route *route,
			      const struct api_link_owner *owner);
/* Requests under way are not told. Accepts NULL, returns NULL. */
struct api_link *api_link_free(struct api_link *link);

bool api_link_has_room(const struct api_link *link); /* it is open and takes a request now */
/* Only where there is room. The exchange's body must stay until its end; arg is for the handler. */
int api_link_start(struct api_link *link, const struct api_exchange *exchange, void *arg,
		   struct err *err);
void api_link_cancel(struct api_link *link, const void *arg); /* its handler is not called again */
void api_link_flush(struct api_link *link); /* after these; not from inside a handler */

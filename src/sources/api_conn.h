/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A connection to an API server on the event loop: its addresses, TCP, the proxy's tunnel, TLS, then
 * bytes both ways. A name's addresses are tried in turn.
 *
 * A dead peer is noticed by TCP's own keep-alives within about a minute; what only pretends to live
 * is for the owner to find out.
 */

#include "base/text.h"
#include "sources/api_failure.h"
#include "sources/api_route.h"
#include "sources/api_wire.h"

struct event_base;
struct api_conn;

/* All are called from the loop, or from api_conn_send(); none may free the connection. */
struct api_conn_handler {
	void (*open)(void *arg, bool h2); /* h2: both sides have agreed on HTTP/2 */
	void (*data)(void *arg, struct api_bytes data);
	void (*drained)(void *arg, struct text *out); /* all is sent: is there more? */
	/* NONE: the other side has ended it properly. Nothing is called any more. */
	void (*closed)(void *arg, enum api_failure failure, const char *text);
	void *arg;
};

/* The route must outlive it. */
struct api_conn *api_conn_new(struct event_base *loop, const struct api_route *route,
			      const struct api_conn_handler *handler);
struct api_conn *api_conn_free(struct api_conn *conn); /* accepts NULL, returns NULL */

void api_conn_send(struct api_conn *conn); /* asks drained() for more, once it is open */
/* Nothing is read, sent or called any more; it remains to be freed. */
void api_conn_close(struct api_conn *conn);

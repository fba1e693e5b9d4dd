/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/api_link.h"

#include <errno.h>
#include <stdlib.h>

#include "sources/api_h1.h"
#include "sources/api_h2.h"

/* -- the end -- */

/* All requests end with it, the link remains for its owner to see. */
static void close_link(struct api_link *link, enum api_failure failure, const char *text)
{
	bool lost = failure == API_FAILURE_NONE || failure == API_FAILURE_CONNECT;
	bool refused = lost && link->repeatable && !link->answered && link->n_old > 0;
	void *arg = take(link->arg);

	if (link->state == API_LINK_CLOSED)
		return;
	link->state = API_LINK_CLOSED;
	link->failure = lost ? API_FAILURE_CONNECT : failure;
	link->problem = xstrdup(text);
	api_conn_close(link->conn);
	if (link->h2)
		api_h2_fail(link->h2, link->failure, text);
	if (arg)
		link->owner.handler.end(arg, link->failure, refused, text);
	link->owner.changed(link->owner.arg);
}

/* -- HTTP/2 -- */

static void feed_h2(struct api_link *link, struct api_bytes data)
{
	struct err err;

	if (api_h2_feed(link->h2, data, &err) < 0)
		close_link(link, API_FAILURE_GARBAGE, err.text);
}

/* A piece at a time: what waits to be sent stays where it can be counted. */
static void drain_h2(struct api_link *link, struct text *out)
{
	struct api_bytes piece;
	struct err err;

	if (api_h2_pull(link->h2, &piece, &err) < 0)
		close_link(link, API_FAILURE_GARBAGE, err.text);
	else if (piece.n > 0)
		text_add(out, (const char *)piece.data, piece.n);
	else if (api_h2_is_over(link->h2))
		close_link(link, API_FAILURE_GARBAGE,
			   "HTTP/2: the server does not keep to the protocol");
}

/* -- HTTP/1.1 -- */

static void end_h1(struct api_link *link)
{
	void *arg = take(link->arg);

	link->n_old++;
	if (link->h1->last)
		close_link(link, API_FAILURE_CONNECT, "the connection is used up");
	link->owner.handler.end(arg, API_FAILURE_NONE, false, "");
	link->owner.changed(link->owner.arg);
}

static void feed_h1(struct api_link *link, struct api_bytes data)
{
	struct err err;
	ssize_t n;

	if (!link->arg) {
		close_link(link, API_FAILURE_GARBAGE, "an answer came that nothing asked for");
		return;
	}
	link->answered = true;
	n = api_h1_feed(link->h1, data, &err);
	if (link->state == API_LINK_CLOSED)
		return; /* cancelled from inside */
	if (n < 0)
		close_link(link, API_FAILURE_GARBAGE, err.text);
	else if (link->h1->state == API_H1_DONE) {
		link->h1->last |= (size_t)n < data.n;
		end_h1(link);
	}
}

static void start_h1(struct api_link *link, const struct api_exchange *exchange, void *arg)
{
	api_h1_init(link->h1, &link->owner.handler, arg);
	link->arg = arg;
	link->answered = false;
	link->repeatable = !exchange->body;
	api_h1_request(exchange, &link->out);
}

/* -- the connection -- */

static void on_open(void *arg, bool h2)
{
	struct api_link *link = arg;
	struct err err;

	link->state = API_LINK_OPEN;
	link->route->no_h2 = !h2;
	if (!h2)
		link->h1 = xcalloc(1, sizeof(*link->h1));
	else if (api_h2_new(&link->owner.handler, &link->h2, &err) < 0)
		close_link(link, API_FAILURE_CONNECT, err.text);
	link->owner.changed(link->owner.arg);
}

static void on_data(void *arg, struct api_bytes data)
{
	struct api_link *link = arg;

	if (link->h2)
		feed_h2(link, data);
	else
		feed_h1(link, data);
}

static void on_drained(void *arg, struct text *out)
{
	struct api_link *link = arg;

	if (link->state == API_LINK_CLOSED)
		return;
	if (link->h2)
		drain_h2(link, out);
	else
		text_move(out, &link->out);
}

static void on_closed(void *arg, enum api_failure failure, const char *text)
{
	struct api_link *link = arg;
	struct err ignored;

	if (failure == API_FAILURE_NONE && link->arg && api_h1_end(link->h1, &ignored) == 0)
		end_h1(link);
	close_link(link, failure, text);
}

struct api_link *api_link_new(struct event_base *loop, struct api_route *route,
			      const struct api_link_owner *owner)
{
	struct api_link *link = xcalloc(1, sizeof(*link));
	const struct api_conn_handler handler = {on_open, on_data, on_drained, on_closed, link};

	link->route = api_route_ref(route);
	link->owner = *owner;
	text_init(&link->out);
	link->conn = api_conn_new(loop, route, &handler);
	return link;
}

struct api_link *api_link_free(struct api_link *link)
{
	if (!link)
		return NULL;
	api_conn_free(link->conn);
	api_h2_free(link->h2);
	free(link->h1);
	free(link->problem);
	text_done(&link->out);
	api_route_unref(link->route);
	free(link);
	return NULL;
}

/* -- requests -- */

bool api_link_has_room(const struct api_link *link)
{
	return link->state == API_LINK_OPEN && (link->h2 ? api_h2_is_open(link->h2) : !link->arg);
}

int api_link_start(struct api_link *link, const struct api_exchange *exchange, void *arg,
		   struct err *err)
{
	if (link->h2)
		return api_h2_start(link->h2, exchange, arg, err);
	start_h1(link, exchange, arg);
	return 0;
}

/* By HTTP/1.1 there is no other way to stop an answer than to go. */
void api_link_cancel(struct api_link *link, const void *arg)
{
	if (link->h2)
		api_h2_cancel(link->h2, arg);
	if (arg && link->arg == arg) {
		link->arg = NULL;
		close_link(link, API_FAILURE_CONNECT, "a request was cancelled");
	}
}

void api_link_flush(struct api_link *link)
{
	if (link->state == API_LINK_OPEN)
		api_conn_send(link->conn);
}

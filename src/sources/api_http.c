/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What happens on a connection is only noted down: a call that has ended, a connection that has
 * opened or closed. A sweep, which the loop runs soon afterwards, acts on it: gives waiting calls a
 * connection, tells owners the end, frees what is done with. So nothing is freed under the feet of
 * who still stands on it, and every function here may be called from every handler.
 */

#include "sources/api_http.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/loop.h"
#include "sources/api_link.h"

#define TRIES_MAX    3u /* of a call that a server sent away untouched */
#define IDLE_MAX     4u /* connections that nothing uses */
#define CALL_HEADERS 5u

struct api_http {
	struct event_base *loop;
	struct event *sweep;
	struct api_call *calls; /* a list, in the order of their start */
	struct api_link *links; /* a list, the newest first */
	bool unasked;           /* a call was started since ask() */
	void (*ask)(void *arg);
	void *ask_arg;
	int64_t heard_ns;
	struct api_route *route; /* of the last call; NULL: there was none */
	api_http_seen_fn *seen;  /* NULL: none is observed */
	void *seen_arg;
};

struct api_call {
	struct api_http *http;
	struct api_call *next;
	struct api_http_request wanted; /* its texts are owned */
	struct api_http_handler handler;
	char *host; /* and port, for who watches */
	int64_t started_ns;
	struct event *timeout; /* NULL: none */

	struct api_route *route; /* NULL: it waits for that, and all below is empty */
	struct api_exchange exchange;
	struct api_header headers[CALL_HEADERS];

	struct api_link *link; /* that it waits for or is on */
	bool sent;             /* it is on it */
	unsigned int tries;
	bool told;             /* the one who watches */
	bool ended, cancelled; /* for the sweep */
	enum api_failure failure;
	struct err err;
};

static void sweep_soon(struct api_http *http)
{
	event_active(http->sweep, EV_TIMEOUT, 0);
}

/* -- calls -- */

static void wipe(const char *text)
{
	char *own = (char *)text;

	if (own)
		explicit_bzero(own, strlen(own));
	free(own);
}

static void call_free(struct api_call *call)
{
	loop_free(call->timeout);
	for (size_t i = 0; i < call->exchange.n_headers; i++)
		wipe(call->headers[i].value);
	free((char *)call->exchange.authority);
	free((char *)call->exchange.target);
	free((char *)call->wanted.target);
	free((char *)call->wanted.accept);
	free((char *)call->wanted.content_type);
	free((char *)call->wanted.body);
	free(call->wanted.owned);
	free(call->host);
	api_route_unref(call->route);
	free(call);
}

static void unlink_call(const struct api_call *call)
{
	struct api_call **at = &call->http->calls; /* a handful */

	while (*at != call)
		at = &(*at)->next;
	*at = call->next;
}

static void tell(struct api_call *call, int status)
{
	const struct api_http_seen seen = {
		.host = call->host,
		.method = call->exchange.method,
		.status = status,
		.duration_ns = clock_now_ns() - call->started_ns,
	};

	if (call->route && !call->told && call->http->seen)
		call->http->seen(call->http->seen_arg, &seen);
	call->told = true;
}

static void leave_link(struct api_call *call)
{
	if (call->link && call->sent)
		api_link_cancel(call->link, call);
	call->link = NULL;
	call->sent = false;
	sweep_soon(call->http);
}

static bool is_over(const struct api_call *call)
{
	return call->ended || call->cancelled;
}

static void end_call(struct api_call *call, enum api_failure failure, const char *text)
{
	if (is_over(call))
		return;
	call->ended = true;
	call->failure = failure;
	err_set(&call->err, -1, "%s", text);
	sweep_soon(call->http);
}

static void on_head(void *arg, const struct api_answer *answer)
{
	struct api_call *call = arg;

	if (is_over(call))
		return;
	call->http->heard_ns = clock_now_ns();
	tell(call, answer->status);
	if (call->handler.status)
		call->handler.status(call->handler.arg, answer->status, answer->retry_after_s);
}

static void on_data(void *arg, struct api_bytes data)
{
	struct api_call *call = arg;

	if (is_over(call))
		return;
	call->http->heard_ns = clock_now_ns();
	if (call->handler.data)
		call->handler.data(call->handler.arg, data);
}

/* What was sent away untouched goes once more, over another connection if need be. */
static void on_end(void *arg, enum api_failure failure, bool refused, const char *text)
{
	struct api_call *call = arg;

	call->link = NULL;
	call->sent = false;
	if (refused && ++call->tries < TRIES_MAX)
		sweep_soon(call->http);
	else
		end_call(call, failure, text);
}

static void on_timeout(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	struct api_call *call = arg;
	struct err err;

	leave_link(call);
	err_set(&err, -1, "no answer within %u s", (unsigned int)(call->wanted.timeout_ms / 1000));
	end_call(call, API_FAILURE_CONNECT, err.text);
}

void api_http_cancel(struct api_call *call)
{
	if (!call)
		return;
	call->cancelled = true;
	leave_link(call);
}

/* -- connections -- */

static size_t count_calls(const struct api_http *http, const struct api_link *link)
{
	size_t n = 0;

	for (const struct api_call *call = http->calls; call; call = call->next)
		n += call->link == link && !is_over(call);
	return n;
}

/* Room now, or soon: one that opens is for everyone if it may speak HTTP/2, else for one. */
static bool takes(const struct api_link *link, const struct api_call *call)
{
	const struct api_route *route = link->route;

	if (route != call->route)
		return false;
	if (link->state == API_LINK_OPENING)
		return (route->tls && !route->no_h2) || count_calls(call->http, link) == 0;
	return api_link_has_room(link) && (link->h2 || count_calls(call->http, link) == 0);
}

static void on_changed(void *arg)
{
	sweep_soon(arg);
}

static struct api_link *add_link(struct api_http *http, struct api_route *route)
{
	const struct api_link_owner owner = {
		.handler = {on_head, on_data, on_end},
		.changed = on_changed,
		.arg = http,
	};
	struct api_link *link = api_link_new(http->loop, route, &owner);

	link->next = http->links;
	http->links = link;
	return link;
}

static void find_link(struct api_call *call)
{
	struct api_link *link = call->http->links;

	while (link && !takes(link, call))
		link = link->next;
	call->link = link ? link : add_link(call->http, call->route);
}

static void drop_link(struct api_link **at)
{
	struct api_link *gone = *at;

	*at = gone->next;
	api_link_free(gone);
}

/* -- the sweep -- */

/* A call that waits for a connection: that has opened, for others too, or never will. */
static void place(struct api_call *call)
{
	const struct api_link *link = call->link;
	struct err err;

	if (link && link->state == API_LINK_CLOSED) {
		call->link = NULL;
		end_call(call, link->failure, link->problem);
		return;
	}
	if (link && link->state == API_LINK_OPEN && !api_link_has_room(link))
		call->link = NULL; /* another was quicker */
	if (!call->link)
		find_link(call);
	if (!api_link_has_room(call->link))
		return; /* it opens */
	call->sent = true;
	if (api_link_start(call->link, &call->exchange, call, &err) < 0) {
		call->link = NULL;
		call->sent = false;
		end_call(call, API_FAILURE_CONNECT, err.text);
	}
}

static void place_calls(struct api_http *http)
{
	for (struct api_call *call = http->calls; call; call = call->next)
		if (call->route && !is_over(call) && !call->sent)
			place(call);
	for (struct api_link *link = http->links; link; link = link->next)
		api_link_flush(link);
}

/* The first that is over goes; its owner may do anything meanwhile. */
static bool end_one(struct api_http *http)
{
	struct api_call *call = http->calls;
	struct api_http_handler handler;
	enum api_failure failure;
	void *owned;
	struct err err;
	bool cancelled;

	while (call && !is_over(call))
		call = call->next;
	if (!call)
		return false;
	handler = call->handler;
	owned = take(call->wanted.owned);
	cancelled = call->cancelled;
	failure = call->failure;
	err = call->err;
	if (!cancelled)
		tell(call, 0);
	unlink_call(call);
	call_free(call);
	if (!cancelled)
		handler.done(handler.arg, failure, err.text);
	free(owned);
	return true;
}

static bool is_useless(const struct api_http *http, const struct api_link *link, size_t *n_idle)
{
	if (count_calls(http, link) > 0)
		return false;
	return link->state != API_LINK_OPEN || !api_link_has_room(link) ||
	       link->route != http->route || ++*n_idle > IDLE_MAX;
}

static bool is_any_waiting(const struct api_http *http)
{
	for (const struct api_call *call = http->calls; call; call = call->next)
		if (!call->route && !is_over(call))
			return true;
	return false;
}

static void on_sweep(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	struct api_http *http = arg;
	size_t n_idle = 0;

	if (http->unasked && is_any_waiting(http))
		http->ask(http->ask_arg);
	http->unasked = false;
	place_calls(http);
	while (end_one(http))
		;
	for (struct api_link **at = &http->links; *at;)
		if (is_useless(http, *at, &n_idle))
			drop_link(at);
		else
			at = &(*at)->next;
}

/* -- from outside -- */

struct api_http *api_http_new(struct event_base *loop, void (*ask)(void *arg), void *arg)
{
	struct api_http *http = xcalloc(1, sizeof(*http));

	http->loop = loop;
	http->ask = ask;
	http->ask_arg = arg;
	http->heard_ns = clock_now_ns();
	http->sweep = loop_timer(loop, on_sweep, http);
	return http;
}

struct api_http *api_http_free(struct api_http *http)
{
	struct api_call *call;

	if (!http)
		return NULL;
	while (http->links)
		drop_link(&http->links);
	while ((call = http->calls)) {
		http->calls = call->next;
		call_free(call);
	}
	api_route_unref(http->route);
	loop_free(http->sweep);
	free(http);
	return NULL;
}

void api_http_observe(struct api_http *http, api_http_seen_fn *seen, void *arg)
{
	http->seen = seen;
	http->seen_arg = arg;
}

bool api_http_is_busy(const struct api_http *http)
{
	for (const struct api_call *call = http->calls; call; call = call->next)
		if (call->route && !is_over(call))
			return true;
	return false;
}

int64_t api_http_heard_ns(const struct api_http *http)
{
	return http->heard_ns;
}

void api_http_abandon(struct api_http *http, const char *text)
{
	for (struct api_call *call = http->calls; call; call = call->next) {
		if (!call->route || is_over(call))
			continue;
		call->told = true; /* it is the connection that failed */
		leave_link(call);
		end_call(call, API_FAILURE_CONNECT, text);
	}
	while (http->links)
		drop_link(&http->links);
}

/* The last call's way, if it is the same. */
static int find_route(struct api_http *http, const struct api_access *access, struct err *err)
{
	struct api_route *route;
	int r = api_route_new(access, &route, err);

	if (r < 0)
		return r;
	if (http->route && memcmp(http->route->id, route->id, sizeof(route->id)) == 0) {
		api_route_unref(route);
		return 0;
	}
	r = api_route_add_tls(route, access, err);
	if (r < 0) {
		api_route_unref(route);
		return r;
	}
	api_route_unref(http->route);
	http->route = route;
	return 0;
}

static void add_header(struct api_call *call, const char *name, const char *value)
{
	if (value)
		call->headers[call->exchange.n_headers++] =
			(struct api_header){name, xstrdup(value)};
}

static void set_headers(struct api_call *call, const struct api_access *access)
{
	const struct api_http_request *wanted = &call->wanted;
	char *for_proxy =
		api_route_asks_proxy(call->route) ? api_url_basic(&call->route->proxy) : NULL;

	add_header(call, "user-agent", "portolan/" PORTOLAN_VERSION);
	add_header(call, "accept", wanted->accept ? wanted->accept : "*/*");
	add_header(call, "authorization", access->authorization);
	add_header(call, "proxy-authorization", for_proxy);
	if (wanted->body)
		add_header(call, "content-type", wanted->content_type);
	wipe(for_proxy);
}

/* A port that the scheme has anyway is not named. */
static char *authority_of(const struct api_url *server)
{
	cleanup_free char *whole = api_url_host_port(server);
	bool usual = server->port == (server->scheme == API_SCHEME_HTTPS ? 443 : 80);

	return xasprintf("%.*s", (int)(usual ? strrchr(whole, ':') - whole : (long)strlen(whole)),
			 whole);
}

static void set_exchange(struct api_call *call, const struct api_access *access)
{
	const struct api_http_request *wanted = &call->wanted;
	const struct api_url *server = &call->route->server;
	char *authority = authority_of(server);
	bool whole = api_route_asks_proxy(call->route);

	call->exchange = (struct api_exchange){
		.method = wanted->body ? "POST" : "GET",
		.scheme = server->scheme == API_SCHEME_HTTPS ? "https" : "http",
		.authority = authority,
		.target = xasprintf("%s%s%s%s", whole ? "http://" : "", whole ? authority : "",
				    server->path, wanted->target),
		.headers = call->headers,
		.body = wanted->body,
		.n_body = wanted->n_body,
	};
	set_headers(call, access);
}

static void set_timeout(struct api_call *call)
{
	int64_t ms = call->wanted.timeout_ms;

	if (ms <= 0)
		return;
	call->timeout = loop_timer(call->http->loop, on_timeout, call);
	loop_arm(call->timeout, ms * CLOCK_NS_PER_MS);
}

static int open_way(struct api_call *call, const struct api_access *access, struct err *err)
{
	int r = find_route(call->http, access, err);

	if (r < 0)
		return r;
	call->route = api_route_ref(call->http->route);
	call->host = xstrdup(call->route->server.authority);
	call->started_ns = clock_now_ns();
	set_exchange(call, access);
	set_timeout(call);
	return 0;
}

/* access NULL: there is none, for the reason in err. */
static void answer(struct api_http *http, const struct api_access *access, struct err *err)
{
	for (struct api_call *call = http->calls; call; call = call->next)
		if (!call->route && !is_over(call) && (!access || open_way(call, access, err) < 0))
			end_call(call, API_FAILURE_CREDENTIALS, err->text);
	sweep_soon(http);
}

void api_http_grant(struct api_http *http, const struct api_access *access)
{
	struct err err;

	answer(http, access, &err);
}

void api_http_refuse(struct api_http *http, const char *text)
{
	struct err err;

	err_set(&err, -1, "%s", text);
	answer(http, NULL, &err);
}

struct api_call *api_http_start(struct api_http *http, const struct api_http_request *wanted,
				const struct api_http_handler *handler)
{
	struct api_call **end = &http->calls;
	struct api_call *call = xcalloc(1, sizeof(*call));

	call->http = http;
	call->handler = *handler;
	call->wanted = *wanted;
	call->wanted.target = xstrdup(wanted->target);
	call->wanted.accept = xstrdup_or_null(wanted->accept);
	call->wanted.content_type = xstrdup_or_null(wanted->content_type);
	if (wanted->body)
		call->wanted.body =
			memcpy(xmalloc(wanted->n_body + 1), wanted->body, wanted->n_body);
	while (*end)
		end = &(*end)->next;
	*end = call;
	http->unasked = true;
	sweep_soon(http);
	return call;
}

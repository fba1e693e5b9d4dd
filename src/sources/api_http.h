/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * HTTP requests on the event loop: TLS, HTTP/2 with all requests to one server on one connection,
 * HTTP/1.1 with a connection for each at a time, proxies. No compression (it costs the server more
 * than it saves us), no redirects, no cookies.
 *
 * Connections are shared by requests with the same way to the server (api_route.h). When a request
 * goes another way, as with a new certificate, the connections of the old one are left as soon as
 * their requests have ended.
 */

#include "base/err.h"
#include "sources/api_access.h"
#include "sources/api_failure.h"
#include "sources/api_wire.h"

struct event_base;
struct api_http;
struct api_call;

struct api_http_request {
	const char *target; /* path and query */
	const char *accept; /* content type; NULL: any */
	const char *body;   /* NULL: GET; else POST */
	size_t n_body;
	const char *content_type;
	int64_t timeout_ms; /* for all of it; 0: none, as a stream wants */
	void *owned;        /* of the handler, freed with the call; may be NULL */
};

/*
 * All are called from the loop, never from inside a function of ours. After done() the call is gone.
 * api_http_cancel() and api_http_start() may be called from inside of them. The first two may be NULL.
 */
struct api_http_handler {
	void (*status)(void *arg, int status, int retry_after_s);
	void (*data)(void *arg, struct api_bytes data);
	void (*done)(void *arg, enum api_failure failure, const char *text);
	void *arg;
};

/* A request has an answer (when its head is there), or will get none. */
struct api_http_seen {
	const char *host; /* "10.0.0.1:6443"; never with a user or a password */
	const char *method;
	int status; /* 0: none */
	int64_t duration_ns;
};

typedef void api_http_seen_fn(void *arg, const struct api_http_seen *seen);

/*
 * A call has to know where the server is and what opens its door. ask() is called from the loop, once
 * for those that were started meanwhile; api_http_grant() or api_http_refuse() answer, then or later.
 */
struct api_http *api_http_new(struct event_base *loop, void (*ask)(void *arg), void *arg);
/* Calls that are under way are cancelled. Accepts NULL, returns NULL. */
struct api_http *api_http_free(struct api_http *http);
/* From now on seen() is told of each request, before its handler; it must not make any. */
void api_http_observe(struct api_http *http, api_http_seen_fn *seen, void *arg);
/* What is wanted and the handler are copied. */
struct api_call *api_http_start(struct api_http *http, const struct api_http_request *wanted,
				const struct api_http_handler *handler);
void api_http_cancel(struct api_call *call); /* accepts NULL; its handler is not called again */

/* To all calls that wait: this way; where it is none (URLs, keys) they end, as if refused. */
void api_http_grant(struct api_http *http, const struct api_access *access);
/* They end with API_FAILURE_CREDENTIALS. */
void api_http_refuse(struct api_http *http, const char *text);

bool api_http_is_busy(const struct api_http *http);     /* a call has been granted its way */
int64_t api_http_heard_ns(const struct api_http *http); /* when a byte of an answer last came */
/* Ends the calls that have their way, as lost, and leaves all connections behind. */
void api_http_abandon(struct api_http *http, const char *text);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The head of an HTTP/1 request, read in place from bytes that anyone may have sent.
 *
 * Only what a server of small pages needs: method, target, what is accepted, whether the connection can
 * serve another request. A short body counts as a part of the head. A longer one is never read: such a
 * request is answered, and the connection ends.
 *
 * A request that two readers could understand differently is none: two Hosts, a target with another host than
 * the header's, two lengths, a length beside a Transfer-Encoding, and HTTP/1.1 without a Host.
 */

#include "base/util.h"

#define HTTP_HEAD_MAX 8192 /* request line and headers; more is refused */
#define HTTP_BODY_MAX 64   /* of a body that is read */

enum http_method {
	HTTP_GET = 0,
	HTTP_HEAD,
	HTTP_PUT,
	HTTP_OTHER,
	HTTP_METHOD_COUNT,
};

struct http_request {
	enum http_method method;
	const char *path;   /* starts with '/', as it was sent; "*" for OPTIONS */
	const char *query;  /* behind the '?'; "" when there is none */
	bool keep_alive;    /* the client may send another request */
	const char *accept; /* the header; "" when there is none */
	const char *host;   /* the header, or the target's in HTTP/1.0; "" when there is none */
	const char *body;   /* no NUL behind it */
	size_t n_body;      /* 0 also for one that is not read */
};

/*
 * Reads the head at the start of data, which is changed and must outlive *ret. Returns its length, with
 * the body's; 0 when it is not there as a whole yet; -EBADMSG for what is no HTTP/1 request.
 */
int http_request_parse(char *data, size_t n, struct http_request *ret);

/*
 * Did the client call this machine by an address, by "localhost" or by the node's name? Without a Host, which
 * every browser sends, it counts as such.
 *
 * A web site can make its own name point to 127.0.0.1, and a browser on this machine would then let it read
 * everything here as its own (DNS rebinding). It cannot choose the Host header.
 */
bool http_request_is_for(const struct http_request *request, const char *node_name);

/*
 * The value of a parameter of the query, decoded ('+' and %XX), for the caller to free; NULL when
 * there is none of that name or its encoding is broken.
 */
char *http_query_get(const char *query, const char *name);

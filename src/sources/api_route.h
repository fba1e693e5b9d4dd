/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The way to an API server, made from what opens its door: where, through which proxy, and with
 * which keys. Two requests with the same way may share a connection; the id says whether it is the
 * same.
 */

#include "sources/api_access.h"
#include "sources/api_tls.h"
#include "sources/api_url.h"

/* Shared by requests and connections. */
struct api_route {
	unsigned int refs;
	struct api_url server;
	struct api_url proxy; /* host: NULL, there is none */
	char *peer;           /* whom the certificate must be for */
	SSL_CTX *tls;         /* to the server; NULL: http */
	SSL_CTX *proxy_tls;   /* to the proxy; NULL: none, or one without TLS */
	bool no_h2;           /* a connection with TLS has opened without HTTP/2 */
	unsigned char id[32]; /* a digest of all that it was made from */
};

/* Where it leads, still without TLS: a known one with the same id may take its place. */
int api_route_new(const struct api_access *access, struct api_route **ret, struct err *err);
int api_route_add_tls(struct api_route *route, const struct api_access *access, struct err *err);
struct api_route *api_route_ref(struct api_route *object);
struct api_route *api_route_unref(struct api_route *object); /* accepts NULL, returns NULL */

/* http through a proxy that is no tunnel: the proxy gets whole URLs. */
static inline bool api_route_asks_proxy(const struct api_route *route)
{
	return route->proxy.host && route->proxy.scheme != API_SCHEME_SOCKS5 &&
	       route->server.scheme == API_SCHEME_HTTP;
}

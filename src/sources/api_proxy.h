/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How a proxy is asked for a tunnel to a server: by CONNECT (http://, https://) or by SOCKS 5
 * (RFC 1928, 1929). Names are left to the proxy to resolve. No socket, no clock.
 */

#include "base/err.h"
#include "base/text.h"
#include "sources/api_h1.h"
#include "sources/api_url.h"

struct api_proxy;

/* Both URLs must outlive it. */
struct api_proxy *api_proxy_new(const struct api_url *url, const struct api_url *server);
struct api_proxy *api_proxy_free(struct api_proxy *proxy); /* accepts NULL, returns NULL */

/* Appends what is to be sent first. */
void api_proxy_begin(struct api_proxy *proxy, struct text *out);
/*
 * Takes what the proxy has sent and appends what is to be sent in turn. 1: the tunnel is open.
 * Errors: -ECONNREFUSED, it will not; -EBADMSG, it does not speak that language, or sent more than
 * its answer, which no server that waits for our first word has to say.
 */
int api_proxy_feed(struct api_proxy *proxy, struct api_bytes data, struct text *out,
		   struct err *err);

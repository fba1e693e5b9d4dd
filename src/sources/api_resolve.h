/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The addresses of a host, as getaddrinfo() knows them: /etc/hosts, DNS, whatever nsswitch.conf
 * names. That call waits, so a thread makes it; libevent's own DNS would not wait, but knows nothing
 * of nsswitch.conf and is one more library. An address is its own answer, without a thread.
 */

#include <sys/socket.h>

#include "base/err.h"

#define API_RESOLVE_MAX 8u /* addresses; more are left out */

struct event_base;
struct api_resolve;

struct api_addresses {
	struct sockaddr_storage v[API_RESOLVE_MAX];
	socklen_t size[API_RESOLVE_MAX];
	size_t n;
};

/* Called from the loop, once, and the question is gone afterwards; err: NULL, or why there are none. */
typedef void api_resolve_fn(void *arg, const struct api_addresses *found, const struct err *err);

int api_resolve_start(struct event_base *loop, const char *host, uint16_t port,
		      api_resolve_fn *done, void *arg, struct api_resolve **ret, struct err *err);
/* done() is not called any more; the thread ends when it has its answer. Accepts NULL, returns NULL. */
struct api_resolve *api_resolve_cancel(struct api_resolve *resolve);

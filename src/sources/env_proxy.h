/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The HTTP proxy that the environment asks for, decided as programs written in Go decide it (others
 * do not know HTTP_PROXY in capitals, read NO_PROXY otherwise, and have ALL_PROXY):
 *
 *   HTTPS_PROXY, HTTP_PROXY   by the URL's scheme; capitals win over small letters; empty: not set.
 *                             A URL, or host[:port], which means http
 *   NO_PROXY                  comma-separated; reached directly: CIDRs, addresses and names, these
 *                             two with :port if wanted; a name stands for its subdomains too, and only
 *                             for them when it begins with "." or "*."; "*" for everything
 *
 * localhost and loopback addresses are always reached directly. In the environment of a CGI program
 * (REQUEST_METHOD is set) HTTP_PROXY may be a client's work, and a request that it would be for fails.
 */

#include "base/err.h"

struct env_proxy_target {
	bool https;       /* or http */
	const char *host; /* a name, or an address without brackets */
	const char *port; /* always given */
};

typedef const char *env_proxy_get(const char *name);

/* *ret: the proxy's URL, for the caller to free; NULL: none. -EPERM in a CGI environment. */
int env_proxy_find(const struct env_proxy_target *target, env_proxy_get *get, char **ret,
		   struct err *err);

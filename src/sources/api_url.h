/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The URL of an API server or of a proxy, in its parts.
 *
 * It may hold a user and a password. These are read for the request that needs them,
 * and never told: errors, and all other texts here, have the URL without them.
 */

#include "base/err.h"

enum api_scheme {
	API_SCHEME_HTTP = 0,
	API_SCHEME_HTTPS,
	API_SCHEME_SOCKS5, /* socks5h too: names are always left to the proxy */
	API_SCHEME_COUNT,
};

struct api_url {
	enum api_scheme scheme;
	char *user;      /* "name:password", decoded; NULL: none is given */
	char *host;      /* a name or an address, without brackets */
	char *authority; /* host and port as they were written: "[fd00::1]:6443", "k" */
	char *path;      /* "/prefix", without a slash at its end; "": none */
	uint16_t port;   /* the scheme's own, if none is given */
};

int api_url_parse(const char *text, struct api_url *ret, struct err *err);
void api_url_done(struct api_url *url); /* leaves it zeroed; the user is wiped */

/* The URL without user and password, even if it is none; the caller's to free. */
char *api_url_hide(const char *text);
/* The value of an Authorization header; NULL if there is no user. The caller's to wipe and free. */
char *api_url_basic(const struct api_url *url);
char *api_url_text(const struct api_url *url);      /* the URL, without them; to be freed */
char *api_url_host_port(const struct api_url *url); /* "k:443", always with a port; to be freed */

#define cleanup_api_url attr_cleanup(api_url_done)

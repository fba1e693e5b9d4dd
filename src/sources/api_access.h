/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Where an API server is and what opens its door: all that a request needs beside its target. */

#include "base/util.h"

/* Bytes with a NUL behind; data is NULL when there are none. */
struct api_blob {
	char *data;
	size_t n;
};

struct api_access {
	char *server;          /* "https://10.0.0.1:6443/prefix", no slash at its end, no user */
	char *tls_server_name; /* the name its certificate must have; NULL: that in the URL */
	char *proxy_url;       /* NULL: as the environment says */
	bool insecure;         /* any certificate will do */
	struct api_blob ca;    /* PEM; none: those that the system trusts */
	struct api_blob certificate, key; /* PEM; both or none */
	char *authorization;              /* "Bearer ..." or "Basic ..."; NULL: none */
};

void api_access_done(struct api_access *access); /* leaves it zeroed; secrets are wiped */
void api_blob_set(struct api_blob *blob, const char *data, size_t n); /* a copy; NULL: none */
/* May it be a header's value? A line end in a token would begin a header of its own. */
bool api_access_is_header_text(const char *text);

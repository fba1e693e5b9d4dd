/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A request and what becomes of it, whichever version of HTTP carries it. */

#include "sources/api_failure.h"
#include "sources/api_wire.h"

/* All that a server sends before, between and behind bodies. */
#define API_EXCHANGE_HEAD_MAX (64u * 1024) /* bytes of an answer's head, and of its trailers */

struct api_header {
	const char *name; /* in small letters, as HTTP/2 wants them; HTTP/1.1 does not mind */
	const char *value;
};

struct api_exchange {
	const char *method;
	const char *scheme;    /* "https", "http" */
	const char *authority; /* "10.0.0.1:6443" */
	const char *target;    /* "/version"; for a proxy the whole URL */
	const struct api_header *headers;
	size_t n_headers;
	const char *body; /* NULL: none */
	size_t n_body;
};

/* What an answer's head says, as far as anyone asks. */
struct api_answer {
	int status; /* 200 to 999 */
	int retry_after_s;
};

/* head() comes at most once and before any data(); end() is the last call. */
struct api_exchange_handler {
	void (*head)(void *arg, const struct api_answer *answer);
	void (*data)(void *arg, struct api_bytes data);
	/* refused: the server did nothing with it, so that it may be asked again */
	void (*end)(void *arg, enum api_failure failure, bool refused, const char *text);
};

/* The seconds of a Retry-After header, a day at most; 0 when it has none that can be read. */
int api_exchange_retry_after(const char *value, size_t n);

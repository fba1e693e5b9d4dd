/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * HTTP/1.1: a request as text, and one answer, piece by piece as it arrives. No socket, no clock.
 *
 * An answer is taken strictly, because two readers of a doubtful one may see two answers: lines end
 * in CRLF, a header is one line, a body has one length, the only transfer coding is chunked. Nothing
 * is kept but the line that is being read; bodies are passed on as they come.
 */

#include <sys/types.h>

#include "base/err.h"
#include "base/text.h"
#include "sources/api_exchange.h"

#define API_H1_LINE_MAX    8192u /* bytes of a line in a head; an API server's are some hundred */
#define API_H1_INTERIM_MAX 8u    /* answers of 1xx before the one */

enum api_h1_state {
	API_H1_STATUS = 0, /* the next line is the status */
	API_H1_HEADER,     /* ... a header, or the empty line */
	API_H1_BODY,       /* `left` bytes of it */
	API_H1_BODY_TO_END,
	API_H1_CHUNK, /* the next line is a chunk's size */
	API_H1_CHUNK_DATA,
	API_H1_CHUNK_END, /* the empty line behind it */
	API_H1_TRAILER,
	API_H1_DONE,
	API_H1_STATE_COUNT,
};

struct api_h1 {
	const struct api_exchange_handler *handler; /* end() is not called: see api_h1_feed() */
	void *arg;
	bool tunnel; /* it answers CONNECT: behind a head with 2xx all is the tunnel's */
	enum api_h1_state state;
	struct api_answer answer;
	bool has_length, chunked, last; /* last: no more answers on this connection */
	uint64_t left;
	unsigned int n_interim;
	size_t n_head;
	size_t n_line;
	char line[API_H1_LINE_MAX];
};

void api_h1_init(struct api_h1 *h1, const struct api_exchange_handler *handler, void *arg);
/* As many bytes as belong to the answer, or -EBADMSG. All of it is there in API_H1_DONE. */
ssize_t api_h1_feed(struct api_h1 *h1, struct api_bytes data, struct err *err);
/* The connection has ended: 0 if the answer was to end so, or had; else -EPIPE. */
int api_h1_end(struct api_h1 *h1, struct err *err);

void api_h1_request(const struct api_exchange *exchange, struct text *out);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * HTTP/2 on one connection, by nghttp2: any number of requests at a time. No socket, no clock.
 *
 * Data goes to its handler as it comes, and only then is the server allowed to send more. What a
 * server may make us keep is bounded: an answer's head by API_EXCHANGE_HEAD_MAX, answers to its
 * pings and settings by nghttp2.
 */

#include "base/err.h"
#include "sources/api_exchange.h"

#define API_H2_STREAM_WINDOW (4 << 20)  /* bytes that a server may send ahead, for each request */
#define API_H2_WINDOW        (16 << 20) /* ... for all together */

struct api_h2;

int api_h2_new(const struct api_exchange_handler *handler, struct api_h2 **ret, struct err *err);
struct api_h2 *api_h2_free(struct api_h2 *h2); /* accepts NULL, returns NULL */

/* The body must stay until the end; arg is for the handler, and the request's name. */
int api_h2_start(struct api_h2 *h2, const struct api_exchange *exchange, void *arg,
		 struct err *err);
/* Its handler is not called any more; may be called from inside of it. */
void api_h2_cancel(struct api_h2 *h2, const void *arg);
/* Has the server not said that it wants no more requests here? */
bool api_h2_is_open(const struct api_h2 *h2);

/* Ends all requests in this way: the connection is gone. No handler may call back. */
void api_h2_fail(struct api_h2 *h2, enum api_failure failure, const char *text);

/* What is against the rules makes an error, or a last message to the server after which it is over. */
bool api_h2_is_over(const struct api_h2 *h2);
int api_h2_feed(struct api_h2 *h2, struct api_bytes data, struct err *err);
/* The next bytes to send, good until the next call; none: n is 0. */
int api_h2_pull(struct api_h2 *h2, struct api_bytes *ret, struct err *err);

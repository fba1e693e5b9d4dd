/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Requests to one API server: each goes out with credentials as they are at that moment, and waits
 * for them where a plugin has to be run first.
 *
 * A server can be gone without its connection knowing (a proxy in between keeps it open). While
 * streams are open and nothing at all has come for a while, a small question is asked on the same
 * connection; when it is not answered, every request on it ends as lost.
 */

#include "base/err.h"
#include "sources/api_http.h"
#include "sources/credentials.h"

struct api_client {
	struct api_http *http; /* to make requests */
	struct credentials *credentials;

	/* its own */
	struct event *quiet; /* looks whether anything comes */
	struct event *dead;  /* the ping was not answered */
	struct api_call *ping;
	unsigned int n_posts;
};

/* ready and arg of the credentials' configuration are the client's own to set. */
int api_client_new(struct event_base *loop, const struct credentials_config *config,
		   struct api_client **ret, struct err *err);
/* Requests under way are cancelled. Accepts NULL, returns NULL. */
struct api_client *api_client_free(struct api_client *client);

/*
 * Creates an object: path is that of its collection, json the object. done gets the status (0: none
 * came) and an error's text, or "". How often is the caller's to limit.
 */
typedef void api_post_fn(void *arg, int status, const char *text);
void api_client_post(struct api_client *client, const char *path, const char *json,
		     api_post_fn *done, void *arg);

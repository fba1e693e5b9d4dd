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

struct api_client;

/* ready and arg of the credentials' configuration are the client's own to set. */
int api_client_new(struct event_base *loop, const struct credentials_config *config,
		   struct api_client **ret, struct err *err);
/* Requests under way are cancelled. Accepts NULL, returns NULL. */
struct api_client *api_client_free(struct api_client *client);

struct api_http *api_client_http(const struct api_client *client); /* to make requests */
void api_client_doubt(struct api_client *client); /* 401: credentials are read again */
const char *api_client_server(const struct api_client *client);
const struct credentials *api_client_credentials(const struct api_client *client);

/*
 * Creates an object: path is that of its collection, json the object. done gets the status (0: none
 * came) and an error's text, or "". How often is the caller's to limit.
 */
typedef void api_post_fn(void *arg, int status, const char *text);
void api_client_post(struct api_client *client, const char *path, const char *json,
		     api_post_fn *done, void *arg);

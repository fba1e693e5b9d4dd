/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/api_client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/loop.h"

#define QUIET_NS        (60 * CLOCK_NS_PER_SECOND) /* bookmarks come about once a minute */
#define PING_TIMEOUT_NS (15 * CLOCK_NS_PER_SECOND)
#define POST_TIMEOUT_MS 30000
#define POST_MAX        64u        /* under way at a time; more are dropped */
#define PING_TARGET     "/version" /* open to everyone, and small */

/* -- credentials -- */

static void on_ask(void *arg)
{
	const struct api_client *client = arg;
	const struct api_access *access;
	struct err err;
	int r = credentials_get(client->credentials, &access, &err);

	if (r < 0)
		api_http_refuse(client->http, err.text);
	else if (r > 0)
		api_http_grant(client->http, access);
}

static void on_ready(void *arg, int r, const char *text)
{
	const struct api_client *client = arg;

	if (r < 0)
		api_http_refuse(client->http, text);
	else
		api_http_grant(client->http, credentials_access(client->credentials));
}

/* -- is it alive? -- */

static void on_ping_done(void *arg, enum api_failure failure, const char *text attr_unused)
{
	struct api_client *client = arg;

	client->ping = NULL;
	if (failure == API_FAILURE_CONNECT)
		loop_arm(client->dead, 0); /* not from inside here: calls will be cancelled */
}

static void on_quiet(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	static const struct api_http_request request = {
		.target = PING_TARGET,
		.timeout_ms = PING_TIMEOUT_NS / CLOCK_NS_PER_MS,
	};
	struct api_client *client = arg;
	const struct api_http_handler handler = {.done = on_ping_done, .arg = client};
	int64_t left = api_http_heard_ns(client->http) + QUIET_NS - clock_now_ns();

	if (left <= 0 && api_http_is_busy(client->http) && !client->ping)
		client->ping = api_http_start(client->http, &request, &handler);
	loop_arm(client->quiet, left > 0 ? left : QUIET_NS);
}

static void on_dead(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	const struct api_client *client = arg;

	/* unless it came back in the last moment */
	if (clock_now_ns() - api_http_heard_ns(client->http) >= PING_TIMEOUT_NS)
		api_http_abandon(client->http, "the connection is dead");
}

/* -- posts -- */

struct post {
	struct api_client *client;
	api_post_fn *done;
	void *arg;
	int status;
};

static void on_post_status(void *arg, int status, int retry_after_s attr_unused)
{
	struct post *post = arg;

	post->status = status;
}

static void on_post_done(void *arg, enum api_failure failure, const char *text)
{
	struct post *post = arg;

	post->client->n_posts--;
	post->done(post->arg, failure ? 0 : post->status, failure ? text : "");
}

void api_client_post(struct api_client *client, const char *path, const char *json,
		     api_post_fn *done, void *arg)
{
	struct api_http_request request = {
		.target = path,
		.accept = "application/json",
		.body = json,
		.n_body = strlen(json),
		.content_type = "application/json",
		.timeout_ms = POST_TIMEOUT_MS,
	};
	struct post *post;

	if (client->n_posts >= POST_MAX) {
		done(arg, 0, "too many are under way");
		return;
	}
	client->n_posts++;
	request.owned = post = xcalloc(1, sizeof(*post));
	*post = (struct post){.client = client, .done = done, .arg = arg};
	api_http_start(client->http, &request,
		       &(struct api_http_handler){on_post_status, NULL, on_post_done, post});
}

/* -- the client -- */

int api_client_new(struct event_base *loop, const struct credentials_config *config,
		   struct api_client **ret, struct err *err)
{
	struct api_client *client = xcalloc(1, sizeof(*client));
	struct credentials_config own = *config;
	int r;

	client->quiet = loop_timer(loop, on_quiet, client);
	client->dead = loop_timer(loop, on_dead, client);
	client->http = api_http_new(loop, on_ask, client);
	own.ready = on_ready;
	own.arg = client;
	r = credentials_new(&own, &client->credentials, err);
	if (r < 0) {
		api_client_free(client);
		return r;
	}
	loop_arm(client->quiet, QUIET_NS);
	*ret = client;
	return 0;
}

struct api_client *api_client_free(struct api_client *client)
{
	if (!client)
		return NULL;
	api_http_free(client->http);
	credentials_free(client->credentials);
	loop_free(client->quiet);
	loop_free(client->dead);
	free(client);
	return NULL;
}

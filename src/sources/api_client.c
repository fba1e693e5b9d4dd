/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/api_client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/loop.h"

#define QUIET_MS        60000 /* bookmarks come about once a minute */
#define PING_TIMEOUT_MS 15000
#define POST_TIMEOUT_MS 30000
#define POST_MAX        64u        /* under way at a time; more are dropped */
#define PING_TARGET     "/version" /* open to everyone, and small */

struct api_request {
	struct api_client *client;
	struct api_request *next;
	char *target, *accept, *body, *content_type;
	size_t n_body;
	int64_t timeout_ms;
	struct api_http_handler handler;
	struct api_call *call; /* NULL: it waits for credentials */
	void *owned;           /* the handler's memory, which goes with the request */
};

struct api_client {
	struct event_base *loop;
	struct api_http *http;
	struct credentials *credentials;
	struct api_request *requests; /* a list, in the order of their start */
	struct event *kick;           /* something waits to be started */
	struct event *quiet;          /* looks whether anything comes */
	struct event *dead;           /* the ping was not answered */
	struct api_request *ping;
	int64_t last_byte_ms;
	unsigned int n_posts;
};

static int64_t now_ms(void)
{
	return clock_now_ns() / CLOCK_NS_PER_MS;
}

static void arm(struct event *event, int64_t ms)
{
	loop_arm(event, ms * CLOCK_NS_PER_MS);
}

/* -- one request -- */

static void unlink_request(struct api_client *client, const struct api_request *request)
{
	struct api_request **at = &client->requests; /* a handful */

	while (*at != request)
		at = &(*at)->next;
	*at = request->next;
}

static void request_free(struct api_request *request)
{
	free(request->target);
	free(request->accept);
	free(request->body);
	free(request->content_type);
	free(request->owned);
	free(request);
}

static void end_request(struct api_client *client, struct api_request *request,
			enum api_failure failure, const char *text)
{
	struct api_http_handler handler = request->handler;
	void *owned = take(request->owned);

	unlink_request(client, request);
	request_free(request);
	handler.done(handler.arg, failure, text);
	free(owned);
}

static void on_status(void *arg, int status, int retry_after_s)
{
	struct api_request *request = arg;

	request->client->last_byte_ms = now_ms();
	request->handler.status(request->handler.arg, status, retry_after_s);
}

static void on_data(void *arg, struct api_bytes data)
{
	struct api_request *request = arg;

	request->client->last_byte_ms = now_ms();
	request->handler.data(request->handler.arg, data);
}

static void on_done(void *arg, enum api_failure failure, const char *text)
{
	struct api_request *request = arg;

	request->call = NULL;
	end_request(request->client, request, failure, text);
}

static int send_request(struct api_request *request, const struct api_access *access,
			struct err *err)
{
	const struct api_http_request http_request = {
		.target = request->target,
		.accept = request->accept,
		.body = request->body,
		.n_body = request->n_body,
		.content_type = request->content_type,
		.timeout_ms = request->timeout_ms,
	};
	const struct api_http_handler handler = {on_status, on_data, on_done, request};

	return api_http_start(request->client->http, access, &http_request, &handler,
			      &request->call, err);
}

/* -- those that wait -- */

static struct api_request *first_waiting(const struct api_client *client)
{
	struct api_request *request = client->requests;

	while (request && request->call)
		request = request->next;
	return request;
}

static void fail_waiting(struct api_client *client, const char *text)
{
	struct api_request *request, *last = NULL;

	/* those that are started in answer to a failure come behind `last`, and wait for theirs */
	for (request = client->requests; request; request = request->next)
		if (!request->call)
			last = request;
	while (last && (request = first_waiting(client))) {
		bool end = request == last;

		end_request(client, request, API_FAILURE_CREDENTIALS, text);
		if (end)
			break;
	}
}

static void send_waiting(struct api_client *client, const struct api_access *access)
{
	struct api_request *request;
	struct err err;

	while ((request = first_waiting(client))) {
		if (send_request(request, access, &err) < 0) {
			end_request(client, request, API_FAILURE_CREDENTIALS, err.text);
			break;
		}
	}
	if (first_waiting(client))
		arm(client->kick, 0);
}

static void on_kick(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	struct api_client *client = arg;
	const struct api_access *access;
	struct err err;
	int r;

	if (!first_waiting(client))
		return;
	r = credentials_get(client->credentials, &access, &err);
	if (r < 0)
		fail_waiting(client, err.text);
	else if (r > 0)
		send_waiting(client, access);
}

static void on_ready(void *arg, int r, const char *text)
{
	struct api_client *client = arg;

	if (r < 0)
		fail_waiting(client, text);
	else
		send_waiting(client, credentials_access(client->credentials));
}

struct api_request *api_client_start(struct api_client *client,
				     const struct api_http_request *wanted,
				     const struct api_http_handler *handler)
{
	struct api_request *request = xcalloc(1, sizeof(*request));
	struct api_request **end = &client->requests;

	request->client = client;
	request->target = xstrdup(wanted->target);
	request->accept = xstrdup_or_null(wanted->accept);
	request->content_type = xstrdup_or_null(wanted->content_type);
	request->timeout_ms = wanted->timeout_ms;
	request->handler = *handler;
	if (wanted->body) {
		request->body = xmalloc(wanted->n_body + 1);
		memcpy(request->body, wanted->body, wanted->n_body);
		request->n_body = wanted->n_body;
	}
	while (*end)
		end = &(*end)->next;
	*end = request;
	arm(client->kick, 0);
	return request;
}

void api_client_cancel(struct api_request *request)
{
	if (!request)
		return;
	unlink_request(request->client, request);
	api_http_cancel(request->call);
	request_free(request);
}

/* -- is it alive? -- */

static void on_ping_status(void *arg attr_unused, int status attr_unused,
			   int retry_after_s attr_unused)
{
}

static void on_ping_data(void *arg attr_unused, struct api_bytes data attr_unused)
{
}

static void on_ping_done(void *arg, enum api_failure failure, const char *text attr_unused)
{
	struct api_client *client = arg;

	client->ping = NULL;
	if (failure == API_FAILURE_CONNECT)
		arm(client->dead, 0); /* not from inside here: calls will be cancelled */
}

static struct api_request *first_sent(const struct api_client *client)
{
	struct api_request *request = client->requests;

	while (request && !request->call)
		request = request->next;
	return request;
}

static void on_quiet(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	static const struct api_http_request request = {
		.target = PING_TARGET,
		.timeout_ms = PING_TIMEOUT_MS,
	};
	struct api_client *client = arg;
	int64_t left = client->last_byte_ms + QUIET_MS - now_ms();

	if (left <= 0 && first_sent(client) && !client->ping)
		client->ping =
			api_client_start(client, &request,
					 &(struct api_http_handler){on_ping_status, on_ping_data,
								    on_ping_done, client});
	arm(client->quiet, left > 0 ? left : QUIET_MS);
}

static void on_dead(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	struct api_client *client = arg;
	struct api_request *request;

	if (now_ms() - client->last_byte_ms < PING_TIMEOUT_MS)
		return; /* it came back in the last moment */
	while ((request = first_sent(client))) {
		api_http_cancel(take(request->call));
		end_request(client, request, API_FAILURE_CONNECT, "the connection is dead");
	}
	api_http_forget_connections(client->http);
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
	const struct api_http_request request = {
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
	post = xcalloc(1, sizeof(*post));
	*post = (struct post){.client = client, .done = done, .arg = arg};
	api_client_start(
		client, &request,
		&(struct api_http_handler){on_post_status, on_ping_data, on_post_done, post})
		->owned = post;
}

/* -- the client -- */

void api_client_observe(struct api_client *client, api_http_seen_fn *seen, void *arg)
{
	api_http_observe(client->http, seen, arg);
}

int api_client_new(struct event_base *loop, const struct credentials_config *config,
		   struct api_client **ret, struct err *err)
{
	struct api_client *client = xcalloc(1, sizeof(*client));
	struct credentials_config own = *config;
	int r;

	client->loop = loop;
	client->kick = loop_timer(loop, on_kick, client);
	client->quiet = loop_timer(loop, on_quiet, client);
	client->dead = loop_timer(loop, on_dead, client);
	client->last_byte_ms = now_ms();
	client->http = api_http_new(loop);
	own.ready = on_ready;
	own.arg = client;
	r = credentials_new(&own, &client->credentials, err);
	if (r < 0) {
		api_client_free(client);
		return r;
	}
	arm(client->quiet, QUIET_MS);
	*ret = client;
	return 0;
}

struct api_client *api_client_free(struct api_client *client)
{
	struct api_request *request;

	if (!client)
		return NULL;
	while ((request = client->requests)) {
		client->requests = request->next;
		api_http_cancel(request->call);
		request_free(request);
	}
	api_http_free(client->http);
	credentials_free(client->credentials);
	loop_free(client->kick);
	loop_free(client->quiet);
	loop_free(client->dead);
	free(client);
	return NULL;
}

void api_client_doubt(struct api_client *client)
{
	credentials_doubt(client->credentials);
}

const char *api_client_server(const struct api_client *client)
{
	return credentials_access(client->credentials)->server;
}

const struct credentials *api_client_credentials(const struct api_client *client)
{
	return client->credentials;
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The API client against servers and proxies of this process, with real TLS and HTTP/2. What a server does is in
 * the path that it is asked for.
 */

#include <event2/event.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api_peer.h"
#include "own_ports.h"
#include "sources/api_http.h"

#define BIG      (20u << 20) /* more than all windows */
#define CALLS    8
#define LIMIT_MS 15000

static struct {
	struct event_base *loop;
	struct api_http *http;
	struct api_access access;
	struct peer_identity authority, server, stranger;
	int left;    /* calls under way */
	int n_asked; /* for a way */
	char seen[128];
} world;

/* -- the server, by HTTP/1.1 */

static void serve_h1(struct peer_io *io)
{
	char head[4096];
	char length[64];
	cleanup_free char *zeros = NULL;

	while (peer_read_head(io, head, sizeof(head))) {
		if (has_prefix(head, "GET /once")) {
			peer_say(io, "HTTP/1.1 200 OK\r\n\r\nonce");
			return;
		} else if (has_prefix(head, "GET /cut")) {
			peer_say(io, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\ncut");
			return;
		} else if (has_prefix(head, "GET /drop")) {
			return;
		} else if (has_prefix(head, "GET /noise")) {
			peer_say(io, "noise\r\n\r\n");
			return;
		} else if (has_prefix(head, "GET /silent")) {
			peer_read_head(io, head, sizeof(head));
			return;
		} else if (has_prefix(head, "GET /mortal") && io != io->peer->io) {
			peer_say(io, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecond");
		} else if (has_prefix(head, "GET /mortal")) {
			return; /* the first connection ends without a word */
		} else if (has_prefix(head, "GET /big")) {
			zeros = xcalloc(1, BIG);
			snprintf(length, sizeof(length),
				 "HTTP/1.1 200 OK\r\nContent-Length: %u\r\n\r\n", BIG);
			peer_say(io, length);
			peer_write(io, zeros, BIG);
		} else if (has_prefix(head, "GET /echo")) {
			snprintf(length, sizeof(length),
				 "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", strlen(head));
			peer_say(io, length);
			peer_say(io, head);
		} else {
			peer_say(io, "HTTP/1.1 429 Slow\r\nRetry-After: 3\r\n"
				     "Transfer-Encoding: chunked\r\n\r\n"
				     "5\r\nhello\r\n0\r\n\r\n");
		}
	}
}

/* -- the server, by HTTP/2 */

struct h2_server {
	struct peer_io *io;
	size_t left; /* of a big body; it has one at a time */
};

static ssize_t read_big(nghttp2_session *session attr_unused, int32_t id attr_unused,
			uint8_t *buffer, size_t size, uint32_t *flags, nghttp2_data_source *source,
			void *arg attr_unused)
{
	size_t *left = source->ptr;
	size_t n = MIN(size, *left);

	memset(buffer, 0, n);
	*left -= n;
	if (*left == 0)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t)n;
}

static ssize_t read_none(nghttp2_session *session attr_unused, int32_t id attr_unused,
			 uint8_t *buffer attr_unused, size_t size attr_unused,
			 uint32_t *flags attr_unused, nghttp2_data_source *source attr_unused,
			 void *arg attr_unused)
{
	return NGHTTP2_ERR_DEFERRED;
}

static void respond(nghttp2_session *session, int32_t id, const char *status, size_t *left)
{
	static char value[4000];
	nghttp2_nv headers[20];
	size_t n = left ? 1 : 2;
	const nghttp2_data_provider body = {.source.ptr = left, .read_callback = read_big};

	memset(value, 'x', sizeof(value));
	headers[0] = (nghttp2_nv){(uint8_t *)":status", (uint8_t *)status, 7, 3, 0};
	headers[1] = (nghttp2_nv){(uint8_t *)"retry-after", (uint8_t *)"3", 11, 1, 0};
	while (streq(status, "999") && n < ARRAY_SIZE(headers)) /* 18 times 4,000 bytes */
		headers[n++] = (nghttp2_nv){(uint8_t *)"x", (uint8_t *)value, 1, sizeof(value), 0};
	nghttp2_submit_response(session, id, headers, n, left ? &body : NULL);
}

static int on_request_path(nghttp2_session *session, const nghttp2_frame *frame,
			   const uint8_t *name, size_t n_name, const uint8_t *value, size_t n_value,
			   uint8_t flags attr_unused, void *arg)
{
	const nghttp2_data_provider none = {.read_callback = read_none};
	const nghttp2_nv ok = {(uint8_t *)":status", (uint8_t *)"200", 7, 3, 0};
	struct h2_server *server = arg;
	int32_t id = frame->hd.stream_id;
	cleanup_free char *path = xasprintf("%.*s", (int)n_value, (const char *)value);

	if (n_name != 5 || memcmp(name, ":path", 5) != 0)
		return 0;
	if (has_prefix(path, "/big")) {
		server->left = BIG;
		respond(session, id, "200", &server->left);
	} else if (has_prefix(path, "/reset")) {
		nghttp2_submit_rst_stream(session, 0, id, NGHTTP2_INTERNAL_ERROR);
	} else if (has_prefix(path, "/head")) {
		respond(session, id, "999", NULL);
	} else if (has_prefix(path, "/watch")) {
		nghttp2_submit_response(session, id, &ok, 1, &none);
	} else if (has_prefix(path, "/leave") && server->io == server->io->peer->io) {
		nghttp2_submit_goaway(session, 0, MAX(id - 2, 0), NGHTTP2_NO_ERROR, NULL, 0);
	} else if (!has_prefix(path, "/silent")) {
		respond(session, id, "429", NULL);
	}
	return 0;
}

static void serve_h2(struct peer_io *io)
{
	struct h2_server server = {.io = io};
	nghttp2_session_callbacks *callbacks;
	nghttp2_option *option;
	nghttp2_session *session;
	uint8_t data[16384];
	const uint8_t *out;
	ssize_t n = 0;

	nghttp2_session_callbacks_new(&callbacks);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_request_path);
	nghttp2_option_new(&option);
	nghttp2_option_set_max_send_header_block_length(option, 1 << 20);
	nghttp2_session_server_new2(&session, callbacks, &server, option);
	nghttp2_option_del(option);
	nghttp2_session_callbacks_del(callbacks);
	nghttp2_submit_settings(session, 0, NULL, 0);
	do {
		while ((n = nghttp2_session_mem_send(session, &out)) > 0)
			if (!peer_write(io, out, (size_t)n))
				break;
		n = peer_read(io, data, sizeof(data));
	} while (n > 0 && nghttp2_session_mem_recv(session, data, (size_t)n) == n);
	nghttp2_session_del(session);
}

/* -- calls */

struct call {
	struct api_call *call;
	int status, retry_after_s;
	char body[512];
	size_t n_body, cancel_after; /* bytes; 0: never */
	bool done;
	enum api_failure failure;
	char text[512];
};

static void on_status(void *arg, int status, int retry_after_s)
{
	struct call *call = arg;

	assert_false(call->done);
	call->status = status;
	call->retry_after_s = retry_after_s;
}

static void finish_one(void)
{
	if (--world.left == 0)
		event_base_loopbreak(world.loop);
}

static void on_data(void *arg, struct api_bytes data)
{
	struct call *call = arg;
	size_t keep = call->n_body < sizeof(call->body) - 1
			      ? MIN(data.n, sizeof(call->body) - 1 - call->n_body)
			      : 0;

	assert_non_null(call->call); /* not after it was cancelled */
	memcpy(call->body + call->n_body, data.data, keep);
	call->n_body += data.n;
	if (call->cancel_after && call->n_body >= call->cancel_after) {
		api_http_cancel(take(call->call));
		finish_one();
	}
}

static void on_done(void *arg, enum api_failure failure, const char *text)
{
	struct call *call = arg;

	assert_false(call->done);
	call->done = true;
	call->failure = failure;
	snprintf(call->text, sizeof(call->text), "%s", text);
	finish_one();
}

static void start_with(struct call *call, const char *target, const char *body, int64_t timeout_ms)
{
	const struct api_http_request request = {.target = target,
						 .body = body,
						 .n_body = body ? strlen(body) : 0,
						 .timeout_ms = timeout_ms};
	size_t cancel_after = call->cancel_after;

	*call = (struct call){.cancel_after = cancel_after};
	world.left++;
	call->call = api_http_start(world.http, &request,
				    &(struct api_http_handler){on_status, on_data, on_done, call});
	api_http_grant(world.http, &world.access);
}

static void start(struct call *call, const char *target)
{
	start_with(call, target, NULL, LIMIT_MS);
}

static void run(void)
{
	event_base_dispatch(world.loop);
	assert_int_equal(world.left, 0);
}

static struct call ask(const char *target)
{
	struct call call = {0};

	start(&call, target);
	run();
	return call;
}

static void use(const char *format, uint16_t port)
{
	char text[16];
	const char *mark = strchr(format, '@') ? strrchr(format, '?') : strchr(format, '?');

	snprintf(text, sizeof(text), "%u", port);
	free(world.access.server);
	world.access.server = xasprintf("%.*s%s", (int)(mark - format), format, text);
}

static void trust(const struct peer_identity *authority)
{
	cleanup_free char *pem = peer_pem(authority, false);

	api_blob_set(&world.access.ca, pem, strlen(pem));
}

static void on_seen(void *arg attr_unused, const struct api_http_seen *seen)
{
	snprintf(world.seen, sizeof(world.seen), "%s %s %d", seen->method, seen->host,
		 seen->status);
}

static void on_ask(void *arg attr_unused)
{
	world.n_asked++;
}

static int set_up(void **state attr_unused)
{
	static const char *const proxies[] = {"HTTP_PROXY",  "http_proxy", "HTTPS_PROXY",
					      "https_proxy", "ALL_PROXY",  "all_proxy",
					      "NO_PROXY",    "no_proxy",   "REQUEST_METHOD"};
	for (size_t i = 0; i < ARRAY_SIZE(proxies); i++)
		unsetenv(proxies[i]);
	world.loop = event_base_new();
	world.http = api_http_new(world.loop, on_ask, NULL);
	world.left = world.n_asked = 0;
	world.seen[0] = '\0';
	world.authority =
		peer_identity_new(&(struct peer_wish){"authority", NULL, NULL, -60, 3600});
	world.server = peer_identity_new(&(struct peer_wish){"server", "DNS:k.example,IP:127.0.0.1",
							     &world.authority, -60, 3600});
	world.stranger = peer_identity_new(&(struct peer_wish){"authority", NULL, NULL, -60, 3600});
	trust(&world.authority);
	return 0;
}

static int tear_down(void **state attr_unused)
{
	world.http = api_http_free(world.http);
	api_access_done(&world.access);
	peer_identity_done(&world.authority);
	peer_identity_done(&world.server);
	peer_identity_done(&world.stranger);
	event_base_free(world.loop);
	return 0;
}

/* -- both versions of HTTP */

static void http1_connections_are_used_again(void **state attr_unused)
{
	struct peer peer;
	struct call call;

	peer_start(&peer, NULL, NULL, serve_h1, NULL);
	use("http://127.0.0.1:?", peer.port);
	api_http_observe(world.http, on_seen, NULL);
	call = ask("/any");
	assert_int_equal(call.failure, API_FAILURE_NONE);
	assert_int_equal(call.status, 429);
	assert_int_equal(call.retry_after_s, 3);
	assert_string_equal(call.body, "hello");
	assert_non_null(strstr(world.seen, "GET 127.0.0.1:"));
	call = ask("/echo");
	assert_non_null(strstr(call.body, "GET /echo HTTP/1.1\r\nHost: 127.0.0.1:"));
	assert_int_equal(peer.n, 1);
	call = ask("/once");
	assert_string_equal(call.body, "once");
	assert_int_equal(call.failure, API_FAILURE_NONE);
	ask("/any");
	assert_int_equal(peer.n, 2);
	peer_stop(&peer);
}

static void http1_requests_at_a_time_have_a_connection_each(void **state attr_unused)
{
	struct call calls[CALLS] = {0};
	struct peer peer;

	peer_start(&peer, &world.server, "\10http/1.1", serve_h1, NULL);
	use("https://127.0.0.1:?", peer.port);
	for (size_t i = 0; i < CALLS; i++)
		start(&calls[i], i % 2 ? "/big" : "/any");
	run();
	for (size_t i = 0; i < CALLS; i++) {
		assert_int_equal(calls[i].failure, API_FAILURE_NONE);
		assert_int_equal(calls[i].n_body, i % 2 ? BIG : 5);
	}
	assert_true(peer.n > 1 && peer.n <= CALLS);
	peer_stop(&peer);
}

static void http2_requests_share_one_connection(void **state attr_unused)
{
	struct call calls[CALLS] = {0};
	struct peer peer;

	peer_start(&peer, &world.server, "\2h2", serve_h2, NULL);
	use("https://127.0.0.1:?", peer.port);
	for (size_t i = 0; i < CALLS; i++)
		start_with(&calls[i], i == 3 ? "/big" : "/any", i == 5 ? "body" : NULL, LIMIT_MS);
	run();
	for (size_t i = 0; i < CALLS; i++) {
		assert_int_equal(calls[i].failure, API_FAILURE_NONE);
		assert_int_equal(calls[i].status, i == 3 ? 200 : 429);
		assert_int_equal(calls[i].retry_after_s, i == 3 ? 0 : 3);
		assert_int_equal(calls[i].n_body, i == 3 ? BIG : 0);
	}
	ask("/any");
	assert_int_equal(peer.n, 1);
	api_http_abandon(world.http, "");
	ask("/any");
	assert_int_equal(peer.n, 2);
	peer_stop(&peer);
}

static void http2_streams_end_alone(void **state attr_unused)
{
	struct peer peer;
	struct call call;

	peer_start(&peer, &world.server, "\2h2", serve_h2, NULL);
	use("https://127.0.0.1:?", peer.port);
	call = ask("/reset");
	assert_int_equal(call.failure, API_FAILURE_CONNECT);
	assert_non_null(strstr(call.text, "reset the stream: INTERNAL_ERROR"));
	call = ask("/head");
	assert_int_equal(call.failure, API_FAILURE_GARBAGE);
	assert_string_equal(call.text, "the answer's head is too long");
	assert_int_equal(ask("/any").status, 429);
	assert_int_equal(peer.n, 1);
	peer_stop(&peer);
}

static void what_a_leaving_server_did_not_touch_is_asked_again(void **state attr_unused)
{
	struct peer peer;
	struct call call;

	peer_start(&peer, &world.server, "\2h2", serve_h2, NULL);
	use("https://127.0.0.1:?", peer.port);
	call = ask("/leave");
	assert_int_equal(call.failure, API_FAILURE_NONE);
	assert_int_equal(call.status, 429);
	assert_int_equal(peer.n, 2);
	peer_stop(&peer);
}

static void an_old_http1_connection_that_ends_costs_nothing(void **state attr_unused)
{
	struct peer peer;

	peer_start(&peer, NULL, NULL, serve_h1, NULL);
	use("http://127.0.0.1:?", peer.port);
	ask("/any");
	assert_string_equal(ask("/mortal").body, "second");
	assert_int_equal(peer.n, 2);
	peer_stop(&peer);
}

static void broken_answers_have_their_kind(void **state attr_unused)
{
	struct peer peer;
	struct call call;

	peer_start(&peer, NULL, NULL, serve_h1, NULL);
	use("http://127.0.0.1:?", peer.port);
	call = ask("/cut");
	assert_int_equal(call.failure, API_FAILURE_CONNECT);
	assert_string_equal(call.body, "cut");
	assert_int_equal(ask("/noise").failure, API_FAILURE_GARBAGE);
	assert_int_equal(ask("/drop").failure,
			 API_FAILURE_CONNECT); /* a new one is not tried again */
	peer_stop(&peer);
	call = ask("/any");
	assert_int_equal(call.failure, API_FAILURE_CONNECT);
	assert_non_null(strstr(call.text, "connecting to 127.0.0.1 port "));
	assert_non_null(strstr(call.text, "Connection refused"));
}

static void a_request_that_takes_too_long_ends(void **state attr_unused)
{
	static const char *const protocols[] = {"\2h2", "\10http/1.1"};

	for (size_t i = 0; i < ARRAY_SIZE(protocols); i++) {
		struct call call = {0};
		struct peer peer;

		peer_start(&peer, &world.server, protocols[i], i ? serve_h1 : serve_h2, NULL);
		use("https://127.0.0.1:?", peer.port);
		start_with(&call, "/silent", NULL, 1000);
		run();
		assert_int_equal(call.failure, API_FAILURE_CONNECT);
		assert_string_equal(call.text, "no answer within 1 s");
		assert_int_equal(ask("/any").status, 429);
		peer_stop(&peer);
	}
}

static void a_call_may_be_cancelled_from_inside(void **state attr_unused)
{
	static const char *const protocols[] = {"\2h2", "\10http/1.1"};

	for (size_t i = 0; i < ARRAY_SIZE(protocols); i++) {
		struct call call = {.cancel_after = 100000};
		struct peer peer;

		peer_start(&peer, &world.server, protocols[i], i ? serve_h1 : serve_h2, NULL);
		use("https://127.0.0.1:?", peer.port);
		start(&call, "/big");
		run();
		assert_true(call.n_body >= 100000 && call.n_body < BIG);
		assert_int_equal(ask("/any").status, 429);
		assert_false(call.done);
		assert_int_equal(peer.n, i ? 2 : 1);
		peer_stop(&peer);
	}
}

static void calls_may_be_cancelled_at_once_or_left_to_the_end(void **state attr_unused)
{
	struct call calls[3] = {0};
	struct peer peer;

	peer_start(&peer, &world.server, "\2h2", serve_h2, NULL);
	use("https://127.0.0.1:?", peer.port);
	start(&calls[0], "/watch");
	start(&calls[1], "/any");
	api_http_cancel(calls[0].call);
	world.left--;
	run();
	assert_int_equal(calls[1].status, 429);
	start(&calls[2], "/watch");
	start(&calls[1], "/any");
	world.left--;
	run();
	api_http_cancel(NULL);
	world.http = api_http_free(world.http); /* with a watch under way */
	assert_false(calls[0].done || calls[2].done);
	peer_stop(&peer);
}

/* -- TLS */

static void a_certificate_that_proves_nothing_is_refused(void **state attr_unused)
{
	static const struct peer_wish wishes[] = {
		{"server", "IP:127.0.0.1", NULL, -60, 3600},             /* its own authority */
		{"server", "IP:127.0.0.1", &world.authority, -120, -60}, /* expired */
		{"server", "IP:127.0.0.2", &world.authority, -60, 3600},
		{"127.0.0.1", NULL, &world.authority, -60, 3600}, /* only a common name */
	};
	static const char *const texts[] = {"self-signed certificate", "certificate has expired",
					    "not for 127.0.0.1", "not for 127.0.0.1"};

	for (size_t i = 0; i < ARRAY_SIZE(wishes); i++) {
		struct peer_identity identity = peer_identity_new(&wishes[i]);
		struct peer peer;
		struct call call;

		peer_start(&peer, &identity, "\2h2", serve_h2, NULL);
		use("https://127.0.0.1:?", peer.port);
		world.access.insecure = false;
		call = ask("/any");
		assert_int_equal(call.failure, API_FAILURE_TLS);
		if (!strstr(call.text, texts[i]))
			fail_msg("%s: %s", texts[i], call.text);
		world.access.insecure = true;
		assert_int_equal(ask("/any").status, 429);
		world.access.insecure = false;
		peer_stop(&peer);
		peer_identity_done(&identity);
	}
}

static void only_our_authority_counts(void **state attr_unused)
{
	struct peer peer;
	struct call call;

	peer_start(&peer, &world.server, "\2h2", serve_h2, NULL);
	use("https://127.0.0.1:?", peer.port);
	trust(&world.stranger);
	call = ask("/any");
	assert_int_equal(call.failure, API_FAILURE_TLS);
	assert_non_null(strstr(call.text, "certificate is not accepted"));
	api_blob_set(&world.access.ca, NULL, 0); /* those of the system */
	assert_int_equal(ask("/any").failure, API_FAILURE_TLS);
	trust(&world.authority);
	assert_int_equal(ask("/any").status, 429);
	peer_stop(&peer);
}

static void another_name_may_be_asked_for(void **state attr_unused)
{
	struct peer peer;
	struct call call;

	peer_start(&peer, &world.server, "\10http/1.1", serve_h1, NULL);
	use("https://localhost:?", peer.port); /* a thread resolves it */
	call = ask("/any");
	assert_int_equal(call.failure, API_FAILURE_TLS);
	assert_non_null(strstr(call.text, "not for localhost"));
	world.access.tls_server_name = xstrdup("k.example.");
	call = ask("/echo");
	assert_int_equal(call.failure, API_FAILURE_NONE);
	assert_non_null(strstr(call.body, "\r\nHost: localhost:"));
	peer_stop(&peer);
}

static void serve_client_name(struct peer_io *io)
{
	X509 *certificate = SSL_get1_peer_certificate(io->ssl);
	char name[64] = "nobody", head[1024];
	cleanup_free char *answer = NULL;

	if (certificate)
		X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name,
					  sizeof(name));
	X509_free(certificate);
	answer = xasprintf("HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s", strlen(name), name);
	while (peer_read_head(io, head, sizeof(head)))
		peer_say(io, answer);
}

static int accept_any(int good attr_unused, X509_STORE_CTX *context attr_unused)
{
	return 1;
}

static void set_identity(const char *name)
{
	struct peer_identity client =
		peer_identity_new(&(struct peer_wish){name, NULL, &world.authority, -60, 3600});
	cleanup_free char *certificate = peer_pem(&client, false), *key = peer_pem(&client, true);

	api_blob_set(&world.access.certificate, certificate, strlen(certificate));
	api_blob_set(&world.access.key, key, strlen(key));
	peer_identity_done(&client);
}

static void a_new_certificate_makes_a_new_connection(void **state attr_unused)
{
	struct peer peer;

	peer_start(&peer, &world.server, "\10http/1.1", serve_client_name, NULL);
	SSL_CTX_set_verify(peer.tls, SSL_VERIFY_PEER, accept_any);
	use("https://127.0.0.1:?", peer.port);
	assert_string_equal(ask("/").body, "nobody");
	set_identity("first");
	assert_string_equal(ask("/").body, "first");
	assert_string_equal(ask("/").body, "first");
	assert_int_equal(peer.n, 2);
	set_identity("second");
	assert_string_equal(ask("/").body, "second");
	assert_int_equal(peer.n, 3);
	peer_stop(&peer);
}

static void keys_that_cannot_be_used_are_an_error_at_once(void **state attr_unused)
{
	struct call call;

	api_http_observe(world.http, on_seen, NULL);
	use("https://127.0.0.1:?", 1);
	set_identity("client");
	api_blob_set(&world.access.key, "-----BEGIN PRIVATE KEY-----\nx", 29);
	call = ask("/");
	assert_int_equal(call.failure, API_FAILURE_CREDENTIALS);
	assert_non_null(strstr(call.text, "the client's key cannot be used"));
	set_identity("client");
	api_blob_set(&world.access.ca, "-----BEGIN CERTIFICATE-----\nx", 29);
	call = ask("/");
	assert_int_equal(call.failure, API_FAILURE_CREDENTIALS);
	assert_non_null(strstr(call.text, "certificate authority cannot be read"));
	assert_string_equal(world.seen, ""); /* no request was made */
}

static void calls_wait_until_they_are_granted_a_way_or_refused(void **state attr_unused)
{
	const struct api_http_request request = {.target = "/"};
	struct call calls[2] = {0};

	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		calls[i].call = api_http_start(
			world.http, &request,
			&(struct api_http_handler){on_status, on_data, on_done, &calls[i]});
	event_base_loop(world.loop, EVLOOP_NONBLOCK);
	event_base_loop(world.loop, EVLOOP_NONBLOCK);
	assert_int_equal(world.n_asked, 1);
	assert_false(api_http_is_busy(world.http) || calls[0].done || calls[1].done);
	api_http_cancel(calls[1].call);
	world.left = 1;
	api_http_refuse(world.http, "no key");
	run();
	assert_int_equal(calls[0].failure, API_FAILURE_CREDENTIALS);
	assert_string_equal(calls[0].text, "no key");
	assert_false(calls[1].done);
}

static void serve_complaint(struct peer_io *io)
{
	char head[256];

	peer_say(io, "HTTP/1.1 400 Bad Request\r\n\r\n");
	peer_read_head(io, head, sizeof(head));
}

static void a_server_without_tls_is_told_apart(void **state attr_unused)
{
	struct peer peer;
	struct call call;

	peer_start(&peer, NULL, NULL, serve_complaint, NULL);
	use("https://127.0.0.1:?", peer.port);
	call = ask("/any");
	assert_int_equal(call.failure, API_FAILURE_TLS);
	assert_string_equal(call.text, "TLS: wrong version number");
	peer_stop(&peer);
}

/* -- names */

static void a_name_that_is_none_is_told(void **state attr_unused)
{
	struct call call;

	use("http://does-not-exist.invalid:?", 1);
	call = ask("/");
	assert_int_equal(call.failure, API_FAILURE_CONNECT);
	assert_non_null(strstr(call.text, "the name does-not-exist.invalid cannot be resolved"));
}

/* A listener whose queue is full answers nobody. */
static int busy_listener(struct peer *peer, int clients[2])
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(to);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&to, size), 0);
	assert_int_equal(listen(fd, 0), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&to, &size), 0);
	peer->port = ntohs(to.sin_port);
	for (size_t i = 0; i < 2; i++) {
		clients[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		connect(clients[i], (struct sockaddr *)&to, size);
	}
	return fd;
}

static void the_only_address_has_all_the_time_there_is(void **state attr_unused)
{
	struct call call = {0};
	struct peer peer;
	int clients[2];
	int fd = busy_listener(&peer, clients);

	use("http://127.0.0.1:?", peer.port);
	start_with(&call, "/", NULL, 5000); /* more than an address has while there are others */
	run();
	assert_int_equal(call.failure, API_FAILURE_CONNECT);
	assert_string_equal(call.text, "no answer within 5 s");
	close(clients[0]);
	close(clients[1]);
	close(fd);
}

/* -- proxies: all lead to the port in their argument */

static void serve_connect(struct peer_io *io)
{
	const struct peer *server = io->peer->arg;
	char head[4096];

	if (!peer_read_head(io, head, sizeof(head)))
		return;
	if (!strstr(head, "proxy-authorization: Basic dXNlcjpnZWhlaW0=\r\n")) { /* user:geheim */
		peer_say(io, "HTTP/1.1 407 Who?\r\nContent-Length: 0\r\n\r\n");
	} else if (!has_prefix(head, "CONNECT far.example:443 HTTP/1.1\r\n")) {
		peer_say(io, "HTTP/1.1 502 Where?\r\nContent-Length: 0\r\n\r\n");
	} else {
		peer_say(io, "HTTP/1.1 200 Go\r\n\r\n");
		peer_tunnel(io, server->port);
	}
}

static void serve_socks(struct peer_io *io)
{
	static const char wanted[] = "\5\1\0\3\13far.example\1\xbb";
	const struct peer *server = io->peer->arg;
	char in[64];

	peer_read(io, in, 4);
	peer_write(io, "\5\2", 2);
	peer_read(io, in, 13);
	if (memcmp(in, "\1\4user\6geheim", 13) != 0)
		return;
	peer_write(io, "\1\0", 2);
	peer_read(io, in, sizeof(wanted) - 1);
	if (memcmp(in, wanted, sizeof(wanted) - 1) != 0)
		return;
	peer_write(io, "\5\0\0\1\0\0\0\0\0\0", 10);
	peer_tunnel(io, server->port);
}

static void through(const char *scheme, const struct peer_identity *identity,
		    void (*serve)(struct peer_io *))
{
	struct peer_identity far = peer_identity_new(
		&(struct peer_wish){"server", "DNS:far.example", &world.authority, -60, 3600});
	struct peer proxy, server;

	peer_start(&server, &far, "\2h2", serve_h2, NULL);
	peer_start(&proxy, identity, "\10http/1.1", serve, &server);
	free(world.access.server);
	world.access.server = xstrdup("https://far.example");
	free(world.access.proxy_url);
	world.access.proxy_url = xasprintf("%s://user:geheim@127.0.0.1:%u", scheme, proxy.port);
	assert_int_equal(ask("/any").status, 429);
	assert_int_equal(ask("/big").n_body, BIG);
	assert_int_equal(proxy.n, 1);
	peer_stop(&proxy);
	peer_stop(&server);
	peer_identity_done(&far);
}

static void https_goes_through_proxies_of_each_kind(void **state attr_unused)
{
	through("http", NULL, serve_connect);
	through("https", &world.server, serve_connect); /* TLS inside TLS */
	through("socks5", NULL, serve_socks);
}

static void a_proxy_that_refuses_is_named_without_its_password(void **state attr_unused)
{
	struct peer proxy;
	struct call call;

	peer_start(&proxy, NULL, NULL, serve_connect, NULL);
	use("https://far.example:?", 444);
	world.access.proxy_url = xasprintf("http://user:geheim@127.0.0.1:%u", proxy.port);
	call = ask("/any");
	assert_int_equal(call.failure, API_FAILURE_CONNECT);
	assert_non_null(strstr(call.text, "proxy 127.0.0.1:"));
	assert_non_null(strstr(call.text, "HTTP status 502"));
	assert_null(strstr(call.text, "geheim"));
	free(world.access.proxy_url);
	world.access.proxy_url = xasprintf("http://user:falsch@127.0.0.1:%u", proxy.port);
	call = ask("/any");
	assert_non_null(strstr(call.text, "407"));
	assert_null(strstr(call.text, "falsch"));
	peer_stop(&proxy);
}

static void http_asks_a_proxy_by_the_whole_url(void **state attr_unused)
{
	struct peer proxy;
	struct call call;

	peer_start(&proxy, NULL, NULL, serve_h1, NULL);
	free(world.access.server);
	world.access.server = xstrdup("http://far.example/prefix");
	world.access.proxy_url = xasprintf("http://user:geheim@127.0.0.1:%u", proxy.port);
	api_http_observe(world.http, on_seen, NULL);
	call = ask("/echo");
	assert_int_equal(call.status, 429); /* not for "/echo", but for the URL */
	assert_string_equal(world.seen, "GET far.example 429");
	peer_stop(&proxy);
}

static void the_user_in_a_url_is_in_no_label(void **state attr_unused)
{
	struct peer peer;

	peer_start(&peer, NULL, NULL, serve_h1, NULL);
	use("http://user:geheim@127.0.0.1:?", peer.port);
	api_http_observe(world.http, on_seen, NULL);
	assert_int_equal(ask("/any").status, 429);
	assert_null(strstr(world.seen, "geheim"));
	assert_true(has_prefix(world.seen, "GET 127.0.0.1:"));
	peer_stop(&peer);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(http1_connections_are_used_again),
		TEST(http1_requests_at_a_time_have_a_connection_each),
		TEST(http2_requests_share_one_connection),
		TEST(http2_streams_end_alone),
		TEST(what_a_leaving_server_did_not_touch_is_asked_again),
		TEST(an_old_http1_connection_that_ends_costs_nothing),
		TEST(broken_answers_have_their_kind),
		TEST(a_request_that_takes_too_long_ends),
		TEST(a_call_may_be_cancelled_from_inside),
		TEST(calls_may_be_cancelled_at_once_or_left_to_the_end),
		TEST(a_certificate_that_proves_nothing_is_refused),
		TEST(only_our_authority_counts),
		TEST(another_name_may_be_asked_for),
		TEST(a_new_certificate_makes_a_new_connection),
		TEST(keys_that_cannot_be_used_are_an_error_at_once),
		TEST(calls_wait_until_they_are_granted_a_way_or_refused),
		TEST(a_server_without_tls_is_told_apart),
		TEST(a_name_that_is_none_is_told),
		TEST(the_only_address_has_all_the_time_there_is),
		TEST(https_goes_through_proxies_of_each_kind),
		TEST(a_proxy_that_refuses_is_named_without_its_password),
		TEST(http_asks_a_proxy_by_the_whole_url),
		TEST(the_user_in_a_url_is_in_no_label),
	};

	signal(SIGPIPE, SIG_DFL); /* the client must not need it ignored */
	return cmocka_run_group_tests(tests, own_ports, NULL);
}

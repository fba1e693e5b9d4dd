/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/api_h2.h"

#include <errno.h>
#include <nghttp2/nghttp2.h>
#include <stdlib.h>

#include "base/oom.h"

#define HEADERS_MAX 16u /* of a request: pseudo-headers and ours */

/* A request under way. */
struct stream {
	struct api_h2 *h2;
	struct stream *next; /* all of a session, a handful */
	int32_t id;
	void *arg;
	bool cancelled;
	struct api_answer answer; /* status 0: no head yet */
	bool told, complete;      /* the head was passed on; the last byte has come */
	size_t n_head;
	struct api_bytes body; /* what is left to send of it */
};

struct api_h2 {
	const struct api_exchange_handler *handler;
	nghttp2_session *session;
	struct stream *streams;
	bool leaving; /* GOAWAY */
};

static struct stream *stream_of(nghttp2_session *session, int32_t id)
{
	struct stream *stream = nghttp2_session_get_stream_user_data(session, id);

	return stream && !stream->cancelled ? stream : NULL;
}

static void stream_free(struct stream *stream)
{
	struct stream **at = &stream->h2->streams;

	while (*at != stream)
		at = &(*at)->next;
	*at = stream->next;
	free(stream);
}

/* -- what nghttp2 tells -- */

static bool is(const uint8_t *name, size_t n, const char *text)
{
	return n == strlen(text) && memcmp(name, text, n) == 0;
}

/* nghttp2 has seen to it that a status is three digits. */
static int read_status(const uint8_t *value, size_t n)
{
	return n == 3 ? (value[0] - '0') * 100 + (value[1] - '0') * 10 + (value[2] - '0') : 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		     size_t n_name, const uint8_t *value, size_t n_value, uint8_t flags attr_unused,
		     void *arg attr_unused)
{
	struct stream *stream = stream_of(session, frame->hd.stream_id);

	if (!stream)
		return 0;
	stream->n_head += n_name + n_value;
	if (stream->n_head > API_EXCHANGE_HEAD_MAX)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* the stream is reset */
	if (stream->told)
		return 0; /* a trailer */
	if (is(name, n_name, ":status"))
		stream->answer = (struct api_answer){.status = read_status(value, n_value)};
	else if (is(name, n_name, "retry-after"))
		stream->answer.retry_after_s =
			api_exchange_retry_after((const char *)value, n_value);
	return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	struct api_h2 *h2 = arg;
	struct stream *stream = stream_of(session, frame->hd.stream_id);
	bool body = frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;

	if (frame->hd.type == NGHTTP2_GOAWAY)
		h2->leaving = true;
	if (!stream || !body)
		return 0;
	stream->complete |= (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
	if (frame->hd.type == NGHTTP2_HEADERS && !stream->told && stream->answer.status >= 200) {
		stream->told = true;
		h2->handler->head(stream->arg, &stream->answer);
	}
	return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags attr_unused, int32_t id,
		   const uint8_t *data, size_t n, void *arg)
{
	struct api_h2 *h2 = arg;
	struct stream *stream = stream_of(session, id);

	if (stream)
		h2->handler->data(stream->arg, (struct api_bytes){data, n});
	return 0;
}

static void end_stream(struct stream *stream, uint32_t code)
{
	const struct api_exchange_handler *handler = stream->h2->handler;
	void *arg = stream->arg;
	bool untouched = code == NGHTTP2_REFUSED_STREAM && !stream->told;
	bool good = stream->told && stream->complete;
	struct err err = {0};

	if (stream->n_head > API_EXCHANGE_HEAD_MAX)
		err_set(&err, -EBADMSG, "the answer's head is too long");
	else if (!good)
		err_set(&err, -ECONNRESET, "the server reset the stream: %s",
			nghttp2_http2_strerror(code));
	stream_free(stream);
	handler->end(arg,
		     good                   ? API_FAILURE_NONE
		     : err.code == -EBADMSG ? API_FAILURE_GARBAGE
					    : API_FAILURE_CONNECT,
		     untouched, err.text);
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t code, void *arg attr_unused)
{
	struct stream *stream = nghttp2_session_get_stream_user_data(session, id);

	if (stream && stream->cancelled)
		stream_free(stream);
	else if (stream)
		end_stream(stream, code);
	return 0;
}

/* A request that never went out: the server takes no more, or it was cancelled before. */
static int on_not_sent(nghttp2_session *session, const nghttp2_frame *frame, int code, void *arg)
{
	struct api_h2 *h2 = arg;
	struct stream *stream = h2->streams;

	if (frame->hd.type != NGHTTP2_HEADERS)
		return 0;
	while (stream && stream->id != frame->hd.stream_id)
		stream = stream->next;
	if (!stream)
		return 0;
	h2->leaving |= code == NGHTTP2_ERR_START_STREAM_NOT_ALLOWED;
	nghttp2_session_set_stream_user_data(session, stream->id, NULL);
	if (stream->cancelled)
		stream_free(stream);
	else
		end_stream(stream, NGHTTP2_REFUSED_STREAM);
	return 0;
}

static ssize_t read_body(nghttp2_session *session attr_unused, int32_t id attr_unused,
			 uint8_t *buffer, size_t size, uint32_t *flags, nghttp2_data_source *source,
			 void *arg attr_unused)
{
	struct stream *stream = source->ptr;
	size_t n = MIN(size, stream->body.n);

	if (n > 0)
		memcpy(buffer, stream->body.data, n);
	stream->body.data += n;
	stream->body.n -= n;
	if (stream->body.n == 0)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t)n;
}

/* -- the session -- */

static void *get(size_t n, void *arg attr_unused)
{
	return oom_check(malloc(n), "nghttp2", n, __FILE__, __LINE__);
}

static void *get_zeroed(size_t count, size_t size, void *arg attr_unused)
{
	return oom_check(calloc(count, size), "nghttp2", count * size, __FILE__, __LINE__);
}

static void *get_more(void *p, size_t n, void *arg attr_unused)
{
	return oom_check(realloc(p, n), "nghttp2", n, __FILE__, __LINE__);
}

static void give_back(void *p, void *arg attr_unused)
{
	free(p);
}

static int new_session(struct api_h2 *h2)
{
	nghttp2_mem memory = {
		.malloc = get, .calloc = get_zeroed, .realloc = get_more, .free = give_back};
	nghttp2_session_callbacks *callbacks;
	int r = nghttp2_session_callbacks_new(&callbacks);

	if (r)
		return r;
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
	nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks, on_not_sent);
	r = nghttp2_session_client_new3(&h2->session, callbacks, h2, NULL, &memory);
	nghttp2_session_callbacks_del(callbacks);
	return r;
}

static int greet(struct api_h2 *h2)
{
	static const nghttp2_settings_entry settings[] = {
		{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
		{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, API_H2_STREAM_WINDOW},
		{NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, API_EXCHANGE_HEAD_MAX},
	};
	int r = nghttp2_submit_settings(h2->session, NGHTTP2_FLAG_NONE, settings,
					ARRAY_SIZE(settings));

	return r ? r
		 : nghttp2_session_set_local_window_size(h2->session, NGHTTP2_FLAG_NONE, 0,
							 API_H2_WINDOW);
}

int api_h2_new(const struct api_exchange_handler *handler, struct api_h2 **ret, struct err *err)
{
	struct api_h2 *h2 = xcalloc(1, sizeof(*h2));
	int r;

	h2->handler = handler;
	r = new_session(h2);
	if (r == 0)
		r = greet(h2);
	if (r) {
		api_h2_free(h2);
		return err_set(err, -ENOMEM, "HTTP/2 cannot be started: %s", nghttp2_strerror(r));
	}
	*ret = h2;
	return 0;
}

struct api_h2 *api_h2_free(struct api_h2 *h2)
{
	if (!h2)
		return NULL;
	while (h2->streams)
		stream_free(h2->streams);
	nghttp2_session_del(h2->session);
	free(h2);
	return NULL;
}

bool api_h2_is_open(const struct api_h2 *h2)
{
	return !h2->leaving && nghttp2_session_check_request_allowed(h2->session);
}

/* -- requests -- */

static nghttp2_nv header(const char *name, const char *value)
{
	return (nghttp2_nv){
		.name = (uint8_t *)name,
		.value = (uint8_t *)value,
		.namelen = strlen(name),
		.valuelen = strlen(value),
		/* a token must not go into a table that is indexed */
		.flags = streq(name, "authorization") ? NGHTTP2_NV_FLAG_NO_INDEX
						      : NGHTTP2_NV_FLAG_NONE,
	};
}

static size_t list_headers(const struct api_exchange *exchange, nghttp2_nv *list)
{
	size_t n = 0;

	list[n++] = header(":method", exchange->method);
	list[n++] = header(":scheme", exchange->scheme);
	list[n++] = header(":authority", exchange->authority);
	list[n++] = header(":path", exchange->target);
	for (size_t i = 0; i < exchange->n_headers && n < HEADERS_MAX; i++)
		list[n++] = header(exchange->headers[i].name, exchange->headers[i].value);
	return n;
}

int api_h2_start(struct api_h2 *h2, const struct api_exchange *exchange, void *arg, struct err *err)
{
	struct stream *stream = xcalloc(1, sizeof(*stream));
	const nghttp2_data_provider body = {.source.ptr = stream, .read_callback = read_body};
	nghttp2_nv headers[HEADERS_MAX];
	size_t n = list_headers(exchange, headers);

	stream->h2 = h2;
	stream->arg = arg;
	stream->body = (struct api_bytes){(const uint8_t *)exchange->body, exchange->n_body};
	stream->id = nghttp2_submit_request(h2->session, NULL, headers, n,
					    exchange->body ? &body : NULL, stream);
	if (stream->id < 0) {
		int r = stream->id;

		free(stream);
		return err_set(err, -ECONNRESET, "HTTP/2 takes no request: %s",
			       nghttp2_strerror(r));
	}
	stream->next = h2->streams;
	h2->streams = stream;
	return 0;
}

/* It goes when nghttp2 says that it is closed, so that no callback meets what is gone. */
void api_h2_cancel(struct api_h2 *h2, const void *arg)
{
	struct stream *stream = h2->streams;

	while (stream && (stream->arg != arg || stream->cancelled))
		stream = stream->next;
	if (!stream)
		return;
	stream->cancelled = true;
	stream->body.n = 0;
	nghttp2_submit_rst_stream(h2->session, NGHTTP2_FLAG_NONE, stream->id, NGHTTP2_CANCEL);
}

/* -- bytes -- */

static int explain(int r, struct err *err)
{
	if (r == NGHTTP2_ERR_FLOODED)
		return err_set(err, -EBADMSG, "HTTP/2: the server sends without listening");
	return err_set(err, -EBADMSG, "HTTP/2: %s", nghttp2_strerror(r));
}

int api_h2_feed(struct api_h2 *h2, struct api_bytes data, struct err *err)
{
	ssize_t n = nghttp2_session_mem_recv(h2->session, data.data, data.n);

	return n < 0 ? explain((int)n, err) : 0;
}

bool api_h2_is_over(const struct api_h2 *h2)
{
	return !nghttp2_session_want_read(h2->session) && !nghttp2_session_want_write(h2->session);
}

void api_h2_fail(struct api_h2 *h2, enum api_failure failure, const char *text)
{
	for (struct stream *next, *stream = h2->streams; stream; stream = next) {
		void *arg = stream->arg;
		bool tell = !stream->cancelled;

		next = stream->next;
		nghttp2_session_set_stream_user_data(h2->session, stream->id, NULL);
		stream_free(stream);
		if (tell)
			h2->handler->end(arg, failure, false, text);
	}
}

int api_h2_pull(struct api_h2 *h2, struct api_bytes *ret, struct err *err)
{
	const uint8_t *data = NULL;
	ssize_t n = nghttp2_session_mem_send(h2->session, &data);

	if (n < 0)
		return explain((int)n, err);
	*ret = (struct api_bytes){data, (size_t)n};
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bytes as a server's answer by HTTP/1.1 and as a proxy's to CONNECT and SOCKS. The first byte says in how
 * large pieces they arrive: an answer means the same in pieces of any size.
 *
 *	meson setup -Dfuzz=true build-fuzz && ninja -C build-fuzz fuzz_api_answer
 *	build-fuzz/tests/fuzz/fuzz_api_answer tests/fuzz/corpus/api_answer
 */

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "sources/api_proxy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct reading {
	int heads, status;
	size_t n_body;
	uint32_t sum; /* of the body */
	int result;   /* 0, or an error */
	enum api_h1_state state;
};

static void on_head(void *arg, const struct api_answer *answer)
{
	struct reading *reading = arg;

	assert(reading->heads++ == 0 && reading->n_body == 0);
	assert(answer->status >= 200 && answer->status <= 999);
	assert(answer->retry_after_s >= 0 && answer->retry_after_s <= 86400);
	reading->status = answer->status;
}

static void on_data(void *arg, struct api_bytes data)
{
	struct reading *reading = arg;

	assert(reading->heads == 1 && data.n > 0);
	reading->n_body += data.n;
	for (size_t i = 0; i < data.n; i++)
		reading->sum = reading->sum * 31 + data.data[i];
}

static const struct api_exchange_handler handler = {on_head, on_data, NULL};

/* Each piece is a copy of its very size, so that reading behind it is seen. */
static struct api_bytes piece_of(const uint8_t *data, size_t n)
{
	uint8_t *copy = xmalloc(n);

	memcpy(copy, data, n);
	return (struct api_bytes){copy, n};
}

static struct reading read_answer(const uint8_t *data, size_t size, size_t piece)
{
	struct reading reading = {0};
	struct api_h1 h1;
	struct err err;
	ssize_t n = 0;

	api_h1_init(&h1, &handler, &reading);
	for (size_t at = 0; at < size && h1.state != API_H1_DONE && n >= 0; at += (size_t)n) {
		struct api_bytes bytes = piece_of(data + at, MIN(piece, size - at));

		n = api_h1_feed(&h1, bytes, &err);
		assert(n == -EBADMSG || n == (ssize_t)bytes.n || h1.state == API_H1_DONE);
		free((void *)bytes.data);
		if (n < 0)
			break;
	}
	if (n >= 0)
		n = api_h1_end(&h1, &err);
	reading.result = n < 0 ? (int)n : 0;
	reading.state = h1.state;
	return reading;
}

static void ask_proxy(const char *url, const uint8_t *data, size_t size, size_t piece)
{
	cleanup_api_url struct api_url proxy_url = {0}, server = {0};
	cleanup_text struct text out = {0};
	struct api_proxy *proxy;
	struct err err;
	int r = 0;

	assert(api_url_parse(url, &proxy_url, &err) == 0);
	assert(api_url_parse("https://k.example:6443", &server, &err) == 0);
	proxy = api_proxy_new(&proxy_url, &server);
	api_proxy_begin(proxy, &out);
	for (size_t at = 0; at < size && r == 0; at += piece) {
		struct api_bytes bytes = piece_of(data + at, MIN(piece, size - at));

		r = api_proxy_feed(proxy, bytes, &out, &err);
		assert(r == 0 || r == 1 || r == -EBADMSG || r == -ECONNREFUSED);
		assert(out.size < 2048);
		free((void *)bytes.data);
	}
	api_proxy_free(proxy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct reading whole, pieces;
	size_t piece;

	if (size < 1 || size > 1 << 20)
		return 0;
	piece = (size_t)*data++ + 1;
	size--;
	whole = read_answer(data, size, size + 1);
	pieces = read_answer(data, size, piece);
	/* the head's bound counts each piece's end too: only what is near it may differ */
	if (size < API_EXCHANGE_HEAD_MAX / 2)
		assert(whole.result == pieces.result && whole.status == pieces.status &&
		       whole.n_body >= pieces.n_body && whole.sum == pieces.sum);
	ask_proxy("http://user:secret@p", data, size, piece);
	ask_proxy("socks5://user:secret@p", data, size, piece);
	return 0;
}

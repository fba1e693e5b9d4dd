/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bytes as what a server sends by HTTP/2, to one who asks twice, and takes back the second question in the middle.
 * The first byte says in how large pieces they arrive.
 *
 *	meson setup -Dfuzz=true build-fuzz && ninja -C build-fuzz fuzz_api_h2
 *	build-fuzz/tests/fuzz/fuzz_api_h2 tests/fuzz/corpus/api_h2
 */

#include <assert.h>
#include <errno.h>

#include "sources/api_h2.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct question {
	int heads, ends;
	bool cancelled;
};

static void on_head(void *arg, const struct api_answer *answer)
{
	struct question *question = arg;

	assert(question->heads++ == 0 && question->ends == 0 && !question->cancelled);
	assert(answer->status >= 200 && answer->status <= 999);
}

static void on_data(void *arg, struct api_bytes data attr_unused)
{
	const struct question *question = arg;

	assert(question->heads == 1 && question->ends == 0 && !question->cancelled);
}

static void on_end(void *arg, enum api_failure failure, bool refused, const char *text)
{
	struct question *question = arg;

	assert(question->ends++ == 0 && !question->cancelled && text);
	assert(failure || question->heads == 1);
	assert(!refused || question->heads == 0);
}

static void drain(struct api_h2 *h2)
{
	struct api_bytes piece;
	struct err err;

	while (api_h2_pull(h2, &piece, &err) == 0 && piece.n > 0)
		;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct api_exchange_handler handler = {on_head, on_data, on_end};
	const struct api_exchange get = {
		.method = "GET", .scheme = "https", .authority = "k", .target = "/version"};
	struct question questions[2] = {0};
	struct api_h2 *h2;
	struct err err;
	size_t piece;
	int r = 0;

	if (size < 1)
		return 0;
	piece = (size_t)*data++ * 8 + 1;
	size--;
	assert(api_h2_new(&handler, &h2, &err) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(questions); i++)
		assert(api_h2_start(h2, &get, &questions[i], &err) == 0);
	drain(h2);
	for (size_t at = 0; at < size && r == 0 && !api_h2_is_over(h2); at += piece) {
		r = api_h2_feed(h2, (struct api_bytes){data + at, MIN(piece, size - at)}, &err);
		if (at > size / 2 && !questions[1].cancelled && !questions[1].ends) {
			questions[1].cancelled = true;
			api_h2_cancel(h2, &questions[1]);
		}
		if (r == 0)
			drain(h2);
	}
	api_h2_fail(h2, API_FAILURE_CONNECT, "gone");
	assert(questions[0].ends == 1 && questions[1].ends == !questions[1].cancelled);
	api_h2_free(h2);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bytes as the head of an HTTP request.
 *
 *	meson setup -Dfuzz=true build-fuzz && ninja -C build-fuzz fuzz_http
 *	build-fuzz/tests/fuzz/fuzz_http tests/fuzz/corpus/http
 */

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "serving/http_request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct http_request *request)
{
	cleanup_free char *value = http_query_get(request->query, "a");

	assert(request->method < HTTP_METHOD_COUNT);
	assert(request->path[0] == '/' || streq(request->path, "*"));
	assert(!strpbrk(request->path, " \r\n\t"));
	assert(!strpbrk(request->query, " \r\n\t"));
	assert(request->n_body <= HTTP_BODY_MAX && strlen(request->accept) < HTTP_HEAD_MAX);
	assert(!value || strlen(value) <= strlen(request->query));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* a copy of that very size, so that reading behind it is seen */
	cleanup_free char *copy = xmalloc(size + !size);
	struct http_request request;
	int r;

	memcpy(copy, data, size);
	r = http_request_parse(copy, size, &request);
	assert(r == -EBADMSG || (r >= 0 && (size_t)r <= size && r <= HTTP_HEAD_MAX));
	if (r > 0)
		check(&request);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bytes as the head of an HTTP request, and as what is made of one: the name that we were called by and the destination that
 * is to be explained.
 *
 *	meson setup -Dfuzz=true build-fuzz && ninja -C build-fuzz fuzz_http
 *	build-fuzz/tests/fuzz/fuzz_http tests/fuzz/corpus/http
 */

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "inspect/packet_destination.h"
#include "serving/http_request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_question(const struct http_request *request)
{
	cleanup_free char *text = http_query_get(request->query, "dest");
	cleanup_packet_destination struct packet_destination destination = {0};
	struct addr addr;
	struct err err;

	if (text && packet_destination_parse(text, &destination, &err) == 0)
		assert(destination.kind < PACKET_DESTINATION_COUNT &&
		       (destination.kind == PACKET_DESTINATION_SERVICE) == !!destination.service);
	/* every address may be called, and no name that is longer than ours */
	if (http_request_is_for(request, "node") && *request->host != '[' &&
	    !strchr(request->host, ':'))
		assert(addr_parse(request->host, &addr) == 0 || strlen(request->host) <= 9);
}

static void check(const struct http_request *request)
{
	cleanup_free char *value = http_query_get(request->query, "a");

	assert(request->method < HTTP_METHOD_COUNT);
	assert(request->path[0] == '/' || streq(request->path, "*"));
	assert(!strpbrk(request->path, " \r\n\t"));
	assert(!strpbrk(request->query, " \r\n\t"));
	assert(request->n_body <= HTTP_BODY_MAX && strlen(request->accept) < HTTP_HEAD_MAX);
	assert(!value || strlen(value) <= strlen(request->query));
	check_question(request);
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

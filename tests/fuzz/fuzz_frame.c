/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bytes as an API server's answer: frames, events, envelopes, lists, metadata, Status, and the
 * objects in them up to the model's data. The first byte says what is asked (a stream, a page or an
 * error's body) and for which kind, the second in how large pieces the rest arrives.
 *
 *	meson setup -Dfuzz=true build-fuzz && ninja -C build-fuzz fuzz_frame
 *	build-fuzz/tests/fuzz/fuzz_frame tests/fuzz/corpus/frame
 */

#include <assert.h>
#include <stdlib.h>

#include "model/endpoints.h"
#include "sources/api_watch.h"
#include "sources/convert.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct fuzz {
	bool asked;
};

static void on_get(void *arg, const char *target, bool stream attr_unused)
{
	struct fuzz *fuzz = arg;

	assert(*target == '/' && !strpbrk(target, " \r\n"));
	fuzz->asked = true;
}

static void on_stop(void *arg)
{
	struct fuzz *fuzz = arg;

	fuzz->asked = false;
}

static void on_wait(void *arg attr_unused, int64_t ms attr_unused)
{
}

static int64_t on_now(void *arg attr_unused)
{
	return 0;
}

static uint32_t on_random(void *arg attr_unused)
{
	return 0;
}

/* Each message to a person is one line. */
static void check_line(const char *text)
{
	assert(*text && !strpbrk(text, "\r\n\t\x1b"));
}

static void on_failed(void *arg attr_unused, enum api_failure failure, const char *text)
{
	assert(failure > API_FAILURE_NONE && failure < API_FAILURE_COUNT);
	check_line(text);
}

static void on_nothing(void *arg attr_unused)
{
}

static void on_report(void *arg attr_unused, enum log_severity severity attr_unused,
		      const char *text)
{
	check_line(text);
}

static void on_misread(void *arg attr_unused, const struct api_misread *misread)
{
	assert(*misread->key && *misread->why);
	convert_label(misread->metadata, LABEL_SERVICE_NAME);
}

static void on_held(void *arg attr_unused, const struct api_held *held)
{
	assert(held->n > 0 || held->why);
}

static int on_set(void *arg attr_unused, const ProtobufCMessage *message,
		  bool unless_empty attr_unused, void (*note)(void *, const char *), void *note_arg,
		  struct err *err)
{
	const struct convert_notes notes = {.fn = note, .arg = note_arg};
	enum convert_skip skip;
	struct service *service;
	int r = convert_service((const K8s__Service *)message, &notes, &service, &skip, err);

	if (r > 0)
		service_unref(service);
	return r;
}

static void check_slice(struct slice *slice)
{
	struct endpoints **lists;
	size_t n;

	lists = endpoints_merge(slice, &n);
	for (size_t i = 0; i < n; i++) {
		assert(lists[i]->n > 0 && lists[i]->n <= slice->n_endpoints * slice->n_ports);
		endpoints_unref(lists[i]);
	}
	free(lists);
}

static int on_set_slice(void *arg attr_unused, const ProtobufCMessage *message,
			bool unless_empty attr_unused, void (*note)(void *, const char *),
			void *note_arg, struct err *err)
{
	const struct convert_notes notes = {.fn = note, .arg = note_arg};
	enum convert_skip skip;
	struct slice *slice;
	int r = convert_slice((const K8s__EndpointSlice *)message, "node-a", &notes, &slice, &skip,
			      err);

	if (r > 0) {
		r = slice->n_endpoints == 0 ? API_SET_EMPTY : API_SET_TAKEN;
		check_slice(slice);
		slice_unref(slice);
	}
	return r;
}

static int on_set_cidr(void *arg attr_unused, const ProtobufCMessage *message,
		       bool unless_empty attr_unused,
		       void (*note)(void *, const char *) attr_unused, void *note_arg attr_unused,
		       struct err *err)
{
	struct service_cidr *cidr;
	int r = convert_service_cidr((const K8s__ServiceCIDR *)message, &cidr, err);

	if (r == 0)
		service_cidr_unref(cidr);
	return r < 0 ? r : 1;
}

static void on_remove(void *arg attr_unused, const char *key)
{
	assert(*key);
}

static void feed(struct api_watch *watch, const uint8_t *data, size_t size, size_t piece)
{
	while (size > 0) {
		size_t n = MIN(piece, size);

		api_watch_data(watch, (struct api_bytes){data, n});
		data += n;
		size -= n;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz fuzz = {0};
	static const struct api_watch_kind kinds[] = {
		{.kind = "Service",
		 .type = &k8s__service__descriptor,
		 .path = "/api/v1/services",
		 .selectors = "",
		 .namespaced = true,
		 .set = on_set,
		 .remove = on_remove,
		 .listed = on_nothing},
		{.kind = "ServiceCIDR",
		 .type = &k8s__service_cidr__descriptor,
		 .path = "/apis/networking.k8s.io/v1/servicecidrs",
		 .selectors = "",
		 .set = on_set_cidr,
		 .remove = on_remove,
		 .listed = on_nothing},
		{.kind = "EndpointSlice",
		 .type = &k8s__endpoint_slice__descriptor,
		 .path = "/apis/discovery.k8s.io/v1/endpointslices",
		 .selectors = "",
		 .namespaced = true,
		 .set = on_set_slice,
		 .remove = on_remove,
		 .listed = on_nothing,
		 .guard_percent = 50},
	};
	const struct api_watch_io io = {
		.get = on_get,
		.stop = on_stop,
		.wait = on_wait,
		.now_ms = on_now,
		.random = on_random,
		.failed = on_failed,
		.recovered = on_nothing,
		.report = on_report,
		.misread = on_misread,
		.held = on_held,
		.arg = &fuzz,
	};
	struct api_watch *watch;

	if (size < 2)
		return 0;
	watch = api_watch_new(&kinds[data[0] < 128 ? data[0] / 3 % 2 : 2], &io);
	api_watch_start(watch);
	if (data[0] % 3 == 1) { /* in pages */
		api_watch_status(watch, 400, 0);
		api_watch_end(watch, API_FAILURE_NONE, "");
		api_watch_timer(watch);
	}
	api_watch_status(watch, data[0] % 3 == 2 ? 500 + data[1] : 200, 0);
	feed(watch, data + 2, size - 2, data[1] ? data[1] : 65536);
	api_watch_end(watch, API_FAILURE_NONE, "");
	api_watch_timer(watch);
	assert(fuzz.asked); /* whatever came, it goes on */
	api_watch_free(watch);
	return 0;
}

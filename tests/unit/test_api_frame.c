/* SPDX-License-Identifier: Apache-2.0 */

/* Frames, events, envelopes and lists, in pieces of every size and with every kind of damage. */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "api_bytes.h"
#include "sources/api_frame.h"
#include "sources/api_list.h"
#include "sources/api_object.h"

/* What came out, as text: "ADDED default/a@1;" for each. */
struct seen {
	char text[512];
	int stop_at; /* the number of the frame to stop at; 0: none */
	int n;
};

static void note(struct seen *seen, const char *what, const struct api_meta *meta)
{
	char *key cleanup_free = api_meta_key(meta);
	char *version cleanup_free = api_bytes_text(meta->resource_version);
	char *line cleanup_free = xasprintf("%s %s@%s;", what, key, version);

	strncat(seen->text, line, sizeof(seen->text) - strlen(seen->text) - 1);
}

static int on_frame(void *arg, struct api_bytes frame, struct err *err)
{
	static const char *const names[] = {"ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"};
	struct seen *seen = arg;
	struct api_event event;
	struct api_meta meta;
	int r = api_event_read(frame, &event, err);

	if (r < 0)
		return r;
	r = api_meta_read(event.envelope.object, &meta, err);
	if (r < 0)
		return r;
	note(seen, names[event.type], &meta);
	return ++seen->n == seen->stop_at ? 7 : 0;
}

static int on_item(void *arg, struct api_bytes item, struct err *err)
{
	struct seen *seen = arg;
	struct api_meta meta;
	int r = api_meta_read(item, &meta, err);

	if (r < 0)
		return r;
	note(seen, "ITEM", &meta);
	return ++seen->n == seen->stop_at ? 7 : 0;
}

static struct bytes three_frames(void)
{
	struct bytes frames =
		make_event_frame("ADDED", "Service", make_object("default", "a", "1"));
	struct bytes more[] = {
		make_event_frame("DELETED", "Service", make_object("default", "b", "2")),
		make_event_frame("BOOKMARK", "Service", make_bookmark("3", true)),
	};

	for (size_t i = 0; i < ARRAY_SIZE(more); i++) {
		frames = bytes_join(frames, more[i].data, more[i].n);
		bytes_done(&more[i]);
	}
	return frames;
}

#define THREE "ADDED default/a@1;DELETED default/b@2;BOOKMARK @3;"

static void frames_split_at_every_byte(void **state attr_unused)
{
	struct bytes all = three_frames();

	for (size_t cut = 0; cut <= all.n; cut++) {
		struct api_frames frames = {0};
		struct seen seen = {0};
		struct err err;

		assert_int_equal(api_frames_feed(&frames, (struct api_bytes){all.data, cut},
						 on_frame, &seen, &err),
				 0);
		assert_int_equal(api_frames_feed(&frames,
						 (struct api_bytes){all.data + cut, all.n - cut},
						 on_frame, &seen, &err),
				 0);
		assert_string_equal(seen.text, THREE);
		assert_false(api_frames_amid(&frames));
		api_frames_done(&frames);
	}
	bytes_done(&all);
}

static void frames_byte_by_byte(void **state attr_unused)
{
	struct bytes all = three_frames();
	struct api_frames frames = {0};
	struct seen seen = {0};
	struct err err;

	for (size_t i = 0; i < all.n; i++)
		assert_int_equal(api_frames_feed(&frames, (struct api_bytes){all.data + i, 1},
						 on_frame, &seen, &err),
				 0);
	assert_string_equal(seen.text, THREE);
	api_frames_done(&frames);
	bytes_done(&all);
}

static void a_part_of_a_frame_is_noticed(void **state attr_unused)
{
	struct bytes all = three_frames();
	struct api_frames frames = {0};
	struct seen seen = {0};
	struct err err;

	api_frames_feed(&frames, (struct api_bytes){all.data, all.n - 1}, on_frame, &seen, &err);
	assert_true(api_frames_amid(&frames));
	api_frames_done(&frames);
	bytes_done(&all);
}

static void a_handler_can_stop_the_stream(void **state attr_unused)
{
	struct bytes all = three_frames();
	struct api_frames frames = {0};
	struct seen seen = {.stop_at = 2};
	struct err err;

	assert_int_equal(api_frames_feed(&frames, bytes_view(all), on_frame, &seen, &err), 7);
	assert_string_equal(seen.text, "ADDED default/a@1;DELETED default/b@2;");
	api_frames_done(&frames);
	bytes_done(&all);
}

static void a_frame_above_the_ceiling_is_refused_by_its_header(void **state attr_unused)
{
	static const uint8_t header[] = {0x01, 0x00, 0x00, 0x01}; /* 16 MiB and a byte */
	struct api_frames frames = {0};
	struct seen seen = {0};
	struct err err;

	assert_int_equal(
		api_frames_feed(&frames, (struct api_bytes){header, 4}, on_frame, &seen, &err),
		-EBADMSG);
	assert_non_null(strstr(err.text, "16777217 bytes"));
	api_frames_done(&frames);
}

static void a_frame_that_is_announced_costs_nothing_until_it_comes(void **state attr_unused)
{
	static const uint8_t start[] = {0x01, 0x00, 0x00, 0x00, 'x'};
	struct api_frames frames = {0};
	struct seen seen = {0};
	struct err err;

	assert_int_equal(
		api_frames_feed(&frames, (struct api_bytes){start, 5}, on_frame, &seen, &err), 0);
	assert_true(frames.buffer.capacity < 4096);
	api_frames_done(&frames);
}

static int read_event(struct bytes event, struct err *err)
{
	struct api_event read;
	int r = api_event_read(bytes_view(event), &read, err);

	bytes_done(&event);
	return r;
}

static void events_that_are_not_are_refused(void **state attr_unused)
{
	struct err err;

	assert_int_equal(read_event(bytes_join((struct bytes){0}, "\xff\xff\xff", 3), &err),
			 -EBADMSG);
	assert_int_equal(
		read_event(make_event("RENAMED", make_envelope("Service", (struct bytes){0})),
			   &err),
		-EBADMSG);
	assert_string_equal(err.text, "a watch event of a type that is not known");
	assert_int_equal(
		read_event(make_event("ADDED", bytes_join((struct bytes){0}, "{\"a\":1}", 7)),
			   &err),
		-EBADMSG);
	assert_string_equal(err.text, "an object that is not Kubernetes' protobuf");
	assert_int_equal(
		read_event(make_event("ADDED", bytes_join((struct bytes){0}, "k8s\0\x12\x7f", 6)),
			   &err),
		-EBADMSG);
}

static void a_status_is_read(void **state attr_unused)
{
	struct bytes status = make_status(429, "too many requests", 5);
	struct api_status read;
	struct err err;

	assert_int_equal(api_status_read(bytes_view(status), &read, &err), 0);
	assert_int_equal(read.code, 429);
	assert_int_equal(read.retry_after_s, 5);
	assert_true(api_bytes_equal(read.message, "too many requests"));
	bytes_done(&status);
}

static void every_truncation_of_an_object_is_refused_or_read(void **state attr_unused)
{
	struct bytes object = make_object("default", "a", "1");
	struct api_meta meta;
	struct err err;

	for (size_t n = 1; n < object.n; n++)
		assert_int_equal(api_meta_read((struct api_bytes){object.data, n}, &meta, &err),
				 -EBADMSG);
	assert_int_equal(api_meta_read((struct api_bytes){object.data, object.n}, &meta, &err), 0);
	bytes_done(&object);
}

static const char *const names[] = {"default/a", "default/b", "kube-system/c", NULL};
#define ITEMS "ITEM default/a@9;ITEM default/b@9;ITEM kube-system/c@9;"

static void a_list_split_at_every_byte(void **state attr_unused)
{
	struct bytes all = make_list("Service", "9", "next", names);

	for (size_t cut = 0; cut <= all.n; cut++) {
		struct seen seen = {0};
		struct api_list list = {.item = on_item, .arg = &seen, .kind = "ServiceList"};
		struct api_bytes parts[] = {{all.data, cut}, {all.data + cut, all.n - cut}};
		struct err err;

		for (size_t i = 0; i < 2; i++)
			assert_int_equal(api_list_feed(&list, parts[i], &err), 0);
		assert_int_equal(api_list_end(&list, &err), 0);
		assert_string_equal(seen.text, ITEMS);
		assert_string_equal(list.resource_version, "9");
		assert_string_equal(list.continue_token, "next");
		api_list_done(&list);
	}
	bytes_done(&all);
}

static void a_list_that_ends_early_is_noticed_at_every_byte(void **state attr_unused)
{
	struct bytes all = make_list("Service", "9", "", names);
	size_t content = all.n - 2; /* the envelope's last field is empty and may be missing */

	for (size_t n = 0; n < content; n++) {
		struct seen seen = {0};
		struct api_list list = {.item = on_item, .arg = &seen, .kind = "ServiceList"};
		struct err err;

		assert_int_equal(api_list_feed(&list, (struct api_bytes){all.data, n}, &err), 0);
		assert_int_equal(api_list_end(&list, &err), -EBADMSG);
		api_list_done(&list);
	}
	bytes_done(&all);
}

static int feed_list(struct bytes bytes, struct seen *seen, struct err *err)
{
	struct api_list list = {.item = on_item, .arg = seen, .kind = "ServiceList"};
	int r = api_list_feed(&list, bytes_view(bytes), err);

	if (r == 0)
		r = api_list_end(&list, err);
	api_list_done(&list);
	bytes_done(&bytes);
	return r;
}

static void an_empty_list_is_a_list(void **state attr_unused)
{
	static const char *const none[] = {NULL};
	struct seen seen = {0};
	struct err err;

	assert_int_equal(feed_list(make_list("Service", "9", "", none), &seen, &err), 0);
	assert_int_equal(seen.n, 0);
}

static void lists_that_are_not_are_refused(void **state attr_unused)
{
	struct bytes list = put_varint((struct bytes){0}, 2 << 3 | API_WIRE_BYTES);
	struct seen seen = {0};
	struct err err;

	assert_int_equal(feed_list(make_list("Pod", "9", "", names), &seen, &err), -EBADMSG);
	assert_string_equal(err.text, "a list that is not a ServiceList");
	assert_int_equal(feed_list(bytes_join((struct bytes){0}, "<html>", 6), &seen, &err),
			 -EBADMSG);
	/* an item larger than the list that it is in */
	list = put_varint(list, 1000);
	list = bytes_join(list, "0123456789", 10);
	assert_int_equal(feed_list(make_envelope("ServiceList", list), &seen, &err), -EBADMSG);
	/* and one that would be too large for anybody */
	list = put_varint((struct bytes){0}, 2 << 3 | API_WIRE_BYTES);
	list = put_varint(list, 1u << 30);
	assert_int_equal(feed_list(make_envelope("ServiceList", list), &seen, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "1073741824 bytes"));
}

static void unknown_fields_of_a_list_are_skipped(void **state attr_unused)
{
	struct bytes list = put_message((struct bytes){0}, 1, put_text((struct bytes){0}, 2, "9"));
	struct seen seen = {0};
	struct err err;

	list = put_number(list, 7, 1u << 20);
	list = put_text(list, 8, "something");
	list = put_text(list, 9, "");
	list = bytes_join(put_varint(list, 10 << 3 | API_WIRE_32), "1234", 4);
	list = bytes_join(put_varint(list, 11 << 3 | API_WIRE_64), "12345678", 8);
	list = put_message(list, 2, make_object("default", "a", "9"));
	assert_int_equal(feed_list(make_envelope("ServiceList", list), &seen, &err), 0);
	assert_string_equal(seen.text, "ITEM default/a@9;");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_split_at_every_byte),
		cmocka_unit_test(frames_byte_by_byte),
		cmocka_unit_test(a_part_of_a_frame_is_noticed),
		cmocka_unit_test(a_handler_can_stop_the_stream),
		cmocka_unit_test(a_frame_above_the_ceiling_is_refused_by_its_header),
		cmocka_unit_test(a_frame_that_is_announced_costs_nothing_until_it_comes),
		cmocka_unit_test(events_that_are_not_are_refused),
		cmocka_unit_test(a_status_is_read),
		cmocka_unit_test(every_truncation_of_an_object_is_refused_or_read),
		cmocka_unit_test(a_list_split_at_every_byte),
		cmocka_unit_test(a_list_that_ends_early_is_noticed_at_every_byte),
		cmocka_unit_test(an_empty_list_is_a_list),
		cmocka_unit_test(lists_that_are_not_are_refused),
		cmocka_unit_test(unknown_fields_of_a_list_are_skipped),
	};

	return cmocka_run_group_tests_name("api_frame", tests, NULL, NULL);
}

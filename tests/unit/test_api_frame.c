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

static int note(struct seen *seen, const char *what, struct api_bytes bytes, struct err *err)
{
	struct arena *arena cleanup_arena = arena_new(0);
	char *key cleanup_free = NULL, *line cleanup_free = NULL;
	struct api_object object;
	int r = api_object_read(&k8s__service__descriptor, bytes, arena, &object, err);

	if (r < 0)
		return r;
	key = api_object_key(&object);
	line = xasprintf("%s %s@%s;", what, key, object.metadata->resourceversion);
	strncat(seen->text, line, sizeof(seen->text) - strlen(seen->text) - 1);
	return ++seen->n == seen->stop_at ? 7 : 0;
}

static int on_frame(void *arg, struct api_bytes frame, struct err *err)
{
	static const char *const names[] = {"ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"};
	struct arena *arena cleanup_arena = arena_new(0);
	struct api_event event;
	int r = api_event_read(frame, arena, &event, err);

	return r < 0 ? r : note(arg, names[event.type], event.envelope.object, err);
}

static int on_item(void *arg, struct api_bytes item, struct err *err)
{
	return note(arg, "ITEM", item, err);
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
		assert_int_equal(frames.n_header, 0);
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
	assert_int_equal(frames.n_header, 4);
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
	struct arena *arena cleanup_arena = arena_new(0);
	struct api_event read;
	int r = api_event_read(bytes_view(event), arena, &read, err);

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
	struct arena *arena cleanup_arena = arena_new(0);
	struct api_status read;
	struct err err;

	assert_int_equal(api_status_read(bytes_view(status), arena, &read, &err), 0);
	assert_int_equal(read.code, 429);
	assert_int_equal(read.retry_after_s, 5);
	assert_string_equal(read.message, "too many requests");
	assert_int_equal(
		api_status_read((struct api_bytes){status.data, status.n - 1}, arena, &read, &err),
		-EBADMSG);
	assert_int_equal(api_status_read((struct api_bytes){0}, arena, &read, &err), 0);
	assert_int_equal(read.code, 0);
	assert_int_equal(read.retry_after_s, 0);
	assert_string_equal(read.message, "");
	bytes_done(&status);
	status = make_status(-1, "", -1);
	assert_int_equal(api_status_read(bytes_view(status), arena, &read, &err), 0);
	assert_int_equal(read.code, 0);
	assert_int_equal(read.retry_after_s, 0);
	bytes_done(&status);
}

static int read_object(struct api_bytes bytes, struct arena *arena, struct api_object *ret)
{
	struct err err;

	return api_object_read(&k8s__service__descriptor, bytes, arena, ret, &err);
}

static void every_truncation_of_an_object_is_refused_or_read(void **state attr_unused)
{
	struct bytes object = make_object("default", "a", "1");
	struct arena *arena cleanup_arena = arena_new(0);
	struct api_object read;

	for (size_t n = 1; n < object.n; n++)
		assert_int_equal(read_object((struct api_bytes){object.data, n}, arena, &read),
				 -EBADMSG);
	assert_int_equal(read_object(bytes_view(object), arena, &read), 0);
	bytes_done(&object);
}

static void an_object_without_metadata_has_no_names(void **state attr_unused)
{
	struct arena *arena cleanup_arena = arena_new(0);
	struct api_object read;
	char *key cleanup_free = NULL;

	assert_int_equal(read_object((struct api_bytes){0}, arena, &read), 0);
	assert_non_null(read.message);
	assert_false(read.nul);
	key = api_object_key(&read);
	assert_string_equal(key, "");
}

static void an_object_whose_content_cannot_be_read_has_its_metadata(void **state attr_unused)
{
	struct bytes object = put_text(make_object("default", "a", "1"), 2, "\x0a\x7f");
	struct arena *arena cleanup_arena = arena_new(0);
	struct api_object read;
	char *key cleanup_free = NULL;

	assert_int_equal(read_object(bytes_view(object), arena, &read), 0);
	assert_null(read.message);
	key = api_object_key(&read);
	assert_string_equal(key, "default/a");
	assert_string_equal(read.metadata->resourceversion, "1");
	bytes_done(&object);
}

static void a_nul_inside_a_name_is_noticed(void **state attr_unused)
{
	static const struct {
		uint32_t field;
		const char *text;
		size_t n;
		bool nul;
	} rows[] = {
		{1, "a", 1, false},  {1, "", 0, false},  {1, "a\0b", 3, true}, {1, "\0", 1, true},
		{1, "a\0", 2, true}, {3, "n", 1, false}, {3, "n\0m", 3, true},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct bytes meta =
			put_data((struct bytes){0}, rows[i].field, rows[i].text, rows[i].n);
		struct bytes object = put_message((struct bytes){0}, 1, meta);
		struct arena *arena cleanup_arena = arena_new(0);
		struct api_object read;

		assert_int_equal(read_object(bytes_view(object), arena, &read), 0);
		assert_int_equal(read.nul, rows[i].nul);
		bytes_done(&object);
	}
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

static void what_ends_in_the_middle_of_the_content_is_refused(void **state attr_unused)
{
	static const struct {
		const char *content;
		size_t n;
	} rows[] = {
		{"\x12", 1},       /* a tag without a length */
		{"\x12\x80", 2},   /* half a length */
		{"\x38\x80", 2},   /* half a number */
		{"\x4d\x01", 2},   /* a part of four bytes */
		{"\x4a\x05xy", 4}, /* a text longer than the list */
		{"\x0b", 1},       /* a group */
		{"\x02\x01x", 3},  /* a field without a number */
		{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct bytes list = bytes_join((struct bytes){0}, rows[i].content, rows[i].n);
		struct seen seen = {0};
		struct err err;

		assert_int_equal(feed_list(make_envelope("ServiceList", list), &seen, &err),
				 -EBADMSG);
		assert_string_equal(err.text, "a list that cannot be read");
	}
}

/* 1 MiB that nobody asked for, in pieces of 1 KiB. */
static void a_large_field_that_does_not_matter_is_not_kept(void **state attr_unused)
{
	enum { SIZE = 1 << 20, PIECE = 1 << 10 };
	char *filler cleanup_free = xcalloc(1, SIZE);
	struct bytes content = put_data((struct bytes){0}, 9, filler, SIZE);
	struct bytes all;
	struct seen seen = {0};
	struct api_list list = {.item = on_item, .arg = &seen, .kind = "ServiceList"};
	struct err err;

	content = put_message(content, 2, make_object("default", "a", "9"));
	all = make_envelope("ServiceList", content);
	for (size_t at = 0; at < all.n; at += PIECE) {
		struct api_bytes piece = {all.data + at, MIN(all.n - at, (size_t)PIECE)};

		assert_int_equal(api_list_feed(&list, piece, &err), 0);
		assert_true(list.buffer.capacity <= 4 * PIECE);
	}
	assert_int_equal(api_list_end(&list, &err), 0);
	assert_string_equal(seen.text, "ITEM default/a@9;");
	api_list_done(&list);
	bytes_done(&all);
}

static void an_item_that_is_announced_costs_nothing_until_it_comes(void **state attr_unused)
{
	struct bytes content = put_varint((struct bytes){0}, 2 << 3 | API_WIRE_BYTES);
	struct bytes all = bytes_join((struct bytes){0}, "k8s", 4);
	struct seen seen = {0};
	struct api_list list = {.item = on_item, .arg = &seen, .kind = "ServiceList"};
	struct err err;

	content = put_varint(content, 16u << 20);
	all = put_varint(all, 2 << 3 | API_WIRE_BYTES);
	all = put_varint(all, (16u << 20) + content.n);
	all = bytes_join(all, content.data, content.n);
	assert_int_equal(api_list_feed(&list, bytes_view(all), &err), 0);
	assert_true(list.buffer.capacity < 4096);
	assert_int_equal(api_list_end(&list, &err), -EBADMSG);
	api_list_done(&list);
	bytes_done(&content);
	bytes_done(&all);
}

static void an_item_can_stop_the_list(void **state attr_unused)
{
	struct seen seen = {.stop_at = 2};
	struct err err;

	assert_int_equal(feed_list(make_list("Service", "9", "", names), &seen, &err), 7);
	assert_string_equal(seen.text, "ITEM default/a@9;ITEM default/b@9;");
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
		cmocka_unit_test(an_object_without_metadata_has_no_names),
		cmocka_unit_test(an_object_whose_content_cannot_be_read_has_its_metadata),
		cmocka_unit_test(a_nul_inside_a_name_is_noticed),
		cmocka_unit_test(a_list_split_at_every_byte),
		cmocka_unit_test(a_list_that_ends_early_is_noticed_at_every_byte),
		cmocka_unit_test(an_empty_list_is_a_list),
		cmocka_unit_test(lists_that_are_not_are_refused),
		cmocka_unit_test(unknown_fields_of_a_list_are_skipped),
		cmocka_unit_test(what_ends_in_the_middle_of_the_content_is_refused),
		cmocka_unit_test(a_large_field_that_does_not_matter_is_not_kept),
		cmocka_unit_test(an_item_that_is_announced_costs_nothing_until_it_comes),
		cmocka_unit_test(an_item_can_stop_the_list),
	};

	return cmocka_run_group_tests_name("api_frame", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Protobuf nests by length, so two levels are enough to stream: the envelope, and the list inside
 * its `raw` field, whose end is known from that field's length. Tags and lengths come byte by byte
 * (they may be split anywhere), values in pieces as large as they arrive.
 */

#include "sources/api_list.h"

#include <errno.h>
#include <stdlib.h>

#include "sources/api_object.h"

#define MAGIC    "k8s" /* and its NUL */
#define META_MAX (1u << 20)

enum {
	UNKNOWN_TYPE_META = 1,
	UNKNOWN_RAW = 2,
	TYPE_META_KIND = 2,
	LIST_METADATA = 1,
	LIST_ITEMS = 2,
};

static int bad(struct err *err)
{
	return err_set(err, -EBADMSG, "a list that cannot be read");
}

/* 1: the varint is complete. */
static int feed_varint(struct api_list *list, uint8_t byte, struct err *err)
{
	if (list->shift > 63)
		return bad(err);
	list->varint |= (uint64_t)(byte & 0x7f) << list->shift;
	list->shift += 7;
	if (byte & 0x80)
		return 0;
	list->shift = 0;
	return 1;
}

static void expect(struct api_list *list, enum api_list_step step)
{
	list->step = step;
	list->varint = 0;
	list->shift = 0;
}

/* A field has ended, perhaps the content with it. */
static void next_field(struct api_list *list)
{
	expect(list, API_LIST_TAG);
	if (list->inside && list->left == 0) {
		list->inside = false;
		list->complete = true;
	}
}

static int start_field(struct api_list *list, struct err *err)
{
	list->number = (uint32_t)(list->varint >> 3);
	switch (list->varint & 7) {
	case API_WIRE_VARINT:
		expect(list, API_LIST_VARINT);
		return 0;
	case API_WIRE_BYTES:
		expect(list, API_LIST_LENGTH);
		return 0;
	case API_WIRE_64:
		list->size = 8;
		expect(list, API_LIST_SKIP);
		return 0;
	case API_WIRE_32:
		list->size = 4;
		expect(list, API_LIST_SKIP);
		return 0;
	default:
		return bad(err);
	}
}

static bool keeps(const struct api_list *list)
{
	if (list->inside)
		return list->number == LIST_METADATA || list->number == LIST_ITEMS;
	return list->number == UNKNOWN_TYPE_META;
}

static int check_kind(const struct api_list *list, struct api_bytes type_meta, struct err *err)
{
	struct api_wire_field field;
	int r;

	while ((r = api_wire_next(&type_meta, &field)) > 0) {
		if (field.number != TYPE_META_KIND || api_bytes_equal(field.bytes, list->kind))
			continue;
		return err_set(err, -EBADMSG, "a list that is not a %s", list->kind);
	}
	return r < 0 ? bad(err) : 0;
}

static int read_meta(struct api_list *list, struct api_bytes bytes, struct err *err)
{
	struct api_list_meta meta;
	int r = api_list_meta_read(bytes, &meta, err);

	if (r < 0)
		return r;
	free(list->resource_version);
	free(list->continue_token);
	list->resource_version = api_bytes_text(meta.resource_version);
	list->continue_token = api_bytes_text(meta.continue_token);
	return 0;
}

static int end_kept(struct api_list *list, struct err *err)
{
	struct api_bytes bytes = {list->buffer.data, list->buffer.used};
	int r;

	if (!list->inside)
		r = check_kind(list, bytes, err);
	else if (list->number == LIST_METADATA)
		r = read_meta(list, bytes, err);
	else
		r = list->item(list->arg, bytes, err);
	api_buffer_clear(&list->buffer);
	next_field(list);
	return r;
}

static int start_value(struct api_list *list, struct err *err)
{
	bool item = list->inside && list->number == LIST_ITEMS;

	list->size = list->varint;
	if (!list->inside && list->number == UNKNOWN_RAW) {
		list->inside = true;
		list->left = list->size;
		next_field(list);
		return 0;
	}
	if (!keeps(list)) {
		expect(list, API_LIST_SKIP);
		if (list->size == 0)
			next_field(list);
		return 0;
	}
	if (list->size > (item ? API_FRAME_MAX : META_MAX))
		return err_set(err, -EBADMSG, "a list with an object of %llu bytes",
			       (unsigned long long)list->size);
	expect(list, API_LIST_KEEP);
	return list->size == 0 ? end_kept(list, err) : 0;
}

static int feed_byte(struct api_list *list, uint8_t byte, struct err *err)
{
	int r;

	if (list->step == API_LIST_MAGIC) {
		if (byte != (uint8_t)MAGIC[list->n_magic])
			return err_set(err, -EBADMSG, "a list that is not Kubernetes' protobuf");
		if (++list->n_magic == sizeof(MAGIC))
			expect(list, API_LIST_TAG);
		return 0;
	}
	r = feed_varint(list, byte, err);
	if (r <= 0)
		return r;
	if (list->step == API_LIST_TAG)
		return start_field(list, err);
	if (list->step == API_LIST_LENGTH)
		return start_value(list, err);
	next_field(list);
	return 0;
}

/* Counts bytes off the content. */
static int spend(struct api_list *list, uint64_t n, struct err *err)
{
	if (!list->inside)
		return 0;
	if (n > list->left)
		return bad(err);
	list->left -= n;
	return 0;
}

static int feed_value(struct api_list *list, struct api_bytes part, struct err *err)
{
	list->size -= part.n;
	if (list->step == API_LIST_KEEP) {
		api_buffer_add(&list->buffer, part.data, part.n);
		return list->size == 0 ? end_kept(list, err) : 0;
	}
	if (list->size == 0)
		next_field(list);
	return 0;
}

int api_list_feed(struct api_list *list, struct api_bytes data, struct err *err)
{
	int r = 0;

	while (data.n > 0 && r == 0) {
		bool in_value = list->step == API_LIST_SKIP || list->step == API_LIST_KEEP;
		struct api_bytes part = {data.data, in_value ? MIN(data.n, list->size) : 1};

		data.data += part.n;
		data.n -= part.n;
		r = spend(list, part.n, err);
		if (r == 0)
			r = in_value ? feed_value(list, part, err)
				     : feed_byte(list, part.data[0], err);
	}
	return r;
}

int api_list_end(const struct api_list *list, struct err *err)
{
	if (!list->complete || list->inside || list->step != API_LIST_TAG || list->shift)
		return err_set(err, -EBADMSG, "a list that ends too early");
	return 0;
}

void api_list_done(struct api_list *list)
{
	free(list->resource_version);
	free(list->continue_token);
	api_buffer_done(&list->buffer);
	*list = (struct api_list){0};
}

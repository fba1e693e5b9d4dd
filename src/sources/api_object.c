/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/api_object.h"

#include <errno.h>
#include <limits.h>

#define ANNOTATION_INITIAL_END "k8s.io/initial-events-end"

/* Field numbers of k8s.io/apimachinery's meta/v1. Each object has its metadata in field 1. */
enum {
	OBJECT_METADATA = 1,
	META_NAME = 1,
	META_NAMESPACE = 3,
	META_RESOURCE_VERSION = 6,
	META_LABELS = 11,
	META_ANNOTATIONS = 12,
	MAP_KEY = 1,
	MAP_VALUE = 2,
	LIST_META_RESOURCE_VERSION = 2,
	LIST_META_CONTINUE = 3,
	STATUS_MESSAGE = 3,
	STATUS_REASON = 4,
	STATUS_DETAILS = 5,
	STATUS_CODE = 6,
	DETAILS_RETRY_AFTER = 5,
};

static int read_pair(struct api_bytes bytes, struct api_bytes *ret_key, struct api_bytes *ret_value)
{
	struct api_wire_field field;
	int r;

	*ret_key = *ret_value = (struct api_bytes){0};
	while ((r = api_wire_next(&bytes, &field)) > 0) {
		if (field.number == MAP_KEY)
			*ret_key = field.bytes;
		else if (field.number == MAP_VALUE)
			*ret_value = field.bytes;
	}
	return r;
}

static int read_annotation(struct api_bytes bytes, struct api_meta *meta)
{
	struct api_bytes key, value;
	int r = read_pair(bytes, &key, &value);

	if (api_bytes_equal(key, ANNOTATION_INITIAL_END) && api_bytes_equal(value, "true"))
		meta->initial_events_end = true;
	return r;
}

static struct api_bytes find_label(struct api_bytes metadata, const char *wanted)
{
	struct api_wire_field field;
	struct api_bytes key, value;

	while (api_wire_next(&metadata, &field) > 0)
		if (field.number == META_LABELS && read_pair(field.bytes, &key, &value) == 0 &&
		    api_bytes_equal(key, wanted))
			return value;
	return (struct api_bytes){0};
}

struct api_bytes api_object_label(struct api_bytes object, const char *key)
{
	struct api_wire_field field;

	while (api_wire_next(&object, &field) > 0)
		if (field.number == OBJECT_METADATA)
			return find_label(field.bytes, key);
	return (struct api_bytes){0};
}

static int read_metadata(struct api_bytes bytes, struct api_meta *meta)
{
	struct api_wire_field field;
	int r;

	while ((r = api_wire_next(&bytes, &field)) > 0) {
		if (field.number == META_NAME)
			meta->name = field.bytes;
		else if (field.number == META_NAMESPACE)
			meta->ns = field.bytes;
		else if (field.number == META_RESOURCE_VERSION)
			meta->resource_version = field.bytes;
		else if (field.number == META_ANNOTATIONS)
			r = read_annotation(field.bytes, meta);
		if (r < 0)
			break;
	}
	return r;
}

int api_meta_read(struct api_bytes object, struct api_meta *ret, struct err *err)
{
	struct api_meta meta = {0};
	struct api_wire_field field;
	int r;

	while ((r = api_wire_next(&object, &field)) > 0) {
		if (field.number == OBJECT_METADATA)
			r = read_metadata(field.bytes, &meta);
		if (r < 0)
			break;
	}
	if (r < 0)
		return err_set(err, r, "an object that cannot be read");
	*ret = meta;
	return 0;
}

char *api_meta_key(const struct api_meta *meta)
{
	char *name cleanup_free = api_bytes_text(meta->name);
	char *ns cleanup_free = api_bytes_text(meta->ns);

	return *ns ? xasprintf("%s/%s", ns, name) : take(name);
}

int api_list_meta_read(struct api_bytes bytes, struct api_list_meta *ret, struct err *err)
{
	struct api_list_meta meta = {0};
	struct api_wire_field field;
	int r;

	while ((r = api_wire_next(&bytes, &field)) > 0) {
		if (field.number == LIST_META_RESOURCE_VERSION)
			meta.resource_version = field.bytes;
		else if (field.number == LIST_META_CONTINUE)
			meta.continue_token = field.bytes;
	}
	if (r < 0)
		return err_set(err, r, "a list's metadata that cannot be read");
	*ret = meta;
	return 0;
}

static int to_int(uint64_t value)
{
	return value > INT_MAX ? 0 : (int)value;
}

static int read_details(struct api_bytes bytes, struct api_status *status)
{
	struct api_wire_field field;
	int r;

	while ((r = api_wire_next(&bytes, &field)) > 0)
		if (field.number == DETAILS_RETRY_AFTER)
			status->retry_after_s = to_int(field.value);
	return r;
}

int api_status_read(struct api_bytes object, struct api_status *ret, struct err *err)
{
	struct api_status status = {0};
	struct api_wire_field field;
	int r;

	while ((r = api_wire_next(&object, &field)) > 0) {
		if (field.number == STATUS_MESSAGE)
			status.message = field.bytes;
		else if (field.number == STATUS_REASON)
			status.reason = field.bytes;
		else if (field.number == STATUS_CODE)
			status.code = to_int(field.value);
		else if (field.number == STATUS_DETAILS)
			r = read_details(field.bytes, &status);
		if (r < 0)
			break;
	}
	if (r < 0)
		return err_set(err, r, "a Status that cannot be read");
	*ret = status;
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Protobuf nests by length, so two levels are enough to stream: the envelope, and the list inside
 * its `raw` field, whose end is known from that field's length. Fields are cut off the front of
 * what has come; one that does not matter is not waited for.
 */

#include "sources/api_list.h"

#include <errno.h>
#include <stdlib.h>

#include "sources/api_object.h"
#include "sources/convert.h"

#define META_MAX (1u << 20)

/* Field numbers of k8s.io/apimachinery's runtime.Unknown, and of every list. */
enum {
	UNKNOWN_TYPE_META = 1,
	UNKNOWN_RAW = 2,
	LIST_METADATA = 1,
	LIST_ITEMS = 2,
};

/* What a field is good for. */
enum role {
	ROLE_NONE = 0,
	ROLE_TYPE,
	ROLE_CONTENT, /* the list */
	ROLE_META,
	ROLE_ITEM,
};

static enum role role_of(const struct api_list *list, const struct api_wire_head *head)
{
	if (head->type != API_WIRE_BYTES)
		return ROLE_NONE;
	if (list->inside)
		return head->number == LIST_METADATA ? ROLE_META
		       : head->number == LIST_ITEMS  ? ROLE_ITEM
						     : ROLE_NONE;
	return head->number == UNKNOWN_TYPE_META ? ROLE_TYPE
	       : head->number == UNKNOWN_RAW     ? ROLE_CONTENT
						 : ROLE_NONE;
}

static int bad(struct err *err)
{
	return err_set(err, -EBADMSG, "a list that cannot be read");
}

static void set_left(struct api_list *list, uint64_t n)
{
	list->left = n;
	list->inside = n > 0;
	list->complete = n == 0;
}

/* Takes bytes off the front, and counts them off the content. */
static void spend(struct api_list *list, struct api_bytes *left, size_t n)
{
	left->data += n;
	left->n -= n;
	if (list->inside)
		set_left(list, list->left - n);
}

static int read_type(const struct api_list *list, struct api_bytes bytes, struct arena *arena,
		     struct err *err)
{
	const K8s__TypeMeta *type = api_unpack(&k8s__type_meta__descriptor, bytes, arena);

	if (!type)
		return bad(err);
	if (type->kind && !streq(type->kind, list->kind))
		return err_set(err, -EBADMSG, "a list that is not a %s", list->kind);
	return 0;
}

static int read_meta(struct api_list *list, struct api_bytes bytes, struct arena *arena,
		     struct err *err)
{
	const K8s__ListMeta *meta = api_unpack(&k8s__list_meta__descriptor, bytes, arena);

	if (!meta)
		return err_set(err, -EBADMSG, "a list's metadata that cannot be read");
	free(list->resource_version);
	free(list->continue_token);
	list->resource_version = xstrdup(convert_text(meta->resourceversion));
	list->continue_token = xstrdup(convert_text(meta->continue_));
	return 0;
}

static int read_value(struct api_list *list, enum role role, struct api_bytes value,
		      struct err *err)
{
	struct arena *arena cleanup_arena = NULL;

	if (role == ROLE_ITEM)
		return list->item(list->arg, value, err);
	arena = arena_new(1024);
	return role == ROLE_META ? read_meta(list, value, arena, err)
				 : read_type(list, value, arena, err);
}

/* A value that is wanted as a whole; *more: it was there. */
static int take_value(struct api_list *list, enum role role, const struct api_wire_head *head,
		      struct api_bytes *left, bool *more, struct err *err)
{
	struct api_bytes value = {left->data + head->n, (size_t)head->size};
	int r;

	if (head->size > (role == ROLE_ITEM ? API_FRAME_MAX : META_MAX))
		return err_set(err, -EBADMSG, "a list with an object of %llu bytes",
			       (unsigned long long)head->size);
	if (list->inside && head->size > list->left - head->n)
		return bad(err);
	*more = head->size <= left->n - head->n;
	if (!*more)
		return 0;
	r = read_value(list, role, value, err);
	if (r == 0)
		spend(list, left, head->n + value.n);
	return r;
}

static int use_field(struct api_list *list, const struct api_wire_head *head,
		     struct api_bytes *left, bool *more, struct err *err)
{
	enum role role = role_of(list, head);

	if (role != ROLE_NONE && role != ROLE_CONTENT)
		return take_value(list, role, head, left, more, err);
	if (list->inside && head->size > list->left - head->n)
		return bad(err);
	spend(list, left, head->n);
	if (role == ROLE_CONTENT)
		set_left(list, head->size);
	else
		list->skip = head->size;
	return 0;
}

static int take_field(struct api_list *list, struct api_bytes *left, bool *more, struct err *err)
{
	/* what follows the content is not a part of it */
	struct api_bytes own = {left->data, list->inside ? MIN(left->n, list->left) : left->n};
	struct api_wire_head head;
	int r = api_wire_head(own, &head);

	if (r < 0 || (r == 0 && list->inside && own.n == list->left))
		return bad(err);
	*more = r > 0;
	return r > 0 ? use_field(list, &head, left, more, err) : 0;
}

static int take_magic(struct api_list *list, struct api_bytes *left, bool *more, struct err *err)
{
	if (memcmp(left->data, API_MAGIC, MIN(left->n, sizeof(API_MAGIC))) != 0)
		return err_set(err, -EBADMSG, "a list that is not Kubernetes' protobuf");
	list->started = *more = left->n >= sizeof(API_MAGIC);
	if (list->started)
		spend(list, left, sizeof(API_MAGIC));
	return 0;
}

static int take_skipped(struct api_list *list, struct api_bytes *left, bool *more)
{
	size_t n = MIN(left->n, list->skip);

	list->skip -= n;
	spend(list, left, n);
	*more = list->skip == 0;
	return 0;
}

/* *more: there was enough for a step, perhaps for another one. */
static int step(struct api_list *list, struct api_bytes *left, bool *more, struct err *err)
{
	if (!list->started)
		return take_magic(list, left, more, err);
	if (list->skip > 0)
		return take_skipped(list, left, more);
	return take_field(list, left, more, err);
}

int api_list_feed(struct api_list *list, struct api_bytes data, struct err *err)
{
	struct api_bytes left;
	bool more = data.n > 0;
	int r = 0;

	api_buffer_add(&list->buffer, data.data, data.n);
	left = (struct api_bytes){list->buffer.data, list->buffer.used};
	while (more && r == 0)
		r = step(list, &left, &more, err);
	if (r == 0)
		api_buffer_keep(&list->buffer, left.n);
	return r;
}

int api_list_end(const struct api_list *list, struct err *err)
{
	if (!list->complete || list->buffer.used > 0 || list->skip > 0)
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

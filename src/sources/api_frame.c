/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/api_frame.h"

#include <errno.h>
#include <stdlib.h>

#include "sources/api_object.h"
#include "sources/convert.h"

#define BUFFER_KEPT (64u << 10)

static const char *const event_names[] = {
	[API_EVENT_ADDED] = "ADDED",     [API_EVENT_MODIFIED] = "MODIFIED",
	[API_EVENT_DELETED] = "DELETED", [API_EVENT_BOOKMARK] = "BOOKMARK",
	[API_EVENT_ERROR] = "ERROR",
};
_Static_assert(ARRAY_SIZE(event_names) == API_EVENT_COUNT, "a name for each type of event");

void api_buffer_add(struct api_buffer *buffer, const uint8_t *data, size_t n)
{
	if (n == 0)
		return;
	if (buffer->used + n > buffer->capacity) {
		buffer->capacity = MAX(2 * buffer->capacity, buffer->used + n);
		buffer->data = xrealloc(buffer->data, buffer->capacity);
	}
	memcpy(buffer->data + buffer->used, data, n);
	buffer->used += n;
}

void api_buffer_clear(struct api_buffer *buffer)
{
	if (buffer->capacity > BUFFER_KEPT)
		api_buffer_done(buffer);
	buffer->used = 0;
}

void api_buffer_keep(struct api_buffer *buffer, size_t n)
{
	if (n == 0)
		api_buffer_clear(buffer);
	else if (n < buffer->used)
		memmove(buffer->data, buffer->data + buffer->used - n, n);
	buffer->used = n;
}

void api_buffer_done(struct api_buffer *buffer)
{
	free(buffer->data);
	*buffer = (struct api_buffer){0};
}

static struct api_bytes take_off(struct api_bytes *data, size_t n)
{
	struct api_bytes taken = {data->data, MIN(n, data->n)};

	data->data += taken.n;
	data->n -= taken.n;
	return taken;
}

/* 1: the header is complete. */
static int feed_header(struct api_frames *frames, struct api_bytes *data, struct err *err)
{
	const uint8_t *h = frames->header;
	struct api_bytes part = take_off(data, sizeof(frames->header) - frames->n_header);

	memcpy(frames->header + frames->n_header, part.data, part.n);
	frames->n_header += part.n;
	if (frames->n_header < sizeof(frames->header))
		return 0;
	frames->size = (size_t)h[0] << 24 | (size_t)h[1] << 16 | (size_t)h[2] << 8 | h[3];
	if (frames->size > API_FRAME_MAX)
		return err_set(err, -EBADMSG, "a frame of %zu bytes, more than the %u allowed",
			       frames->size, API_FRAME_MAX);
	return 1;
}

/* A frame that lies whole in what has just arrived is not copied. */
static int feed_body(struct api_frames *frames, struct api_bytes *data, api_frame_fn *fn, void *arg,
		     struct err *err)
{
	struct api_bytes part = take_off(data, frames->size - frames->buffer.used);
	int r;

	if (part.n < frames->size) {
		api_buffer_add(&frames->buffer, part.data, part.n);
		part = (struct api_bytes){frames->buffer.data, frames->buffer.used};
	}
	if (part.n < frames->size)
		return 0;
	r = fn(arg, part, err);
	api_buffer_clear(&frames->buffer);
	frames->n_header = 0;
	return r;
}

int api_frames_feed(struct api_frames *frames, struct api_bytes data, api_frame_fn *fn, void *arg,
		    struct err *err)
{
	int r = 0;

	while (data.n > 0 && r == 0) {
		if (frames->n_header < sizeof(frames->header)) {
			r = feed_header(frames, &data, err);
			if (r <= 0)
				continue;
		}
		r = feed_body(frames, &data, fn, arg, err);
	}
	return r;
}

void api_frames_done(struct api_frames *frames)
{
	api_buffer_done(&frames->buffer);
	*frames = (struct api_frames){0};
}

int api_envelope_read(struct api_bytes bytes, struct arena *arena, struct api_envelope *ret,
		      struct err *err)
{
	const K8s__Unknown *unknown;

	if (bytes.n < sizeof(API_MAGIC) || memcmp(bytes.data, API_MAGIC, sizeof(API_MAGIC)) != 0)
		return err_set(err, -EBADMSG, "an object that is not Kubernetes' protobuf");
	take_off(&bytes, sizeof(API_MAGIC));
	unknown = api_unpack(&k8s__unknown__descriptor, bytes, arena);
	if (!unknown)
		return err_set(err, -EBADMSG, "an envelope that cannot be read");
	*ret = (struct api_envelope){
		.kind = convert_text(unknown->typemeta ? unknown->typemeta->kind : NULL),
		.object = {unknown->raw.data, unknown->raw.len},
	};
	return 0;
}

int api_event_read(struct api_bytes frame, struct arena *arena, struct api_event *ret,
		   struct err *err)
{
	const K8s__WatchEvent *event = api_unpack(&k8s__watch_event__descriptor, frame, arena);
	struct api_bytes object = {0};

	if (!event)
		return err_set(err, -EBADMSG, "a watch event that cannot be read");
	if (!word_parse(convert_text(event->type), event_names, &ret->type))
		return err_set(err, -EBADMSG, "a watch event of a type that is not known");
	if (event->object)
		object = (struct api_bytes){event->object->raw.data, event->object->raw.len};
	return api_envelope_read(object, arena, &ret->envelope, err);
}

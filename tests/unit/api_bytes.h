/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What an API server writes, made by hand: protobuf, envelopes, events, frames and lists. Every
 * maker returns new bytes, and those that take some release them. */

#include <stdlib.h>

#include "base/util.h"
#include "sources/api_wire.h"

struct bytes {
	uint8_t *data;
	size_t n;
};

static inline struct bytes bytes_join(struct bytes a, const void *data, size_t n)
{
	a.data = xrealloc(a.data, a.n + n + 1);
	if (n)
		memcpy(a.data + a.n, data, n);
	a.n += n;
	return a;
}

static inline void bytes_done(struct bytes *bytes)
{
	free(take(bytes->data));
	bytes->n = 0;
}

static inline struct api_bytes bytes_view(struct bytes bytes)
{
	return (struct api_bytes){bytes.data, bytes.n};
}

static inline struct bytes put_varint(struct bytes to, uint64_t value)
{
	uint8_t byte;

	do {
		byte = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
		to = bytes_join(to, &byte, 1);
	} while (value >>= 7);
	return to;
}

static inline struct bytes put_number(struct bytes to, uint32_t field, uint64_t value)
{
	return put_varint(put_varint(to, field << 3 | API_WIRE_VARINT), value);
}

static inline struct bytes put_data(struct bytes to, uint32_t field, const void *data, size_t n)
{
	to = put_varint(put_varint(to, field << 3 | API_WIRE_BYTES), n);
	return bytes_join(to, data, n);
}

static inline struct bytes put_text(struct bytes to, uint32_t field, const char *text)
{
	return put_data(to, field, text, strlen(text));
}

static inline struct bytes put_message(struct bytes to, uint32_t field, struct bytes message)
{
	to = put_data(to, field, message.data, message.n);
	bytes_done(&message);
	return to;
}

/* An object of which only the metadata matters; ns may be "". */
static inline struct bytes make_object(const char *ns, const char *name, const char *version)
{
	struct bytes meta = put_text((struct bytes){0}, 1, name);

	if (*ns)
		meta = put_text(meta, 3, ns);
	meta = put_text(meta, 6, version);
	return put_message((struct bytes){0}, 1, meta);
}

/* A bookmark's object; end: that of the initial events. */
static inline struct bytes make_bookmark(const char *version, bool end)
{
	struct bytes meta = put_text((struct bytes){0}, 6, version);

	if (end)
		meta = put_message(
			meta, 12,
			put_text(put_text((struct bytes){0}, 1, "k8s.io/initial-events-end"), 2,
				 "true"));
	return put_message((struct bytes){0}, 1, meta);
}

static inline struct bytes make_status(int code, const char *message, int retry_after)
{
	struct bytes status = put_text(put_text((struct bytes){0}, 2, "Failure"), 3, message);

	if (retry_after)
		status = put_message(status, 5,
				     put_number((struct bytes){0}, 5, (uint64_t)retry_after));
	return put_number(status, 6, (uint64_t)code);
}

static inline struct bytes make_envelope(const char *kind, struct bytes object)
{
	struct bytes type = put_text(put_text((struct bytes){0}, 1, "v1"), 2, kind);
	struct bytes envelope = bytes_join((struct bytes){0}, "k8s", 4);

	return put_text(put_message(put_message(envelope, 1, type), 2, object), 4, "");
}

static inline struct bytes make_event(const char *type, struct bytes envelope)
{
	struct bytes raw = put_message((struct bytes){0}, 1, envelope);

	return put_message(put_text((struct bytes){0}, 1, type), 2, raw);
}

static inline struct bytes make_frame(struct bytes event)
{
	const uint8_t header[4] = {(uint8_t)(event.n >> 24), (uint8_t)(event.n >> 16),
				   (uint8_t)(event.n >> 8), (uint8_t)event.n};
	struct bytes frame = bytes_join((struct bytes){0}, header, 4);

	frame = bytes_join(frame, event.data, event.n);
	bytes_done(&event);
	return frame;
}

static inline struct bytes make_event_frame(const char *type, const char *kind, struct bytes object)
{
	return make_frame(make_event(type, make_envelope(kind, object)));
}

/* A list of kind "<kind>List"; names: "ns/name" or "name", ended by NULL. */
static inline struct bytes make_list(const char *kind, const char *version, const char *token,
				     const char *const *names)
{
	struct bytes meta = put_text(put_text((struct bytes){0}, 2, version), 3, token);
	struct bytes list = put_message((struct bytes){0}, 1, meta);
	char *list_kind cleanup_free = xasprintf("%sList", kind);

	for (; *names; names++) {
		char *ns cleanup_free = xstrdup(*names);
		char *slash = strchr(ns, '/');

		if (slash)
			*slash = '\0';
		list = put_message(list, 2,
				   make_object(slash ? ns : "", slash ? slash + 1 : ns, version));
	}
	return make_envelope(list_kind, list);
}

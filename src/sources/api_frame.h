/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How an API server wraps objects when it speaks protobuf.
 *
 * A watch is a row of frames: a length of 4 bytes (big-endian), then a WatchEvent. Its object, as
 * any object that stands alone, is an envelope: the 4 bytes "k8s\0", then a message that names the
 * kind and holds the object's own bytes.
 *
 * All of it is foreign: lengths are believed only up to a ceiling, and memory grows with what has
 * arrived, not with what was announced.
 */

#include "base/arena.h"
#include "base/err.h"
#include "sources/api_wire.h"

#define API_FRAME_MAX (16u << 20) /* etcd takes no object above 1.5 MiB by default */
#define API_MAGIC     "k8s"       /* and its NUL */

/* Bytes that are gathered until they are complete. */
struct api_buffer {
	uint8_t *data;
	size_t used, capacity;
};

void api_buffer_add(struct api_buffer *buffer, const uint8_t *data, size_t n);
void api_buffer_clear(struct api_buffer *buffer);          /* keeps a little memory for the next */
void api_buffer_keep(struct api_buffer *buffer, size_t n); /* only the last n bytes */
void api_buffer_done(struct api_buffer *buffer);

/* A stream on its way to becoming frames. Zeroed is a good start. */
struct api_frames {
	uint8_t header[4];
	size_t n_header;
	size_t size; /* of the frame at hand, once its header is complete */
	struct api_buffer buffer;
};

/* Called for each frame, borrowed. 0: go on; else it is what api_frames_feed() returns. */
typedef int api_frame_fn(void *arg, struct api_bytes frame, struct err *err);

int api_frames_feed(struct api_frames *frames, struct api_bytes data, api_frame_fn *fn, void *arg,
		    struct err *err);
void api_frames_done(struct api_frames *frames); /* frees, and is a good start again */

struct api_envelope {
	const char *kind; /* "Service"; "": not given */
	struct api_bytes object;
};

/* What is read lives in the arena. */
int api_envelope_read(struct api_bytes bytes, struct arena *arena, struct api_envelope *ret,
		      struct err *err);

enum api_event_type {
	API_EVENT_ADDED = 0,
	API_EVENT_MODIFIED,
	API_EVENT_DELETED,
	API_EVENT_BOOKMARK,
	API_EVENT_ERROR,
	API_EVENT_COUNT,
};

struct api_event {
	enum api_event_type type;
	struct api_envelope envelope; /* the object, or a Status for API_EVENT_ERROR */
};

int api_event_read(struct api_bytes frame, struct arena *arena, struct api_event *ret,
		   struct err *err);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Messages of an API server, read by their schema (k8s.proto). Whatever is read lives in the arena
 * that the caller gives.
 */

#include "base/arena.h"
#include "base/err.h"
#include "sources/api_wire.h"
#include "sources/k8s.pb-c.h"

/* The message of this type; NULL: the bytes are none. */
void *api_unpack(const ProtobufCMessageDescriptor *type, struct api_bytes bytes,
		 struct arena *arena);

/* An object of any kind. */
struct api_object {
	const K8s__ObjectMeta *metadata; /* never NULL */
	const ProtobufCMessage *message; /* NULL: its metadata is all that can be read of it */
	bool nul;                        /* a NUL hides a part of its name or namespace */
};

int api_object_read(const ProtobufCMessageDescriptor *type, struct api_bytes bytes,
		    struct arena *arena, struct api_object *ret, struct err *err);
/* "namespace/name", or "name" alone for what has no namespace; owned by the caller. */
char *api_object_key(const struct api_object *object);

/* What went wrong. */
struct api_status {
	int code; /* as of HTTP; 0: not given */
	int retry_after_s;
	const char *message; /* may be "" */
};

int api_status_read(struct api_bytes bytes, struct arena *arena, struct api_status *ret,
		    struct err *err);

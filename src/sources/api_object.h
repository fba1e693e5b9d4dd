/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What following a list needs to know of an object, whatever its kind: the names and the version in
 * its metadata; and of a Status what went wrong. Text is borrowed from the bytes that were read.
 */

#include "base/err.h"
#include "sources/api_wire.h"

struct api_meta {
	struct api_bytes name, ns, resource_version;
	bool initial_events_end; /* a bookmark: all that was there has been sent */
};

int api_meta_read(struct api_bytes object, struct api_meta *ret, struct err *err);
/* The value of a label, if it has it and can be read so far; else empty. */
struct api_bytes api_object_label(struct api_bytes object, const char *key);
/* "namespace/name", or "name" alone for what has no namespace; owned by the caller. */
char *api_meta_key(const struct api_meta *meta);

struct api_list_meta {
	struct api_bytes resource_version, continue_token;
};

/* The bytes are those of the ListMeta itself. */
int api_list_meta_read(struct api_bytes bytes, struct api_list_meta *ret, struct err *err);

struct api_status {
	int code; /* as of HTTP; 0: not given */
	int retry_after_s;
	struct api_bytes reason, message;
};

int api_status_read(struct api_bytes object, struct api_status *ret, struct err *err);

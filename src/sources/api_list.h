/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A list, read while it arrives: each item is handed over as soon as it is complete, so that never
 * more than one of them is in memory, however long the list.
 *
 * The bytes are an envelope around a message with the list's metadata and its items.
 */

#include "sources/api_frame.h"

enum api_list_step {
	API_LIST_MAGIC = 0,
	API_LIST_TAG,
	API_LIST_VARINT, /* a value that does not matter */
	API_LIST_LENGTH,
	API_LIST_SKIP,
	API_LIST_KEEP, /* a value to gather in the buffer */
};

/* Zeroed, with item and arg set, is a good start. */
struct api_list {
	api_frame_fn *item; /* called for each item's bytes */
	void *arg;
	const char *kind; /* what the list must be: "ServiceList" */

	/* what there is to know once it is complete; owned, NULL: not given */
	char *resource_version;
	char *continue_token;

	/* where we are */
	enum api_list_step step;
	size_t n_magic;
	bool inside;     /* the envelope's content, */
	uint64_t left;   /* of which these bytes are to come */
	uint32_t number; /* of the field at hand, */
	uint64_t size;   /* whose value still has this many bytes */
	uint64_t varint;
	unsigned int shift;
	bool complete; /* the content has ended */
	struct api_buffer buffer;
};

/* 0, what item() returned, or -EBADMSG. */
int api_list_feed(struct api_list *list, struct api_bytes data, struct err *err);
/* The end of the bytes: -EBADMSG if they were not a whole list. */
int api_list_end(const struct api_list *list, struct err *err);
void api_list_done(struct api_list *list); /* leaves it zeroed */

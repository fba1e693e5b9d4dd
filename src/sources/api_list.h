/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A list, read while it arrives: each item is handed over as soon as it is complete, so that never
 * more than one of them, and what came in one piece with its end, is in memory, however long the
 * list.
 *
 * The bytes are an envelope around a message with the list's metadata and its items.
 */

#include "sources/api_frame.h"

/* Zeroed, with item, arg and kind set, is a good start. */
struct api_list {
	api_frame_fn *item; /* called for each item's bytes */
	void *arg;
	const char *kind; /* what the list must be: "ServiceList" */

	/* what there is to know once it is complete; owned, NULL: not given */
	char *resource_version;
	char *continue_token;

	/* where we are */
	bool started;             /* the envelope's first bytes have come */
	bool inside;              /* the envelope's content, */
	uint64_t left;            /* of which these bytes are to come */
	uint64_t skip;            /* bytes to come of a value that does not matter */
	bool complete;            /* the content has ended */
	struct api_buffer buffer; /* a field that is not complete */
};

/* 0, what item() returned, or -EBADMSG; after either of these it is good for api_list_done() only. */
int api_list_feed(struct api_list *list, struct api_bytes data, struct err *err);
/* The end of the bytes: -EBADMSG if they were not a whole list. */
int api_list_end(const struct api_list *list, struct err *err);
void api_list_done(struct api_list *list); /* leaves it zeroed */

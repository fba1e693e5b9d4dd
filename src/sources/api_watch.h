/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Following the objects of one kind at an API server: what is asked, and what an answer means. No
 * socket and no clock: requests, timer, time and chance are operations of whoever owns them, and
 * answers are given to it.
 *
 *   initial    a watch that first sends everything there is, object by object, up to a mark
 *   page       where the server refuses that: a list in pages, then a watch
 *   watch      from a known resourceVersion on
 *   waiting    for the time of the next request
 *
 *   initial -> watch       at the mark, on the same stream
 *   initial -> page        the server refuses (400, 422, ...; with an old etcd 500), by status
 *                          or by an ERROR event, or is silent: it knows no such mark
 *   page    -> page        there is more; a token that expired (410) starts a list in one piece
 *   page    -> watch       that was all
 *   watch   -> watch       the stream ended: on from the last resourceVersion
 *   watch   -> initial     410: that version is too old, here or in the stream
 *
 * and from each of them to waiting after a failure, to go on where it was. Only a complete list
 * removes anything: the keys of what is served are kept with the number of the list that last had
 * them, so objects that a new list has are set again (whoever has them compares), and those that it
 * lacks go at its end. A server that is away, or tells nonsense, removes nothing.
 *
 * An object that cannot be used counts as absent (an older version of it goes), and is named once
 * for each different reason.
 */

#include "base/err.h"
#include "base/log.h"
#include "sources/api_failure.h"
#include "sources/api_wire.h"

struct api_watch;

/* Which objects, and who takes them. */
struct api_watch_kind {
	const char *kind;      /* "Service" */
	const char *path;      /* "/api/v1/services" */
	const char *selectors; /* "labelSelector=...&fieldSelector=...", escaped; or "" */
	bool namespaced;
	/*
	 * Reads and takes over an object: 1, 0 when it is none of ours, or an error. Details that
	 * are dropped may be noted (see convert.h).
	 */
	int (*set)(void *arg, struct api_bytes object, void (*note)(void *note_arg, const char *),
		   void *note_arg, struct err *err);
	void (*remove)(void *arg, const char *key);
	/* The list is complete: the first, or another one after a 410. */
	void (*listed)(void *arg);
	void *arg;
};

struct api_watch_io {
	/*
	 * Asks for path and query; stream: the answer has no end of its own. At most one request is
	 * under way. It must not answer from inside the call.
	 */
	void (*get)(void *arg, const char *target, bool stream);
	void (*stop)(void *arg);             /* forgets the request, which answers no more */
	void (*wait)(void *arg, int64_t ms); /* sets the one timer; negative: none */
	int64_t (*now_ms)(void *arg);        /* a steady clock */
	uint32_t (*random)(void *arg);
	/* What went wrong, each time; whoever reports it knows what was said before. */
	void (*failed)(void *arg, enum api_failure failure, const char *text);
	void (*recovered)(void *arg); /* after failed(), once, when it works again */
	void (*report)(void *arg, enum log_severity severity, const char *text);
	void *arg;
};

/* Both are copied; their strings are borrowed for the watch's life. Nothing happens before
 * api_watch_start(). */
struct api_watch *api_watch_new(const struct api_watch_kind *kind, const struct api_watch_io *io);
struct api_watch *api_watch_free(struct api_watch *watch); /* accepts NULL, returns NULL */
void api_watch_start(struct api_watch *watch);

/* The timer. */
void api_watch_timer(struct api_watch *watch);
/* The answer's head, then its body in pieces of any size, then its end (failure: API_FAILURE_NONE
 * when it is complete). The end may come without the others. */
void api_watch_status(struct api_watch *watch, int status, int retry_after_s);
void api_watch_data(struct api_watch *watch, struct api_bytes data);
void api_watch_end(struct api_watch *watch, enum api_failure failure, const char *text);

size_t api_watch_count(const struct api_watch *watch); /* objects served */
bool api_watch_is_listed(const struct api_watch *watch);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Following the objects of one kind at an API server: what is asked, and what an answer means. No
 * socket and no clock: requests, timer, time and chance are operations of the owner, and
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
 *   watch   -> initial     410: that version is too old, here or in the stream; or an event with an
 *                          older version than the last: the server lost something
 *   initial, page -> initial   a list older than what was known: another one has to say so, too
 *
 * and from each of them to waiting after a failure, to go on where it was. Only a complete list
 * removes anything: the keys of what is served are kept with the number of the list that last had
 * them, so objects that a new list has are set again (the model compares), and those that it
 * lacks, or has emptied, go at its end. A server that is away, or tells nonsense, removes nothing. A
 * list that would remove too much is held back (sync_guard.h), and another one is asked for when it
 * may confirm it.
 *
 * An object that cannot be understood is there all the same: its last good version stays in force,
 * and it is named once for each different reason.
 */

#include "base/err.h"
#include "base/log.h"
#include "sources/api_failure.h"
#include "sources/api_wire.h"
#include "sources/k8s.pb-c.h"

struct api_watch;

#define API_WATCH_OBJECTS_MAX (1u << 20) /* of a kind: several times the largest clusters */

/* An object that is not, or not wholly, served as it asks for. */
struct api_misread {
	const char *key;
	const K8s__ObjectMeta *metadata;
	bool refused; /* its newest version, as a whole */
	bool served;  /* something is: an older version, or all but what was left out */
	const char *why;
};

/* What a list lacks and is held back; see sync_guard.h. */
struct api_held {
	size_t n;           /* objects; 0: nothing any more */
	size_t known, lost; /* what weigh() said of them; 0: not weighed anew */
	bool blank;         /* the first list has nothing, not even what every cluster has (n: 1) */
	const char *why;    /* for n 0: why it is over */
};

/* What a list does to the objects served, by their keys. */
struct api_list_change {
	const char *const *lost; /* it lacks them */
	size_t n_lost;
	const char *const *added; /* they were not there before it */
	size_t n_added;
};

/* What becomes of an object that can be understood. */
enum api_set {
	API_SET_SKIPPED = 0, /* it is none of ours */
	API_SET_TAKEN,
	API_SET_EMPTY, /* likewise, see unless_empty: a slice without endpoints */
	API_SET_COUNT,
};

/* Which objects, and who takes them. */
struct api_watch_kind {
	const char *kind; /* "Service" */
	const ProtobufCMessageDescriptor *type;
	const char *path;      /* "/api/v1/services" */
	const char *selectors; /* "labelSelector=...&fieldSelector=...", escaped; or "" */
	bool namespaced;
	/*
	 * Takes over an object, a message of this type, but with unless_empty none that is empty:
	 * one of enum api_set, or an error. Details that are dropped may be noted (see convert.h).
	 */
	int (*set)(void *arg, const ProtobufCMessage *message, bool unless_empty,
		   void (*note)(void *note_arg, const char *), void *note_arg, struct err *err);
	void (*remove)(void *arg, const char *key);
	/* A list is complete, and counts: the first, or another one after a 410. */
	void (*listed)(void *arg);
	void *arg;
	size_t max;                 /* how many are taken; 0: API_WATCH_OBJECTS_MAX */
	unsigned int guard_percent; /* see sync_guard.h; 0: every list counts */
	/* What it would mean to lose these: how many of how many that were there before. NULL: they are
	 * what counts. */
	void (*weigh)(void *arg, const struct api_list_change *change, size_t *ret_known,
		      size_t *ret_lost);
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
	/* What went wrong, each time; the source, which reports it, knows what was said before. */
	void (*failed)(void *arg, enum api_failure failure, const char *text);
	void (*recovered)(void *arg); /* after failed(), once, when it works again */
	void (*report)(void *arg, enum log_severity severity, const char *text);
	/* After a report() about it. */
	void (*misread)(void *arg, const struct api_misread *misread);
	/* Each time that the number changes, and when a list is held back again. */
	void (*held)(void *arg, const struct api_held *held);
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

/* The operator wants what is held back to go now. False: nothing was. */
bool api_watch_release(struct api_watch *watch);

size_t api_watch_count(const struct api_watch *watch); /* objects served */
bool api_watch_is_listed(const struct api_watch *watch);

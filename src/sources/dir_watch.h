/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What happens in one folder, and to the folder itself, by inotify on the event loop.
 *
 * The folder is a path, not an inode: when it is renamed, deleted, made anew or is a symbolic link
 * that moves, the watch follows the path (by watching the parent folder, too). Nothing here is
 * exact knowledge; each callback means "look again".
 */

#include "base/err.h"

struct event_base;
struct dir_watch;

enum dir_event {
	DIR_EVENT_DONE = 0, /* a file was closed by its writer, or moved in: it is complete */
	DIR_EVENT_CHANGED,  /* a file was made, written to or removed: there may be more to come */
	DIR_EVENT_LOST,     /* something happened, but the kernel's queue was full */
	DIR_EVENT_MOVED,    /* the folder itself has come, gone, or become another */
	DIR_EVENT_COUNT,
};

struct dir_watch_handler {
	/* name is that of the file for DONE and CHANGED, else NULL */
	void (*event)(void *arg, enum dir_event event, const char *name);
	/* all events known so far have been told */
	void (*batch)(void *arg);
	void *arg;
};

/* A folder that is not there is watched for, too. Fails when the kernel refuses to watch anything.
 */
int dir_watch_new(struct event_base *loop, const char *dir, const struct dir_watch_handler *handler,
		  struct dir_watch **ret, struct err *err);
struct dir_watch *dir_watch_free(struct dir_watch *watch); /* accepts NULL, returns NULL */
/*
 * Watches what is at the path now; for a caller that doubts that the events tell all. Returns 1 when that
 * is another folder than before, 0 when it is the same, or a negative errno when there is none to
 * watch.
 */
int dir_watch_renew(struct dir_watch *watch);

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Two folders are watched: the one that the path names, where files and links are replaced, and the
 * one that the file really is in, where it may be written to. They are often the same. A file that
 * its writer has closed, or that was moved into place, is complete; after anything else (a link was
 * made, a file is being written) it has to be quiet for a while first.
 */

#include "config/config_watch.h"

#include <libgen.h>
#include <limits.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/loop.h"
#include "sources/dir_watch.h"

#define QUIET_NS (500 * CLOCK_NS_PER_MS)

struct config_watch {
	struct event_base *loop;
	char *file;
	void (*changed)(void *arg);
	void *arg;
	struct dir_watch *named;
	struct dir_watch *real; /* NULL: the same folder, or there is none */
	char *real_dir;
	struct event *quiet;
	bool complete;
};

static void follow_links(struct config_watch *watch);

static void tell(struct config_watch *watch)
{
	event_del(watch->quiet);
	follow_links(watch);
	watch->changed(watch->arg);
}

static void on_quiet(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	tell(arg);
}

static void on_event(void *arg, enum dir_event event, const char *name)
{
	struct config_watch *watch = arg;

	(void)name; /* a link on the way may have any name */
	if (event == DIR_EVENT_CHANGED)
		loop_arm(watch->quiet, QUIET_NS);
	else
		watch->complete = true;
}

/* The folders may be exchanged in here, so it is the last thing that their watch does. */
static void on_batch(void *arg)
{
	struct config_watch *watch = arg;

	if (watch->complete)
		loop_arm(watch->quiet, 0);
	watch->complete = false;
}

static char *folder_of(const char *file)
{
	cleanup_free char *copy = xstrdup(file);

	return xstrdup(dirname(copy));
}

static int watch_folder(struct config_watch *watch, const char *dir, struct dir_watch **ret,
			struct err *err)
{
	const struct dir_watch_handler handler = {on_event, on_batch, watch};
	int r = dir_watch_new(watch->loop, dir, &handler, ret, err);

	if (r == 0)
		dir_watch_renew(*ret);
	return r;
}

/* A file that is not there, or a kernel that refuses, leaves the named folder alone to be watched.
 */
static void follow_links(struct config_watch *watch)
{
	cleanup_free char *real = realpath(watch->file, NULL);
	cleanup_free char *named = folder_of(watch->file);
	cleanup_free char *named_real = realpath(named, NULL);
	cleanup_free char *dir = real ? folder_of(real) : NULL;
	struct err err;

	if (dir && watch->real_dir && streq(dir, watch->real_dir))
		return;
	watch->real = dir_watch_free(watch->real);
	free(watch->real_dir);
	watch->real_dir = take(dir);
	if (watch->real_dir && named_real && !streq(watch->real_dir, named_real) &&
	    watch_folder(watch, watch->real_dir, &watch->real, &err) < 0)
		watch->real = NULL;
}

int config_watch_new(struct event_base *loop, const char *file, void (*changed)(void *arg),
		     void *arg, struct config_watch **ret, struct err *err)
{
	struct config_watch *watch = xcalloc(1, sizeof(*watch));
	cleanup_free char *dir = folder_of(file);
	int r;

	*watch = (struct config_watch){
		.loop = loop,
		.file = xstrdup(file),
		.changed = changed,
		.arg = arg,
		.quiet = loop_timer(loop, on_quiet, watch),
	};
	r = watch_folder(watch, dir, &watch->named, err);
	if (r < 0) {
		config_watch_free(watch);
		return err_wrap(err, r, "watching %s", file);
	}
	follow_links(watch);
	loop_arm(watch->quiet, 0);
	*ret = watch;
	return 0;
}

struct config_watch *config_watch_free(struct config_watch *watch)
{
	if (!watch)
		return NULL;
	dir_watch_free(watch->named);
	dir_watch_free(watch->real);
	loop_free(watch->quiet);
	free(watch->real_dir);
	free(watch->file);
	free(watch);
	return NULL;
}

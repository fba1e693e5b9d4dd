/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/dir_watch.h"

#include <errno.h>
#include <stdalign.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/loop.h"

#define DONE_MASK    (IN_CLOSE_WRITE | IN_MOVED_TO)
#define CHANGED_MASK (IN_CREATE | IN_MODIFY | IN_ATTRIB | IN_DELETE | IN_MOVED_FROM)
#define SELF_MASK    (IN_DELETE_SELF | IN_MOVE_SELF)
#define PARENT_MASK  (IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO)

struct dir_watch {
	struct dir_watch_handler handler;
	struct event *event;
	int fd;
	char *dir;
	char *parent; /* NULL: the folder has no name of its own (".", "/") */
	const char *base;
	int wd, parent_wd; /* -1: none */
};

/* Splits "a/b" into "a" and "b". */
static void set_paths(struct dir_watch *watch, const char *dir)
{
	size_t n = strlen(dir);
	const char *slash;

	watch->dir = xstrdup(dir);
	while (n > 1 && watch->dir[n - 1] == '/')
		watch->dir[--n] = '\0';
	slash = strrchr(watch->dir, '/');
	watch->base = slash ? slash + 1 : watch->dir;
	if (!*watch->base || streq(watch->base, ".") || streq(watch->base, ".."))
		return;
	if (!slash)
		watch->parent = xstrdup(".");
	else if (slash == watch->dir)
		watch->parent = xstrdup("/");
	else
		watch->parent = strndup(watch->dir, (size_t)(slash - watch->dir));
}

static void watch_parent(struct dir_watch *watch)
{
	int wd;

	if (!watch->parent)
		return;
	wd = inotify_add_watch(watch->fd, watch->parent, PARENT_MASK | IN_ONLYDIR);
	if (watch->parent_wd >= 0 && watch->parent_wd != wd)
		inotify_rm_watch(watch->fd, watch->parent_wd);
	watch->parent_wd = wd;
}

int dir_watch_renew(struct dir_watch *watch)
{
	int old = watch->wd;
	int r = 0;

	watch_parent(watch);
	watch->wd = inotify_add_watch(watch->fd, watch->dir,
				      DONE_MASK | CHANGED_MASK | SELF_MASK | IN_ONLYDIR);
	if (watch->wd < 0)
		r = -errno;
	if (old >= 0 && old != watch->wd)
		inotify_rm_watch(watch->fd, old);
	return r < 0 ? r : watch->wd != old;
}

static void on_own_event(struct dir_watch *watch, const struct inotify_event *event)
{
	const struct dir_watch_handler *handler = &watch->handler;

	if (event->mask & (SELF_MASK | IN_IGNORED | IN_UNMOUNT)) {
		if (event->mask & IN_IGNORED)
			watch->wd = -1;
		dir_watch_renew(watch);
		handler->event(handler->arg, DIR_EVENT_MOVED, NULL);
	} else if (event->len && (event->mask & DONE_MASK)) {
		handler->event(handler->arg, DIR_EVENT_DONE, event->name);
	} else if (event->len && (event->mask & CHANGED_MASK)) {
		handler->event(handler->arg, DIR_EVENT_CHANGED, event->name);
	}
}

static void on_event(struct dir_watch *watch, const struct inotify_event *event)
{
	const struct dir_watch_handler *handler = &watch->handler;

	if (event->mask & IN_Q_OVERFLOW) {
		dir_watch_renew(watch);
		handler->event(handler->arg, DIR_EVENT_LOST, NULL);
	} else if (event->wd == watch->wd) {
		on_own_event(watch, event);
	} else if (event->wd == watch->parent_wd) {
		if (event->mask & IN_IGNORED)
			watch->parent_wd = -1;
		if (event->len && streq(event->name, watch->base)) {
			dir_watch_renew(watch);
			handler->event(handler->arg, DIR_EVENT_MOVED, NULL);
		}
	}
}

static void on_readable(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	alignas(struct inotify_event) char buffer[16 * 1024];
	struct dir_watch *watch = arg;
	ssize_t n;

	while ((n = read(watch->fd, buffer, sizeof(buffer))) > 0) {
		for (ssize_t at = 0; at < n;) {
			const struct inotify_event *event = (const void *)(buffer + at);

			at += (ssize_t)(sizeof(*event) + event->len);
			on_event(watch, event);
		}
	}
	watch->handler.batch(watch->handler.arg);
}

int dir_watch_new(struct event_base *loop, const char *dir, const struct dir_watch_handler *handler,
		  struct dir_watch **ret, struct err *err)
{
	struct dir_watch *watch;
	int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	if (fd < 0)
		return err_sys(err, -errno, "inotify");
	watch = xcalloc(1, sizeof(*watch));
	watch->fd = fd;
	watch->handler = *handler;
	watch->wd = -1;
	watch->parent_wd = -1;
	set_paths(watch, dir);
	watch->event = event_new(loop, fd, EV_READ | EV_PERSIST, on_readable, watch);
	if (!watch->event || event_add(watch->event, NULL) < 0) {
		dir_watch_free(watch);
		return err_set(err, -EIO, "the event loop takes no more events");
	}
	*ret = watch;
	return 0;
}

struct dir_watch *dir_watch_free(struct dir_watch *watch)
{
	if (!watch)
		return NULL;
	loop_free(watch->event);
	close(watch->fd);
	free(watch->dir);
	free(watch->parent);
	free(watch);
	return NULL;
}

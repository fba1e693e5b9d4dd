/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Events only say that it is time to look: a scan lists the folder, compares each file with what
 * was read of it (inode, size, times) and reads what differs. So it does not matter how an editor
 * saves, or which events were lost. Two things have to wait, though:
 *
 *   - A file that is being written may parse, and say less than it will: a name that was made or
 * written to is left as it is until its writer closes it, or until it has been quiet for a while.
 *   - A file that has gone may be on its way back (editors move the old one away first), and a
 * folder that is being removed loses its files one by one: a name that is missing is kept for that
 * while.
 *
 * Files that are complete (closed, moved in) are read at once.
 */

#include "sources/manifests.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/loop.h"
#include "sources/dir_watch.h"
#include "sources/manifest_set.h"
#include "sources/sync_guard.h"

#define SETTLE_MS     100   /* quiet for this long counts as done */
#define SETTLE_MAX_MS 2000  /* but nothing waits longer than this */
#define POLL_MS       10000 /* what no event tells: a symbolic link's target, NFS */
#define POLL_AWAY_MS  1000  /* while the folder is not there, or cannot be watched */
#define FILES_MAX     (1u << 16)

/* A name that something happened to since it was last read. */
struct pending {
	char *name;
	bool done; /* and it is complete */
};

struct manifests {
	char *dir;
	char *node_name;
	struct source_sink sink;
	manifests_report_fn *report;
	void *report_arg;
	struct manifest_set set;

	/* only while following */
	struct dir_watch *watch; /* NULL: the kernel refuses, so we poll */
	struct event *settle, *poll;
	struct map pending;
	int64_t settle_since_ms; /* 0: nothing waits */
	bool look;               /* a complete file, or lost events: scan after this batch */
	bool away;               /* the folder is not there */
	bool unwatched;          /* it is, but the kernel refuses to watch it */
	struct manifests_guard config;
	struct sync_guard guard;
};

static void say(const struct manifests *manifests, enum log_severity severity, const char *fmt, ...)
	attr_printf(3, 4);

static void say(const struct manifests *manifests, enum log_severity severity, const char *fmt, ...)
{
	char text[1536];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	manifests->report(manifests->report_arg, severity, text);
}

static int64_t now_ms(void)
{
	return clock_now_ns() / CLOCK_NS_PER_MS;
}

static bool is_manifest(const char *name)
{
	return name[0] != '.' &&
	       (has_suffix(name, ".yaml") || has_suffix(name, ".yml") || has_suffix(name, ".json"));
}

static void forget_pending(struct manifests *manifests, struct pending *pending)
{
	map_remove(&manifests->pending, pending->name);
	free(pending->name);
	free(pending);
}

static void forget_all_pending(struct manifests *manifests)
{
	struct pending *pending;
	size_t at = 0;

	while ((pending = map_next(&manifests->pending, &at)))
		forget_pending(manifests, pending);
}

static void arm(struct event *event, int64_t ms)
{
	if (event)
		loop_arm(event, ms * CLOCK_NS_PER_MS);
}

/* Looks again when it has been quiet; each call puts that off, up to a limit. */
static void wait_for_quiet(struct manifests *manifests)
{
	int64_t now = now_ms(), left;

	if (!manifests->settle_since_ms)
		manifests->settle_since_ms = now;
	left = manifests->settle_since_ms + SETTLE_MAX_MS - now;
	arm(manifests->settle, MAX(MIN(SETTLE_MS, left), 1));
}

/* Reads one file that is new or different. True: the set has changed. */
static bool read_file(struct manifests *manifests, struct manifest_file *file, int dir_fd)
{
	struct err err;
	int r = manifest_set_read(&manifests->set, file, dir_fd, manifests->node_name, &err);

	if (r < 0)
		say(manifests, LOG_SEVERITY_ERROR, "%s%s", err.text,
		    file->n_objects ? ", keeping the objects last read from it" : "");
	for (size_t i = 0; r > 0 && i < file->n_notices; i++)
		if (!file->notices[i].known)
			manifests->report(manifests->report_arg, file->notices[i].severity,
					  file->notices[i].text);
	file->seen = r != 0; /* it may have gone in between */
	return r != 0;
}

/* settled: what was pending has been quiet for long enough. True: the set has changed. */
static bool look_at_file(struct manifests *manifests, const char *name, int dir_fd, bool settled)
{
	struct manifest_file *file = manifest_set_find(&manifests->set, name);
	struct pending *pending = map_get(&manifests->pending, name);
	bool touched = pending != NULL;
	struct manifest_signature signature;
	struct stat st;

	if (fstatat(dir_fd, name, &st, 0) < 0 || !S_ISREG(st.st_mode))
		return false;
	if (file)
		file->seen = true;
	if (pending && !pending->done && !settled)
		return false;
	if (pending)
		forget_pending(manifests, pending);
	signature = manifest_signature(&st);
	if (file && !touched && manifest_signature_equal(&signature, &file->signature))
		return false;
	if (!file) {
		file = manifest_file_new(manifests->dir, name);
		manifest_set_add(&manifests->set, file);
	}
	file->signature = signature;
	return read_file(manifests, file, dir_fd);
}

/* -- a folder without manifests */

static void tell_held(struct manifests *manifests, size_t n, const char *why)
{
	char text[1024];

	if (n > 0)
		snprintf(text, sizeof(text),
			 "The folder %s has no manifests any more, its %zu Services are held back "
			 "for %d s, or until SIGUSR2",
			 manifests->dir, n, SYNC_GUARD_CONFIRM_MS / 1000);
	else
		snprintf(text, sizeof(text), "What the folder %s lacks is held back no more: %s",
			 manifests->dir, why);
	manifests->report(manifests->report_arg, n > 0 ? LOG_SEVERITY_ERROR : LOG_SEVERITY_INFO,
			  text);
	if (manifests->config.held)
		manifests->config.held(
			manifests->config.arg,
			&(struct source_held){.resource = "services", .n = n, .text = text});
}

static bool is_any_seen(const struct manifest_set *set)
{
	for (size_t i = 0; i < set->n_files; i++)
		if (set->files[i]->seen)
			return true;
	return false;
}

/* All files are missing: is that held back? */
static bool holds_back(struct manifests *manifests)
{
	size_t n = manifests->set.n_services;
	const struct sync_guard_loss loss = {.known = n, .lost = n};
	int64_t now = manifests->config.now_ms ? manifests->config.now_ms() : now_ms();
	bool held = manifests->guard.holding;
	enum sync_guard_verdict verdict = sync_guard_judge(&manifests->guard, &loss, now);

	if (verdict == SYNC_GUARD_HELD && !held)
		tell_held(manifests, n, "");
	else if (verdict == SYNC_GUARD_CONFIRMED)
		tell_held(manifests, 0, "it had none for a minute");
	return verdict == SYNC_GUARD_HELD;
}

static void see_files(struct manifests *manifests)
{
	if (!manifests->guard.holding)
		return;
	sync_guard_release(&manifests->guard);
	tell_held(manifests, 0, "it has manifests again");
}

/* A missing file goes if it was seen to go, or missed before, and all is quiet; or if the folder
 * is read only once. */
static bool drop_missing(struct manifests *manifests, bool settled)
{
	bool changed = false;

	if (is_any_seen(&manifests->set))
		see_files(manifests);
	else if (settled && holds_back(manifests))
		return false;
	for (size_t i = manifests->set.n_files; i-- > 0;) {
		struct manifest_file *file = manifests->set.files[i];
		bool expected = file->missing || map_get(&manifests->pending, file->name);

		file->missing = !file->seen;
		if (file->seen)
			continue;
		if (!manifests->settle || (settled && expected)) {
			manifest_set_remove(&manifests->set, i);
			changed = true;
		} else {
			wait_for_quiet(manifests);
		}
	}
	return changed;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void free_names(char **names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(names[i]);
	free(names);
}

/* The names of manifests in the folder, sorted. */
static int list_names(DIR *dir, char ***ret, size_t *ret_n)
{
	struct dirent *entry;
	char **names = NULL;
	size_t n = 0, capacity = 0;

	while ((entry = readdir(dir))) {
		if (!is_manifest(entry->d_name))
			continue;
		if (n == FILES_MAX) {
			free_names(names, n);
			return -EMFILE;
		}
		array_grow(&names, &capacity, n, sizeof(char *));
		names[n++] = xstrdup(entry->d_name);
	}
	if (n)
		qsort(names, n, sizeof(char *), compare_names);
	*ret = names;
	*ret_n = n;
	return 0;
}

static bool look_at_files(struct manifests *manifests, char **names, size_t n, int dir_fd,
			  bool settled)
{
	bool changed = false;

	for (size_t i = 0; i < manifests->set.n_files; i++)
		manifests->set.files[i]->seen = false;
	for (size_t i = 0; i < n; i++)
		changed |= look_at_file(manifests, names[i], dir_fd, settled);
	return drop_missing(manifests, settled) || changed;
}

/* Returns 1 when the set has changed, 0 when not, or a negative errno: the folder cannot be read.
 */
static int scan(struct manifests *manifests, bool settled)
{
	DIR *dir = opendir(manifests->dir);
	char **names;
	size_t n;
	int r;

	if (!dir)
		return -errno;
	r = list_names(dir, &names, &n);
	if (r == 0) {
		r = look_at_files(manifests, names, n, dirfd(dir), settled);
		free_names(names, n);
	}
	closedir(dir);
	return r;
}

static void apply(struct manifests *manifests)
{
	manifest_set_apply(&manifests->set, &manifests->sink, manifests->report,
			   manifests->report_arg);
}

static void set_away(struct manifests *manifests, int error)
{
	forget_all_pending(manifests);
	if (!manifests->away)
		say(manifests, LOG_SEVERITY_WARNING,
		    "The folder %s cannot be read (%s), keeping the objects last read from it",
		    manifests->dir, error == -EMFILE ? "too many files" : strerror(-error));
	manifests->away = true;
}

static void look(struct manifests *manifests, bool settled)
{
	int r = scan(manifests, settled);

	if (settled)
		forget_all_pending(manifests);
	if (r < 0) {
		set_away(manifests, r);
		return;
	}
	if (manifests->away)
		say(manifests, LOG_SEVERITY_INFO, "The folder %s is back", manifests->dir);
	manifests->away = false;
	if (r > 0)
		apply(manifests);
}

static void arm_poll(struct manifests *manifests)
{
	bool watched = manifests->watch && !manifests->unwatched && !manifests->away;

	arm(manifests->poll, watched ? POLL_MS : POLL_AWAY_MS);
}

static void renew_watch(struct manifests *manifests)
{
	int r = manifests->watch ? dir_watch_renew(manifests->watch) : 0;
	bool refused = r < 0 && r != -ENOENT && r != -ENOTDIR;

	if (refused && !manifests->unwatched)
		say(manifests, LOG_SEVERITY_WARNING,
		    "The folder %s cannot be watched (%s), looking every second instead",
		    manifests->dir, strerror(-r));
	manifests->unwatched = refused;
}

static void on_poll(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	struct manifests *manifests = arg;

	renew_watch(manifests);
	look(manifests, false);
	arm_poll(manifests);
}

static void on_settle(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	struct manifests *manifests = arg;

	manifests->settle_since_ms = 0;
	look(manifests, true);
}

static void note_name(struct manifests *manifests, const char *name, bool done)
{
	struct pending *pending = map_get(&manifests->pending, name);

	if (!pending) {
		pending = xcalloc(1, sizeof(*pending));
		pending->name = xstrdup(name);
		map_set(&manifests->pending, pending->name, pending);
	}
	pending->done = done;
}

static void on_dir_event(void *arg, enum dir_event event, const char *name)
{
	struct manifests *manifests = arg;

	/* other names matter, too: a symbolic link that the manifests lead through, such as ..data
	 */
	if (name && is_manifest(name))
		note_name(manifests, name, event == DIR_EVENT_DONE);
	if (event == DIR_EVENT_CHANGED)
		wait_for_quiet(manifests);
	else
		manifests->look = true;
}

static void on_dir_batch(void *arg)
{
	struct manifests *manifests = arg;

	if (!manifests->look)
		return;
	manifests->look = false;
	look(manifests, false);
	arm_poll(manifests);
}

static struct manifests *manifests_new(const char *dir, const char *node_name,
				       const struct source_sink *sink, manifests_report_fn *report,
				       void *report_arg)
{
	struct manifests *manifests = xcalloc(1, sizeof(*manifests));
	size_t n = strlen(dir);

	manifests->dir = xstrdup(dir);
	while (n > 1 && manifests->dir[n - 1] == '/')
		manifests->dir[--n] = '\0';
	manifests->node_name = xstrdup(node_name);
	manifests->sink = *sink;
	manifests->report = report;
	manifests->report_arg = report_arg;
	return manifests;
}

/* The first look, by which everything is reported. */
static int read_all(struct manifests *manifests, struct err *err)
{
	int r = scan(manifests, false);

	if (r == -EMFILE)
		return err_set(err, r, "%s: more than %u files", manifests->dir, FILES_MAX);
	if (r < 0)
		return err_sys(err, r, "%s", manifests->dir);
	apply(manifests);
	if (manifests->sink.node_listed)
		manifests->sink.node_listed(manifests->sink.arg, false);
	if (manifests->sink.synced)
		manifests->sink.synced(manifests->sink.arg);
	return 0;
}

static void start_watch(struct manifests *manifests, struct event_base *loop)
{
	const struct dir_watch_handler handler = {
		.event = on_dir_event, .batch = on_dir_batch, .arg = manifests};
	struct err err;

	if (dir_watch_new(loop, manifests->dir, &handler, &manifests->watch, &err) < 0)
		say(manifests, LOG_SEVERITY_WARNING,
		    "The folder %s cannot be watched (%s), looking every second instead",
		    manifests->dir, err.text);
	renew_watch(manifests);
}

int manifests_start(struct event_base *loop, const char *dir, const char *node_name,
		    const struct source_sink *sink, manifests_report_fn *report, void *report_arg,
		    struct manifests **ret, struct err *err)
{
	struct manifests *manifests = manifests_new(dir, node_name, sink, report, report_arg);
	int r;

	manifests->settle = loop_timer(loop, on_settle, manifests);
	manifests->poll = loop_timer(loop, on_poll, manifests);
	/* first watch, then read: what changes in between is seen */
	start_watch(manifests, loop);
	r = read_all(manifests, err);
	if (r < 0) {
		manifests_free(manifests);
		return r;
	}
	arm_poll(manifests);
	*ret = manifests;
	return 0;
}

void manifests_set_guard(struct manifests *manifests, const struct manifests_guard *guard)
{
	manifests->config = *guard;
	manifests->guard.percent = guard->on ? SYNC_GUARD_PERCENT : 0;
}

bool manifests_release(struct manifests *manifests)
{
	if (!manifests->guard.holding)
		return false;
	sync_guard_release(&manifests->guard);
	while (manifests->set.n_files > 0)
		manifest_set_remove(&manifests->set, manifests->set.n_files - 1);
	apply(manifests);
	tell_held(manifests, 0, "it was asked for");
	return true;
}

struct manifests *manifests_free(struct manifests *manifests)
{
	if (!manifests)
		return NULL;
	dir_watch_free(manifests->watch);
	loop_free(manifests->settle);
	loop_free(manifests->poll);
	forget_all_pending(manifests);
	map_done(&manifests->pending);
	manifest_set_done(&manifests->set);
	free(manifests->dir);
	free(manifests->node_name);
	free(manifests);
	return NULL;
}

int manifests_load(const char *dir, const char *node_name, const struct source_sink *sink,
		   manifests_report_fn *report, void *report_arg, struct err *err)
{
	struct manifests *manifests = manifests_new(dir, node_name, sink, report, report_arg);
	int r = read_all(manifests, err);

	if (r == 0)
		r = (int)MIN(manifest_set_problems(&manifests->set), (size_t)INT_MAX);
	manifests_free(manifests);
	return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A folder of manifests as a source: Services, EndpointSlices, Endpoints and Nodes in files *.yaml,
 * *.yml and
 * *.json (no dot files), several documents a file, Lists unpacked. Folders inside it are not read.
 *
 *   - A broken file gives one error (file, line, column); the objects last read from it stay in
 * force.
 *   - An object that cannot be served is named with its reason, and the rest of its file counts. If
 * it was served before, its last good version stays.
 *   - Of an object that is given twice the first counts, by name of file and then by place in it;
 *     the other takes over when the first goes.
 *   - Endpoints count only while no EndpointSlice belongs to the same Service.
 *   - Objects that an API server would not send to a proxy (labels of other proxies, headless) are
 * left out.
 *   - Only differences reach the sink, in the order of their keys: removals first.
 *
 * A folder that is followed may vanish: everything stays in force until it comes back. One that is
 * there and has no manifests any more, a volume that is not mounted perhaps, may be guarded.
 */

#include "base/err.h"
#include "base/log.h"
#include "sources/source.h"

struct event_base;
struct manifests;

/*
 * What a person should know, one line each, without a full stop. The caller that starts a source logs it.
 * An error means that something asked for is not in force.
 */
typedef void manifests_report_fn(void *arg, enum log_severity severity, const char *text);

/*
 * Reads the folder, reports all of it to the sink (and "synced"), all before it returns, and
 * follows it from then on. sink is copied; the loop must outlive the source. Fails when there is no
 * such folder.
 */
int manifests_start(struct event_base *loop, const char *dir, const char *node_name,
		    const struct source_sink *sink, manifests_report_fn *report, void *report_arg,
		    struct manifests **ret, struct err *err);
/*
 * From now on a folder of at least SYNC_GUARD_MIN Services that suddenly has no manifests is held
 * back (sync_guard.h): its objects stay until it has had none for a minute. Files that go one after
 * another, while others stay, are meant to go.
 */
struct manifests_guard {
	bool on;
	void (*held)(void *arg, const struct source_held *held); /* may be NULL */
	void *arg;
	int64_t (*now_ms)(void); /* for tests; NULL: the machine's steady clock */
};
void manifests_set_guard(struct manifests *manifests, const struct manifests_guard *guard);
/* What is held back goes now. False: nothing was. */
bool manifests_release(struct manifests *manifests);
/* Stops following. The sink is not told anything more. Accepts NULL, returns NULL. */
struct manifests *manifests_free(struct manifests *manifests);

/*
 * Reads the folder once, with nothing to follow. Returns the number of files and objects that are
 * not in force for an error of theirs, or a negative error when the folder cannot be read.
 */
int manifests_load(const char *dir, const char *node_name, const struct source_sink *sink,
		   manifests_report_fn *report, void *report_arg, struct err *err);

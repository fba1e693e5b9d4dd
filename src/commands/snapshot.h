/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The cluster as it is now, for commands that look once and end: objects from a folder or from an
 * API server, settings, this node's addresses and, for those who ask, the rules that follow from them.
 */

#include "commands/command.h"
#include "inspect/explain.h"

struct snapshot {
	const struct config *config;
	struct model *model;
	bool live;       /* this is the node itself: interfaces and rules can be read */
	bool complete;   /* nothing failed while it was loaded */
	size_t n_broken; /* files and objects that are not in force; they have been named */
	bool has_settings[FAMILY_COUNT];
	struct settings settings[FAMILY_COUNT];
	struct addr *addresses[FAMILY_COUNT];
	size_t n_addresses[FAMILY_COUNT];
	struct backend_host *host; /* NULL: not asked for, or the mode has none; snapshot_host() */
	struct explain
		*explain[FAMILY_COUNT]; /* NULL: no rules were asked for; snapshot_explain() */
};

/* How long an API server may take to tell all. */
#define SNAPSHOT_TIMEOUT_S 30

/*
 * live: addresses are those of this host's interfaces, else
 * those of the Node. *ret is good for snapshot_done() in all cases.
 */
int snapshot_load(const struct call *call, bool live, struct snapshot *ret, struct err *err);
/*
 * The rules of a family, made when they are first asked for: most commands need none, or those of one family. NULL:
 * loading failed.
 */
struct explain *snapshot_explain(struct snapshot *snapshot, enum family family);
/* What the families of the mode share here, found out when it is first asked for; NULL: nothing. */
const struct backend_host *snapshot_host(struct snapshot *snapshot);
void snapshot_done(struct snapshot *snapshot);
#define cleanup_snapshot attr_cleanup(snapshot_done)

/*
 * Parts of it, for who needs no more. The objects alone, from the source that the options name, in at most
 * timeout_s; what came before a failure is in the model.
 */
int snapshot_load_objects(const struct options *options, const struct config *config,
			  const char *who, int timeout_s, struct model *model, struct err *err);
/*
 * A folder: the number of broken files and objects, which have been named; the rest is in the model.
 */
int snapshot_load_folder(const char *folder, const char *who, struct model *model, struct err *err);

/*
 * For commands that go on looking: the model follows the source from then on, on the loop, which turns
 * here until all objects are told. All is borrowed.
 */
struct event_base;
struct snapshot_follower;
int snapshot_follow(const struct options *options, const struct config *config, const char *who,
		    struct event_base *loop, struct model *model, struct snapshot_follower **ret,
		    struct err *err);
struct snapshot_follower *snapshot_unfollow(struct snapshot_follower *follower); /* accepts NULL */
/* Have Services changed since the last call? */
bool snapshot_followed(struct snapshot_follower *follower);
/* What is wrong with the source now, in words; "": nothing. */
const char *snapshot_trouble(const struct snapshot_follower *follower);

/* What a node's interfaces of one family have, as far as objects tell; for the caller to free. */
struct addr *snapshot_node_addresses(const struct config *config, const struct node *node,
				     enum family family, size_t *ret_n);

/* Writes all of it to standard output. */
int snapshot_print(struct text *text, struct err *err);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A backend brings the kernel of one node, for one family, to what plans ask for: it is a reader of a plan_store,
 * and plans nothing itself. A table of operations for each rule family; iptables/iptables.c has the first.
 */

#include "base/err.h"
#include "plan/plan_store.h"

struct event_base;
struct backend;
struct backend_host;
struct inspect_ops;
struct text;

/* Tables of iptables, for counting. */
enum backend_table {
	BACKEND_FILTER = 0,
	BACKEND_NAT,
	BACKEND_TABLE_COUNT,
};

/* What became of a sync. A count that a backend does not know stays zero. */
struct backend_result {
	int error;         /* 0, or the negative errno of err */
	bool write_failed; /* it was the rules that could not be written, not what comes before */
	bool full;         /* a full sync, not a partial one */
	size_t rules;      /* rules written */
	size_t rules_total[BACKEND_TABLE_COUNT]; /* owned: written now or left standing */
	size_t rules_last[BACKEND_TABLE_COUNT];  /* written now */
	size_t cleanup_failures; /* since the last result: what no Service needs could not be removed */
	int64_t duration_ns;
	int64_t cost_ns; /* of that, without waiting for what else the process does; 0: all of it */
	struct err err;

	/* about plans: set for observers by daemon/family_sync.c, not by a backend */
	size_t services;          /* that had changed */
	size_t no_local_internal; /* service ports with a Local policy and only remote endpoints */
	size_t no_local_external;
	size_t conflicts[CONFLICT_KIND_COUNT]; /* Services that ask for what is not theirs */
	/* as plan_store_update() told it; borrowed until synced() returns. NULL: not known */
	const struct model_changes *changes;
	const struct plan_store *plans; /* borrowed likewise */
};

/* The kernel does not take what a Service asks for, which therefore stays as it was or is left out. */
struct backend_refusal {
	const char *service; /* "namespace/name" */
	const char *port;    /* "namespace/name:port" */
	const char *reason;
	bool kept; /* what the kernel took last stays in force */
};

/* The clients of a Service with ClientIP affinity are more than its map holds. */
struct backend_full {
	const char *service; /* "namespace/name" */
	const char *port;    /* "namespace/name:port" */
	uint32_t clients;    /* that there is room for */
};

struct backend_events {
	/* A sync is over. The backend may be told to sync again from inside. */
	void (*synced)(void *arg, const struct backend_result *result);
	/*
	 * Another program removed or changed our rules, what says which: a full sync is wanted (and has been
	 * noted).
	 */
	void (*flushed)(void *arg, const char *what);
	void *arg;
	/*
	 * What another program had changed, which the backend has logged, is right again: without a sync, or by
	 * one that met it on its way. NULL: the owner does not ask.
	 */
	void (*repaired)(void *arg);
	/*
	 * The answer to check(): 1, the rules that all hangs on are there; 0, err says what is wrong, and
	 * that is being repaired; negative: it could not be found out.
	 */
	void (*checked)(void *arg, int r, const struct err *err);
	/* A Service stays as it was, or is left out; told once, and again after it was taken. */
	void (*refused)(void *arg, const struct backend_refusal *refusal);
	/* New clients of a Service are not remembered; told once, and again after they were. NULL: the owner does not ask. */
	void (*clients_full)(void *arg, const struct backend_full *full);
	/* Service ports of which that is so, as of the last look, which is taken now and then. NULL: the owner does not ask. */
	void (*clients_full_count)(void *arg, size_t n);
	/* A sync is wanted although nothing has changed. */
	void (*wanted)(void *arg);
};

/* For a backend that is being closed: its owner hears nothing more. */
extern const struct backend_events backend_no_events;

/* What it takes to write rules, or to remove them, beside netlink: a set of bits. */
enum backend_needs {
	BACKEND_NEEDS_PROGRAMS = 1 << 0, /* programs are run, */
	BACKEND_NEEDS_RAW = 1 << 1,      /* which take CAP_NET_RAW */
};

/* A dry run. */
struct backend_render {
	const struct settings *settings;
	const struct plan_delta *delta; /* a full one */
	const struct addr *addresses;   /* of the node's interfaces */
	size_t n_addresses;
	size_t format; /* a place in backend_ops.formats */
	bool titled;   /* a comment says which family it is, where the text does not */
};

/* NodePorts on localhost that the backend serves itself, in user space, or refuses and counts. */
struct backend_localhost {
	bool served;
	size_t listeners;   /* open now */
	uint64_t failures;  /* to open one, so far */
	size_t connections; /* open now */
	uint64_t refused;   /* for lack of room, so far */
	bool counted[PROTOCOL_COUNT];
	uint64_t rejected[PROTOCOL_COUNT]; /* packets, where they are counted */
};

struct backend_ops {
	const char *name; /* "iptables": what --proxy-mode calls it */

	/* What differs between modes and is no operation. */
	bool wants_service_cidrs; /* it refuses what is sent to cluster IPs that no Service has */
	bool names_service_chains; /* a Service has chains of its own, whose names a chart can show */
	const char *const *formats; /* of render(), the usual one first, NULL at the end */

	/*
	 * What the families share on this host. Found out once, without changing anything; the choice that
	 * was made is logged from that level on. NULL: there is nothing, and the host is NULL below.
	 */
	struct backend_host *(*open_host)(const struct mode_options *options, int level);
	void (*close_host)(struct backend_host *host); /* accepts NULL */

	/* Can this host do it for the family? 1, 0 (with the reason in *err), or an error. */
	int (*usable)(const struct backend_host *host, enum family family, struct err *err);
	/*
	 * Finds out what the host offers and sets the sysctls that the rules rely on; writes no rule.
	 * host, settings and events are borrowed until close.
	 */
	int (*open)(struct event_base *loop, const struct backend_host *host,
		    const struct settings *settings, const struct backend_events *events,
		    struct backend **ret, struct err *err);
	void (*close)(struct backend *backend); /* accepts NULL; ends a running sync; rules stay */
	unsigned int (*needs)(const struct backend *backend); /* NULL: nothing */

	/*
	 * Starts a sync, which ends with events->synced (perhaps before this returns). Not while one runs. The
	 * delta is good until then; plans are kept by reference. It is a full one the first time, and
	 * after a failure.
	 */
	void (*sync)(struct backend *backend, const struct plan_delta *delta);
	bool (*syncing)(const struct backend *backend);
	void (*need_full_sync)(struct backend *backend);
	/* From the first good sync on, watch for foreign hands (canaries, notifications). */
	void (*watch)(struct backend *backend);

	/*
	 * Compares all rules with the kernel's, repairs them, and logs what was found; soon, not now.
	 * False: it cannot do that; a full sync has the same effect.
	 */
	bool (*audit)(struct backend *backend);

	/*
	 * Looks whether the rules are there, at a cost that is bounded: not at all of them, but at those
	 * that lead to the others, and at what is known to be damaged. Ends with events->checked (perhaps
	 * before this returns), or not at all while another look is under way.
	 */
	void (*check)(struct backend *backend);

	/*
	 * What a proxy of this kind left in the family: 0, nothing; else a word for cleanup(), and in
	 * *ret_needs what that takes. Asked while the process has all its privileges. Blocks, for some
	 * milliseconds. NULL: that is not known before cleanup() is called with 0.
	 */
	unsigned int (*leftovers)(enum family family, unsigned int *ret_needs);
	/*
	 * Removes what a proxy of this kind left in the family, nothing else: what leftovers() told of, or
	 * with 0 what one on this host would leave. Blocks. 1; 0: there was nothing; -EOPNOTSUPP: this host
	 * cannot have such rules of the family.
	 */
	int (*cleanup)(const struct backend_host *host, enum family family, unsigned int leftovers,
		       struct err *err);

	/* How things stand now, at the cost of one question to the kernel. NULL: the mode has no such thing. */
	void (*localhost)(struct backend *backend, struct backend_localhost *ret);
	/*
	 * Of so many files that the process may have open, those that the mode takes for all families beside what every
	 * mode needs. NULL: none.
	 */
	size_t (*descriptors)(const struct mode_options *options, size_t limit);

	/* Appends what a first, full sync would write, for people and for tools. Touches nothing. */
	void (*render)(const struct backend_render *input, struct text *ret);
	const struct inspect_ops *inspect; /* questions about its rules: inspect/inspect_ops.h */
};

/* The modes that there are, NULL at the end: a mode is a folder and a row (modes.c). */
#define BACKEND_MODES_MAX 8
extern const struct backend_ops *const backend_modes[];
const struct backend_ops *backend_find(const char *name); /* NULL: there is none */

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A backend brings the kernel of one node, for one family, to what the model asks for. A table of operations
 * for each rule family; iptables/iptables.c has the first.
 */

#include "base/err.h"
#include "model/model.h"
#include "plan/settings.h"

struct event_base;
struct backend;

/* Tables of iptables, for counting. */
enum backend_table {
	BACKEND_FILTER = 0,
	BACKEND_NAT,
	BACKEND_TABLE_COUNT,
};

/* What a sync was about and what became of it. A count that a backend does not know stays zero. */
struct backend_result {
	int error;         /* 0, or the negative errno of err */
	bool write_failed; /* it was the rules that could not be written, not what comes before */
	bool full;         /* a full sync, not a partial one */
	size_t services;   /* services that had changed */
	size_t rules;      /* rules written */
	size_t rules_total[BACKEND_TABLE_COUNT]; /* owned: written now or left standing */
	size_t rules_last[BACKEND_TABLE_COUNT];  /* written now */
	size_t no_local_internal; /* service ports with a Local policy and only remote endpoints */
	size_t no_local_external;
	size_t cleanup_failures; /* since the last result: what nobody needs could not be removed */
	/* what was taken from the model for it; borrowed until synced() returns. NULL: not known */
	const struct model_changes *changes;
	int64_t duration_ns;
	struct err err;
};

/* Two Services ask for the same address and port, and only one can have it. */
struct backend_conflict {
	const char *destination; /* "198.51.100.1:80/tcp", "NodePort 30080/tcp" */
	const char *service;     /* "namespace/name" of the one that has to wait */
	const char *owner;
};

/* The kernel does not take what a Service asks for, which is therefore left out. */
struct backend_refusal {
	const char *service; /* "namespace/name" */
	const char *port;    /* "namespace/name:port" */
	const char *reason;
};

struct backend_events {
	/* A sync is over. The backend may be told to sync again from inside. */
	void (*synced)(void *arg, const struct backend_result *result);
	/*
	 * Somebody else removed or changed our rules, what says which: a full sync is wanted (and has been
	 * noted).
	 */
	void (*flushed)(void *arg, const char *what);
	void *arg;
	/*
	 * What somebody else had changed, which the backend has logged, is right again: without a sync, or by
	 * one that met it on its way. NULL: nobody asks.
	 */
	void (*repaired)(void *arg);
	/*
	 * The answer to check(): 1, the rules that all hangs on are there; 0, err says what is wrong, and
	 * that is being repaired; negative: it could not be found out.
	 */
	void (*checked)(void *arg, int r, const struct err *err);
	/* A Service waits for what another one owns; told once, and again after it had it. */
	void (*conflict)(void *arg, const struct backend_conflict *conflict);
	/* A Service is left out; told once, and again after it was there. */
	void (*refused)(void *arg, const struct backend_refusal *refusal);
	/* A sync is wanted although nothing has changed. */
	void (*wanted)(void *arg);
};

struct backend_ops {
	const char *name; /* "iptables": what --proxy-mode calls it */

	/*
	 * Can this host do it for the family? 1, 0 (with the reason in *err), or an error. The
	 * variant, here and below, is for those that iptables has.
	 */
	int (*usable)(enum family family, enum iptables_variant variant, struct err *err);
	/*
	 * Finds out what the host offers and sets the sysctls that the rules rely on; writes no rule.
	 * settings and events are borrowed until close.
	 */
	int (*open)(struct event_base *loop, const struct settings *settings,
		    const struct backend_events *events, struct backend **ret, struct err *err);
	void (*close)(struct backend *backend); /* accepts NULL; ends a running sync; rules stay */

	/* Starts a sync, which ends with events->synced (perhaps before this returns). Not while one runs. */
	void (*sync)(struct backend *backend, struct model *model);
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

	/* Removes everything that a proxy of this kind left in the family, nothing else. */
	int (*cleanup)(enum family family, enum iptables_variant variant, struct err *err);
};

extern const struct backend_ops backend_iptables;
extern const struct backend_ops backend_nftables;

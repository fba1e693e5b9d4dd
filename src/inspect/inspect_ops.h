/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Questions about the rules of one mode: the part of a mode (backends/backend.h) that explain, trace and diff ask.
 * Rules are opaque outside of it.
 */

#include "inspect/diff.h"
#include "inspect/explain.h"
#include "plan/plan_store.h"

struct backend_host;

/* All borrowed. */
struct inspect_question {
	const struct settings *settings;
	const struct plan_delta *delta;          /* a full one */
	const struct host *host;                 /* this node's addresses of the family */
	const struct backend_host *backend_host; /* of the mode; NULL: nothing is shared */
	const struct packet *packet;             /* NULL: all rules */
};

struct inspect_ops {
	/*
	 * The rules that a first, full sync would write, for packets to walk. delta: a full one, good until this
	 * returns.
	 */
	void *(*rules_new)(const struct explain_input *input, const struct plan_delta *delta);
	void (*rules_free)(void *rules); /* accepts NULL */
	struct packet_path *(*walk)(void *rules, const struct packet *packet,
				    const struct host *host);

	/*
	 * Appends what differs between the wanted rules and the kernel's; with a packet, only of what it meets. An
	 * error: the kernel's rules cannot be read.
	 */
	int (*diff)(struct diff *diff, const struct inspect_question *question, struct err *err);

	/* Does the daemon itself take connections to a NodePort there, and carry them to an endpoint? NULL: it does not. */
	bool (*carries)(const struct settings *settings, const struct packet *packet);

	/* Can the kernel tell of packets that meet these rules? 1, or 0 with the reason. NULL: it can. */
	int (*traceable)(const struct backend_host *host, struct err *err);
	/* Of a step of a real packet: would a plan have it too? */
	bool (*is_ours)(void *rules, const struct step *step);
	/* Of a planned step: is its element the same in every process? NULL: it has none. */
	bool (*is_certain)(const struct step *planned);
};

extern const struct inspect_ops inspect_iptables;
extern const struct inspect_ops inspect_nftables;

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What becomes of a connection, and why: the rules of one family are walked (packet_path.h), and the plan
 * says the rest: which endpoints are left out, which policies apply.
 *
 *	struct explain *explain = explain_new(&input);
 *	struct explanation *found = explain_packet(explain, &packet);
 *	explanation_human(found, ...); explanation_doc(found, ...);
 *
 * Everything about where a packet goes is read from rules that a backend wrote; nothing here decides
 * it a second time.
 */

#include "inspect/packet_path.h"
#include "inspect/printer.h"
#include "model/model.h"
#include "plan/plan.h"

struct backend_ops;
struct explain;

/* All borrowed for the life of the explain. */
struct explain_input {
	const struct backend_ops *backend; /* the mode */
	const struct settings *settings;
	struct model *model;
	struct host host; /* this node's addresses of the family */
	bool live; /* with what this node's kernel has chosen, such as ids, where the mode has that */
};

/*
 * Makes the rules that a first, full sync would write. Takes the family's pending changes out of the
 * model (plan_once_take()).
 */
struct explain *explain_new(const struct explain_input *input);
struct explain *explain_free(struct explain *explain); /* accepts NULL, returns NULL */
void *explain_rules(struct explain *explain);          /* the mode's own, inspect_ops.h */
const struct explain_input *explain_input(const struct explain *explain);

/* Which of a Service's addresses a destination is. */
enum entry {
	ENTRY_NONE = 0,
	ENTRY_CLUSTER_IP,
	ENTRY_EXTERNAL_IP,
	ENTRY_LOAD_BALANCER_IP,
	ENTRY_NODE_PORT,
	ENTRY_COUNT,
};

const char *entry_name(enum entry entry);  /* "none", "clusterIP", ... */
const char *entry_words(enum entry entry); /* "cluster IP", ... */

enum left_out_reason {
	LEFT_OUT_NOT_READY = 0,
	LEFT_OUT_TERMINATING,
	LEFT_OUT_OTHER_ZONE,
	LEFT_OUT_OTHER_NODE, /* its hints name other nodes */
	LEFT_OUT_NOT_LOCAL,  /* the policy is Local, and it is not on this node */
	LEFT_OUT_OTHER_FAMILY,
	LEFT_OUT_COUNT,
};

const char *left_out_name(enum left_out_reason reason);  /* "notReady", ... */
const char *left_out_words(enum left_out_reason reason); /* "not ready", ... */

struct left_out {
	struct addr addr;
	uint16_t port;
	enum left_out_reason reason;
};

/* How the kernel's rules compare with the planned ones. */
enum kernel_state {
	KERNEL_NOT_COMPARED = 0,
	KERNEL_SAME,
	KERNEL_DIFFERS,
	KERNEL_STATE_COUNT,
};

const char *kernel_state_name(enum kernel_state state); /* "notCompared", "same", "differs" */

struct explanation {
	const struct explain_input *input;
	struct packet_path *path;

	/* the Service that the rules met belong to; NULL: none */
	struct service_plan *plan;
	const struct port_plan *port; /* of the plan; NULL: not known which */
	enum entry entry;

	struct left_out *left_out;
	size_t n_left_out;

	enum kernel_state kernel;
	char **kernel_notes; /* differences that are at no step, and what else is in the way */
	size_t n_kernel_notes, kernel_notes_capacity;

	char *summary; /* one or two sentences */
};

struct explanation *explain_packet(struct explain *explain, const struct packet *packet);
struct explanation *explanation_free(struct explanation *explanation); /* accepts NULL */
DEFINE_CLEANUP(explanation)
#define cleanup_explanation attr_cleanup(explanation_cleanup)

/* Do all outcomes end at a backend? */
bool explanation_reaches(const struct explanation *explanation);
/* The end that all outcomes share, or that of the worst of them. */
enum packet_verdict explanation_verdict(const struct explanation *explanation);

/* -- printing */

struct text;
struct doc;

void explanation_human(const struct explanation *explanation, const struct human_style *style,
		       struct text *ret);
/* One map; portolan.8 has its members. */
void explanation_doc(const struct explanation *explanation, struct doc *doc, const char *key);

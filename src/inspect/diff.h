/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What is wanted against what the kernel has, as hunks of a unified diff:
 *
 *	struct diff diff = {0};
 *	diff_iptables(&diff, ...);            or diff_nftables()
 *	diff_human(&diff, colour, &text);     or diff_doc()
 *
 * "-" is a line that is wanted and not there, "+" one that is there and not wanted. A hunk belongs to
 * one chain, map or set, and to one Service at most. Where the order of lines means something they
 * are compared in order, and a hunk has some unchanged lines around; where it means nothing (entries
 * of a chain that all Services share, elements) lines are only looked for, and no others are shown.
 *
 * Lines have numbers: those that `iptables -L --line-numbers` has for rules, or the place among the
 * sorted elements. The declaration of a chain, map or set is line 0.
 */

#include "base/addr.h"
#include "base/text.h"

enum diff_side {
	DIFF_WANTED = 0,
	DIFF_KERNEL,
	DIFF_SIDES,
};

/* Where a line is; all borrowed, and copied where it is kept. */
struct diff_place {
	enum family family;
	const char *table; /* "nat", "kube-proxy" */
	const char *kind;  /* "chain", "map", "set" */
	const char *name;
};

struct diff_line {
	char sign; /* ' ', '-' or '+' */
	char *text;
};

struct diff_hunk {
	struct diff_place place; /* its strings are the hunk's own */
	char *service;           /* "namespace/name"; NULL: none, or not known */
	size_t first[DIFF_SIDES], n[DIFF_SIDES];
	struct diff_line *v;
	size_t n_lines, capacity;
};

/*
 * A rule of another program that the packet in question comes to before ours: no difference from what is
 * wanted, but what is wanted may not come to pass.
 */
struct diff_obstacle {
	char *chain; /* with its table: "nat PREROUTING" */
	char *text;
	bool ends; /* a packet that matches it does not come to ours */
};

struct diff {
	struct diff_hunk *v;
	size_t n, capacity;
	struct diff_obstacle *obstacles; /* only where a packet is in question */
	size_t n_obstacles, obstacles_capacity;
};

void diff_done(struct diff *diff);
#define cleanup_diff attr_cleanup(diff_done)
/* Appends all of another, which is empty then. */
void diff_move(struct diff *diff, struct diff *from);

/* -- making hunks */

/* A line of one side, borrowed. */
struct diff_text {
	const char *key;     /* what is compared */
	const char *text;    /* what is shown */
	const char *service; /* as in a hunk; NULL: none */
	/* where the order means nothing: */
	bool foreign; /* of the kernel's: no difference if it is not wanted */
	bool last;    /* of the wanted: it must stand at the end all the same */
	bool unmet;   /* of the wanted: no packet in question met it, so that it may be missing */
};

struct diff_texts {
	struct diff_text *v;
	size_t n, capacity;
};

/* For the caller to add flags to. */
struct diff_text *diff_texts_add(struct diff_texts *texts, const char *key, const char *text,
				 const char *service);
void diff_texts_done(struct diff_texts *texts);
#define cleanup_diff_texts attr_cleanup(diff_texts_done)

/*
 * One line, where it stands or would stand on each side. It goes on in the hunk before if it comes
 * next there and belongs to the same Service.
 */
void diff_put(struct diff *diff, const struct diff_place *place, char sign,
	      const size_t at[DIFF_SIDES], const char *text, const char *service);
/* Line by line, in order, from line 1 on. */
void diff_ordered(struct diff *diff, const struct diff_place *place,
		  const struct diff_texts *wanted, const struct diff_texts *kernel);
/* In any order, those of the kernel from line 1 on. */
void diff_unordered(struct diff *diff, const struct diff_place *place,
		    const struct diff_texts *wanted, const struct diff_texts *kernel);

void diff_put_obstacle(struct diff *diff, const char *table, const char *chain, const char *text,
		       bool ends);

/* -- printing */

struct doc;

void diff_human(const struct diff *diff, bool colour, struct text *ret);
/* The list "differences" of a map that is open. */
void diff_doc(const struct diff *diff, struct doc *doc);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The chains with a number that the table has, and how many elements and chains lead to each.
 *
 * Sizes up to PICK_CHAINS_AT_START are there from the start: a rule that is bound to a map makes the
 * kernel walk all of the map, so it is best done while the maps are empty. Others are made when an
 * element first names them. When nothing names one any more it stays for a while, because a group
 * that shrank often grows again: it is taken away once it has been without use for two rounds of
 * pick_chains_age().
 */

#include "backends/nftables/writer.h"
#include "plan/settings.h"

#define PICK_CHAINS_AT_START 16

struct pick_chain {
	struct chain chain;
	size_t uses;
	bool written; /* the kernel has it */
	bool aged;    /* without use when the last round came */
};

struct pick_chains {
	struct pick_chain *v; /* in the order in which they can be written */
	size_t n, capacity;
};

void pick_chains_done(struct pick_chains *chains);
/* None is there but those of the start, of which none is written yet. */
void pick_chains_begin(struct pick_chains *chains);
/* An element that comes or goes; one that names no such chain does not count. */
void pick_chains_count(struct pick_chains *chains, const struct element *element, bool up);
/* Those that were counted and are not there yet; once they are, pick_chains_settle(). */
void pick_chains_write(struct pick_chains *chains, struct writer *writer,
		       const struct settings *settings);
void pick_chains_settle(struct pick_chains *chains);
bool pick_chains_has(const struct pick_chains *chains, const char *name);

bool pick_chains_idle(const struct pick_chains *chains); /* is there one without use? */
/* A round: calls remove() for each that is to go, who leads to others first, and forgets it. */
typedef void pick_chains_remove_fn(void *arg, struct chain chain);
void pick_chains_age(struct pick_chains *chains, pick_chains_remove_fn *remove, void *arg);

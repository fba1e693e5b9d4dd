/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The chains with a number that the table has, and how many elements and chains lead to each.
 *
 * Sizes up to NUMBERED_AT_START are there from the start: a rule that is bound to a map makes the
 * kernel walk all of the map, so it is best done while the maps are empty. Others are made when an
 * element first names them. When nothing names one any more it stays for a while, because a group
 * that shrank often grows again: it is taken away once it has been without use for two rounds of
 * numbered_age().
 */

#include "backends/nftables/writer.h"
#include "plan/settings.h"

#define NUMBERED_AT_START 16

struct numbered_chain {
	struct chain chain;
	size_t uses;
	bool written; /* the kernel has it */
	bool aged;    /* without use when the last round came */
};

struct numbered {
	struct numbered_chain *v; /* in the order in which they can be written */
	size_t n, capacity;
};

void numbered_done(struct numbered *numbered);
/* None is there but those of the start, of which none is written yet. */
void numbered_begin(struct numbered *numbered);
/* An element that comes or goes; one that names no such chain does not count. */
void numbered_count(struct numbered *numbered, const struct element *element, bool up);
/* Those that were counted and are not there yet; once they are, numbered_settle(). */
void numbered_write(struct numbered *numbered, struct writer *writer,
		    const struct settings *settings);
void numbered_settle(struct numbered *numbered);
bool numbered_has(const struct numbered *numbered, const char *name);

bool numbered_idle(const struct numbered *numbered); /* is there one without use? */
/* A round: calls remove() for each that is to go, who leads to others first, and forgets it. */
typedef void numbered_remove_fn(void *arg, struct chain chain);
void numbered_age(struct numbered *numbered, numbered_remove_fn *remove, void *arg);

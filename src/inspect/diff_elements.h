/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Elements of one set or map, as the kernel lists them, against those that are wanted:
 *
 *	diff_elements_init(&kernel, family, container);
 *	nft_dump(..., {diff_elements_restart, diff_elements_take}, &kernel);
 *	diff_elements_compare(&diff, &place, wanted, &kernel);
 *	diff_elements_done(&kernel);
 *
 * Endpoints of a destination may have its slots in any order: those that are missing are said to be
 * in the slots that are free.
 */

#include "backends/nftables/element.h"
#include "base/err.h"
#include "inspect/diff.h"
#include "inspect/nftables_rules.h"

struct nlmsghdr;

/* An element of the kernel's. */
struct diff_element {
	struct element element; /* as it was read (element_read.h) */
	const char *
		raw; /* the whole of it in words, if something is not as we would have it; NULL: nothing is */
};

struct diff_elements {
	enum family family;
	enum container container;
	struct diff_element *v;
	size_t n, capacity;
	struct arena *arena; /* of comments and words */
};

void diff_elements_init(struct diff_elements *elements, enum family family,
			enum container container);
void diff_elements_done(struct diff_elements *elements);
/* As nft_dump_ops; arg: the elements. */
void diff_elements_restart(void *arg);
int diff_elements_take(void *arg, const struct nlmsghdr *message, struct err *err);
/* Of all, or of those that the last packet asked for (nftables_rules.h). Sorts the kernel's. */
void diff_elements_compare(struct diff *diff, const struct diff_place *place,
			   struct nftables_rules *wanted, struct diff_elements *kernel);

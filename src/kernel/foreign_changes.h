/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What others did to rules of ours, in words for the log, until it is told:
 *
 *	element of map service-ips deleted, rule of chain services added (3 times), and 7 more
 *
 * The same change is noted once, with a count. Of different ones the first few are kept and the rest are
 * counted, so that no other program can make it grow. All of it is zero at first, and again to forget it.
 */

#include "base/util.h"

struct nlmsghdr;

#define FOREIGN_CHANGES_MAX 6

struct foreign_change {
	char words[320]; /* names in nf_tables have 255 bytes at most */
	size_t n;        /* times */
};

struct foreign_changes {
	struct foreign_change v[FOREIGN_CHANGES_MAX];
	size_t n;
	size_t n_more; /* of others, which have no words */
};

/* A notification. One that is of no known kind is counted among the rest. */
void foreign_changes_take(struct foreign_changes *foreign_changes, const struct nlmsghdr *message);
/* The words are copied, and cut when they are too long. */
void foreign_changes_add(struct foreign_changes *foreign_changes, const char *words, size_t n);
/* Adds all of `from`, which is empty afterwards. */
void foreign_changes_merge(struct foreign_changes *foreign_changes, struct foreign_changes *from);
char *foreign_changes_text(
	const struct foreign_changes *foreign_changes); /* owned by the caller; "" for none */

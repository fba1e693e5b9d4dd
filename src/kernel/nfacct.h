/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Named counters of netfilter (nfnetlink_acct), which rules refer to with "-m nfacct". Each call is
 * one question over a socket of its own, answered by the kernel at once.
 */

#include "base/err.h"

#define NFACCT_NAME_LENGTH 31 /* without NUL */

struct nlmsghdr;

struct nfacct_counter {
	char name[NFACCT_NAME_LENGTH + 1];
	uint64_t packets;
	uint64_t bytes;
};

/* Does the kernel know them? 1 or 0. */
int nfacct_supported(void);
/* -EEXIST when it is there. */
int nfacct_add(const char *name, struct err *err);
int nfacct_get(const char *name, struct nfacct_counter *ret, struct err *err); /* -ENOENT: none */
/* Creates it when it is missing. 1 when it did, 0 when it was there. */
int nfacct_ensure(const char *name, struct err *err);
/* All of them: an array for the caller to free, NULL when there are none. */
int nfacct_list(struct nfacct_counter **ret, size_t *ret_n, struct err *err);

/* A message of the kernel; unknown attributes are skipped, a missing one is -EBADMSG. */
int nfacct_decode(const struct nlmsghdr *message, struct nfacct_counter *ret, struct err *err);

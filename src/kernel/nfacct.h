/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Named counters of netfilter (nfnetlink_acct), which rules refer to with "-m nfacct". Each call is
 * one question, answered by the kernel at once. line: see nfnetlink_ask().
 */

#include "base/err.h"

#define NFACCT_NAME_LENGTH 31 /* without NUL */

struct nfnetlink_conn;
struct nlmsghdr;

struct nfacct_counter {
	char name[NFACCT_NAME_LENGTH + 1];
	uint64_t packets;
	uint64_t bytes;
};

/* Does the kernel know them? 1 or 0. */
int nfacct_supported(void);
/* -EEXIST when it is there. */
int nfacct_add(struct nfnetlink_conn *line, const char *name, struct err *err);
/* -ENOENT: there is none. */
int nfacct_get(struct nfnetlink_conn *line, const char *name, struct nfacct_counter *ret,
	       struct err *err);
/* Creates it when it is missing. 1 when it did, 0 when it was there. */
int nfacct_ensure(struct nfnetlink_conn *line, const char *name, struct err *err);

/* A message of the kernel; unknown attributes are skipped, a missing one is -EBADMSG. */
int nfacct_decode(const struct nlmsghdr *message, struct nfacct_counter *ret, struct err *err);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The two locks by which iptables programs keep out of each other's way: a file (from 1.6 on) and
 * an abstract socket (before). Only for an iptables-restore that takes none itself; which kind the
 * other programs of such a host use is not known, so both are taken, the file first.
 */

#include "base/err.h"

#define XTABLES_LOCK_FILE   "/run/xtables.lock"
#define XTABLES_LOCK_SOCKET "xtables" /* in the abstract namespace: "@xtables" */

struct xtables_lock {
	int file; /* -1: not held */
	int socket;
};

/*
 * Takes what is not yet held, without waiting. 0: both are held. -EAGAIN: another program has the one
 * that is named in err; what was got is kept for the next try.
 */
int xtables_lock_try(struct xtables_lock *lock, const char *file, const char *socket_name,
		     struct err *err);
void xtables_lock_release(struct xtables_lock *lock);

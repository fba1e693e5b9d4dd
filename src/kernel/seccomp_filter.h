/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Filters of system calls, for the calling process with all its threads and for whatever it starts,
 * for good. Each needs no_new_privs.
 *
 * A refused call fails with EPERM, and the kernel's audit log has a line with its number. One that
 * the C library knows how to do without, and one that is newer than the tables, fails with ENOSYS; the
 * former is not logged.
 */

#include "base/err.h"

/*
 * For the daemon: what it and its libraries do. It can read files, speak over sockets of IP and netlink,
 * start threads and copies of itself. It cannot start a program, make a file or a namespace, or reach
 * into another process.
 */
struct seccomp_filter_choice {
	bool log_only;      /* nothing is refused, what would be is in the audit log */
	bool writes;        /* existing files may be opened for writing */
	bool local_sockets; /* sockets of AF_UNIX may be opened */
};
int seccomp_filter_daemon(const struct seccomp_filter_choice *choice, struct err *err);

/* For programs of others: all but what changes the machine or reaches into other processes. */
int seccomp_filter_programs(struct err *err);

/* For a program that has no business starting others. */
int seccomp_filter_no_children(struct err *err);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How many files this process may have open at once: RLIMIT_NOFILE, as `ulimit -n` shows it.
 *
 * The soft limit is 1,024 for the sake of programs that use select(), and every program that does not may
 * raise it to the hard one. Programs that we start get back what we were started with.
 */

#include "base/util.h"

/* Raises the soft limit to the hard one; returns the one in force. */
size_t open_files_raise(void);
size_t open_files_limit(void); /* the one in force */
/* In a child, before exec: the limit that open_files_raise() found. Makes one system call at most. */
void open_files_restore(void);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Out of memory: the one place where that ends the process. It says in one line of the log what was
 * asked for and where, allocates nothing itself and leaves with status 1: no core is dumped, and
 * rules stay as they are, as with every other end.
 *
 *	if (!thing_of_a_library())
 *		oom("a thing of the library", 0);
 *
 * Our own allocators (util.h) come here by themselves, and so do libevent and OpenSSL after
 * oom_watch_libraries(), and nghttp2 by the functions that it is given. protobuf-c allocates from an arena; libyaml tells of it.
 */

#include <stddef.h>

/* bytes: 0 when they are not known. errno goes into the line where it says more than ENOMEM. */
#define oom(what, bytes) oom_end((what), (bytes), __FILE__, __LINE__)

_Noreturn void oom_end(const char *what, size_t bytes, const char *file, int line);
/* What an allocation of so many bytes gave, unless it gave nothing: then as oom_end(). */
void *oom_check(void *p, const char *what, size_t bytes, const char *file, int line);

/* Before any of them allocates: first in main(). */
void oom_watch_libraries(void);

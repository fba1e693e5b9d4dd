/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Landlock: files stay readable, and of what there is only some may be written. No file is made,
 * removed, renamed or executed. It holds for the calling thread and those that it starts, for good.
 */

#include "base/err.h"

/*
 * writable: folders or files below which existing files may be written; those that are not there are
 * left out. NULL-terminated. Needs no_new_privs. Returns the kernel's version of landlock, 0 when it
 * has none.
 */
int landlock_enter(const char *const *writable, struct err *err);

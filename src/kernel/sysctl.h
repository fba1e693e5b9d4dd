/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Kernel settings under /proc/sys, named as kube-proxy's messages do, with slashes:
 * "net/ipv4/conf/all/route_localnet". They are those of the process's network namespace.
 */

#include "base/err.h"

int sysctl_read(const char *name, int64_t *ret, struct err *err);
int sysctl_write(const char *name, int64_t value, struct err *err);
/* The same with a file of one number, wherever it is: 0 or a negative errno. */
int sysctl_read_file(const char *path, int64_t *ret);
int sysctl_write_file(const char *path, int64_t value);
/* Writes only when the value differs. 1 when it wrote, 0 when there was nothing to do. */
int sysctl_ensure(const char *name, int64_t value, struct err *err);

/* Does /proc/NAME exist? */
bool sysctl_proc_exists(const char *name);
/* Has this network namespace IPv6? If not, *err says why. */
bool sysctl_has_ipv6(struct err *err);
/* Another folder in place of /proc, for tests; NULL: /proc again. Borrowed. */
void sysctl_set_proc(const char *path);

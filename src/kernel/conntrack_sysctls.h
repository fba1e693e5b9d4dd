/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How many connections the kernel tracks and how long it remembers them. The first error ends it, as
 * in kube-proxy: a proxy that runs with less room than asked for would drop connections silently.
 */

#include "base/err.h"

struct conntrack_limits {
	int64_t max; /* connections; 0: left alone, as all below */
	int64_t tcp_established_s;
	int64_t tcp_close_wait_s;
	bool tcp_be_liberal;
	int64_t udp_s;
	int64_t udp_stream_s;
};

#define CONNTRACK_MAX_CEILING 1048576 /* of what follows from the number of cores */

/* per_core times cores, at least `least`, at most the ceiling; 0 when per_core is. */
int64_t conntrack_sysctls_max(int64_t per_core, int64_t least, int64_t cores);
/* Writes what differs. A larger table also gets more buckets: a quarter of it, at least. */
int conntrack_sysctls_set(const struct conntrack_limits *limits, struct err *err);
/* Another file for the number of buckets, for tests; NULL: the kernel's again. Borrowed. */
void conntrack_sysctls_set_file(const char *path);

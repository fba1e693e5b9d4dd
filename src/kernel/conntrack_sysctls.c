/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/conntrack_sysctls.h"

#include <errno.h>

#include "kernel/sysctl.h"

#define BUCKETS_FILE           "/sys/module/nf_conntrack/parameters/hashsize"
#define BUCKETS_SYSCTL         "net/netfilter/nf_conntrack_buckets"
#define CONNECTIONS_PER_BUCKET 4

static const char *buckets_file = BUCKETS_FILE;

void conntrack_sysctls_set_file(const char *path)
{
	buckets_file = path ? path : BUCKETS_FILE;
}

int64_t conntrack_sysctls_max(int64_t per_core, int64_t least, int64_t cores)
{
	int64_t max = per_core * cores;

	if (per_core <= 0)
		return 0;
	return max > CONNTRACK_MAX_CEILING ? CONNTRACK_MAX_CEILING : MAX(max, least);
}

static int ensure_buckets(int64_t max, struct err *err)
{
	int64_t wanted = max / CONNECTIONS_PER_BUCKET;
	int64_t now = 0;
	int r = sysctl_read_file(buckets_file, &now);

	if (r == -EACCES) { /* only root can read the file; all can read the sysctl */
		r = sysctl_read(BUCKETS_SYSCTL, &now, err);
		if (r < 0)
			return r;
	}
	if (r < 0)
		return err_sys(err, r, "reading %s", buckets_file);
	if (now >= wanted)
		return 0;
	r = sysctl_write_file(buckets_file, wanted);
	return r < 0 ? err_sys(err, r, "setting %s to %lld", buckets_file, (long long)wanted) : 0;
}

int conntrack_sysctls_set(const struct conntrack_limits *limits, struct err *err)
{
	const struct {
		const char *name;
		int64_t value;
	} all[] = {
		{"net/netfilter/nf_conntrack_max", limits->max},
		{"net/netfilter/nf_conntrack_tcp_timeout_established", limits->tcp_established_s},
		{"net/netfilter/nf_conntrack_tcp_timeout_close_wait", limits->tcp_close_wait_s},
		{"net/netfilter/nf_conntrack_tcp_be_liberal", limits->tcp_be_liberal},
		{"net/netfilter/nf_conntrack_udp_timeout", limits->udp_s},
		{"net/netfilter/nf_conntrack_udp_timeout_stream", limits->udp_stream_s},
	};
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(all) && r >= 0; i++) {
		if (all[i].value > 0)
			r = sysctl_ensure(all[i].name, all[i].value, err);
		if (r >= 0 && i == 0 && limits->max > 0)
			r = ensure_buckets(limits->max, err);
	}
	return MIN(r, 0);
}

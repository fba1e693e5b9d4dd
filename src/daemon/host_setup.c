/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/host_setup.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "config/config.h"
#include "config/kubeproxy_config.h"
#include "config/kubeproxy_fields.h"
#include "kernel/conntrack_sysctls.h"
#include "kernel/open_files.h"
#include "kernel/sysctl.h"

#define OOM_FILE "/proc/self/oom_score_adj"
#define OPEN_FILES \
	65536 /* are enough: 10,000 health check ports in both families, and connections to them */

static int64_t whole_seconds(const char *duration)
{
	return kubeproxy_duration(duration) / CLOCK_NS_PER_SECOND;
}

int host_setup_conntrack(const struct config *config, struct err *err)
{
	const Kubeproxy__Conntrack *conntrack = config->effective->message->conntrack;
	const struct conntrack_limits limits = {
		.max = conntrack_sysctls_max(conntrack->maxpercore, conntrack->min,
					     sysconf(_SC_NPROCESSORS_ONLN)),
		.tcp_established_s = whole_seconds(conntrack->tcpestablishedtimeout),
		.tcp_close_wait_s = whole_seconds(conntrack->tcpclosewaittimeout),
		.tcp_be_liberal = conntrack->tcpbeliberal,
		.udp_s = whole_seconds(conntrack->udptimeout),
		.udp_stream_s = whole_seconds(conntrack->udpstreamtimeout),
	};
	int r = conntrack_sysctls_set(&limits, err);

	return r < 0 ? err_wrap(err, r,
				"connection tracking (where its limit cannot be set, as in a "
				"container: --conntrack-max-per-core=0)")
		     : 0;
}

void host_setup_oom_score(const struct config *config)
{
	int32_t score = config->effective->message->oomscoreadj;
	int r = sysctl_write_file(OOM_FILE, score);

	if (r < 0)
		log_debug(2, "The OOM score could not be set", KV("value", LOG_INT(score)),
			  KV("err", LOG_STR(strerrordesc_np(-r))));
}

size_t host_setup_open_files(void)
{
	size_t limit = open_files_raise();

	if (limit < OPEN_FILES)
		log_warning("Few file descriptors: health check ports of Services and connections "
			    "may run short, set LimitNOFILE= or ulimit -n to 65536",
			    KV("limit", LOG_INT(limit)));
	return limit;
}

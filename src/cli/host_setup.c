/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/host_setup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "cli/config.h"
#include "cli/kubeproxy_config.h"
#include "cli/kubeproxy_fields.h"
#include "kernel/conntrack_sysctls.h"

#define OOM_FILE "/proc/self/oom_score_adj"

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
	cleanup_fd int fd = open(OOM_FILE, O_WRONLY | O_CLOEXEC);
	char text[16];
	int n = snprintf(text, sizeof(text), "%d", config->effective->message->oomscoreadj);

	if (fd < 0 || write(fd, text, (size_t)n) != n)
		log_debug(2, "The OOM score could not be set", KV("value", LOG_STR(text)),
			  KV("err", LOG_STR(strerror(errno)))); /* NOLINT(concurrency-mt-unsafe) */
}

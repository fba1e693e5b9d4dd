/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A node for tests of the backend of nftables mode: a network namespace of its own, a model, and what the backend told.
 *
 *	struct node_host host;
 *	host_init(&host);
 *	build_...; model_set_...(host.world.model, ...);
 *	host_watch(&host);
 *	host_run("nft flush map ip kube-proxy service-ips");
 *	host_sync(&host);
 *	host_done(&host);
 */

#include <errno.h>
#include <event2/event.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backends/modes.h"
#include "base/log.h"
#include "plan_feed.h"
#include "plan_world.h"

struct node_host {
	struct world world;
	struct plan_feed feed;
	struct event_base *loop;
	struct backend *backend;
	struct backend_events events;
	struct backend_result result;
	size_t n_flushed, n_repaired;
	char what[1024]; /* of the last flush */
	int log;
};

static void host_on_synced(void *arg, const struct backend_result *result)
{
	struct node_host *host = arg;

	host->result = *result;
	plan_feed_end(&host->feed, result->error == 0);
}

static void host_on_flushed(void *arg, const char *what)
{
	struct node_host *host = arg;

	host->n_flushed++;
	snprintf(host->what, sizeof(host->what), "%s", what);
}

static void host_on_repaired(void *arg)
{
	struct node_host *host = arg;

	host->n_repaired++;
}

attr_unused static void host_sync(struct node_host *host)
{
	backend_nftables.sync(host->backend, plan_feed_next(&host->feed));
	while (backend_nftables.syncing(host->backend))
		event_base_loop(host->loop, EVLOOP_ONCE);
	if (host->result.error < 0)
		fail_msg("%s", host->result.err.text);
}

attr_unused static void host_run(const char *command)
{
	if (system(command) != 0)
		fail_msg("%s failed", command);
}

attr_unused static void host_init(struct node_host *host)
{
	struct err err;

	if (unshare(CLONE_NEWNET) < 0)
		fail_msg("no private network namespace: %s", strerror(errno));
	*host = (struct node_host){.world = world_new(), .log = memfd_create("log", 0)};
	host->world.settings.masquerade_mark = 0x4000;
	host->world.settings.node_ports.match_all = true;
	host->events = (struct backend_events){
		.synced = host_on_synced,
		.flushed = host_on_flushed,
		.repaired = host_on_repaired,
		.arg = host,
	};
	host->loop = event_base_new();
	plan_feed_open(&host->feed, &host->world.settings, host->world.model);
	if (backend_nftables.open(host->loop, NULL, &host->world.settings, &host->events,
				  &host->backend, &err) < 0)
		fail_msg("%s", err.text);
}

/* The first sync, and an ear for others. */
attr_unused static void host_watch(struct node_host *host)
{
	host_sync(host);
	backend_nftables.watch(host->backend);
	log_set_fd(host->log);
}

attr_unused static void host_done(struct node_host *host)
{
	log_set_fd(STDERR_FILENO);
	close(host->log);
	backend_nftables.close(host->backend);
	plan_feed_close(&host->feed);
	world_done(&host->world);
	event_base_free(host->loop);
}

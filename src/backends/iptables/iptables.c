/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "backends/backend.h"
#include "backends/iptables/canary.h"
#include "backends/iptables/chains.h"
#include "backends/iptables/cleanup.h"
#include "backends/iptables/nft_sync.h"
#include "backends/iptables/rules_check.h"
#include "backends/iptables/ruleset.h"
#include "backends/iptables/sync.h"
#include "base/log.h"
#include "kernel/iptables_tool.h"
#include "kernel/nfacct.h"
#include "kernel/nft_compat.h"
#include "kernel/sysctl.h"

/*
 * The iptables backend: rules (ruleset.h) and one of two ways to bring them to the kernel, programs
 * (iptables_tool.h) and the steps between (sync.h), or netlink (nft_sync.h).
 */

#define SYSCTL_ROUTE_LOCALNET "net/ipv4/conf/all/route_localnet"
#define SYSCTL_BE_LIBERAL     "net/netfilter/nf_conntrack_tcp_be_liberal"

struct backend {
	struct event_base *loop;
	const struct settings *settings;
	const struct backend_events *events;
	struct ruleset_host host;
	struct iptables_tool *tool;
	struct ruleset *ruleset;
	struct sync *sync;         /* NULL: over netlink */
	struct nft_sync *nft_sync; /* NULL: with iptables-restore */
	struct canary *canary;     /* NULL: not watching */
	struct rules_check *check; /* NULL: nobody has asked yet */
	bool synced;               /* well, at least once */
	bool watch_wanted;
};

/* -- can this host do it? */

static int usable(enum family family, enum iptables_variant variant, struct err *err)
{
	static const struct iptables_command list = {
		.op = IPTABLES_LIST,
		.table = "nat",
		.chain = "POSTROUTING",
	};
	struct iptables_tool *tool;
	int r;

	if (family == FAMILY_IPV6 && !sysctl_has_ipv6(err))
		return 0;
	r = iptables_tool_open(NULL, family, variant, &tool, err);
	if (r < 0)
		return 0;
	r = iptables_tool_call(tool, &list, err);
	iptables_tool_close(tool);
	return r >= 0;
}

/* -- open and close */

static void on_synced(void *arg, const struct backend_result *result);

static int set_up_host(struct backend *backend, struct err *err)
{
	struct err ignored;
	int64_t be_liberal;
	int r = 0;

	if (settings_localhost_node_ports(backend->settings))
		r = sysctl_ensure(SYSCTL_ROUTE_LOCALNET, 1, err);
	if (r < 0)
		return err_wrap(err, r,
				"NodePorts on localhost (without them: "
				"--iptables-localhost-nodeports=false)");
	if (r == 1)
		log_debug(1, "Node ports on localhost: route_localnet is set");
	if (sysctl_read(SYSCTL_BE_LIBERAL, &be_liberal, &ignored) >= 0)
		backend->host.be_liberal = be_liberal != 0;
	r = iptables_tool_open(backend->loop, backend->settings->family,
			       backend->settings->iptables_variant, &backend->tool, err);
	if (r < 0)
		return r;
	backend->host.random_fully = iptables_tool_features(backend->tool)->random_fully;
	return 0;
}

static void backend_close(struct backend *backend)
{
	if (!backend)
		return;
	canary_free(backend->canary);
	rules_check_free(backend->check);
	sync_free(backend->sync);
	nft_sync_free(backend->nft_sync);
	iptables_tool_close(backend->tool);
	ruleset_free(backend->ruleset);
	free(backend);
}

/* Over netlink? 1 or 0; -EINVAL when that was asked for and cannot be. */
static int choose_netlink(const struct settings *settings, struct err *err)
{
	enum iptables_writer writer = settings->iptables_writer;
	bool possible = false;
	struct err reason;

	if (writer == IPTABLES_WRITER_RESTORE)
		err_set(&reason, -EINVAL, "--iptables-writer says so");
	else if (settings->iptables_variant != IPTABLES_VARIANT_NFT)
		err_set(&reason, -EINVAL, "the node uses the legacy variant of iptables");
	else
		possible = nft_compat_supported(settings->family, &reason) == 1;
	if (writer == IPTABLES_WRITER_NETLINK && !possible)
		return err_set(err, -EINVAL, "--iptables-writer=netlink: %s", reason.text);
	log_info(possible ? "Rules are written over netlink"
			  : "Rules are written by iptables-restore",
		 KV("ipFamily", LOG_STR(family_name(settings->family))),
		 KV("reason", LOG_STR(possible ? "the variant is nft and the kernel has nft_compat"
					       : reason.text)));
	return possible;
}

static void on_gone(void *arg, const char *what);
static void on_repaired(void *arg);

static int open_writer(struct backend *backend, struct err *err)
{
	bool nfacct = nfacct_supported() == 1;
	const struct nft_sync_input input = {
		.loop = backend->loop,
		.ruleset = backend->ruleset,
		.host = &backend->host,
		.nfacct = nfacct,
		.settings = backend->settings,
		.done = on_synced,
		.flushed = on_gone,
		.repaired = on_repaired,
		.arg = backend,
	};
	int r = choose_netlink(backend->settings, err);

	if (r < 0)
		return r;
	if (r == 1)
		return nft_sync_new(&input, &backend->nft_sync, err);
	backend->sync = sync_new(backend->tool, backend->ruleset, &backend->host, backend->settings,
				 nfacct, on_synced, backend);
	return 0;
}

static int backend_open(struct event_base *loop, const struct settings *settings,
			const struct backend_events *events, struct backend **ret, struct err *err)
{
	struct backend *backend = xcalloc(1, sizeof(*backend));
	int r;

	backend->loop = loop;
	backend->settings = settings;
	backend->events = events;
	backend->ruleset = ruleset_new(settings, &backend->host);
	r = set_up_host(backend, err);
	if (r >= 0)
		r = open_writer(backend, err);
	if (r < 0) {
		backend_close(backend);
		return r;
	}
	*ret = backend;
	return 0;
}

/* -- syncing and watching */

static void need_full_sync(struct backend *backend)
{
	ruleset_need_full_sync(backend->ruleset); /* a sync that runs now does not forget it */
}

static void on_gone(void *arg, const char *what)
{
	struct backend *backend = arg;

	need_full_sync(backend);
	backend->events->flushed(backend->events->arg, what);
}

static void on_canary_gone(void *arg)
{
	on_gone(arg, "chain " CHAIN_CANARY " deleted");
}

static void on_repaired(void *arg)
{
	const struct backend *backend = arg;

	if (backend->events->repaired)
		backend->events->repaired(backend->events->arg);
}

static void start_watching(struct backend *backend)
{
	const struct canary_times times = {
		.interval_ns = backend->settings->sync_period_ns,
		.poll_ns = CANARY_POLL_NS,
		.limit_ns = CANARY_LIMIT_NS,
	};

	if (backend->nft_sync)
		return; /* it follows notifications, and has its canaries without looking at them */
	if (!backend->canary && backend->watch_wanted && backend->synced)
		backend->canary =
			canary_new(backend->loop, backend->tool, &times, on_canary_gone, backend);
}

static void watch(struct backend *backend)
{
	backend->watch_wanted = true;
	start_watching(backend);
}

static void on_synced(void *arg, const struct backend_result *result)
{
	struct backend *backend = arg;

	if (result->error == 0)
		backend->synced = true;
	start_watching(backend);
	backend->events->synced(backend->events->arg, result);
}

static void backend_sync(struct backend *backend, struct model *model)
{
	if (backend->nft_sync)
		nft_sync_start(backend->nft_sync, model);
	else
		sync_start(backend->sync, model);
}

static bool syncing(const struct backend *backend)
{
	return backend->nft_sync ? nft_sync_running(backend->nft_sync)
				 : sync_running(backend->sync);
}

static bool backend_audit(struct backend *backend)
{
	if (backend->nft_sync)
		nft_sync_audit(backend->nft_sync);
	return backend->nft_sync;
}

/* A sync that runs may be about to write what was missing. */
static void on_checked(void *arg, int r, const struct err *err)
{
	struct backend *backend = arg;
	bool busy = sync_running(backend->sync);

	backend->events->checked(backend->events->arg, r == 0 && busy ? -EBUSY : r, err);
	if (r == 0 && !busy)
		on_gone(backend, err->text);
}

static void backend_check(struct backend *backend)
{
	struct err err = {0};
	int r;

	if (backend->nft_sync) {
		r = nft_sync_check(backend->nft_sync, &err);
		backend->events->checked(backend->events->arg, r, &err);
		return;
	}
	if (!backend->check)
		backend->check =
			rules_check_new(backend->tool, backend->settings, on_checked, backend);
	rules_check_start(backend->check);
}

const struct backend_ops backend_iptables = {
	.name = "iptables",
	.usable = usable,
	.open = backend_open,
	.close = backend_close,
	.sync = backend_sync,
	.syncing = syncing,
	.need_full_sync = need_full_sync,
	.watch = watch,
	.audit = backend_audit,
	.check = backend_check,
	.cleanup = cleanup_family,
};

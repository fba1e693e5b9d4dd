/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "backends/iptables/cleanup.h"
#include "backends/iptables/host.h"
#include "backends/iptables/netlink/nft_sync.h"
#include "backends/iptables/render.h"
#include "backends/iptables/restore/canary.h"
#include "backends/iptables/restore/rules_check.h"
#include "backends/iptables/restore/sync.h"
#include "backends/iptables/ruleset.h"
#include "backends/modes.h"
#include "base/log.h"
#include "base/text.h"
#include "kernel/iptables_tool.h"
#include "kernel/nfacct.h"
#include "kernel/nft_compat.h"
#include "kernel/sysctl.h"
#include "xtables/chains.h"

/*
 * The iptables backend: rules (ruleset.h) and one of two ways to bring them to the kernel, programs
 * (iptables_tool.h) and the steps between (sync.h), or netlink (nft_sync.h).
 */

#define SYSCTL_ROUTE_LOCALNET "net/ipv4/conf/all/route_localnet"
#define SYSCTL_BE_LIBERAL     "net/netfilter/nf_conntrack_tcp_be_liberal"

struct backend {
	struct event_base *loop;
	enum iptables_variant variant;
	const struct settings *settings;
	const struct backend_events *events;
	struct ruleset_host host;
	struct iptables_tool *tool;
	struct ruleset *ruleset;
	struct sync *sync;         /* NULL: over netlink */
	struct nft_sync *nft_sync; /* NULL: with iptables-restore */
	struct canary *canary;     /* NULL: not watching */
	struct rules_check *check; /* NULL: not asked for yet */
	bool synced;               /* well, at least once */
	bool watch_wanted;
};

/* -- can this host do it? */

static int usable(const struct backend_host *host, enum family family, struct err *err)
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
	r = iptables_tool_open(NULL, family, host->variant, &tool, err);
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
	return 0;
}

static void backend_close(struct backend *backend)
{
	if (!backend)
		return;
	backend->events = &backend_no_events;
	canary_free(backend->canary);
	rules_check_free(backend->check);
	sync_free(backend->sync);
	nft_sync_free(backend->nft_sync);
	iptables_tool_close(backend->tool);
	ruleset_free(backend->ruleset);
	free(backend);
}

/* Over netlink? 1 or 0; -EINVAL when that was asked for and cannot be. */
static int choose_netlink(const struct backend *backend, struct err *err)
{
	const struct settings *settings = backend->settings;
	enum iptables_writer writer = settings->mode.iptables_writer;
	bool possible = false;
	struct err reason;

	if (writer == IPTABLES_WRITER_RESTORE)
		err_set(&reason, -EINVAL, "--iptables-writer says so");
	else if (backend->variant != IPTABLES_VARIANT_NFT)
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

static int open_writer(struct backend *backend, struct err *err)
{
	bool nfacct = nfacct_supported() == 1;
	const struct nft_sync_input input = {
		.loop = backend->loop,
		.ruleset = backend->ruleset,
		.host = &backend->host,
		.nfacct = nfacct,
		.settings = backend->settings,
		.events = &backend->events,
	};
	int netlink = choose_netlink(backend, err);
	int r;

	if (netlink < 0)
		return netlink;
	if (netlink == 1)
		return nft_sync_new(&input, &backend->nft_sync, err);
	r = iptables_tool_open(backend->loop, backend->settings->family, backend->variant,
			       &backend->tool, err);
	if (r < 0)
		return r;
	backend->sync = sync_new(backend->tool, backend->ruleset, &backend->host, backend->settings,
				 nfacct, on_synced, backend);
	return 0;
}

static int backend_open(struct event_base *loop, const struct backend_host *host,
			const struct settings *settings, const struct backend_events *events,
			struct backend **ret, struct err *err)
{
	struct backend *backend = xcalloc(1, sizeof(*backend));
	int r;

	backend->loop = loop;
	backend->variant = host->variant;
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

static void backend_sync(struct backend *backend, const struct plan_delta *delta)
{
	if (backend->nft_sync)
		nft_sync_start(backend->nft_sync, delta);
	else
		sync_start(backend->sync, delta);
}

static unsigned int needs(const struct backend *backend)
{
	if (!backend->sync)
		return 0;
	return backend->variant == IPTABLES_VARIANT_LEGACY
		       ? BACKEND_NEEDS_PROGRAMS | BACKEND_NEEDS_RAW
		       : BACKEND_NEEDS_PROGRAMS;
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
	if (backend->nft_sync) {
		nft_sync_check(backend->nft_sync);
		return;
	}
	if (!backend->check)
		backend->check =
			rules_check_new(backend->tool, backend->settings, on_checked, backend);
	rules_check_start(backend->check);
}

/* -- without a running one */

/* The first failure is told, and the other variant's rules are removed all the same. */
static int clean_variants(enum family family, unsigned int variants, struct err *err)
{
	int first = 1;

	for (enum iptables_variant i = IPTABLES_VARIANT_NFT; i < IPTABLES_VARIANT_COUNT; i++) {
		struct err reason;
		int r = variants & 1u << i ? cleanup_family(family, i, &reason) : 0;

		if (r >= 0 || first < 0)
			continue;
		first = r;
		*err = reason;
	}
	return first;
}

static int cleanup(const struct backend_host *host, enum family family, unsigned int leftovers,
		   struct err *err)
{
	int r;

	if (leftovers)
		return clean_variants(family, leftovers, err);
	r = usable(host, family, err);
	if (r == 0)
		err->code = -EOPNOTSUPP;
	return r == 0 ? -EOPNOTSUPP : r < 0 ? r : clean_variants(family, 1u << host->variant, err);
}

static void render_rules(const struct backend_render *input, struct text *ret)
{
	static const struct ruleset_host host = {
		.nfacct_invalid = true,
		.nfacct_localhost = true,
	};
	enum render_format format = (enum render_format)input->format;

	if (input->titled)
		text_printf(ret, "# ip%stables-%s\n",
			    input->settings->family == FAMILY_IPV6 ? "6" : "",
			    render_formats[format]);
	render(&(struct render_input){.settings = input->settings,
				      .host = &host,
				      .addresses = input->addresses,
				      .n_addresses = input->n_addresses},
	       input->delta, format, ret);
}

extern const struct inspect_ops inspect_iptables;

const struct backend_ops backend_iptables = {
	.name = "iptables",
	.names_service_chains = true,
	.formats = render_formats,
	.open_host = host_open,
	.close_host = host_close,
	.usable = usable,
	.open = backend_open,
	.close = backend_close,
	.needs = needs,
	.sync = backend_sync,
	.syncing = syncing,
	.need_full_sync = need_full_sync,
	.watch = watch,
	.audit = backend_audit,
	.check = backend_check,
	.leftovers = host_leftovers,
	.cleanup = cleanup,
	.render = render_rules,
	.inspect = &inspect_iptables,
};

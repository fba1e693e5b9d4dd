/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/proxying.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "cli/config.h"
#include "cli/other_modes.h"
#include "cli/problems.h"
#include "cli/proxier.h"
#include "cli/telemetry.h"
#include "kernel/iptables_variant.h"

#define ALL_FAMILIES ((1u << FAMILY_COUNT) - 1)

struct proxying {
	const struct proxying_input *input;
	const struct backend_ops *backend;
	size_t n_unsynced;                      /* proxiers that have not had a good sync yet */
	struct proxier *proxiers[FAMILY_COUNT]; /* NULL: the family is not proxied */
	struct settings settings[FAMILY_COUNT];
	struct node *node;               /* NULL: not known */
	struct other_modes *other_modes; /* what they left is being removed; NULL: not yet */
};

static int64_t steady_now_ns(void *arg)
{
	(void)arg;
	return clock_now_ns();
}

struct proxying *proxying_free(struct proxying *proxying)
{
	if (!proxying)
		return NULL;
	for (enum family family = 0; family < FAMILY_COUNT; family++) {
		proxier_free(proxying->proxiers[family]);
		config_settings_done(&proxying->settings[family]);
	}
	node_unref(proxying->node);
	other_modes_free(proxying->other_modes);
	free(proxying);
	return NULL;
}

static void proxying_cleanup(struct proxying **proxying)
{
	proxying_free(*proxying);
}

enum iptables_variant proxying_find_variant(const struct config *config, int level)
{
	struct iptables_variant_found found = {
		.variant = config->iptables_variant,
		.reason = "--iptables-variant says so",
	};

	if (config->iptables_variant == IPTABLES_VARIANT_AUTO)
		iptables_variant_find(&found);
	if (found.doubtful || log_enabled(level))
		LOG_CALL(found.doubtful ? LOG_SEVERITY_WARNING : LOG_SEVERITY_INFO, level,
			 "Chose the variant of iptables",
			 KV("variant", LOG_STR(iptables_variant_name(found.variant))),
			 KV("reason", LOG_STR(found.reason)));
	return found.variant;
}

int proxying_find_families(const struct config *config, const struct node *node,
			   struct proxying_input *input, struct err *err)
{
	struct node_ips ips;

	config_node_ips(config, node, &ips);
	for (enum family family = 0; family < FAMILY_COUNT; family++) {
		struct err reason;
		int r = config->backend->usable(family, input->variant, &reason);

		input->usable[family] = r > 0;
		if (r > 0)
			continue;
		if (family == ips.primary) {
			*err = reason;
			return err_wrap(err, r < 0 ? r : -EOPNOTSUPP,
					"this host cannot proxy the primary family, %s",
					family_name(family));
		}
		log_info("Family not available, going on without it",
			 KV("ipFamily", LOG_STR(family_name(family))),
			 KV("reason", LOG_STR(reason.text)));
	}
	if (addr_is_loopback(&ips.addr[ips.primary]))
		log_warning("This node's address is not known, assuming loopback; --bind-address "
			    "can name it");
	return 0;
}

/* Not before all families are served. */
static void on_first_synced(void *arg)
{
	struct proxying *proxying = arg;
	unsigned int families = 0;

	if (--proxying->n_unsynced > 0)
		return;
	for (enum family family = 0; family < FAMILY_COUNT; family++)
		families |= proxying->proxiers[family] ? 1u << family : 0;
	proxying->other_modes =
		other_modes_clean(proxying->input->loop, proxying->backend, families);
}

static void on_conflict(void *arg, const struct backend_conflict *conflict)
{
	const struct proxying *proxying = arg;

	if (proxying->input->conflict)
		proxying->input->conflict(proxying->input->arg, conflict);
}

static void on_refused(void *arg, const struct backend_refusal *refusal)
{
	const struct proxying *proxying = arg;

	if (proxying->input->refused)
		proxying->input->refused(proxying->input->arg, refusal);
}

static int open_family(const struct proxying_input *input, const struct config *config,
		       enum family family, struct proxying *proxying, struct err *err)
{
	const struct proxier_clock clock = {.now_ns = steady_now_ns};
	struct settings *settings = &proxying->settings[family];
	int r = config_settings(config, proxying->node, family, settings, err);

	if (r < 0)
		return r;
	settings->iptables_variant = input->variant;
	if (settings->detector.kind == DETECTOR_NONE)
		log_debug(2, "No CIDR tells this node's own pods from other traffic",
			  KV("ipFamily", LOG_STR(family_name(family))),
			  KV("mode", LOG_STR(detect_mode_name(config->detect_mode))));
	r = proxier_new(input->loop, config->backend, settings, input->model, &clock,
			&proxying->proxiers[family], err);
	if (r < 0)
		return r;
	proxying->n_unsynced++;
	proxier_set_hooks(proxying->proxiers[family],
			  &(struct proxier_hooks){.first_synced = on_first_synced,
						  .conflict = on_conflict,
						  .refused = on_refused,
						  .arg = proxying});
	proxier_observe(proxying->proxiers[family], telemetry_observer(input->telemetry));
	return telemetry_set_family(input->telemetry, settings, err);
}

int proxying_new(const struct proxying_input *input, const struct config *config,
		 struct proxying **ret, struct err *err)
{
	attr_cleanup(proxying_cleanup) struct proxying *proxying = xcalloc(1, sizeof(*proxying));
	cleanup_problems struct problems warnings = {0};
	bool dual_stack = input->usable[FAMILY_IPV4] && input->usable[FAMILY_IPV6];
	const struct node *node = model_node(input->model);
	int r;

	proxying->input = input;
	proxying->backend = config->backend;
	proxying->node = node ? node_ref((struct node *)node) : NULL;
	r = config_check_families(config, proxying->node, dual_stack, &warnings, err);
	for (size_t i = 0; i < warnings.n; i++)
		log_warning("The configuration may be incomplete",
			    KV("reason", LOG_STR(warnings.v[i])));
	for (enum family family = 0; r == 0 && family < FAMILY_COUNT; family++)
		if (input->usable[family])
			r = open_family(input, config, family, proxying, err);
	if (r < 0)
		return r;
	*ret = take(proxying);
	return 0;
}

const struct node *proxying_node(const struct proxying *proxying)
{
	return proxying->node;
}

const struct settings *proxying_settings(const struct proxying *proxying, enum family family)
{
	return proxying && proxying->proxiers[family] ? &proxying->settings[family] : NULL;
}

static void each_proxier(const struct proxying *proxying, unsigned int families,
			 void (*call)(struct proxier *proxier))
{
	for (enum family family = 0; proxying && family < FAMILY_COUNT; family++)
		if (families & 1u << family && proxying->proxiers[family])
			call(proxying->proxiers[family]);
}

void proxying_start(const struct proxying *proxying)
{
	each_proxier(proxying, ALL_FAMILIES, proxier_start);
}

void proxying_request(const struct proxying *proxying, unsigned int families)
{
	each_proxier(proxying, families, proxier_request);
}

void proxying_request_full(const struct proxying *proxying)
{
	each_proxier(proxying, ALL_FAMILIES, proxier_request_full);
}

void proxying_audit(const struct proxying *proxying)
{
	each_proxier(proxying, ALL_FAMILIES, proxier_audit);
}

void proxying_check(const struct proxying *proxying)
{
	each_proxier(proxying, ALL_FAMILIES, proxier_check);
}

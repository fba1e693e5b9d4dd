/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/family_set.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "config/config.h"
#include "config/problems.h"
#include "daemon/family_sync.h"
#include "daemon/other_modes.h"
#include "daemon/telemetry.h"

#define ALL_FAMILIES ((1u << FAMILY_COUNT) - 1)

struct family_set {
	const struct family_set_input *input;
	const struct backend_ops *backend;
	size_t n_unsynced; /* family_syncs that have not had a good sync yet */
	struct family_sync *syncs[FAMILY_COUNT]; /* NULL: the family is not proxied */
	struct settings settings[FAMILY_COUNT];
	struct node *node;               /* NULL: not known */
	struct other_modes *other_modes; /* what they left is being removed; NULL: not yet */
};

static int64_t steady_now_ns(void *arg)
{
	(void)arg;
	return clock_now_ns();
}

struct family_set *family_set_free(struct family_set *family_set)
{
	if (!family_set)
		return NULL;
	for (enum family family = 0; family < FAMILY_COUNT; family++) {
		family_sync_free(family_set->syncs[family]);
		config_settings_done(&family_set->settings[family]);
	}
	node_unref(family_set->node);
	other_modes_free(family_set->other_modes);
	free(family_set);
	return NULL;
}

static void family_set_cleanup(struct family_set **family_set)
{
	family_set_free(*family_set);
}

int family_set_find_families(const struct config *config, const struct node *node,
			     struct family_set_input *input, struct err *err)
{
	struct node_ips ips;

	config_node_ips(config, node, &ips);
	for (enum family family = 0; family < FAMILY_COUNT; family++) {
		struct err reason;
		int r = config->backend->usable(input->host, family, &reason);

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
	struct family_set *family_set = arg;
	unsigned int families = 0;

	if (--family_set->n_unsynced > 0)
		return;
	for (enum family family = 0; family < FAMILY_COUNT; family++)
		families |= family_set->syncs[family] ? 1u << family : 0;
	family_set->other_modes = other_modes_clean(family_set->input->loop, family_set->backend,
						    families, family_set->input->leftovers);
}

static void on_conflict(void *arg, const struct conflict *conflict)
{
	const struct family_set *family_set = arg;

	if (family_set->input->conflict)
		family_set->input->conflict(family_set->input->arg, conflict);
}

static void on_refused(void *arg, const struct backend_refusal *refusal)
{
	const struct family_set *family_set = arg;

	if (family_set->input->refused)
		family_set->input->refused(family_set->input->arg, refusal);
}

static void on_clients_full(void *arg, const struct backend_full *full)
{
	const struct family_set *family_set = arg;

	if (family_set->input->clients_full)
		family_set->input->clients_full(family_set->input->arg, full);
}

static int open_family(const struct family_set_input *input, const struct config *config,
		       enum family family, struct family_set *family_set, struct err *err)
{
	const struct family_sync_clock clock = {.now_ns = steady_now_ns};
	struct settings *settings = &family_set->settings[family];
	int r = config_settings(config, family_set->node, family, settings, err);

	if (r < 0)
		return r;
	if (settings->detector.kind == DETECTOR_NONE)
		log_debug(2, "No CIDR tells this node's own pods from other traffic",
			  KV("ipFamily", LOG_STR(family_name(family))),
			  KV("mode", LOG_STR(detect_mode_name(config->detect_mode))));
	r = family_sync_new(input->loop, config->backend, input->host, settings, input->model,
			    &clock, &family_set->syncs[family], err);
	if (r < 0)
		return r;
	family_set->n_unsynced++;
	family_sync_set_hooks(family_set->syncs[family],
			      &(struct family_sync_hooks){.first_synced = on_first_synced,
							  .conflict = on_conflict,
							  .refused = on_refused,
							  .clients_full = on_clients_full,
							  .arg = family_set});
	family_sync_observe(family_set->syncs[family], telemetry_observer(input->telemetry));
	return telemetry_set_family(input->telemetry, settings, err);
}

int family_set_new(const struct family_set_input *input, const struct config *config,
		   struct family_set **ret, struct err *err)
{
	attr_cleanup(family_set_cleanup) struct family_set *family_set =
		xcalloc(1, sizeof(*family_set));
	cleanup_problems struct problems warnings = {0};
	bool dual_stack = input->usable[FAMILY_IPV4] && input->usable[FAMILY_IPV6];
	const struct node *node = model_node(input->model);
	int r;

	family_set->input = input;
	family_set->backend = config->backend;
	family_set->node = node ? node_ref((struct node *)node) : NULL;
	r = config_check_families(config, family_set->node, dual_stack, &warnings, err);
	for (size_t i = 0; i < warnings.n; i++)
		log_warning("The configuration may be incomplete",
			    KV("reason", LOG_STR(warnings.v[i])));
	for (enum family family = 0; r == 0 && family < FAMILY_COUNT; family++)
		if (input->usable[family])
			r = open_family(input, config, family, family_set, err);
	if (r < 0)
		return r;
	*ret = take(family_set);
	return 0;
}

const struct settings *family_set_settings(const struct family_set *family_set, enum family family)
{
	return family_set && family_set->syncs[family] ? &family_set->settings[family] : NULL;
}

unsigned int family_set_needs(const struct family_set *family_set)
{
	unsigned int needs = 0;

	for (enum family family = 0; family < FAMILY_COUNT; family++)
		if (family_set->syncs[family])
			needs |= family_sync_needs(family_set->syncs[family]);
	return needs;
}

static void each_sync(const struct family_set *family_set, unsigned int families,
		      void (*call)(struct family_sync *sync))
{
	for (enum family family = 0; family_set && family < FAMILY_COUNT; family++)
		if (families & 1u << family && family_set->syncs[family])
			call(family_set->syncs[family]);
}

void family_set_start(const struct family_set *family_set)
{
	each_sync(family_set, ALL_FAMILIES, family_sync_start);
}

void family_set_request(const struct family_set *family_set, unsigned int families)
{
	each_sync(family_set, families, family_sync_request);
}

void family_set_request_full(const struct family_set *family_set)
{
	each_sync(family_set, ALL_FAMILIES, family_sync_request_full);
}

void family_set_audit(const struct family_set *family_set)
{
	each_sync(family_set, ALL_FAMILIES, family_sync_audit);
}

void family_set_check(const struct family_set *family_set)
{
	each_sync(family_set, ALL_FAMILIES, family_sync_check);
}

bool family_set_localhost(const struct family_set *family_set, enum family family,
			  struct backend_localhost *ret)
{
	return family_set && family_set->syncs[family] &&
	       family_sync_localhost(family_set->syncs[family], ret);
}

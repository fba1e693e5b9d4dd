/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/iptables/netlink/refused_services.h"

#include <stdlib.h>

#include "backends/iptables/netlink/nft_audit.h"
#include "base/log.h"

struct refused {
	char *key;
	char *text;
};

static void forget_refused(struct refused_services *services, const char *key)
{
	struct refused *refused = map_remove(&services->told, key);

	map_remove(&services->left, key);
	if (!refused)
		return;
	free(refused->key);
	free(refused->text);
	free(refused);
}

static struct refused *tell_refused(struct refused_services *services, const char *key,
				    const char *text)
{
	struct refused *refused = xcalloc(1, sizeof(*refused));

	forget_refused(services, key);
	refused->key = xstrdup(key);
	refused->text = xstrdup(text);
	map_set(&services->told, refused->key, refused);
	services->refused(services->arg, &(struct backend_refusal){.service = refused->key,
								   .port = refused->key,
								   .reason = refused->text,
								   .kept = true});
	return refused;
}

bool refused_services_add(struct refused_services *services, const char *key, const struct err *err)
{
	struct refused *refused = map_get(&services->told, key);

	if (services->left.count >= NFT_AUDIT_LEFT_MAX || map_get(&services->left, key))
		return false;
	if (!refused || !streq(refused->text, err->text))
		refused = tell_refused(services, key, err->text);
	map_set(&services->left, refused->key, refused);
	return true;
}

void refused_services_tell_accepted(struct refused_services *services)
{
	struct refused *refused;
	size_t at = 0;

	while ((refused = map_next(&services->told, &at))) {
		if (map_get(&services->left, refused->key))
			continue;
		log_info("The kernel accepts the rules of a Service again",
			 KV("ipFamily", LOG_STR(family_name(services->family))),
			 KV("service", LOG_STR(refused->key)));
		forget_refused(services, refused->key);
	}
}

static bool has_any(const struct map *left, const struct plan_change *changes, size_t n)
{
	for (size_t i = 0; i < n && left->count > 0; i++)
		if (map_get(left, changes[i].key))
			return true;
	return false;
}

bool refused_services_any_changed(const struct refused_services *services,
				  const struct plan_delta *delta)
{
	return has_any(&services->left, delta->changes, delta->n_changes) ||
	       has_any(&services->left, delta->renewed, delta->n_renewed);
}

void refused_services_retry(struct refused_services *services)
{
	map_done(&services->left);
}

void refused_services_done(struct refused_services *services)
{
	struct refused *refused;
	size_t at = 0;

	while ((refused = map_next(&services->told, &at)))
		forget_refused(services, refused->key);
	map_done(&services->told);
	refused_services_retry(services);
}

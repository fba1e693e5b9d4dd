/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The services of a ruleset, by key and by number. Setting and removing cost the same however many
 * there are; the number of a service may change with each of them. Only sorting walks them all.
 */

#include "backends/iptables/service_rules.h"
#include "base/map.h"

struct service_set {
	struct map by_key;
	struct service_rules **v; /* v[i]->index is i */
	size_t n, capacity;
};

void service_set_done(struct service_set *set); /* frees the services too; may be used again */
struct service_rules *service_set_get(const struct service_set *set, const char *key); /* or NULL */
/* Takes the service over. Returns the one that had its key before, for the caller to free. */
struct service_rules *service_set_put(struct service_set *set, struct service_rules *service);
struct service_rules *service_set_remove(struct service_set *set, const char *key); /* likewise */
/* By namespace, then name, so that the same cluster always gives the same text. */
void service_set_sort(struct service_set *set);

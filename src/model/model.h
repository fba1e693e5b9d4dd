/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the cluster wants of this node, and what changed in it since each family last looked.
 *
 * The model always holds the newest state. For each family it remembers which services differ from
 * what that family last took: a Service that changed and changed back is not among them, nor is one
 * that was added and deleted again. No sockets, no clock.
 *
 * Sources write (model_set_*, model_remove_*), the sync step takes changes, everyone else reads.
 */

#include "model/endpoints.h"
#include "model/object.h"

struct model;

/* node_name: this node's own name. start_time_ns: trigger times before it are not recorded. */
struct model *model_new(const char *node_name, int64_t start_time_ns);
struct model *model_free(struct model *model); /* accepts NULL, returns NULL */
const char *model_node_name(const struct model *model);
/*
 * The family's changes will not be taken: its slices are forgotten, now and from now on, and nothing
 * is noted for it. Without this, what is pending would grow as long as the program runs.
 */
void model_ignore_family(struct model *model, enum family family);
bool model_ignores_family(const struct model *model, enum family family);

/*
 * All take over the caller's reference, also when they find nothing new. They return a bit set with
 * bit (1 << family) for each family that now has changes pending and was concerned by this call.
 */
unsigned int model_set_service(struct model *model, struct service *service);
unsigned int model_remove_service(struct model *model, const char *key);
/*
 * A slice that names another Service, or has another family, than before under the same key leaves
 * the old one, which then has changes too. (kube-proxy keeps it with both.)
 */
unsigned int model_set_slice(struct model *model, struct slice *slice);
unsigned int model_remove_slice(struct model *model, const char *key); /* unknown: no change */

/* NULL: it is gone. True: the zone changed, a full sync is due. */
bool model_set_node(struct model *model, struct node *node);
const struct node *model_node(const struct model *model); /* NULL: there is none */
const char *model_zone(const struct model *model);        /* "" when unknown */

/*
 * The ranges of Services' addresses. Both return a bit set of the families whose ranges changed,
 * which is not among what model_take_changes() hands over. The first takes over the reference.
 */
unsigned int model_set_service_cidr(struct model *model, struct service_cidr *cidr);
unsigned int model_remove_service_cidr(struct model *model, const char *name);
/* Any of these by its kind; of a Node 0, and nothing happens when it is removed. */
unsigned int model_set_object(struct model *model, struct object object);
unsigned int model_remove_object(struct model *model, enum object_kind kind, const char *key);
/* Sorted, none inside another. Borrowed, good until the next change. */
const struct prefix *model_service_cidrs(const struct model *model, enum family family,
					 size_t *ret_n);

/* Reading. Pointers are borrowed and good until the next change. */
struct service *model_service(const struct model *model, const char *key); /* NULL: none */
struct service *model_next_service(const struct model *model, size_t *at); /* as map_next */
/*
 * The merged list of one service port, as of the last model_take_changes() of that family; NULL
 * when there is none.
 */
struct endpoints *model_endpoints(const struct model *model, enum family family, const char *key,
				  const char *port_name, enum protocol protocol);
/* Entries in the lists of all service ports that a known Service has, ready or not. */
size_t model_count_endpoints(const struct model *model, enum family family);

/* Slices that a list is about to take away, and those that came with it, by their keys. */
struct model_slice_change {
	const char *const *lost;
	size_t n_lost;
	const char *const *added;
	size_t n_added;
};

/*
 * How many known Services had endpoints without those that were added, and how many of these would have
 * none left without those that are lost. Costs as much as the model is large.
 */
void model_count_stranded(const struct model *model, const struct model_slice_change *change,
			  size_t *ret_known, size_t *ret_stranded);
/*
 * A model of its own with these Services only, their slices, and the same Node and ranges: for who wants to
 * plan a few of them without touching what the families have pending here. Everything in it is pending.
 * Costs as much as these Services are large. Unknown keys are left out.
 */
struct model *model_excerpt(const struct model *model, const char *const *keys, size_t n_keys);

struct model_trigger {
	const char *service; /* key */
	int64_t time_ns;
};

/* What one family has to look at again. */
struct model_changes {
	struct arena *arena; /* holds all below */
	const char *
		*services; /* keys, sorted; also of Services that are gone or never were there */
	size_t n_services;
	bool udp_endpoints_changed;     /* of a UDP port, old or new: conntrack clean-up is due */
	struct model_trigger *triggers; /* of slices that changed: by service, then as they came */
	size_t n_triggers;
};

bool model_has_changes(const struct model *model, enum family family);
/* Service objects that differ from what was taken; changes of slices, each counted, since then. */
size_t model_pending_services(const struct model *model, enum family family);
size_t model_pending_slices(const struct model *model, enum family family);
/* Hands over what is pending and starts afresh; rebuilds the endpoint lists concerned. */
void model_take_changes(struct model *model, enum family family, struct model_changes *ret);
void model_changes_done(struct model_changes *changes);

/* Distinct addresses of local ready endpoints over all ports of a service. */
size_t model_local_ready_addresses(const struct model *model, enum family family, const char *key);

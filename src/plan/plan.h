/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The wanted state of one Service in one family: every decision that a backend needs, and no rule.
 *
 * plan_service() is a pure function of settings, zone, the Service and its endpoint lists; what other
 * Services withhold from this one is added by the plan_store. A plan keeps references to what it was made from, so it stays valid, and means the same, while the model
 * moves on.
 */

#include "model/model.h"
#include "plan/settings.h"
#include "plan/topology.h"

/* What is done with traffic that has nowhere to go. */
enum plan_refusal {
	PLAN_SERVED = 0,
	PLAN_REJECT, /* no endpoints at all: refused at once */
	PLAN_DROP,   /* endpoints, but none on this node and the policy is Local */
	PLAN_REFUSAL_COUNT,
};

struct port_plan {
	const struct service *service;
	const struct service_port *port;
	const char *id; /* "namespace/name" and ":port" when the port has a name */

	struct endpoints *endpoints; /* NULL: none */
	/* how much each of endpoints->v gets, in proportion; NULL: all the same. Nothing sets it yet */
	const uint8_t *weights;
	struct topology_result use;

	/* of this family, in the object's order */
	const struct addr *cluster_ip;
	const struct addr *external_ips; /* empty when the gate hides them */
	const struct addr *vips;
	const struct prefix *source_ranges;
	uint32_t n_external_ips, n_vips, n_source_ranges;

	enum plan_refusal internal : 2; /* fate of cluster IP traffic */
	enum plan_refusal external : 2; /* fate of outside traffic, if external addresses exist */

	bool externally_accessible : 1; /* a node port, a VIP or an external IP, hidden or not */
	bool node_in_ranges : 1;        /* some source range holds this node's address */
	bool use_cluster_group : 1;     /* the list use.cluster needs a chain */
	bool use_local_group : 1;       /* the list use.local needs a chain */
	bool use_external : 1;          /* has endpoints and is externally accessible */
	bool use_firewall : 1;          /* has endpoints, VIPs and source ranges */
};

struct service_plan {
	const char *key;
	struct service *service; /* a reference */
	struct port_plan *ports; /* sorted by port name, then protocol */
	/* destinations that are another Service's: withheld.h. Set by plan_store.h, and by nothing else */
	struct map *withheld;
	uint32_t n_ports;
	uint32_t refs;
};

/*
 * The plan, for the caller to unref; NULL when there is nothing to do in this family: no such
 * Service, no cluster IP of the family, no ports. Endpoints are as of the family's last
 * model_take_changes().
 */
struct service_plan *plan_service(const struct settings *settings, const struct model *model,
				  const char *key);
/*
 * The same of this object, which may be an older one than the model has now: what asks for the same replaces it there
 * and is no change. NULL: no such Service.
 */
struct service_plan *plan_service_object(const struct settings *settings, const struct model *model,
					 struct service *service);
/* Shared plans are never changed. Both accept NULL. */
struct service_plan *service_plan_ref(struct service_plan *plan);
struct service_plan *service_plan_unref(struct service_plan *plan); /* returns NULL */
/*
 * Same decisions, so the same rules in any backend? Either may be NULL. Endpoints that are not used
 * do not count, so of two equal plans the newer one is still the better to keep: it holds on to the
 * newer objects.
 */
bool service_plan_equal(const struct service_plan *a, const struct service_plan *b);

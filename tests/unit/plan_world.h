/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A real model and IPv4 settings around the one Service "ns1/svc1", for tests of plans. */

#include "build.h"
#include "model/model.h"
#include "plan/plan.h"

#define KEY   "ns1/svc1"
#define NODE  "node-a" /* this one */
#define OTHER "node-b"

struct world {
	struct model *model;
	struct settings settings;
};

attr_unused static struct world world_new(void)
{
	struct world world = {
		.model = model_new(NODE, 0),
		.settings =
			{
				.family = FAMILY_IPV4,
				.node_name = NODE,
				.node_ip = build_addr("192.168.0.2"),
				.allow_external_ips = true,
			},
	};

	return world;
}

attr_unused static void world_done(struct world *world)
{
	model_free(world->model);
}

/* The plan of what the model holds now; of the service KEY. */
attr_unused static struct service_plan *make_plan(struct world *world)
{
	struct model_changes changes;

	model_take_changes(world->model, world->settings.family, &changes);
	model_changes_done(&changes);
	return plan_service(&world->settings, world->model, KEY);
}

attr_unused static struct draft *new_slice(void)
{
	struct draft *slice = build_slice("ns1/svc1-1", "svc1", FAMILY_IPV4);

	build_slice_port(slice, "", PROTOCOL_TCP, 80);
	return slice;
}

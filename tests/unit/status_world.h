/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A model with a few Services and what a status page reads of it, for tests; brings cmocka along. */

#include "backends/modes.h"
#include "build.h"
#include "model/model.h"
#include "page/status_source.h"

#define STATUS_NODE "node-a"

struct status_world {
	struct model *model;
	struct settings settings; /* of IPv4, the only family */
	bool proxied;
	struct status_gauges gauges;
	struct status_source source;
};

attr_unused static const struct settings *status_settings(void *arg, enum family family)
{
	struct status_world *world = arg;

	return family == FAMILY_IPV4 && world->proxied ? &world->settings : NULL;
}

attr_unused static int status_addresses(void *arg attr_unused, enum family family attr_unused,
					struct addr **ret, size_t *ret_n,
					struct err *err attr_unused)
{
	*ret = xcalloc(1, sizeof(**ret));
	**ret = build_addr("192.168.0.2");
	*ret_n = 1;
	return 0;
}

attr_unused static void status_gauges(void *arg, struct status_gauges *ret)
{
	struct status_world *world = arg;

	*ret = world->gauges;
	ret->reason = xstrdup_or_null(world->gauges.reason);
	ret->degraded = xstrdup_or_null(world->gauges.degraded);
}

attr_unused static void status_traffic(void *arg attr_unused, status_traffic_fn *each,
				       void *each_arg)
{
	each(each_arg, "default", "web", "http", 12);
	each(each_arg, "default", "web", "80", 3);
}

attr_unused static struct status_world *status_world_new(const struct backend_ops *backend)
{
	struct status_world *world = xcalloc(1, sizeof(*world));

	world->model = model_new(STATUS_NODE, 0);
	model_ignore_family(world->model, FAMILY_IPV6);
	world->proxied = true;
	world->gauges.healthy = true;
	world->settings = (struct settings){
		.family = FAMILY_IPV4,
		.node_name = STATUS_NODE,
		.node_ip = build_addr("192.168.0.2"),
		.masquerade_mark = 0x4000,
		.allow_external_ips = true,
		.detector = {.kind = DETECTOR_CIDR, .cidr = build_prefix("10.244.0.0/16")},
	};
	node_ports_init(&world->settings.node_ports, FAMILY_IPV4, NULL, 0);
	world->source = (struct status_source){
		.model = world->model,
		.backend = backend,
		.node_name = STATUS_NODE,
		.version = "1.2.3",
		.kubernetes = "v1.37",
		.settings = status_settings,
		.addresses = status_addresses,
		.gauges = status_gauges,
		.traffic = status_traffic,
		.arg = world,
	};
	return world;
}

attr_unused static void status_world_free(struct status_world *world)
{
	node_ports_done(&world->settings.node_ports);
	model_free(world->model);
	free(world);
}

/* What a sync does; the caller is done with the changes. */
attr_unused static struct model_changes status_take(struct status_world *world)
{
	struct model_changes changes;

	model_take_changes(world->model, FAMILY_IPV4, &changes);
	return changes;
}

attr_unused static void status_settle(struct status_world *world)
{
	struct model_changes changes = status_take(world);

	model_changes_done(&changes);
}

/* A Service "ns/name" with port http, 80, and that many ready endpoints, the first on this node. */
attr_unused static void status_add(struct status_world *world, const char *key, const char *ip,
				   size_t endpoints)
{
	struct service *service = build_service(key, ip);
	cleanup_free char *slice_key = xasprintf("%s-1", key);
	struct draft *slice = build_slice(slice_key, strchr(key, '/') + 1, FAMILY_IPV4);

	build_port(service, "http", PROTOCOL_TCP, 80, 0);
	model_set_service(world->model, service);
	build_slice_port(slice, "http", PROTOCOL_TCP, 8080);
	for (size_t i = 0; i < endpoints; i++) {
		cleanup_free char *address = xasprintf("10.244.%zu.%zu", 1 + i / 250, 1 + i % 250);

		build_endpoint(slice, address, i == 0 ? STATUS_NODE : "node-b", BUILD_READY);
	}
	build_set_slice(world->model, slice);
}

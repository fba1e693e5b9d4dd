/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Objects of the model in a line or two, for tests; brings cmocka along.
 *
 *	struct service *service = build_service("default/web", "10.96.0.10");
 *	build_port(service, "http", PROTOCOL_TCP, 80, 30080);
 *	build_vip(service, "1.2.3.4");
 *
 *	struct draft *slice = build_slice("default/web-1", "web", FAMILY_IPV4);
 *	build_slice_port(slice, "http", PROTOCOL_TCP, 8080);
 *	build_hints(slice, build_endpoint(slice, "10.1.0.1", "node-a", BUILD_READY), "a,b", NULL);
 *
 *	struct endpoints *list = build_list(slice, "node-a");
 *
 * The caller owns what is returned (service_unref(), endpoints_unref()) or hands it to the model
 * (build_set_slice()). A slice can be written only from front to back, so it is a draft until
 * build_finish() makes it one. A text that does not parse fails the test.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "model/model.h"

enum {
	BUILD_UNREADY = 0, /* neither ready, nor serving, nor terminating */
	BUILD_READY = ENDPOINT_READY | ENDPOINT_SERVING,
	BUILD_TERMINATING = ENDPOINT_TERMINATING, /* going, serves no more */
	BUILD_SERVING_TERMINATING = ENDPOINT_SERVING | ENDPOINT_TERMINATING,
};

/* Copies an array of the arena of n elements, with room for one more. */
attr_unused static void *build_append(struct arena *arena, const void *old, size_t n, size_t size)
{
	char *array = arena_array(arena, n + 1, size);

	if (n)
		memcpy(array, old, n * size);
	return array;
}

attr_unused static struct addr build_addr(const char *s)
{
	struct addr addr = {0};

	assert_int_equal(addr_parse(s, &addr), 0);
	return addr;
}

attr_unused static struct prefix build_prefix(const char *s)
{
	struct prefix prefix = {0};

	assert_int_equal(prefix_parse(s, &prefix), 0);
	return prefix;
}

/* Splits "left/right"; both strings are the caller's to free. */
attr_unused static void build_split(const char *key, char **left, char **right)
{
	const char *slash = strchr(key, '/');

	assert_non_null(slash);
	*left = strndup(key, (size_t)(slash - key));
	*right = strdup(slash + 1);
	assert_true(*left && *right);
}

attr_unused static void build_cluster_ip(struct service *service, const char *ip)
{
	struct addr addr = build_addr(ip);

	service->cluster_ip[addr.family] = addr;
	service->has_cluster_ip[addr.family] = true;
}

/* key: "namespace/name". cluster_ip may be NULL; build_cluster_ip() adds one of the other family.
 */
attr_unused static struct service *build_service(const char *key, const char *cluster_ip)
{
	cleanup_free char *ns = NULL, *name = NULL;
	struct service *service;

	build_split(key, &ns, &name);
	service = service_new(ns, name, 48);
	if (cluster_ip)
		build_cluster_ip(service, cluster_ip);
	return service;
}

attr_unused static struct service_port *build_port(struct service *service, const char *name,
						   enum protocol protocol, uint16_t port,
						   uint16_t node_port)
{
	struct service_port *added;

	service->ports = build_append(service->arena, service->ports, service->n_ports++,
				      sizeof(*service->ports));
	added = &service->ports[service->n_ports - 1];
	*added = (struct service_port){
		.name = arena_strdup(service->arena, name),
		.protocol = protocol,
		.port = port,
		.node_port = node_port,
	};
	return added;
}

attr_unused static void build_external_ip(struct service *service, const char *ip)
{
	service->external_ips = build_append(service->arena, service->external_ips,
					     service->n_external_ips++, sizeof(struct addr));
	service->external_ips[service->n_external_ips - 1] = build_addr(ip);
}

attr_unused static void build_vip(struct service *service, const char *ip)
{
	service->vips =
		build_append(service->arena, service->vips, service->n_vips++, sizeof(struct addr));
	service->vips[service->n_vips - 1] = build_addr(ip);
}

attr_unused static void build_source_range(struct service *service, const char *cidr)
{
	service->source_ranges = build_append(service->arena, service->source_ranges,
					      service->n_source_ranges++, sizeof(struct prefix));
	service->source_ranges[service->n_source_ranges - 1] = build_prefix(cidr);
}

struct draft_endpoint {
	struct addr addr;
	unsigned int flags; /* enum endpoint_flag; build_finish() adds LOCAL */
	const char *node;   /* NULL when not given */
	const struct endpoint_hints *hints;
};

struct draft {
	struct arena *arena;
	const char *ns, *name, *service_name;
	const char *key; /* "namespace/name" */
	enum family family;
	struct slice_port *ports;
	size_t n_ports;
	struct draft_endpoint *endpoints;
	size_t n_endpoints;
	int64_t trigger_time_ns;
};

/* key: "namespace/name" of the slice; the Service is in the same namespace. */
attr_unused static struct draft *build_slice(const char *key, const char *service_name,
					     enum family family)
{
	cleanup_free char *ns = NULL, *name = NULL;
	struct arena *arena = arena_new(1024);
	struct draft *draft = arena_alloc(arena, sizeof(*draft));

	build_split(key, &ns, &name);
	*draft = (struct draft){
		.arena = arena,
		.ns = arena_strdup(arena, ns),
		.name = arena_strdup(arena, name),
		.service_name = arena_strdup(arena, service_name),
		.key = arena_strdup(arena, key),
		.family = family,
	};
	return draft;
}

attr_unused static void build_drop(struct draft *draft)
{
	arena_free(draft->arena);
}

attr_unused static void build_slice_port(struct draft *draft, const char *name,
					 enum protocol protocol, uint16_t port)
{
	draft->ports =
		build_append(draft->arena, draft->ports, draft->n_ports++, sizeof(*draft->ports));
	draft->ports[draft->n_ports - 1] = (struct slice_port){
		.name = arena_strdup(draft->arena, name),
		.protocol = protocol,
		.port = port,
	};
}

/* node may be NULL. The result is good until the next endpoint is added. */
attr_unused static struct draft_endpoint *build_endpoint(struct draft *draft, const char *ip,
							 const char *node, unsigned int flags)
{
	struct draft_endpoint *added;

	draft->endpoints = build_append(draft->arena, draft->endpoints, draft->n_endpoints++,
					sizeof(*draft->endpoints));
	added = &draft->endpoints[draft->n_endpoints - 1];
	*added = (struct draft_endpoint){
		.addr = build_addr(ip),
		.flags = flags,
		.node = node ? arena_strdup(draft->arena, node) : NULL,
	};
	return added;
}

/* The slice as node_name sees it; "": no endpoint is local. The draft stays. */
attr_unused static struct slice *build_write(const struct draft *draft, const char *node_name)
{
	struct slice_writer writer;
	struct slice *slice;

	slice_writer_init(&writer, draft->ns, draft->name, draft->service_name, draft->family);
	for (size_t i = 0; i < draft->n_ports; i++)
		slice_writer_port(&writer, draft->ports[i].name, draft->ports[i].protocol,
				  draft->ports[i].port);
	for (size_t i = 0; i < draft->n_endpoints; i++) {
		const struct draft_endpoint *from = &draft->endpoints[i];
		bool local = from->node && *node_name && streq(from->node, node_name);

		slice_writer_endpoint(&writer, &from->addr,
				      from->flags | (local ? ENDPOINT_LOCAL : 0), from->hints);
	}
	slice = slice_writer_finish(&writer);
	slice->trigger_time_ns = draft->trigger_time_ns;
	return slice;
}

/* Likewise, and releases the draft. */
attr_unused static struct slice *build_finish(struct draft *draft, const char *node_name)
{
	struct slice *slice = build_write(draft, node_name);

	build_drop(draft);
	return slice;
}

/* As model_set_slice(); releases the draft. */
attr_unused static unsigned int build_set_slice(struct model *model, struct draft *draft)
{
	return model_set_slice(model, build_finish(draft, model_node_name(model)));
}

/* Splits "a,b" into names of the arena; NULL gives none. */
attr_unused static const char *const *build_names(struct arena *arena, const char *names,
						  size_t *ret_n)
{
	const char **list = NULL;
	char *rest, *name;

	*ret_n = 0;
	if (!names)
		return NULL;
	rest = arena_strdup(arena, names);
	while ((name = strsep(&rest, ","))) {
		list = build_append(arena, list, (*ret_n)++, sizeof(*list));
		list[*ret_n - 1] = name;
	}
	return list;
}

/* zones and nodes: names with commas between, or NULL for none. */
attr_unused static void build_hints(struct draft *draft, struct draft_endpoint *endpoint,
				    const char *zones, const char *nodes)
{
	struct endpoint_hints *hints = arena_alloc(draft->arena, sizeof(*hints));

	hints->zones = build_names(draft->arena, zones, &hints->n_zones);
	hints->nodes = build_names(draft->arena, nodes, &hints->n_nodes);
	endpoint->hints = hints;
}

/* The merged list of a slice with one port, which is released; node_name decides what is local. */
attr_unused static struct endpoints *build_list(struct draft *draft, const char *node_name)
{
	struct slice *slice = build_finish(draft, node_name);
	struct endpoints **lists, *list;
	size_t n;

	lists = endpoints_merge(slice, &n);
	assert_int_equal(n, 1);
	list = lists[0];
	free(lists);
	slice_unref(slice);
	return list;
}

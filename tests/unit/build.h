/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Objects of the model in a line or two, for tests; brings cmocka along.
 *
 *	struct service *service = build_service("default/web", "10.96.0.10");
 *	build_port(service, "http", PROTOCOL_TCP, 80, 30080);
 *	build_vip(service, "1.2.3.4");
 *
 *	struct slice *slice = build_slice("default/web-1", "web", FAMILY_IPV4);
 *	build_slice_port(slice, "http", PROTOCOL_TCP, 8080);
 *	build_hints(slice, build_endpoint(slice, "10.1.0.1", "node-a", BUILD_READY), "a,b", NULL);
 *
 *	struct endpoints *list = build_list(slice, "node-a");
 *
 * The caller owns what is returned (service_unref(), slice_unref(), endpoints_unref()) or hands it
 * to the model. A text that does not parse fails the test.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "model/endpoints.h"
#include "model/service.h"
#include "model/slice.h"

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

/* key: "namespace/name" of the slice; the Service is in the same namespace. */
attr_unused static struct slice *build_slice(const char *key, const char *service_name,
					     enum family family)
{
	cleanup_free char *ns = NULL, *name = NULL;

	build_split(key, &ns, &name);
	return slice_new(ns, name, service_name, family);
}

attr_unused static struct slice_port *build_slice_port(struct slice *slice, const char *name,
						       enum protocol protocol, uint16_t port)
{
	struct slice_port *added;

	slice->ports =
		build_append(slice->arena, slice->ports, slice->n_ports++, sizeof(*slice->ports));
	added = &slice->ports[slice->n_ports - 1];
	*added = (struct slice_port){
		.name = arena_strdup(slice->arena, name),
		.protocol = protocol,
		.port = port,
	};
	return added;
}

/* node may be NULL. The result is good until the next endpoint is added. */
attr_unused static struct slice_endpoint *build_endpoint(struct slice *slice, const char *ip,
							 const char *node, unsigned int flags)
{
	struct slice_endpoint *added;

	slice->endpoints = build_append(slice->arena, slice->endpoints, slice->n_endpoints++,
					sizeof(*slice->endpoints));
	added = &slice->endpoints[slice->n_endpoints - 1];
	*added = (struct slice_endpoint){
		.addr = build_addr(ip),
		.flags = (uint8_t)flags,
		.node = node ? arena_strdup(slice->arena, node) : NULL,
	};
	return added;
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
attr_unused static void build_hints(struct slice *slice, struct slice_endpoint *endpoint,
				    const char *zones, const char *nodes)
{
	struct endpoint_hints *hints = arena_alloc(slice->arena, sizeof(*hints));

	hints->zones = build_names(slice->arena, zones, &hints->n_zones);
	hints->nodes = build_names(slice->arena, nodes, &hints->n_nodes);
	endpoint->hints = hints;
}

/* The merged list of a slice with one port, which is released; node_name decides what is local. */
attr_unused static struct endpoints *build_list(struct slice *slice, const char *node_name)
{
	struct endpoints **lists, *list;
	size_t n;

	lists = endpoints_merge(&slice, 1, node_name, &n);
	assert_int_equal(n, 1);
	list = lists[0];
	free(lists);
	slice_unref(slice);
	return list;
}

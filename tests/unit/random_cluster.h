/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Random objects for a model, for tests: few names and addresses, so that the same ones come again
 * and meet each other, and every feature that has rules. The same seed gives the same objects.
 * Tests of whole programs draw theirs with lab/random_cluster.py.
 */

#include <stdio.h>

#include "build.h"
#include "model/model.h"

#define RANDOM_SERVICES 12

struct random_cluster {
	uint64_t state;
	enum family family;
	struct model *model;
	unsigned int wide; /* so many services, with cluster IPs far and near; 0: the few */
	uint64_t last;     /* the state before the last Service that was set; 0: none was */
	char last_key[32];
};

/* xorshift64* */
attr_unused static uint32_t random_next(struct random_cluster *r)
{
	r->state ^= r->state >> 12;
	r->state ^= r->state << 25;
	r->state ^= r->state >> 27;
	return (uint32_t)(r->state * UINT64_C(2685821657736338717) >> 32);
}

/* 0 to n - 1 */
attr_unused static unsigned int random_below(struct random_cluster *r, unsigned int n)
{
	return random_next(r) % n;
}

attr_unused static bool random_one_in(struct random_cluster *r, unsigned int n)
{
	return random_below(r, n) == 0;
}

attr_unused static const char *random_key(struct random_cluster *r)
{
	static const char *const keys[RANDOM_SERVICES] = {
		"default/a", "default/ab", "default/b", "ns/a",  "ns/b",    "ns/c",
		"ns-x/a",    "ns-x/web",   "z/one",     "z/two", "z/three", "kube-system/dns",
	};

	static char key[32];

	if (!r->wide)
		return keys[random_below(r, RANDOM_SERVICES)];
	snprintf(key, sizeof(key), "wide/s%u", random_below(r, r->wide));
	return key;
}

/* net: the third part of the address; there are `n` hosts in it. */
static const char *random_address(struct random_cluster *r, unsigned int net, unsigned int n,
				  char *buffer, size_t size)
{
	unsigned int host = random_below(r, n) + 1;

	if (r->family == FAMILY_IPV4)
		snprintf(buffer, size, "10.%u.%u.%u", net, host / 100, host);
	else
		snprintf(buffer, size, "fd00:%x::%x:%x", net, host / 100, host);
	return buffer;
}

/* In few of many networks, so that some are crowded and some are not. */
static const char *random_cluster_ip(struct random_cluster *r, char *buffer, size_t size)
{
	unsigned int a = random_below(r, 3), b = random_below(r, 4), c = random_below(r, 250);

	if (!r->wide)
		return random_address(r, 96, 30, buffer, size);
	if (r->family == FAMILY_IPV4)
		snprintf(buffer, size, "10.%u.%u.%u", 96 + 7 * a, b * b * 17, c + 1);
	else
		snprintf(buffer, size, "fd00:%x:0:%x::%x", a * 9, b * b * 0x111, c + 1);
	return buffer;
}

/* Few, so that Services meet; or what may be the cluster IP of one. */
static const char *random_outside(struct random_cluster *r, char *buffer, size_t size)
{
	if (random_one_in(r, 4))
		return random_cluster_ip(r, buffer, size);
	return random_address(r, 200, 4, buffer, size);
}

static void random_addresses(struct random_cluster *r, struct service *service)
{
	char ip[64];

	for (unsigned int n = random_below(r, 3); n > 0 && random_one_in(r, 2); n--)
		build_external_ip(service, random_outside(r, ip, sizeof(ip)));
	for (unsigned int n = random_below(r, 3); n > 0 && random_one_in(r, 2); n--)
		build_vip(service, random_outside(r, ip, sizeof(ip)));
}

static void random_ranges(struct random_cluster *r, struct service *service)
{
	static const char *const ranges[FAMILY_COUNT][4] = {
		[FAMILY_IPV4] = {"192.168.0.0/24", "203.0.113.0/24", "198.51.100.7/32",
				 "10.0.0.0/8"},
		[FAMILY_IPV6] = {"2001:db8::/64", "2001:db8:1::/48", "fd00:9::1/128", "fd00::/8"},
	};

	for (unsigned int n = random_below(r, 3); n > 0; n--)
		build_source_range(service, ranges[r->family][random_below(r, 4)]);
}

/* Names and protocols are unique within a Service. */
static void random_ports(struct random_cluster *r, struct service *service)
{
	static const char *const names[] = {"", "http", "dns"};

	for (unsigned int i = 0; i < 3; i++) {
		enum protocol protocol = (enum protocol)random_below(r, PROTOCOL_COUNT);
		uint16_t node_port = 0;

		if (random_one_in(r, 2))
			continue;
		if (random_one_in(r, 3))
			node_port = (uint16_t)(30000 + random_below(r, 20));
		build_port(service, names[i], protocol, (uint16_t)(80 + random_below(r, 2)),
			   node_port);
		if (random_one_in(r, 4))
			build_port(service, names[i], (enum protocol)((protocol + 1) % 3),
				   (uint16_t)(80 + random_below(r, 2)), node_port);
	}
}

attr_unused static struct service *random_service(struct random_cluster *r, const char *key)
{
	char ip[64];
	struct service *service = build_service(key, random_cluster_ip(r, ip, sizeof(ip)));

	service->created_s = (uint32_t)strlen(key) % 4; /* the same whenever it comes again */
	random_ports(r, service);
	if (random_one_in(r, 2))
		random_addresses(r, service);
	if (random_one_in(r, 3))
		random_ranges(r, service);
	service->external_local = random_one_in(r, 3);
	service->internal_local = random_one_in(r, 4);
	if (random_one_in(r, 3))
		service->sticky_seconds = 10800 + random_below(r, 2);
	if (service->external_local && random_one_in(r, 2))
		service->health_check_node_port = (uint16_t)(32000 + random_below(r, 3));
	return service;
}

static void random_endpoint(struct random_cluster *r, struct draft *slice)
{
	static const unsigned int flags[] = {BUILD_READY,       BUILD_READY,
					     BUILD_READY,       BUILD_UNREADY,
					     BUILD_TERMINATING, BUILD_SERVING_TERMINATING};
	static const char *const nodes[] = {"node-a", "node-b", NULL};
	char ip[64];
	struct draft_endpoint *endpoint =
		build_endpoint(slice, random_address(r, 1, 9, ip, sizeof(ip)),
			       nodes[random_below(r, 3)], flags[random_below(r, 6)]);

	if (random_one_in(r, 4))
		build_hints(slice, endpoint, random_one_in(r, 2) ? "zone-a" : "zone-b", NULL);
}

/* number: a Service has up to two. */
attr_unused static struct draft *random_slice(struct random_cluster *r, const char *service,
					      unsigned int number)
{
	static const char *const names[] = {"", "http", "dns"};
	char key[64];
	struct draft *slice;

	snprintf(key, sizeof(key), "%s-%u", service, number);
	slice = build_slice(key, strchr(service, '/') + 1, r->family);
	for (unsigned int i = 0; i < 3; i++)
		for (unsigned int p = 0; p < PROTOCOL_COUNT; p++)
			if (!random_one_in(r, 4))
				build_slice_port(slice, names[i], (enum protocol)p,
						 (uint16_t)(8080 + random_below(r, 2)));
	for (unsigned int n = random_below(r, 5); n > 0; n--)
		random_endpoint(r, slice);
	return slice;
}

attr_unused static void random_set_service(struct random_cluster *r, const char *key)
{
	r->last = r->state;
	snprintf(r->last_key, sizeof(r->last_key), "%s", key);
	model_set_service(r->model, random_service(r, key));
}

/* The last Service that was set, once more: an equal copy, unless it was removed meanwhile. */
attr_unused static void random_repeat_service(struct random_cluster *r)
{
	uint64_t state = r->state;

	if (!r->last)
		return;
	r->state = r->last;
	model_set_service(r->model, random_service(r, r->last_key));
	r->state = state;
}

/* One change of the model. */
attr_unused static void random_change(struct random_cluster *r)
{
	const char *key = random_key(r);
	char slice[64];

	switch (random_below(r, 9)) {
	case 0:
		model_remove_service(r->model, key);
		break;
	case 1:
		snprintf(slice, sizeof(slice), "%s-%u", key, random_below(r, 2));
		model_remove_slice(r->model, slice);
		break;
	case 2:
	case 3:
	case 4:
		random_set_service(r, key);
		break;
	case 5:
		random_repeat_service(r);
		break;
	default:
		build_set_slice(r->model, random_slice(r, key, random_below(r, 2)));
		break;
	}
}

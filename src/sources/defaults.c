/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/defaults.h"

#include "base/addr.h"

/* protobuf-c has no const; a message's strings are not written to. */
static char *constant(const char *s)
{
	return (char *)s;
}

static void set_default(char **field, const char *value)
{
	if (!*field || !**field)
		*field = constant(value);
}

static bool is(const char *field, const char *value)
{
	return field && streq(field, value);
}

static void default_namespace(K8s__ObjectMeta *metadata)
{
	if (metadata)
		set_default(&metadata->namespace_, "default");
}

static void default_affinity(K8s__ServiceSpec *spec, struct arena *arena)
{
	K8s__SessionAffinityConfig *config = spec->sessionaffinityconfig;

	set_default(&spec->sessionaffinity, "None");
	if (!streq(spec->sessionaffinity, "ClientIP"))
		return;
	if (!config) {
		config = arena_alloc(arena, sizeof(*config));
		k8s__session_affinity_config__init(config);
		spec->sessionaffinityconfig = config;
	}
	if (!config->clientip) {
		config->clientip = arena_alloc(arena, sizeof(*config->clientip));
		k8s__client_ipconfig__init(config->clientip);
	}
	if (!config->clientip->has_timeoutseconds) {
		config->clientip->has_timeoutseconds = true;
		config->clientip->timeoutseconds = DEFAULT_AFFINITY_SECONDS;
	}
}

static void default_policies(K8s__ServiceSpec *spec)
{
	bool external = is(spec->type, "NodePort") || is(spec->type, "LoadBalancer") ||
			(is(spec->type, "ClusterIP") && spec->n_externalips);

	if (!is(spec->type, "ExternalName"))
		set_default(&spec->internaltrafficpolicy, "Cluster");
	if (external)
		set_default(&spec->externaltrafficpolicy, "Cluster");
}

static void default_cluster_ips(K8s__ServiceSpec *spec, struct arena *arena)
{
	bool has_one = spec->clusterip && *spec->clusterip;

	if (!has_one && spec->n_clusterips)
		spec->clusterip = spec->clusterips[0];
	if (has_one && !spec->n_clusterips) {
		spec->clusterips = arena_alloc(arena, sizeof(*spec->clusterips));
		spec->clusterips[0] = spec->clusterip;
		spec->n_clusterips = 1;
	}
}

/* Families that are not named are those of the addresses, up to the first that is none. */
static void default_families(K8s__ServiceSpec *spec, struct arena *arena)
{
	char **families;
	size_t n = spec->n_ipfamilies;

	if (n >= spec->n_clusterips)
		return;
	families = arena_array(arena, spec->n_clusterips, sizeof(*families));
	if (n)
		memcpy(families, spec->ipfamilies, n * sizeof(*families));
	for (; n < spec->n_clusterips; n++) {
		struct addr addr;

		if (addr_parse(spec->clusterips[n], &addr) < 0)
			break;
		families[n] = constant(family_name(addr.family));
	}
	spec->ipfamilies = families;
	spec->n_ipfamilies = n;
}

void defaults_service(K8s__Service *service, struct arena *arena)
{
	K8s__ServiceSpec *spec;

	default_namespace(service->metadata);
	if (!service->spec) {
		service->spec = arena_alloc(arena, sizeof(*service->spec));
		k8s__service_spec__init(service->spec);
	}
	spec = service->spec;
	set_default(&spec->type, "ClusterIP");
	default_affinity(spec, arena);
	default_policies(spec);
	default_cluster_ips(spec, arena);
	default_families(spec, arena);
	for (size_t i = 0; i < spec->n_ports; i++)
		set_default(&spec->ports[i]->protocol, "TCP");
}

static const char *address_type(const K8s__EndpointSlice *slice)
{
	for (size_t i = 0; i < slice->n_endpoints; i++) {
		struct addr addr;

		if (!slice->endpoints[i]->n_addresses)
			continue;
		if (addr_parse(slice->endpoints[i]->addresses[0], &addr) < 0)
			return "FQDN";
		return family_name(addr.family);
	}
	return "IPv4"; /* no address: it is the same */
}

void defaults_endpoint_slice(K8s__EndpointSlice *slice, struct arena *arena attr_unused)
{
	default_namespace(slice->metadata);
	set_default(&slice->addresstype, address_type(slice));
	for (size_t i = 0; i < slice->n_ports; i++) {
		set_default(&slice->ports[i]->name, "");
		set_default(&slice->ports[i]->protocol, "TCP");
	}
}

void defaults_endpoints(K8s__Endpoints *endpoints, struct arena *arena attr_unused)
{
	default_namespace(endpoints->metadata);
	for (size_t i = 0; i < endpoints->n_subsets; i++) {
		K8s__EndpointsSubset *subset = endpoints->subsets[i];

		for (size_t j = 0; j < subset->n_ports; j++) {
			set_default(&subset->ports[j]->name, "");
			set_default(&subset->ports[j]->protocol, "TCP");
		}
	}
}

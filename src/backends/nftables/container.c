/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/nftables/container.h"

#include <stdio.h>

#include "backends/nftables/chain.h"

/* Key types, as readers of nft's listings know them. */
#define ADDRESS     FIELD_ADDRESS
#define DESTINATION FIELD_ADDRESS, FIELD_PROTOCOL, FIELD_PORT
#define NODEPORT    FIELD_PROTOCOL, FIELD_PORT
#define MEMBER      FIELD_ID, FIELD_ADDRESS, FIELD_PORT

/* clang-format off */
const struct container_type container_types[CONTAINER_COUNT] = {
	[CONTAINER_CLUSTER_IPS] = {"cluster-ips", "Active ClusterIPs", {ADDRESS}, DATA_NONE},
	[CONTAINER_NODEPORT_IPS] = {"nodeport-ips", "IPs that accept NodePort traffic", {ADDRESS}, DATA_NONE},
	[CONTAINER_SERVICE_IPS] = {"service-ips", "ClusterIP, ExternalIP and LoadBalancer IP traffic", {DESTINATION}, DATA_VERDICT},
	[CONTAINER_SERVICE_NODEPORTS] = {"service-nodeports", "NodePort traffic", {NODEPORT}, DATA_VERDICT},
	[CONTAINER_ENDPOINTS] = {"endpoints", "slots of each destination", {DESTINATION, FIELD_SLOT}, DATA_ENDPOINT},
	[CONTAINER_LOCAL_ENDPOINTS] = {"local-endpoints", "slots of each destination, endpoints of this node only", {DESTINATION, FIELD_SLOT}, DATA_ENDPOINT},
	[CONTAINER_NODEPORT_ENDPOINTS] = {"nodeport-endpoints", "slots of each NodePort", {NODEPORT, FIELD_SLOT}, DATA_ENDPOINT},
	[CONTAINER_NODEPORT_LOCAL_ENDPOINTS] = {"nodeport-local-endpoints", "slots of each NodePort, endpoints of this node only", {NODEPORT, FIELD_SLOT}, DATA_ENDPOINT},
	[CONTAINER_CLUSTER_PICKS] = {"cluster-picks", "how many slots, behind a policy or affinity", {DESTINATION}, DATA_VERDICT},
	[CONTAINER_LOCAL_PICKS] = {"local-picks", "how many slots of this node, behind a policy or affinity", {DESTINATION}, DATA_VERDICT},
	[CONTAINER_NODEPORT_CLUSTER_PICKS] = {"nodeport-cluster-picks", "how many slots, behind a policy or affinity", {NODEPORT}, DATA_VERDICT},
	[CONTAINER_NODEPORT_LOCAL_PICKS] = {"nodeport-local-picks", "how many slots of this node, behind a policy or affinity", {NODEPORT}, DATA_VERDICT},
	[CONTAINER_NO_ENDPOINT_SERVICES] = {"no-endpoint-services", "vmap to drop or reject packets to services with no endpoints", {DESTINATION}, DATA_VERDICT},
	[CONTAINER_NO_ENDPOINT_NODEPORTS] = {"no-endpoint-nodeports", "vmap to drop or reject packets to service nodeports with no endpoints", {NODEPORT}, DATA_VERDICT},
	[CONTAINER_FIREWALLED] = {"firewalled", "destinations that are subject to LoadBalancerSourceRanges", {DESTINATION}, DATA_NONE},
	[CONTAINER_SOURCE_RANGES] = {"source-ranges", "LoadBalancerSourceRanges of each destination", {DESTINATION, FIELD_ADDRESS}, DATA_NONE, .ranges = true},
	[CONTAINER_HAIRPIN_CONNECTIONS] = {"hairpin-connections", "local endpoints that reach themselves", {ADDRESS, ADDRESS, NODEPORT}, DATA_NONE, .lingers = true},
	[CONTAINER_AFFINITY_IDS] = {"affinity-ids", "destinations with ClientIP affinity: id of the service port", {DESTINATION}, DATA_ID},
	[CONTAINER_NODEPORT_AFFINITY_IDS] = {"nodeport-affinity-ids", "NodePorts with ClientIP affinity: id of the service port", {NODEPORT}, DATA_ID},
	[CONTAINER_RECALLS] = {"recalls", "where the clients of each service port are found", {FIELD_ID}, DATA_VERDICT},
	[CONTAINER_LOCAL_RECALLS] = {"local-recalls", "the same among endpoints of this node", {FIELD_ID}, DATA_VERDICT},
	[CONTAINER_REMEMBERS] = {"remembers", "where the clients of each service port are noted", {FIELD_ID}, DATA_VERDICT},
	[CONTAINER_AFFINITY_MEMBERS] = {"members", "endpoints that may be remembered, and their ids", {MEMBER}, DATA_ID},
	[CONTAINER_AFFINITY_ENDPOINTS] = {"member-endpoints", "endpoints that clients are led to, by id", {FIELD_ID}, DATA_ENDPOINT},
	[CONTAINER_LOCAL_AFFINITY_ENDPOINTS] = {"local-member-endpoints", "endpoints of this node that clients are led to, by id", {FIELD_ID}, DATA_ENDPOINT},
	[CONTAINER_FULL_CLIENTS] = {"full-clients", "service ports whose maps of clients are full, written by packets", {FIELD_ID}, DATA_NONE, .dynamic = true},
	[CONTAINER_LOCALHOST_REJECTS] = {"localhost-nodeport-reject-ports", "localhost NodePorts rejected by kube-proxy", {NODEPORT}, DATA_VERDICT},
	[CONTAINER_CLIENTS] = {"clients", "clients and the ids of their endpoints, written by packets", {ADDRESS}, DATA_ID, .dynamic = true},
	[CONTAINER_LOCAL_CLIENTS] = {"local-clients", "the same for destinations with endpoints of this node only", {ADDRESS}, DATA_ID, .dynamic = true},
};
/* clang-format on */

void container_name(enum container container, uint32_t number, char out[static CONTAINER_NAME_MAX])
{
	if (container >= CONTAINER_FIXED_COUNT)
		snprintf(out, CONTAINER_NAME_MAX, "%s-%u", container_types[container].name, number);
	else
		snprintf(out, CONTAINER_NAME_MAX, "%s", container_types[container].name);
}

bool container_parse(const char *name, enum container *ret, uint32_t *ret_number)
{
	for (enum container i = 0; i < CONTAINER_COUNT; i++) {
		size_t n = strlen(container_types[i].name);
		uint32_t number = 0;

		if (strncmp(name, container_types[i].name, n) != 0)
			continue;
		if (i < CONTAINER_FIXED_COUNT
			    ? name[n] != '\0'
			    : name[n] != '-' || !chain_parse_number(name + n + 1, &number))
			continue;
		*ret = i;
		*ret_number = number;
		return true;
	}
	return false;
}

size_t container_field_size(enum container_field field, enum family family)
{
	switch (field) {
	case FIELD_ADDRESS:
		return addr_bytes(family);
	case FIELD_PROTOCOL:
		return 1;
	case FIELD_PORT:
		return 2;
	case FIELD_SLOT:
	case FIELD_ID:
		return 4;
	default:
		return 0;
	}
}

size_t container_key_size(enum container container, enum family family)
{
	const struct container_type *type = &container_types[container];
	size_t size = 0;

	for (size_t i = 0; i < CONTAINER_FIELDS && type->key[i]; i++)
		size += type->key[i] == FIELD_ADDRESS ? addr_bytes(family) : 4;
	return size;
}

size_t container_data_size(enum container container, enum family family)
{
	switch (container_types[container].data) {
	case DATA_VERDICT:
		return 16; /* what nft says of a verdict; the kernel does not look */
	case DATA_ENDPOINT:
		return addr_bytes(family) + 4;
	case DATA_ID:
		return 4;
	default:
		return 0;
	}
}

bool container_has_slots(enum container container)
{
	return container >= CONTAINER_ENDPOINTS && container <= CONTAINER_NODEPORT_LOCAL_ENDPOINTS;
}

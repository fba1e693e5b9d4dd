/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The sets and maps of table kube-proxy: their names, types and purposes.
 *
 * A key is a list of fields, each of them padded to four bytes as the kernel keeps it in registers.
 * A destination is an address, a protocol and a port, or for node ports only the last two.
 *
 * kube-proxy must be able to start over this table: names that it has too mean the same type, and no
 * set of ours begins with "affinity-", since it deletes those, at once and as part of its first
 * transaction, which fails if they are in use.
 */

#include "base/addr.h"

enum container {
	CONTAINER_CLUSTER_IPS = 0,
	CONTAINER_NODEPORT_IPS,
	/* destination to verdict: where a packet goes first */
	CONTAINER_SERVICE_IPS,
	CONTAINER_SERVICE_NODEPORTS,
	/* destination and slot to endpoint; slots are dense from 0 */
	CONTAINER_ENDPOINTS,
	CONTAINER_LOCAL_ENDPOINTS,
	CONTAINER_NODEPORT_ENDPOINTS,
	CONTAINER_NODEPORT_LOCAL_ENDPOINTS,
	/* destination to verdict: second step, behind a chain of policy or affinity */
	CONTAINER_CLUSTER_PICKS,
	CONTAINER_LOCAL_PICKS,
	CONTAINER_NODEPORT_CLUSTER_PICKS,
	CONTAINER_NODEPORT_LOCAL_PICKS,
	CONTAINER_NO_ENDPOINT_SERVICES,
	CONTAINER_NO_ENDPOINT_NODEPORTS,
	CONTAINER_FIREWALLED,
	CONTAINER_SOURCE_RANGES,
	CONTAINER_HAIRPIN_CONNECTIONS,
	/* affinity: a service port has an id, a client of that id an endpoint */
	CONTAINER_AFFINITY_IDS,
	CONTAINER_NODEPORT_AFFINITY_IDS,
	CONTAINER_AFFINITY_TIMEOUTS,
	CONTAINER_AFFINITY_MEMBERS,
	CONTAINER_LOCAL_AFFINITY_MEMBERS,
	CONTAINER_AFFINITY,
	CONTAINER_LOCAL_AFFINITY,
	CONTAINER_COUNT,
};

/* What a key is made of. */
enum container_field {
	FIELD_END = 0,
	FIELD_ADDRESS,
	FIELD_PROTOCOL,
	FIELD_PORT,
	FIELD_SLOT, /* a number of the host's byte order, as numgen writes it */
	FIELD_ID,   /* likewise; nft calls it a classid */
	FIELD_COUNT,
};

enum container_data {
	DATA_NONE = 0, /* a set */
	DATA_VERDICT,
	DATA_ENDPOINT, /* address and port */
	DATA_ID,
	DATA_COUNT,
};

#define CONTAINER_FIELDS 5

struct container_type {
	const char *name;
	const char *comment;
	enum container_field key[CONTAINER_FIELDS]; /* up to FIELD_END */
	enum container_data data;
	bool ranges;  /* the last field of a key is a prefix */
	bool dynamic; /* written by packets, with a time-out; never flushed */
	bool lingers; /* elements stay for a while when nobody asks for them any more: shared.h */
};

#define CONTAINER_DYNAMIC_SIZE 262144

extern const struct container_type container_types[CONTAINER_COUNT];

size_t container_key_size(enum container container, enum family family);
size_t container_data_size(enum container container, enum family family);
size_t container_field_size(enum container_field field, enum family family); /* not padded */
bool container_has_slots(enum container container);

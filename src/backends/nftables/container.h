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
	/* affinity: a service port has an id, and so has each endpoint that it may remember */
	CONTAINER_AFFINITY_IDS,
	CONTAINER_NODEPORT_AFFINITY_IDS,
	CONTAINER_RECALLS, /* id to the chains of the service port */
	CONTAINER_LOCAL_RECALLS,
	CONTAINER_REMEMBERS,
	CONTAINER_AFFINITY_MEMBERS, /* id and endpoint to the endpoint's id, and the way back */
	CONTAINER_AFFINITY_ENDPOINTS,
	CONTAINER_LOCAL_AFFINITY_ENDPOINTS,
	CONTAINER_FULL_CLIENTS,      /* endpoints' ids that a client was not remembered with */
	CONTAINER_LOCALHOST_REJECTS, /* while the layout has it: layout_has_container() */
	CONTAINER_FIXED_COUNT,       /* those above are always there */
	/* one for each service port with affinity, by its number: client to endpoint's id */
	CONTAINER_CLIENTS = CONTAINER_FIXED_COUNT,
	CONTAINER_LOCAL_CLIENTS,
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
	bool lingers; /* elements stay for a while when no Service asks for them any more: shared.h */
};

/* Of full-clients; ports that it has no room for are told by the next look. */
#define CONTAINER_FULL_SIZE 4096
/* What the kernel makes of a map for packets whose size is not said. */
#define CONTAINER_KERNEL_SIZE 65535

extern const struct container_type container_types[CONTAINER_COUNT];

/* Ids as the kernel has them: this much more than the numbers of which names are made. nft prints the
 * first as 1000:1. No process without CAP_NET_ADMIN can give its packets such a priority. */
#define CONTAINER_ID_BASE 0x10000000u

#define CONTAINER_NAME_MAX 64

/* "clients-7"; the number counts only where there is one map for each service port. */
void container_name(enum container container, uint32_t number, char out[static CONTAINER_NAME_MAX]);
/* The way back; false: it is none of ours. */
bool container_parse(const char *name, enum container *ret, uint32_t *ret_number);

size_t container_key_size(enum container container, enum family family);
size_t container_data_size(enum container container, enum family family);
size_t container_field_size(enum container_field field, enum family family); /* not padded */
bool container_has_slots(enum container container);

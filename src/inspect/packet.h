/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The first packet of a new connection, as rules see it, and the little that the kernel knows of
 * this node beside its rules.
 */

#include "model/node.h"
#include "model/service.h"
#include "plan/settings.h"

/* Who sends. It decides where a packet enters: what the node sends itself begins at hook output. */
enum origin {
	ORIGIN_POD = 0,
	ORIGIN_NODE,
	ORIGIN_OUTSIDE,
	ORIGIN_COUNT,
};

const char *origin_name(enum origin origin);  /* "pod", "node", "outside" */
const char *origin_words(enum origin origin); /* "a pod", ... */
bool origin_parse(const char *name, enum origin *ret);

#define PACKET_INTERFACE_MAX 16 /* the kernel's IFNAMSIZ */

struct packet {
	enum family family;
	enum protocol protocol;
	enum origin origin;
	struct addr source, destination;
	uint16_t port;
	char interface[PACKET_INTERFACE_MAX]; /* it came in by; "": the node made it */
};

/* The addresses of one family that the node's interfaces have. */
struct host {
	const struct addr *addresses;
	size_t n_addresses;
};

/* Is it an address of this node, 127.0.0.0/8 and ::1 among them? */
bool host_has(const struct host *host, const struct addr *addr);

/* What a sender is made from; node may be NULL. */
struct sender_input {
	const struct settings *settings;
	const struct node *node;
	const struct host *host;
};

/*
 * A sender in words: an address that such a sender could have, and the interface that its packets
 * come in by. For pods it is one of the node's podCIDR, else of the detector's CIDR; for others an
 * address of the documentation ranges.
 */
void packet_from(struct packet *packet, const struct sender_input *input, enum origin origin);
/*
 * A sender by address: the node if it has it, a pod if the detector says so or the node's podCIDRs
 * hold it, else a client outside.
 */
void packet_from_address(struct packet *packet, const struct sender_input *input,
			 const struct addr *addr);

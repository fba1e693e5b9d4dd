/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Where a connection goes to, as people write it:
 *
 *	10.96.0.10:53            [fd00::1]:80
 *	service/default/web:http svc/default/web:80   svc/default/web (with one port)
 *	:30080                   a node port, on this node's address
 */

#include "base/err.h"
#include "inspect/packet.h"
#include "model/model.h"

enum packet_destination_kind {
	PACKET_DESTINATION_ADDRESS = 0,
	PACKET_DESTINATION_SERVICE,
	PACKET_DESTINATION_NODE_PORT,
	PACKET_DESTINATION_COUNT,
};

struct packet_destination {
	enum packet_destination_kind kind;
	struct addr addr;
	uint16_t port;   /* 0: a name, or none */
	char *service;   /* "namespace/name" */
	char *port_name; /* NULL: none */
};

/* -EINVAL with a reason. *ret is good for packet_destination_done() in all cases. */
int packet_destination_parse(const char *text, struct packet_destination *ret, struct err *err);
void packet_destination_done(struct packet_destination *destination);
#define cleanup_packet_destination attr_cleanup(packet_destination_done)

/*
 * The family that the destination is of: that of its address, or one that its Service has, `preferred` if it
 * can be. -ENOENT: there is no such Service, or it has no cluster IP.
 */
int packet_destination_family(const struct packet_destination *destination,
			      const struct model *model, enum family preferred, enum family *ret,
			      struct err *err);

/*
 * Destination, port and protocol of a packet whose family is set. Where protocol is PROTOCOL_COUNT
 * it is that of the Service's port; of several at one address TCP comes first, and is what an
 * address has that no Service has. -ENOENT: the Service has no such port; -EINVAL: it must be said
 * which.
 */
int packet_destination_resolve(const struct packet_destination *destination,
			       const struct model *model, const struct settings *settings,
			       enum protocol protocol, struct packet *packet, struct err *err);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The field nodePortAddresses: CIDRs, and words that stand for some.
 *
 *   primary    this node's address of each family that it has one of
 *   localhost  127.0.0.0/8 and ::1/128
 *   all        0.0.0.0/0 and ::/0
 *
 * A word is replaced where it stands, by CIDRs of both families whatever families the node has. So
 * `localhost` leaves a family without a primary address no other address, where `primary` alone
 * leaves it all of them; see plan/node_ports.h.
 */

#include "base/addr.h"

enum node_port_word {
	NODE_PORT_CIDR = 0, /* none */
	NODE_PORT_PRIMARY,
	NODE_PORT_LOCALHOST,
	NODE_PORT_ALL,
	NODE_PORT_WORD_COUNT,
};

struct node_port_address {
	enum node_port_word word;
	struct prefix cidr; /* of NODE_PORT_CIDR */
};

int node_port_address_parse(const char *text, struct node_port_address *ret);
/*
 * All as CIDRs, in their order, for the caller to free. `node` has an address for each family;
 * loopback: it has none.
 */
struct prefix *node_port_addresses_expand(const struct node_port_address *list, size_t n,
					  const struct addr *node, size_t *ret_n);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* On which addresses of this node NodePorts are answered: --nodeport-addresses for one family. */

#include "base/addr.h"

struct node_ports {
	bool match_all; /* no CIDR for the family, or a zero CIDR among them */
	struct prefix *cidrs;
	size_t n_cidrs;
};

/* Keeps what is of the family; a zero CIDR means match_all and ends the list. */
void node_ports_init(struct node_ports *node_ports, enum family family, const struct prefix *cidrs,
		     size_t n_cidrs);
void node_ports_done(struct node_ports *node_ports);
bool node_ports_contain_loopback(const struct node_ports *node_ports, enum family family);
/*
 * The interface addresses that match, without duplicates, sorted; an array for the caller to free.
 * Not meant for match_all.
 */
struct addr *node_ports_select(const struct node_ports *node_ports, const struct addr *addresses,
			       size_t n_addresses, size_t *ret_n);

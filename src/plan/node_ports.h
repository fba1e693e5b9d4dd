/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * On which addresses of this node NodePorts are answered: --nodeport-addresses for one family.
 *
 * A family that has no CIDR in the list, or a zero CIDR among them, matches all addresses; its list
 * is then the zero CIDR alone, so that every function below works the same for both kinds.
 */

#include "base/addr.h"

struct node_ports {
	bool match_all;
	bool names_loopback; /* some CIDR begins with a loopback address; the zero CIDR does not */
	struct prefix *cidrs;
	size_t n_cidrs; /* at least 1 */
};

/* Keeps what is of the family; `cidrs` is copied. */
void node_ports_init(struct node_ports *node_ports, enum family family, const struct prefix *cidrs,
		     size_t n_cidrs);
void node_ports_done(struct node_ports *node_ports);
/* Has a CIDR some address in common with 127.0.0.0/8, or with ::1? */
bool node_ports_contain_loopback(const struct node_ports *node_ports, enum family family);
/* The interface addresses that match, distinct and sorted; an array for the caller to free. */
struct addr *node_ports_select(const struct node_ports *node_ports, const struct addr *addresses,
			       size_t n_addresses, size_t *ret_n);

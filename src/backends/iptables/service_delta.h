/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The way from the rules of a Service that stand to those that are wanted, chain by chain:
 *
 *	a chain of its own	that differs is written whole, or revised by a writer that can; one that
 *				is not wanted any more is emptied and deleted
 *	a shared chain		in which its entries differ loses all the old ones and gets the new
 *				ones: those that lead at its head, the others at its end, in order
 *
 * What is the same is not mentioned.
 */

#include "backends/iptables/service_rules.h"

struct service_delta {
	bool enters_services; /* rules were put behind the last one of nat KUBE-SERVICES */
	size_t chains_deleted;
};

/*
 * Either service may be NULL, not both. Rules written are counted in `output`, those of the new
 * service in it. Adds to *ret.
 */
void service_delta_write(struct service_rules *old, struct service_rules *wanted,
			 struct rule_output *output, struct service_delta *ret);

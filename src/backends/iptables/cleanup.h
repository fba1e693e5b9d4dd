/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Removing what a proxy left behind in one family, and nothing else: the jump rules of the base
 * chains (but for those to KUBE-FIREWALL, which are kubelet's too), the chains of nat and filter,
 * the canaries. What is not there is no error, and a step that fails does not keep the others from
 * being tried: the first failure is what is returned.
 *
 * A chain that a foreign rule leads to cannot be deleted. It is emptied and stays, and the rule is
 * named in a failure (-EBUSY).
 */

#include "base/addr.h"
#include "base/err.h"
#include "base/variant.h"

int cleanup_family(enum family family, enum iptables_variant variant, struct err *err);

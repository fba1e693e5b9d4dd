/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Has a proxy left rules of iptables in a family, with one of its variants? Looking changes nothing:
 * no table comes into being by it, as it would by asking the programs.
 */

#include "base/addr.h"
#include "base/variant.h"

/* Blocks, for some milliseconds. What cannot be asked has nothing. */
bool iptables_leftovers(enum family family, enum iptables_variant variant);

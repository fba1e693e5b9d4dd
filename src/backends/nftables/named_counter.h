/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The named counters of table kube-proxy: packets to NodePorts on localhost that were refused, by protocol. They are
 * objects of their own, so that a count outlives the rule that does it, and can be read without a list of rules.
 */

#include "model/service.h"

#define NAMED_COUNTER_MAX 48

void named_counter_name(enum protocol protocol, char out[static NAMED_COUNTER_MAX]);
/* The way back; false: it is none of ours. */
bool named_counter_parse(const char *name, enum protocol *ret);

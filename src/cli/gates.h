/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* --feature-gates: those that kube-proxy knows. Only some change what Portolan does. */

#include "cli/flags.h"
#include "cli/problems.h"

enum gate {
	GATE_ALLOW_SERVICE_EXTERNAL_IPS = 0,
	GATE_PREFER_SAME_TRAFFIC_DISTRIBUTION,
	GATE_MULTI_CIDR_SERVICE_ALLOCATOR,
	GATE_COMPONENT_FLAGZ,
	GATE_COMPONENT_STATUSZ,
	GATE_NATIVE_HISTOGRAMS,
	GATE_CONTEXTUAL_LOGGING,
	GATE_LOGGING_ALPHA_OPTIONS,
	GATE_LOGGING_BETA_OPTIONS,
	GATE_COUNT,
};

struct gates {
	bool on[GATE_COUNT];
};

/* Defaults with the given "Name=bool" entries on top; the last of a name counts. */
void gates_parse(const struct flag_list *given, struct gates *ret, struct problems *problems);

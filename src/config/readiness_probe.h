/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What --healthz-probe and --healthz-probe-target may say. */

#include "base/util.h"

enum readiness_probe {
	READINESS_OFF = 0,
	READINESS_RULES,
	READINESS_CONNECT,
	READINESS_PROBE_COUNT,
};

bool readiness_probe_parse(const char *name, enum readiness_probe *ret); /* "off", ... */
/* "namespace/name" or "namespace/name:port", the port by name or number. */
bool readiness_target_is_good(const char *target);

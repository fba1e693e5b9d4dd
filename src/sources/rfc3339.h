/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Times as Kubernetes writes them: 2006-01-02T15:04:05.999999999Z or with +01:00 behind. */

#include "base/util.h"

/* 0 or -EINVAL; leaves the results alone on failure. */
int rfc3339_parse(const char *s, int64_t *ret_seconds, int32_t *ret_nanos);

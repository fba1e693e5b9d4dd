/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Lengths of time as Go writes them, because kube-proxy's flags and configuration are written that
 * way: "300ms", "1m30s", "1.5h", "-2s"; "0" alone needs no unit. Units: ns, us (or a micro sign),
 * ms, s, m, h.
 */

#include <stddef.h>
#include <stdint.h>

#define DURATION_TEXT_MAX 32 /* "-2562047h47m16.854775808s" and NUL */

/* 0, or -EINVAL with *ret_ns left alone, also for what 64 bits of nanoseconds cannot hold. */
int duration_parse(const char *s, int64_t *ret_ns);
/* As Go prints it: "1m30s", "1h0m0s", "100ms", "0s". Returns the length. */
size_t duration_print(int64_t ns, char out[static DURATION_TEXT_MAX]);

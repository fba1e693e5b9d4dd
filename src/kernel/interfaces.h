/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The addresses of this host's interfaces, loopback and those that are down included. */

#include "base/addr.h"
#include "base/err.h"

/* An array for the caller to free; NULL when there are none. An address on two interfaces is there
 * twice. */
int interfaces_addresses(enum family family, struct addr **ret, size_t *ret_n, struct err *err);

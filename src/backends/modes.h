/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The operations of each mode, for the one table that names them all, and for their own tests. */

#include "backends/backend.h"

extern const struct backend_ops backend_iptables;
extern const struct backend_ops backend_nftables;

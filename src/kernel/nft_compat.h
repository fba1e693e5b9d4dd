/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Does nf_tables take the matches and targets of xtables, as iptables-nft uses them (nft_compat)?
 * Asking loads the module where the kernel has it.
 */

#include "base/addr.h"
#include "base/err.h"

/* 1; or 0 with the reason in *err. In the network namespace of the caller. */
int nft_compat_supported(enum family family, struct err *err);

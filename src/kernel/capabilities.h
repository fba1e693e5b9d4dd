/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The capabilities of the calling thread, as sets of bits: capability_bit(CAP_NET_ADMIN). Threads
 * that it starts later inherit them.
 */

#include "base/err.h"

static inline uint64_t capability_bit(int capability)
{
	return UINT64_C(1) << capability;
}

uint64_t capabilities_permitted(void);

/*
 * Takes capabilities outside of `keep` out of the bounding set, so that no program that is started
 * later can have them. Without CAP_SETPCAP that cannot be done: -EPERM.
 */
int capabilities_bound(uint64_t keep, struct err *err);
/*
 * Permitted and effective: what there is of `keep`. pass_on: so are inheritable and ambient, and programs
 * that are started have them as well, whichever the user is; else none is.
 */
int capabilities_keep(uint64_t keep, bool pass_on, struct err *err);

#define CAPABILITIES_TEXT_MAX 64
/* "NET_ADMIN,NET_RAW" for those that this program ever keeps, "+N others", or "none". */
const char *capabilities_print(uint64_t set, char text[static CAPABILITIES_TEXT_MAX]);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A network namespace of our own, so that no other test takes a port that was let go. Without the
 * right to have one the test goes on among the others.
 */

#include <sched.h>
#include <stdlib.h>

static inline int own_ports(void **state)
{
	(void)state;
	if (unshare(CLONE_NEWNET) == 0 && system("ip link set lo up") != 0)
		return -1;
	return 0;
}

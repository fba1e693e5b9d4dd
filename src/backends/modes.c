/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/modes.h"

const struct backend_ops *const backend_modes[] = {
	&backend_iptables,
	&backend_nftables,
	NULL,
};

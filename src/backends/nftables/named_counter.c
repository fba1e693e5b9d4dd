/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/nftables/named_counter.h"

#include <stdio.h>

void named_counter_name(enum protocol protocol, char out[static NAMED_COUNTER_MAX])
{
	snprintf(out, NAMED_COUNTER_MAX, "localhost-nodeport-rejected-%s", protocol_name(protocol));
}

bool named_counter_parse(const char *name, enum protocol *ret)
{
	char own[NAMED_COUNTER_MAX];

	for (enum protocol i = 0; i < PROTOCOL_COUNT; i++) {
		named_counter_name(i, own);
		if (streq(name, own)) {
			*ret = i;
			return true;
		}
	}
	return false;
}

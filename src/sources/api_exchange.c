/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/api_exchange.h"

#define DAY_S 86400

int api_exchange_retry_after(const char *value, size_t n)
{
	int seconds = 0;

	if (n == 0)
		return 0;
	for (size_t i = 0; i < n; i++) {
		if (value[i] < '0' || value[i] > '9')
			return 0; /* a date, which no API server sends */
		seconds = MIN(seconds * 10 + (value[i] - '0'), DAY_S);
	}
	return seconds;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/backoff.h"

int64_t backoff_next(struct backoff *backoff, uint32_t random)
{
	int64_t step = backoff->first_ms;

	for (unsigned int i = 0; i < backoff->failures && step < backoff->max_ms; i++)
		step *= 2;
	step = MIN(step, backoff->max_ms);
	if (backoff->failures < UINT32_MAX)
		backoff->failures++;
	return step - (int64_t)(random % (uint64_t)(step / 2 + 1));
}

void backoff_reset(struct backoff *backoff)
{
	backoff->failures = 0;
}

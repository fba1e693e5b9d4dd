/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/sync_guard.h"

#include <stdlib.h>

bool sync_guard_parse(const char *text, unsigned int *ret_percent)
{
	size_t n = strspn(text, "0123456789");
	unsigned long percent = n > 0 && n <= 2 ? strtoul(text, NULL, 10) : 0;

	if (streq(text, "off"))
		*ret_percent = 0;
	else if (streq(text, "on"))
		*ret_percent = SYNC_GUARD_PERCENT;
	else if (percent > 0 && (!text[n] || streq(text + n, "%")))
		*ret_percent = (unsigned int)percent;
	else
		return false;
	return true;
}

static bool is_too_much(const struct sync_guard *guard, const struct sync_guard_loss *loss)
{
	bool share = loss->known >= SYNC_GUARD_MIN &&
		     (uint64_t)loss->lost * 100 > (uint64_t)loss->known * guard->percent;

	return guard->percent > 0 && (share || loss->blank);
}

static bool is_confirmed(const struct sync_guard *guard, const struct sync_guard_loss *loss,
			 int64_t now_ms)
{
	return guard->holding && loss->fresh == 0 && now_ms >= sync_guard_due_ms(guard);
}

enum sync_guard_verdict sync_guard_judge(struct sync_guard *guard,
					 const struct sync_guard_loss *loss, int64_t now_ms)
{
	if (!is_too_much(guard, loss)) {
		sync_guard_release(guard);
		return SYNC_GUARD_FREE;
	}
	if (is_confirmed(guard, loss, now_ms)) {
		sync_guard_release(guard);
		return SYNC_GUARD_CONFIRMED;
	}
	if (!guard->holding || loss->fresh > 0)
		guard->since_ms = now_ms;
	guard->holding = true;
	return SYNC_GUARD_HELD;
}

int64_t sync_guard_due_ms(const struct sync_guard *guard)
{
	return guard->since_ms + SYNC_GUARD_CONFIRM_MS;
}

void sync_guard_postpone(struct sync_guard *guard, int64_t now_ms)
{
	guard->since_ms = now_ms;
}

void sync_guard_release(struct sync_guard *guard)
{
	guard->holding = false;
}

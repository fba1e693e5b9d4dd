/* SPDX-License-Identifier: Apache-2.0 */
#include "serving/scrape.h"

#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "serving/metrics.h"

void scrape_done(struct scrape *scrape)
{
	free(take(scrape->text));
	scrape->size = 0;
	scrape->good_until_ns = 0;
}

/* Not the time that went by: while the machine is busy that says nothing about the cost. */
static int64_t processor_ns(void)
{
	struct timespec used;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	return used.tv_sec * CLOCK_NS_PER_SECOND + used.tv_nsec;
}

static void print_anew(struct scrape *scrape, struct metrics *metrics, int64_t now_ns)
{
	int64_t (*cost_ns)(void) = scrape->cost_ns ? scrape->cost_ns : processor_ns;
	cleanup_text struct text text = {0};
	int64_t begun = cost_ns();
	int64_t cost;

	metrics_print(metrics, &text);
	cost = cost_ns() - begun;
	scrape_done(scrape);
	scrape->text = text_dup(&text);
	scrape->size = text.size;
	scrape->good_until_ns = now_ns + MIN(cost * SCRAPE_SHARE, SCRAPE_KEPT_MAX_NS);
}

void scrape_print(struct scrape *scrape, struct metrics *metrics, int64_t now_ns, struct text *ret)
{
	if (!scrape->text || now_ns >= scrape->good_until_ns)
		print_anew(scrape, metrics, now_ns);
	text_add(ret, scrape->text, scrape->size);
}

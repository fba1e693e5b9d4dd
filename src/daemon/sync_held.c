/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/sync_held.h"

#include <assert.h>
#include <stdlib.h>

#include "serving/proxy_metrics.h"
#include "sources/source.h"

static const char *const resources[] = {
	[SYNC_HELD_SERVICES] = "services",
	[SYNC_HELD_SLICES] = "endpointslices",
};
static_assert(ARRAY_SIZE(resources) == SYNC_HELD_COUNT, "a name for each kind");

static void set_metric(const struct sync_held *held, enum sync_held_kind kind, size_t n)
{
	proxy_metrics_set(held->metrics, PROXY_SYNC_HELD, resources[kind], "", (double)n);
}

void sync_held_init(struct sync_held *held, struct proxy_metrics *metrics)
{
	*held = (struct sync_held){.metrics = metrics};
	for (enum sync_held_kind kind = 0; kind < SYNC_HELD_COUNT; kind++)
		set_metric(held, kind, 0);
}

void sync_held_done(struct sync_held *held)
{
	for (enum sync_held_kind kind = 0; kind < SYNC_HELD_COUNT; kind++)
		free(held->texts[kind]);
	*held = (struct sync_held){0};
}

static void take_news(struct sync_held *held, enum sync_held_kind kind,
		      const struct source_held *news)
{
	set_metric(held, kind, news->n);
	if (!news->text)
		return;
	free(held->texts[kind]);
	held->texts[kind] = news->n > 0 ? xstrdup(news->text) : NULL;
}

void sync_held_told(struct sync_held *held, const struct source_held *news)
{
	for (enum sync_held_kind kind = 0; kind < SYNC_HELD_COUNT; kind++)
		if (streq(resources[kind], news->resource))
			take_news(held, kind, news);
}

char *sync_held_words(const struct sync_held *held)
{
	const char *services = held->texts[SYNC_HELD_SERVICES];
	const char *slices = held->texts[SYNC_HELD_SLICES];

	if (services && slices)
		return xasprintf("%s. %s", services, slices);
	return services ? xstrdup(services) : slices ? xstrdup(slices) : NULL;
}

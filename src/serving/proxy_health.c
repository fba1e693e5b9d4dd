/* SPDX-License-Identifier: Apache-2.0 */
#include "serving/proxy_health.h"

#include <stdio.h>
#include <time.h>

#include "base/doc.h"

#define NS_PER_SECOND 1000000000LL
#define TIME_MAX      48

void proxy_health_updated(struct proxy_health *health, enum family family,
			  const struct health_time *now)
{
	struct family_health *f = &health->families[family];

	f->updated = true;
	f->queued = false;
	f->updated_wall_ns = now->wall_ns;
}

void proxy_health_queued(struct proxy_health *health, enum family family,
			 const struct health_time *now)
{
	struct family_health *f = &health->families[family];

	if (f->queued)
		return;
	f->queued = true;
	f->queued_steady_ns = now->steady_ns;
}

static bool family_is_good(const struct proxy_health *health, enum family family,
			   const struct health_time *now)
{
	const struct family_health *f = &health->families[family];

	return !f->updated || !f->queued ||
	       now->steady_ns - f->queued_steady_ns < health->timeout_ns;
}

bool proxy_health_is_good(const struct proxy_health *health, const struct health_time *now)
{
	for (enum family family = 0; family < FAMILY_COUNT; family++)
		if (!family_is_good(health, family, now))
			return false;
	return true;
}

bool proxy_health_node_eligible(const struct node *node)
{
	return node && !node->being_deleted && !node->autoscaler_taint;
}

/* RFC 3339 in UTC with as many decimals as it needs, as Go prints it. Zero: never. */
static void print_time(int64_t wall_ns, char out[static TIME_MAX])
{
	time_t seconds = (time_t)(wall_ns / NS_PER_SECOND);
	long long nanos = wall_ns % NS_PER_SECOND;
	struct tm parts;
	size_t n;

	if (wall_ns == 0) {
		strcpy(out, "0001-01-01T00:00:00Z");
		return;
	}
	gmtime_r(&seconds, &parts);
	n = strftime(out, TIME_MAX, "%Y-%m-%dT%H:%M:%S", &parts);
	if (nanos != 0) {
		n += (size_t)snprintf(out + n, TIME_MAX - n, ".%09lld", nanos);
		while (out[n - 1] == '0')
			n--;
	}
	strcpy(out + n, "Z");
}

static int64_t newest_update(const struct proxy_health *health)
{
	int64_t newest = 0;

	for (enum family family = 0; family < FAMILY_COUNT; family++)
		if (health->families[family].updated)
			newest = MAX(newest, health->families[family].updated_wall_ns);
	return newest;
}

static void print_families(const struct proxy_health *health, const struct health_time *now,
			   struct doc *doc)
{
	bool any = false;

	for (enum family family = 0; family < FAMILY_COUNT; family++) {
		char time[TIME_MAX];

		if (!health->families[family].updated)
			continue;
		if (!any)
			doc_open_map(doc, "status");
		any = true;
		print_time(health->families[family].updated_wall_ns, time);
		doc_open_map(doc, family_name(family));
		doc_string(doc, "lastUpdated", time);
		doc_bool(doc, "healthy", family_is_good(health, family, now));
		doc_close(doc);
	}
	if (any)
		doc_close(doc);
}

/* eligible: NULL when it plays no part and is not shown. */
static int print_health(const struct proxy_health *health, const bool *eligible,
			const char *why_not, const char *degraded, const struct health_time *now,
			struct text *ret)
{
	bool good = proxy_health_is_good(health, now) && !why_not;
	bool answer = good && (!eligible || *eligible);
	char last[TIME_MAX];
	char current[TIME_MAX];
	struct doc doc;

	/* who is well was updated just now, whenever that last needed a sync */
	print_time(answer ? now->wall_ns : newest_update(health), last);
	print_time(now->wall_ns, current);
	doc_init(&doc, ret, DOC_LINE);
	doc_open_map(&doc, NULL);
	doc_string(&doc, "lastUpdated", last);
	doc_string(&doc, "currentTime", current);
	if (eligible)
		doc_bool(&doc, "nodeEligible", *eligible);
	doc_bool(&doc, "healthy", good);
	doc_optional(&doc, "reason", why_not);
	doc_optional(&doc, "degraded", degraded);
	print_families(health, now, &doc);
	doc_close(&doc);
	return answer ? 200 : 503;
}

int proxy_health_print_healthz(const struct proxy_health *health, const struct node *node,
			       const char *why_not, const char *degraded,
			       const struct health_time *now, struct text *ret)
{
	bool eligible = proxy_health_node_eligible(node);

	return print_health(health, &eligible, why_not, degraded, now, ret);
}

int proxy_health_print_livez(const struct proxy_health *health, const struct health_time *now,
			     struct text *ret)
{
	return print_health(health, NULL, NULL, NULL, now, ret);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/events.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/doc.h"
#include "base/log.h"
#include "sources/api_client.h"
#include "sources/api_query.h"
#include "sources/printable.h"

#define CONTROLLER   "kube-proxy"
#define NOTE_MAX     1024 /* bytes, the API server's limits */
#define INSTANCE_MAX 128
#define NAME_MAX_LEN 253
#define NS_PER_S     INT64_C(1000000000)

/* All that can go out in the time in which likeness counts. */
#define RECENT_MAX (EVENTS_BURST + EVENTS_ALIKE_NS / EVENTS_REFILL_NS + 1)

struct recent {
	char *key; /* NULL: none */
	char *ns;
	int64_t at_ns;
};

struct events {
	struct events_config config;
	int64_t credit_ns; /* a full bucket is EVENTS_BURST * EVENTS_REFILL_NS */
	int64_t last_ns;   /* when it was counted */
	struct recent recent[RECENT_MAX];
	size_t next; /* of the recent ones, the oldest */
};

struct events *events_new(const struct events_config *config)
{
	struct events *events = xcalloc(1, sizeof(*events));

	events->config = *config;
	events->credit_ns = EVENTS_BURST * EVENTS_REFILL_NS;
	events->last_ns = config->steady_ns();
	return events;
}

static void recent_done(struct recent *recent)
{
	free(recent->key);
	free(recent->ns);
}

struct events *events_free(struct events *events)
{
	if (!events)
		return NULL;
	for (size_t i = 0; i < RECENT_MAX; i++)
		recent_done(&events->recent[i]);
	free(events);
	return NULL;
}

/* -- the trickle -- */

static const char *type_name(const struct events_item *item)
{
	return item->warning ? "Warning" : "Normal";
}

static bool was_recent(const struct events *events, const char *key, int64_t now_ns)
{
	for (size_t i = 0; i < RECENT_MAX; i++) {
		const struct recent *recent = &events->recent[i];

		if (recent->key && now_ns - recent->at_ns < EVENTS_ALIKE_NS &&
		    streq(recent->key, key))
			return true;
	}
	return false;
}

static bool is_greedy(const struct events *events, const char *ns, int64_t now_ns)
{
	size_t n = 0;

	for (size_t i = 0; *ns && i < RECENT_MAX; i++) {
		const struct recent *recent = &events->recent[i];

		n += recent->key && now_ns - recent->at_ns < EVENTS_ALIKE_NS &&
		     streq(recent->ns, ns);
	}
	return n >= EVENTS_NAMESPACE;
}

static bool take_credit(struct events *events, const char *ns, int64_t now_ns)
{
	int64_t least_ns = EVENTS_REFILL_NS * (*ns ? 1 + EVENTS_NODE : 1);

	events->credit_ns += now_ns - events->last_ns;
	events->credit_ns = MIN(events->credit_ns, EVENTS_BURST * EVENTS_REFILL_NS);
	events->last_ns = now_ns;
	if (events->credit_ns < least_ns)
		return false;
	events->credit_ns -= EVENTS_REFILL_NS;
	return true;
}

static bool may_go(struct events *events, const struct events_item *item)
{
	char *key cleanup_free = xasprintf("%s %s %s %s %s/%s", type_name(item), item->reason,
					   item->action, item->kind, item->ns, item->name);
	struct recent *oldest = &events->recent[events->next];
	int64_t now_ns = events->config.steady_ns();

	if (was_recent(events, key, now_ns) || is_greedy(events, item->ns, now_ns) ||
	    !take_credit(events, item->ns, now_ns))
		return false;
	recent_done(oldest);
	*oldest = (struct recent){.key = take(key), .ns = xstrdup(item->ns), .at_ns = now_ns};
	events->next = (events->next + 1) % RECENT_MAX;
	return true;
}

/* -- the object -- */

/* What is not plain ASCII is replaced, what is too long is cut. */
static void add_field(struct doc *doc, const char *name, const char *value, size_t limit)
{
	char plain[NOTE_MAX];

	doc_string(doc, name, printable(value, plain, MIN(sizeof(plain), limit)));
}

/* Two of them must differ, in any cluster: the time in nanoseconds is part of it. */
static void add_metadata(struct doc *doc, const struct events_item *item, int64_t wall_ns)
{
	char *name cleanup_free = xasprintf("%s.%llx", item->name, (unsigned long long)wall_ns);

	if (strlen(name) > NAME_MAX_LEN) {
		free(take(name));
		name = xasprintf("%s.%llx", CONTROLLER, (unsigned long long)wall_ns);
	}
	doc_open_map(doc, "metadata");
	add_field(doc, "name", name, NOTE_MAX);
	add_field(doc, "namespace", *item->ns ? item->ns : "default", NOTE_MAX);
	doc_close(doc);
}

static void add_time(struct doc *doc, int64_t wall_ns)
{
	time_t seconds = (time_t)(wall_ns / NS_PER_S);
	char text[64];
	struct tm tm;
	size_t n;

	gmtime_r(&seconds, &tm);
	n = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text + n, sizeof(text) - n, ".%06dZ", (int)(wall_ns % NS_PER_S / 1000));
	doc_string(doc, "eventTime", text);
}

static void add_regarding(struct doc *doc, const struct events_item *item)
{
	doc_open_map(doc, "regarding");
	add_field(doc, "kind", item->kind, NOTE_MAX);
	if (*item->ns)
		add_field(doc, "namespace", item->ns, NOTE_MAX);
	add_field(doc, "name", item->name, NOTE_MAX);
	add_field(doc, "apiVersion", item->api_version ? item->api_version : "v1", NOTE_MAX);
	doc_close(doc);
}

static char *print_event(const struct events *events, const struct events_item *item)
{
	char *instance cleanup_free = xasprintf("%s-%s", CONTROLLER, events->config.host);
	int64_t wall_ns = events->config.wall_ns();
	cleanup_text struct text json = {0};
	struct doc doc;

	doc_init(&doc, &json, DOC_LINE);
	doc_open_map(&doc, NULL);
	doc_string(&doc, "apiVersion", "events.k8s.io/v1");
	doc_string(&doc, "kind", "Event");
	add_metadata(&doc, item, wall_ns);
	add_time(&doc, wall_ns);
	add_field(&doc, "reportingController", CONTROLLER, INSTANCE_MAX);
	add_field(&doc, "reportingInstance", instance, INSTANCE_MAX + 1);
	add_field(&doc, "action", item->action, INSTANCE_MAX + 1);
	add_field(&doc, "reason", item->reason, INSTANCE_MAX + 1);
	add_regarding(&doc, item);
	if (*item->note)
		add_field(&doc, "note", item->note, NOTE_MAX);
	add_field(&doc, "type", type_name(item), INSTANCE_MAX);
	doc_close(&doc);
	return text_dup(&json);
}

bool events_record(struct events *events, const struct events_item *item)
{
	char *json cleanup_free = NULL;
	char *path cleanup_free = NULL;
	char *ns cleanup_free = NULL;

	if (!may_go(events, item))
		return false;
	json = print_event(events, item);
	ns = api_query_escape(*item->ns ? item->ns : "default");
	path = xasprintf("/apis/events.k8s.io/v1/namespaces/%s/events", ns);
	events->config.post(events->config.arg, path, json);
	return true;
}

/* -- to an API server -- */

static void on_posted(void *arg attr_unused, int status, const char *text)
{
	if (status < 200 || status > 299)
		log_debug(2, "An event was not recorded", KV("status", LOG_INT(status)),
			  KV("err", LOG_STR(text)));
}

void events_post(void *client, const char *path, const char *json)
{
	api_client_post(client, path, json, on_posted, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One timer drives all readers. `due_ns` is when it goes off: a change, a new reader or one that lags may want
 * that sooner, nothing makes it later. Each turn tells the gauges when their time has come, and the
 * readers that can take it what they have not seen, all together no more than STATUS_PIECE Services: a turn
 * costs the same however many pages are open.
 *
 * A send may end its connection, which calls on_gone() before it returns; so a reader is looked at again after each.
 */

#include "page/status_feed.h"

#include <stdlib.h>
#include <time.h>

#include "backends/backend.h"
#include "base/doc.h"
#include "base/loop.h"
#include "page/status_json.h"

#define GAUGES_PER_TRAFFIC 2 /* the table of connections is walked once a second at most */

struct reader {
	struct status_feed *feed;
	struct http_stream *stream;         /* NULL: this place is free */
	uint64_t services, syncs, troubles; /* cursors */
	uint64_t taken;                     /* bytes, ... */
	int64_t taken_ns;                   /* ... and when they last grew, or were all */
	bool loaded;
};

struct status_feed {
	const struct status_source *source;
	struct event *timer;
	int64_t due_ns, gauges_ns;
	unsigned int n_gauges;
	size_t budget; /* Services that may still be told in this turn */
	size_t first;  /* reader of this turn */
	struct reader readers[STATUS_READERS];
	size_t n_readers;
	struct service_log *log; /* NULL: no page is open */
	struct status_history history;
	bool first_done[FAMILY_COUNT]; /* the sync that all Services are new in */
};

static int64_t wall_s(void)
{
	return time(NULL);
}

/* -- the timer */

static void wake_at(struct status_feed *feed, int64_t when_ns)
{
	if (feed->n_readers == 0 ||
	    (event_pending(feed->timer, EV_TIMEOUT, NULL) && feed->due_ns <= when_ns))
		return;
	feed->due_ns = when_ns;
	loop_arm(feed->timer, when_ns - clock_now_ns());
}

static void wake_soon(struct status_feed *feed)
{
	wake_at(feed, clock_now_ns() + STATUS_GATHER_NS);
}

/* -- one reader */

/* Once for each, when its client is gone or it was let go. */
static void forget(struct reader *reader)
{
	struct status_feed *feed = reader->feed;

	*reader = (struct reader){.feed = feed};
	if (--feed->n_readers > 0)
		return;
	feed->log = service_log_free(feed->log);
	event_del(feed->timer);
}

static void on_gone(void *arg)
{
	forget(arg);
}

/* For the caller to free. The text is emptied. */
static char *make_event(const char *name, struct text *data)
{
	cleanup_free char *json = text_dup(data);

	text_consume(data, data->size);
	return xasprintf("event: %s\ndata: %s\n\n", name, json);
}

static void send_event(struct reader *reader, const char *name, struct text *data)
{
	cleanup_free char *event = make_event(name, data);

	http_stream_send(reader->stream, event, strlen(event));
}

static bool can_take(const struct reader *reader)
{
	return reader->stream && http_stream_pending(reader->stream) < STATUS_LAG_MAX;
}

/* As many as this turn has left. */
static void send_services(struct reader *reader)
{
	struct status_feed *feed = reader->feed;
	const struct service_log_item *item;
	cleanup_text struct text text = {0};
	size_t n = 0;

	text_str(&text, "[");
	while (feed->budget > 0 && text.size < STATUS_PIECE_BYTES &&
	       (item = service_log_next(feed->log, &reader->services))) {
		text_str(&text, n++ > 0 ? "," : "");
		status_json_service(feed->source, item, &text);
		feed->budget--;
	}
	text_str(&text, "]");
	if (n > 0)
		send_event(reader, "services", &text);
}

static void send_loaded(struct reader *reader)
{
	cleanup_text struct text text = {0};

	reader->loaded = true;
	text_str(&text, "{}");
	send_event(reader, "loaded", &text);
}

/* What it has not seen, as far as one turn goes. */
static void send_news(struct reader *reader)
{
	const struct status_feed *feed = reader->feed;
	cleanup_text struct text text = {0};

	if (can_take(reader) && status_history_print_syncs(&feed->history, &reader->syncs, &text))
		send_event(reader, "syncs", &text);
	if (can_take(reader) &&
	    status_history_print_troubles(&feed->history, &reader->troubles, &text))
		send_event(reader, "troubles", &text);
	if (can_take(reader))
		send_services(reader);
	if (can_take(reader) && !reader->loaded && service_log_seen(feed->log, reader->services))
		send_loaded(reader);
}

/* Its place is worth more to a client that reads. */
static void let_go_if_stuck(struct reader *reader, int64_t now)
{
	struct http_stream *stream = reader->stream;

	if (!stream)
		return;
	if (http_stream_pending(stream) == 0 || http_stream_taken(stream) != reader->taken)
		reader->taken_ns = now;
	reader->taken = http_stream_taken(stream);
	if (now - reader->taken_ns < STATUS_STUCK_NS)
		return;
	http_stream_close(stream);
	forget(reader);
}

/* -- all of them */

static void tell_all(struct status_feed *feed, const char *name, struct text *data)
{
	cleanup_free char *event = make_event(name, data);

	for (size_t i = 0; i < STATUS_READERS; i++)
		if (can_take(&feed->readers[i]))
			http_stream_send(feed->readers[i].stream, event, strlen(event));
}

static void tell_gauges(struct status_feed *feed, int64_t now)
{
	cleanup_text struct text text = {0};

	for (size_t i = 0; i < STATUS_READERS; i++)
		let_go_if_stuck(&feed->readers[i], now);
	if (feed->n_readers == 0)
		return;
	feed->gauges_ns = now + STATUS_GAUGES_NS;
	status_json_gauges(feed->source, service_log_count(feed->log), feed->history.repairs,
			   &text);
	tell_all(feed, "gauges", &text);
	if (!feed->source->metered || feed->n_gauges++ % GAUGES_PER_TRAFFIC != 0)
		return;
	status_json_traffic(feed->source, now / CLOCK_NS_PER_MS, &text);
	tell_all(feed, "traffic", &text);
}

/* Another one is first each time, so that no page's load keeps the others waiting. */
static void tell_news(struct status_feed *feed)
{
	feed->budget = STATUS_PIECE;
	feed->first++;
	for (size_t i = 0; i < STATUS_READERS; i++) {
		struct reader *reader = &feed->readers[(feed->first + i) % STATUS_READERS];

		if (reader->stream)
			send_news(reader);
	}
}

static uint64_t slowest(const struct status_feed *feed)
{
	uint64_t least = UINT64_MAX;

	for (size_t i = 0; i < STATUS_READERS; i++)
		if (feed->readers[i].stream)
			least = MIN(least, feed->readers[i].services);
	return least;
}

static bool somebody_waits(const struct status_feed *feed)
{
	for (size_t i = 0; i < STATUS_READERS; i++)
		if (can_take(&feed->readers[i]) &&
		    !service_log_seen(feed->log, feed->readers[i].services))
			return true;
	return false;
}

static void on_timer(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	struct status_feed *feed = arg;
	int64_t now = clock_now_ns();

	tell_news(feed);
	if (feed->n_readers > 0 && now >= feed->gauges_ns)
		tell_gauges(feed, now);
	if (feed->n_readers == 0)
		return;
	service_log_trim(feed->log, slowest(feed));
	wake_at(feed, feed->gauges_ns);
	if (somebody_waits(feed))
		wake_at(feed, clock_now_ns() + STATUS_PAUSE_NS);
}

/* -- a new reader */

static bool is_there(void *arg, const char *key)
{
	const struct status_feed *feed = arg;

	return model_service(feed->source->model, key) != NULL;
}

static struct service_log *list_services(struct status_feed *feed)
{
	struct service_log *log = service_log_new();
	const struct service *service;
	size_t at = 0;

	while ((service = model_next_service(feed->source->model, &at)))
		service_log_touch(log, service->key, false, 0);
	status_history_replay(&feed->history, log, is_there, feed);
	return log;
}

static struct reader *find_place(struct status_feed *feed)
{
	for (size_t i = 0; i < STATUS_READERS; i++)
		if (!feed->readers[i].stream)
			return &feed->readers[i];
	return NULL;
}

bool status_feed_open(struct status_feed *feed, struct http_exchange *exchange)
{
	cleanup_text struct text text = {0};
	struct reader *reader = find_place(feed);

	if (!reader)
		return false;
	*reader = (struct reader){
		.feed = feed,
		.stream = http_stream(exchange, "text/event-stream", on_gone, reader),
		.taken_ns = clock_now_ns(),
	};
	if (feed->n_readers++ == 0)
		feed->log = list_services(feed);
	status_json_hello(feed->source, &text);
	send_event(reader, "hello", &text);
	feed->gauges_ns = 0; /* now: it would have to wait for a second */
	wake_at(feed, clock_now_ns());
	return true;
}

size_t status_feed_readers(const struct status_feed *feed)
{
	return feed->n_readers;
}

/* -- what happens */

/* In a family's first sync all Services are new, which says nothing about when they changed. */
static void note_changes(struct status_feed *feed, const struct model_changes *changes, bool first)
{
	int64_t now = wall_s();

	for (size_t i = 0; i < changes->n_services; i++) {
		const char *key = changes->services[i];
		bool gone = !is_there(feed, key);

		if (!gone && !first)
			status_history_changed(&feed->history, now, key);
		if (feed->log)
			service_log_touch(feed->log, key, gone, first ? 0 : now);
	}
}

/* What changed is told after a failure as well: the page shows what is wanted, and that it failed. */
void status_feed_synced(struct status_feed *feed, enum family family,
			const struct backend_result *result)
{
	const struct status_sync sync = {
		.at_s = wall_s(),
		.duration_ns = result->duration_ns,
		.services = result->services,
		.family = family,
		.full = result->full,
		.good = result->error == 0,
	};

	status_history_sync(&feed->history, &sync);
	if (result->changes)
		note_changes(feed, result->changes, !feed->first_done[family]);
	feed->first_done[family] = true;
	if (!sync.good) {
		cleanup_free char *words =
			xasprintf("Sync of %s failed: %s", family_name(family), result->err.text);

		status_history_trouble(&feed->history, sync.at_s, words);
	}
	wake_soon(feed);
}

void status_feed_repaired(struct status_feed *feed, const char *words)
{
	feed->history.repairs++;
	status_feed_trouble(feed, words);
}

void status_feed_trouble(struct status_feed *feed, const char *words)
{
	status_history_trouble(&feed->history, wall_s(), words);
	wake_soon(feed);
}

/* -- begin and end */

struct status_feed *status_feed_new(struct event_base *loop, const struct status_source *source)
{
	struct status_feed *feed = xcalloc(1, sizeof(*feed));

	feed->source = source;
	feed->timer = loop_timer(loop, on_timer, feed);
	for (size_t i = 0; i < STATUS_READERS; i++)
		feed->readers[i].feed = feed;
	return feed;
}

struct status_feed *status_feed_free(struct status_feed *feed)
{
	if (!feed)
		return NULL;
	service_log_free(feed->log);
	status_history_done(&feed->history);
	loop_free(feed->timer);
	free(feed);
	return NULL;
}

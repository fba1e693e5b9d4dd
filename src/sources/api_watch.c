/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/api_watch.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "sources/api_frame.h"
#include "sources/api_known.h"
#include "sources/api_list.h"
#include "sources/api_object.h"
#include "sources/api_query.h"
#include "sources/backoff.h"
#include "sources/printable.h"

#define BACKOFF_FIRST_MS  800
#define BACKOFF_MAX_MS    30000
#define RETRY_AFTER_MAX_S 300
#define SILENCE_MS        30000 /* a list that pauses for longer has stopped */
#define SETTLED_MS        5000  /* a watch that has lasted this long works */
#define SHORT_MS          1000  /* one that did not last this long is a failure */
#define WATCH_MIN_S       300u  /* how long to ask for: 5 to 10 min, */
#define WATCH_SPREAD_S    300u  /* so that not all nodes come back at once */
#define WATCH_GRACE_MS    30000 /* what the server may take longer */
#define SPREAD_MS         1000
#define CUTS_MAX          3 /* of streams with initial events, before it is tried in pages */
#define PAGE_SIZE         500
#define ERROR_BODY_MAX    (64u << 10)
#define VERSION_MAX       128u /* bytes of a resourceVersion: a number in practice */
#define TOKEN_MAX         (16u << 10)

/* frame and item handlers: go on; or the request has been given up, nothing more is read */
#define GO_ON 0
#define STOP  1

enum state {
	STATE_IDLE = 0,
	STATE_WAITING,
	STATE_INITIAL,
	STATE_PAGE,
	STATE_WATCH,
	STATE_COUNT,
};

struct api_watch {
	struct api_watch_kind kind;
	struct api_watch_io io;
	struct api_known known;
	struct backoff backoff;
	bool failing; /* failed() was called after recovered() */
	bool listed;  /* at least once */

	enum state state;
	bool paged;        /* the list at hand is one in pages */
	bool unpaged;      /* and must have only one */
	bool no_marks;     /* the server was found not to know initial events */
	bool relisted;     /* 410 has led to a new list that is not complete yet */
	unsigned int cuts; /* streams that ended before the mark, in a row */
	char *version;     /* to watch from; NULL: a list is needed */
	char *token;       /* of the next page; NULL: the first */

	/* the request under way */
	int status; /* 0: no answer so far */
	int retry_after_s;
	int64_t started_ms;
	int64_t life_ms; /* how long the watch may last */
	bool settled;
	bool any; /* something readable has come */
	struct api_frames frames;
	struct api_list list;
	char *list_kind; /* "ServiceList" */
	struct api_buffer error_body;
};

/* -- success and failure -- */

static void set_version(char **at, struct api_bytes version, size_t max)
{
	free(*at);
	*at = version.n > 0 && version.n <= max ? api_bytes_text(version) : NULL;
}

static void succeed(struct api_watch *watch)
{
	backoff_reset(&watch->backoff);
	watch->settled = true;
	if (!watch->failing)
		return;
	watch->failing = false;
	watch->io.recovered(watch->io.arg);
}

/* Forgets the answer, not what it taught. */
static void drop_request(struct api_watch *watch)
{
	api_frames_done(&watch->frames);
	api_list_done(&watch->list);
	api_buffer_done(&watch->error_body);
	watch->status = 0;
	watch->retry_after_s = 0;
	watch->any = false;
	watch->settled = false;
}

/* The request ends here, by its own or not; the next comes after this time. */
static void go_on_after(struct api_watch *watch, int64_t ms)
{
	watch->io.stop(watch->io.arg);
	drop_request(watch);
	watch->state = STATE_WAITING;
	watch->io.wait(watch->io.arg, ms);
}

static void fail(struct api_watch *watch, enum api_failure failure, const char *text)
{
	uint32_t random = watch->io.random(watch->io.arg);
	int64_t retry_after = MIN(watch->retry_after_s, RETRY_AFTER_MAX_S) * INT64_C(1000);
	int64_t wait = backoff_next(&watch->backoff, random);

	if (retry_after > 0) /* and not all at that moment */
		wait = MAX(wait, retry_after + random % SPREAD_MS);
	watch->failing = true;
	watch->io.failed(watch->io.arg, failure, text);
	go_on_after(watch, wait);
}

static void start_list(struct api_watch *watch)
{
	watch->known.list++;
	watch->paged = watch->no_marks;
	watch->unpaged = false;
	set_version(&watch->version, (struct api_bytes){0}, 0);
	set_version(&watch->token, (struct api_bytes){0}, 0);
}

static void list_in_pages(struct api_watch *watch)
{
	start_list(watch);
	watch->paged = true;
	go_on_after(watch, 0);
}

/* The list is complete, as of this version. */
static void end_list(struct api_watch *watch, struct api_bytes version)
{
	set_version(&watch->version, version, VERSION_MAX);
	watch->relisted = false;
	watch->cuts = 0;
	watch->listed = true;
	api_known_sweep(&watch->known);
	succeed(watch);
	watch->kind.listed(watch->kind.arg);
}

/* Our version, or a page's token, is too old. The first time that is no failure. */
static void gone(struct api_watch *watch, const char *text)
{
	bool again = watch->relisted;
	bool page = watch->state == STATE_PAGE;

	watch->relisted = true;
	start_list(watch);
	if (page) {
		watch->paged = true;
		watch->unpaged = true;
	}
	if (again)
		fail(watch, API_FAILURE_SERVER, text);
	else
		go_on_after(watch, 0);
}

/* The server understood, and does not want to do it. */
static bool is_refusal(int code)
{
	return code == 400 || code == 405 || code == 406 || code == 415 || code == 422 ||
	       code == 501;
}

static enum api_failure failure_of(int code)
{
	switch (code) {
	case 401:
		return API_FAILURE_UNAUTHORISED;
	case 403:
		return API_FAILURE_FORBIDDEN;
	case 404:
		return API_FAILURE_ABSENT;
	case 429:
		return API_FAILURE_THROTTLED;
	default:
		return API_FAILURE_SERVER;
	}
}

/* An answer, or an ERROR event, that says no. */
static void judge(struct api_watch *watch, int code, const struct api_status *status)
{
	char *message cleanup_free = api_bytes_text(status->message);
	char text[512], clean[400];

	if (*message)
		snprintf(text, sizeof(text), "%d: %s", code,
			 printable(message, clean, sizeof(clean)));
	else
		snprintf(text, sizeof(text), "HTTP status %d", code);
	watch->retry_after_s = MAX(watch->retry_after_s, status->retry_after_s);
	if (code == 410 || (watch->state == STATE_PAGE && watch->token && is_refusal(code)))
		gone(watch, text); /* or the server does not like its own token */
	else if (watch->state == STATE_INITIAL && (is_refusal(code) || code == 500))
		list_in_pages(watch); /* 500: the server could, but its etcd (3.4) cannot */
	else {
		/* our version is from the server's future: it lost something */
		if (strstr(message, "oo large resource version"))
			start_list(watch);
		fail(watch, failure_of(code), text);
	}
}

/* -- the stream of a watch -- */

static int on_error_event(struct api_watch *watch, const struct api_event *event)
{
	struct api_status status = {0};
	struct err err;

	if (api_status_read(event->envelope.object, &status, &err) < 0)
		fail(watch, API_FAILURE_GARBAGE, err.text);
	else
		judge(watch, status.code ? status.code : 500, &status);
	return STOP;
}

static void on_bookmark(struct api_watch *watch, const struct api_meta *meta)
{
	if (watch->state == STATE_INITIAL && meta->initial_events_end) {
		int64_t lived = watch->io.now_ms(watch->io.arg) - watch->started_ms;

		watch->state = STATE_WATCH;
		watch->io.wait(watch->io.arg, MAX(watch->life_ms - lived, 0));
		end_list(watch, meta->resource_version);
	} else if (watch->state == STATE_WATCH) {
		set_version(&watch->version, meta->resource_version, VERSION_MAX);
	}
}

static int on_frame(void *arg, struct api_bytes frame, struct err *err)
{
	struct api_watch *watch = arg;
	struct api_event event;
	struct api_meta meta;
	int r = api_event_read(frame, &event, err);

	if (r < 0)
		return r;
	if (event.type == API_EVENT_ERROR)
		return on_error_event(watch, &event);
	if (!api_bytes_equal(event.envelope.kind, watch->kind.kind))
		return err_set(err, -EBADMSG, "an event about something that is not a %s",
			       watch->kind.kind);
	r = api_meta_read(event.envelope.object, &meta, err);
	if (r < 0)
		return r;
	watch->any = true;
	if (watch->state == STATE_WATCH)
		succeed(watch);
	if (event.type == API_EVENT_BOOKMARK) {
		on_bookmark(watch, &meta);
		return GO_ON;
	}
	if (event.type == API_EVENT_DELETED)
		api_known_remove(&watch->known, &meta);
	else
		api_known_set(&watch->known, &meta, event.envelope.object);
	if (watch->state == STATE_WATCH)
		set_version(&watch->version, meta.resource_version, VERSION_MAX);
	return GO_ON;
}

/* -- pages -- */

static int on_item(void *arg, struct api_bytes object, struct err *err)
{
	struct api_watch *watch = arg;
	struct api_meta meta;
	int r = api_meta_read(object, &meta, err);

	if (r < 0)
		return r;
	api_known_set(&watch->known, &meta, object);
	return GO_ON;
}

static void end_page(struct api_watch *watch)
{
	struct api_bytes text = {0};
	struct err err;

	if (api_list_end(&watch->list, &err) < 0) {
		fail(watch, API_FAILURE_GARBAGE, err.text);
		return;
	}
	if (watch->list.continue_token && *watch->list.continue_token) {
		text.data = (const uint8_t *)watch->list.continue_token;
		text.n = strlen(watch->list.continue_token);
		set_version(&watch->token, text, TOKEN_MAX);
		go_on_after(watch, 0);
		return;
	}
	if (watch->list.resource_version) {
		text.data = (const uint8_t *)watch->list.resource_version;
		text.n = strlen(watch->list.resource_version);
	}
	if (text.n == 0) {
		fail(watch, API_FAILURE_GARBAGE, "a list without a resourceVersion");
		return;
	}
	end_list(watch, text);
	go_on_after(watch, 0);
}

/* -- requests -- */

static const char *page_target(struct api_watch *watch, struct api_query *query)
{
	if (!watch->unpaged)
		api_query_number(query, "limit", PAGE_SIZE);
	if (watch->token)
		api_query_text(query, "continue", watch->token);
	return query->text;
}

static const char *watch_target(struct api_watch *watch, struct api_query *query)
{
	uint32_t seconds = WATCH_MIN_S + watch->io.random(watch->io.arg) % WATCH_SPREAD_S;

	watch->life_ms = seconds * INT64_C(1000) + WATCH_GRACE_MS;
	api_query_text(query, "watch", "1");
	api_query_text(query, "allowWatchBookmarks", "true");
	api_query_number(query, "timeoutSeconds", seconds);
	if (watch->version) {
		api_query_text(query, "resourceVersion", watch->version);
	} else {
		api_query_text(query, "sendInitialEvents", "true");
		api_query_text(query, "resourceVersionMatch", "NotOlderThan");
	}
	return query->text;
}

/* Sends the request that is due. */
static void ask(struct api_watch *watch)
{
	cleanup_api_query struct api_query query = {0};
	const char *target;

	api_query_start(&query, watch->kind.path, watch->kind.selectors);
	drop_request(watch);
	watch->started_ms = watch->io.now_ms(watch->io.arg);
	if (watch->version)
		watch->state = STATE_WATCH;
	else
		watch->state = watch->paged ? STATE_PAGE : STATE_INITIAL;
	if (watch->state == STATE_PAGE) {
		char *kind = xasprintf("%sList", watch->kind.kind);

		free(watch->list_kind);
		watch->list_kind = kind;
		watch->list = (struct api_list){.item = on_item, .arg = watch, .kind = kind};
		target = page_target(watch, &query);
	} else {
		if (watch->state == STATE_INITIAL)
			watch->known.list++; /* it starts anew, whatever came before */
		target = watch_target(watch, &query);
	}
	watch->io.wait(watch->io.arg, SILENCE_MS);
	watch->io.get(watch->io.arg, target, watch->state != STATE_PAGE);
}

/* -- what happens -- */

struct api_watch *api_watch_new(const struct api_watch_kind *kind, const struct api_watch_io *io)
{
	struct api_watch *watch = xcalloc(1, sizeof(*watch));

	watch->kind = *kind;
	watch->io = *io;
	watch->known.kind = &watch->kind;
	watch->known.io = &watch->io;
	watch->backoff = (struct backoff){.first_ms = BACKOFF_FIRST_MS, .max_ms = BACKOFF_MAX_MS};
	return watch;
}

struct api_watch *api_watch_free(struct api_watch *watch)
{
	if (!watch)
		return NULL;
	drop_request(watch);
	api_known_done(&watch->known);
	free(watch->version);
	free(watch->token);
	free(watch->list_kind);
	free(watch);
	return NULL;
}

void api_watch_start(struct api_watch *watch)
{
	start_list(watch);
	ask(watch);
}

/* A list has paused for too long. */
static void on_silence(struct api_watch *watch)
{
	bool answered = watch->status == 200;

	if (watch->state == STATE_INITIAL && answered) {
		watch->no_marks = true;
		list_in_pages(watch);
		return;
	}
	fail(watch, API_FAILURE_CONNECT,
	     answered ? "the answer stopped in the middle" : "no answer");
}

void api_watch_timer(struct api_watch *watch)
{
	int64_t lived = watch->io.now_ms(watch->io.arg) - watch->started_ms;

	if (watch->state == STATE_WAITING) {
		ask(watch);
	} else if (watch->state == STATE_WATCH && watch->status == 200) {
		if (lived >= watch->life_ms) {
			go_on_after(watch, 0); /* the server forgot to end it */
			return;
		}
		succeed(watch);
		watch->io.wait(watch->io.arg, watch->life_ms - lived);
	} else if (watch->state != STATE_IDLE) {
		on_silence(watch);
	}
}

void api_watch_status(struct api_watch *watch, int status, int retry_after_s)
{
	watch->status = status;
	watch->retry_after_s = retry_after_s;
	if (watch->state == STATE_WATCH && status == 200)
		watch->io.wait(watch->io.arg, SETTLED_MS);
}

static void take_data(struct api_watch *watch, struct api_bytes data)
{
	struct err err;
	int r;

	if (watch->state == STATE_PAGE)
		r = api_list_feed(&watch->list, data, &err);
	else
		r = api_frames_feed(&watch->frames, data, on_frame, watch, &err);
	if (r < 0)
		fail(watch, API_FAILURE_GARBAGE, err.text);
}

void api_watch_data(struct api_watch *watch, struct api_bytes data)
{
	if (watch->state == STATE_WAITING || watch->state == STATE_IDLE)
		return;
	if (watch->state != STATE_WATCH)
		watch->io.wait(watch->io.arg, SILENCE_MS);
	if (watch->status == 200)
		take_data(watch, data);
	else if (watch->error_body.used + data.n <= ERROR_BODY_MAX)
		api_buffer_add(&watch->error_body, data.data, data.n);
}

/* An answer that was not 200 has ended. What it says is a Status, or whatever a proxy writes. */
static void end_error(struct api_watch *watch)
{
	struct api_bytes body = {watch->error_body.data, watch->error_body.used};
	struct api_buffer kept = watch->error_body;
	struct api_envelope envelope;
	struct api_status status = {0};
	struct err err;

	watch->error_body = (struct api_buffer){0}; /* the text must outlive the request */
	if (api_envelope_read(body, &envelope, &err) < 0 ||
	    api_status_read(envelope.object, &status, &err) < 0)
		status = (struct api_status){0};
	judge(watch, watch->status, &status);
	api_buffer_done(&kept);
}

/* A stream is over, in good order or not: that alone is no failure. */
static void end_stream(struct api_watch *watch, enum api_failure failure, const char *text)
{
	int64_t lived = watch->io.now_ms(watch->io.arg) - watch->started_ms;

	if (watch->state == STATE_INITIAL && ++watch->cuts >= CUTS_MAX) {
		list_in_pages(watch);
	} else if (watch->state == STATE_INITIAL || lived < SHORT_MS) {
		fail(watch, failure ? failure : API_FAILURE_CONNECT,
		     failure ? text : "the server ended the watch too early");
	} else {
		/* a server that goes takes leave of all nodes at once */
		go_on_after(watch, failure ? watch->io.random(watch->io.arg) % SPREAD_MS : 0);
	}
}

void api_watch_end(struct api_watch *watch, enum api_failure failure, const char *text)
{
	if (watch->state == STATE_WAITING || watch->state == STATE_IDLE)
		return;
	if (watch->status != 0 && watch->status != 200)
		end_error(watch);
	else if (watch->status == 200 && watch->state != STATE_PAGE)
		end_stream(watch, failure, text);
	else if (failure != API_FAILURE_NONE)
		fail(watch, failure, text);
	else
		end_page(watch);
}

size_t api_watch_count(const struct api_watch *watch)
{
	return watch->known.n_served;
}

bool api_watch_is_listed(const struct api_watch *watch)
{
	return watch->listed;
}

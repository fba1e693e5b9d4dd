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
#include "sources/convert.h"
#include "sources/printable.h"
#include "sources/resource_version.h"

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
#define RELIST_MIN_S      5 /* lists that the server forces on us keep this distance */
#define PAGE_SIZE         500
#define PAGES_MAX         (API_WATCH_OBJECTS_MAX / PAGE_SIZE + 1)
#define ERROR_BODY_MAX    (64u << 10)
#define VERSION_MAX       128u /* bytes of a resourceVersion: a number in practice */
#define TOKEN_MAX         (16u << 10)
#define OBJECT_ARENA      (8u << 10) /* enough for most objects with what wraps them */

#define ANNOTATION_INITIAL_END "k8s.io/initial-events-end"

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
	bool paged;         /* the list at hand is one in pages */
	bool unpaged;       /* and must have only one */
	bool no_marks;      /* the server was found not to know initial events */
	bool relisted;      /* 410 has led to a new list that is not complete yet */
	bool older_list;    /* the last list was older than what was known, and was not believed */
	int64_t relist_ms;  /* when the last list that the server forced on us ended */
	unsigned int cuts;  /* streams that ended before the mark, in a row */
	char *version;      /* to watch from; NULL: a list is needed */
	char *newest;       /* the last version known, also while a list is needed */
	char *token;        /* of the next page; NULL: the first */
	unsigned int pages; /* of the list at hand, so far */

	/* the request under way */
	int status; /* 0: no answer so far */
	int retry_after_s;
	int64_t started_ms;
	int64_t life_ms; /* how long the watch may last */
	bool settled;
	struct api_frames frames;
	struct api_list list;
	char *list_kind; /* "ServiceList" */
	struct api_buffer error_body;
};

/* -- success and failure -- */

static void set_text(char **at, const char *text, size_t max)
{
	char *copy = *text && strlen(text) <= max ? xstrdup(text) : NULL;

	free(*at);
	*at = copy;
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
	api_known_begin(&watch->known);
	watch->paged = watch->no_marks;
	watch->unpaged = false;
	watch->pages = 0;
	set_text(&watch->version, "", 0);
	set_text(&watch->token, "", 0);
}

static void list_in_pages(struct api_watch *watch)
{
	start_list(watch);
	watch->paged = true;
	go_on_after(watch, 0);
}

/* A version that things stand at now. */
static void reach(struct api_watch *watch, const char *version)
{
	set_text(&watch->version, version, VERSION_MAX);
	set_text(&watch->newest, version, VERSION_MAX);
}

/* Has the server lost something, an etcd that was restored perhaps? */
static bool goes_back(const struct api_watch *watch, const char *version)
{
	return strlen(version) <= VERSION_MAX && resource_version_is_older(version, watch->newest);
}

/*
 * The server makes a new list necessary. The first time that is no failure; if it happens while
 * such a list is under way, or soon after one, it is, and has to wait.
 */
static void list_again(struct api_watch *watch, const char *text)
{
	int64_t now = watch->io.now_ms(watch->io.arg);
	bool soon = now - watch->relist_ms < RELIST_MIN_S * INT64_C(1000);
	bool again = watch->relisted || soon;

	if (soon && !watch->relisted)
		watch->retry_after_s = MAX(watch->retry_after_s, RELIST_MIN_S);
	watch->relisted = true;
	start_list(watch);
	if (again)
		fail(watch, API_FAILURE_SERVER, text);
	else
		go_on_after(watch, 0);
}

static void report_back(struct api_watch *watch, const char *version, const char *what)
{
	char text[512], clean[64];

	snprintf(text, sizeof(text),
		 "The API server goes back from resourceVersion %s to %s with %s of %s objects, "
		 "listing them anew",
		 watch->newest, printable(version, clean, sizeof(clean)), what, watch->kind.kind);
	watch->io.report(watch->io.arg, LOG_SEVERITY_WARNING, text);
}

/* An event or bookmark from the past: nothing of it counts. */
static int go_back(struct api_watch *watch, const char *version)
{
	report_back(watch, version, "a watch");
	list_again(watch, "the server goes back to an older resourceVersion");
	return STOP;
}

/* A list from the past is not believed until the next one says so, too. */
static bool is_doubtful(struct api_watch *watch, const char *version)
{
	bool first = goes_back(watch, version) && !watch->older_list;

	watch->older_list = first;
	return first;
}

/* The list is complete, as of this version. STOP: it does not count, another one comes. */
static int end_list(struct api_watch *watch, const char *version)
{
	if (is_doubtful(watch, version)) {
		report_back(watch, version, "a list");
		start_list(watch);
		go_on_after(watch, 0);
		return STOP;
	}
	reach(watch, version);
	if (watch->relisted)
		watch->relist_ms = watch->io.now_ms(watch->io.arg);
	watch->relisted = false;
	watch->cuts = 0;
	watch->listed = api_known_sweep(&watch->known, watch->io.now_ms(watch->io.arg));
	succeed(watch);
	if (watch->listed)
		watch->kind.listed(watch->kind.arg);
	return GO_ON;
}

/* Our version, or a page's token, is too old. */
static void gone(struct api_watch *watch, const char *text)
{
	bool page = watch->state == STATE_PAGE;

	list_again(watch, text);
	if (page) {
		watch->paged = true;
		watch->unpaged = true;
	}
}

/* An answer, or an ERROR event, that says no. */
static void judge(struct api_watch *watch, int code, const struct api_status *status)
{
	char text[512], clean[400];

	if (*status->message)
		snprintf(text, sizeof(text), "%d: %s", code,
			 printable(status->message, clean, sizeof(clean)));
	else
		snprintf(text, sizeof(text), "HTTP status %d", code);
	watch->retry_after_s = MAX(watch->retry_after_s, status->retry_after_s);
	if (code == 410 ||
	    (watch->state == STATE_PAGE && watch->token && api_failure_is_refusal(code)))
		gone(watch, text); /* or the server does not like its own token */
	else if (watch->state == STATE_INITIAL && (api_failure_is_refusal(code) || code == 500))
		list_in_pages(watch); /* 500: the server could, but its etcd (3.4) cannot */
	else {
		/* our version is from the server's future: it lost something */
		if (strstr(status->message, "oo large resource version"))
			start_list(watch);
		fail(watch, api_failure_of_status(code), text);
	}
}

/* -- the stream of a watch -- */

static int on_error_event(struct api_watch *watch, struct api_bytes object, struct arena *arena)
{
	struct api_status status;
	struct err err;

	if (api_status_read(object, arena, &status, &err) < 0)
		fail(watch, API_FAILURE_GARBAGE, err.text);
	else
		judge(watch, status.code ? status.code : 500, &status);
	return STOP;
}

/* The list that may confirm what is held back does not wait for the watch's end. */
static void wait_watching(struct api_watch *watch, int64_t ms)
{
	if (watch->known.guard.holding)
		ms = MIN(ms,
			 sync_guard_due_ms(&watch->known.guard) - watch->io.now_ms(watch->io.arg));
	watch->io.wait(watch->io.arg, MAX(ms, 0));
}

/* All that there was has come; the stream goes on as a watch. */
static int on_mark(struct api_watch *watch, const char *version)
{
	int64_t lived = watch->io.now_ms(watch->io.arg) - watch->started_ms;

	watch->state = STATE_WATCH;
	if (end_list(watch, version) == STOP)
		return STOP;
	wait_watching(watch, watch->life_ms - lived);
	return GO_ON;
}

static const char *version_of(const struct api_object *object)
{
	return convert_text(object->metadata->resourceversion);
}

static int on_bookmark(struct api_watch *watch, const struct api_object *object)
{
	const char *end = convert_annotation(object->metadata, ANNOTATION_INITIAL_END);

	if (watch->state == STATE_INITIAL && end && streq(end, "true"))
		return on_mark(watch, version_of(object));
	if (watch->state == STATE_WATCH)
		reach(watch, version_of(object));
	return GO_ON;
}

static int on_object(struct api_watch *watch, enum api_event_type type,
		     const struct api_object *object)
{
	if (watch->state == STATE_WATCH && goes_back(watch, version_of(object)))
		return go_back(watch, version_of(object));
	if (type == API_EVENT_BOOKMARK)
		return on_bookmark(watch, object);
	if (type == API_EVENT_DELETED)
		api_known_remove(&watch->known, object);
	else
		api_known_set(&watch->known, object);
	if (watch->state != STATE_WATCH)
		return GO_ON;
	reach(watch, version_of(object));
	if (watch->listed)
		return GO_ON;
	/* the first list had nothing, and was doubted: there is something, so the next one has all */
	list_again(watch, "an event after a list without objects");
	return STOP;
}

static int on_frame(void *arg, struct api_bytes frame, struct err *err)
{
	struct arena *arena cleanup_arena = arena_new(OBJECT_ARENA);
	struct api_watch *watch = arg;
	struct api_object object;
	struct api_event event;
	int r = api_event_read(frame, arena, &event, err);

	if (r < 0)
		return r;
	if (event.type == API_EVENT_ERROR)
		return on_error_event(watch, event.envelope.object, arena);
	if (!streq(event.envelope.kind, watch->kind.kind))
		return err_set(err, -EBADMSG, "an event about something that is not a %s",
			       watch->kind.kind);
	if (watch->state == STATE_WATCH)
		succeed(watch);
	if (api_object_read(watch->kind.type, event.envelope.object, arena, &object, err) == 0)
		return on_object(watch, event.type, &object);
	api_known_unreadable(&watch->known, err->text);
	return GO_ON;
}

/* -- pages -- */

static int on_item(void *arg, struct api_bytes item, struct err *err)
{
	struct arena *arena cleanup_arena = arena_new(OBJECT_ARENA);
	struct api_watch *watch = arg;
	struct api_object object;

	if (api_object_read(watch->kind.type, item, arena, &object, err) < 0)
		api_known_unreadable(&watch->known, err->text);
	else
		api_known_set(&watch->known, &object);
	return GO_ON;
}

/* Is the token one that leads on? A list without end must not keep us busy, or fill the memory. */
static int check_token(struct api_watch *watch, const char *token, struct err *err)
{
	if (strlen(token) > TOKEN_MAX)
		return err_set(err, -EBADMSG, "a continue token of %zu bytes", strlen(token));
	if (watch->token && streq(watch->token, token))
		return err_set(err, -EBADMSG, "the same continue token again");
	if (++watch->pages >= PAGES_MAX)
		return err_set(err, -EBADMSG, "a list of more than %u pages", PAGES_MAX);
	return 0;
}

static void next_page(struct api_watch *watch, const char *token)
{
	struct err err;

	if (check_token(watch, token, &err) < 0) {
		start_list(watch);
		fail(watch, API_FAILURE_GARBAGE, err.text);
		return;
	}
	set_text(&watch->token, token, TOKEN_MAX);
	go_on_after(watch, 0);
}

static void end_page(struct api_watch *watch)
{
	const char *token = convert_text(watch->list.continue_token);
	const char *version = convert_text(watch->list.resource_version);
	struct err err;

	if (api_list_end(&watch->list, &err) < 0)
		fail(watch, API_FAILURE_GARBAGE, err.text);
	else if (*token)
		next_page(watch, token);
	else if (!*version)
		fail(watch, API_FAILURE_GARBAGE, "a list without a resourceVersion");
	else if (end_list(watch, version) == GO_ON)
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
			api_known_begin(&watch->known); /* it starts anew */
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
	watch->known.guard.percent = kind->guard_percent;
	watch->relist_ms = INT64_MIN / 2; /* never */
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
	free(watch->newest);
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

static bool is_confirmation_due(const struct api_watch *watch)
{
	const struct sync_guard *guard = &watch->known.guard;

	return guard->holding && watch->io.now_ms(watch->io.arg) >= sync_guard_due_ms(guard);
}

/* The timer of a watch that works. */
static void watch_timer(struct api_watch *watch)
{
	int64_t lived = watch->io.now_ms(watch->io.arg) - watch->started_ms;

	if (is_confirmation_due(watch)) {
		start_list(watch);
		go_on_after(watch, 0);
	} else if (lived >= watch->life_ms) {
		go_on_after(watch, 0); /* the server forgot to end it */
	} else {
		succeed(watch);
		wait_watching(watch, watch->life_ms - lived);
	}
}

void api_watch_timer(struct api_watch *watch)
{
	if (watch->state == STATE_WAITING) {
		ask(watch);
	} else if (watch->state == STATE_WATCH && watch->status == 200) {
		watch_timer(watch);
	} else if (watch->state != STATE_IDLE) {
		on_silence(watch);
	}
}

void api_watch_status(struct api_watch *watch, int status, int retry_after_s)
{
	watch->status = status;
	watch->retry_after_s = retry_after_s;
	if (watch->state == STATE_WATCH && status == 200)
		wait_watching(watch, SETTLED_MS);
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
	struct arena *arena cleanup_arena = arena_new(OBJECT_ARENA);
	struct api_envelope envelope;
	struct api_status status;
	struct err err;

	if (api_envelope_read(body, arena, &envelope, &err) < 0 ||
	    api_status_read(envelope.object, arena, &status, &err) < 0)
		status = (struct api_status){.message = ""};
	judge(watch, watch->status, &status);
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

bool api_watch_release(struct api_watch *watch)
{
	if (!api_known_release(&watch->known))
		return false;
	if (!watch->listed) {
		watch->listed = true;
		watch->kind.listed(watch->kind.arg);
	}
	return true;
}

size_t api_watch_count(const struct api_watch *watch)
{
	return watch->known.n_served;
}

bool api_watch_is_listed(const struct api_watch *watch)
{
	return watch->listed;
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One loop: rounds of the meter, keys, a window that changes its size, signals. Each of them ends in
 * a new screen, or in the end.
 */

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/doc.h"
#include "base/loop.h"
#include "base/text.h"
#include "commands/command.h"
#include "commands/output.h"
#include "commands/snapshot.h"
#include "conntrack/top_meter.h"
#include "inspect/terminal.h"
#include "inspect/view.h"

#define INTERVAL_LEAST_NS (100 * CLOCK_NS_PER_MS)

struct top {
	const struct config *config;
	enum output output;
	bool batch;
	int32_t count; /* of lists still to print; 0: without end */
	int64_t interval_ns;
	struct event_base *loop;
	struct model *model;
	struct snapshot_follower *follower;
	struct top_meter *meter;
	struct rates rates;
	struct view view;
	char failure[256]; /* why the last round failed; "": it did not */
	struct event *events[8];
	size_t n_events;
	int result; /* 0, or the first error */
	struct err err;
};

static void end(struct top *top, int r)
{
	if (top->result == 0)
		top->result = r;
	event_base_loopbreak(top->loop);
}

/* -- showing */

static const char *note_of(const struct top *top)
{
	const char *trouble = snapshot_trouble(top->follower);

	if (top->failure[0])
		return top->failure;
	return trouble[0] ? trouble : top_meter_note(top->meter);
}

#define TIME_MAX 32

/* For people the time of day where they are, for programs as Kubernetes writes it. */
static void time_text(enum output output, char out[static TIME_MAX])
{
	time_t now = time(NULL);
	struct tm when = {0};

	if (output == OUTPUT_HUMAN)
		localtime_r(&now, &when);
	else
		gmtime_r(&now, &when);
	if (strftime(out, TIME_MAX, output == OUTPUT_HUMAN ? "%H:%M:%S" : "%Y-%m-%dT%H:%M:%SZ",
		     &when) == 0)
		out[0] = '\0';
}

static void draw(struct top *top)
{
	cleanup_text struct text lines = {0};
	char now[TIME_MAX];
	struct view_facts facts = {now, top->config->node_name, note_of(top)};
	size_t width, height;

	time_text(OUTPUT_HUMAN, now);
	terminal_size(&width, &height);
	view_draw(&top->view, &top->rates, &facts, width, height, &lines);
	if (terminal_draw(&lines, VIEW_TITLE_LINE, &top->err) < 0)
		end(top, top->err.code);
}

/* Of "namespace/name:port/protocol" the parts; none of them has a slash or a colon in it. */
static void put_name(struct doc *doc, const char *name)
{
	static const struct {
		const char *member, *end;
	} parts[] = {{"namespace", "/"}, {"name", ":"}, {"port", "/"}, {"protocol", ""}};

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		size_t n = strcspn(name, parts[i].end);
		cleanup_free char *part = xasprintf("%.*s", (int)n, name);

		doc_string(doc, parts[i].member, part);
		name += n + (name[n] != '\0');
	}
}

static void put_row(struct doc *doc, const char *key, const struct view *view,
		    const struct rate_row *row)
{
	doc_open_map(doc, key);
	if (row->name)
		put_name(doc, row->name);
	doc_real(doc, "connectionsPerSecond", row->connections);
	doc_number(doc, "flows", row->flows);
	if (view->accounting) {
		doc_real(doc, "packetsPerSecond", row->packets);
		doc_real(doc, "bytesPerSecond", row->bytes);
	} else {
		doc_string(doc, "packetsPerSecond", NULL);
		doc_string(doc, "bytesPerSecond", NULL);
	}
	doc_close(doc);
}

static void put_document(const struct top *top, const struct view_facts *facts, struct text *text)
{
	size_t n;
	cleanup_free const struct rate_row **rows = view_rows(&top->view, &top->rates, &n);
	struct doc doc;

	if (top->output == OUTPUT_YAML)
		text_str(text, "---\n");
	doc_init(&doc, text, top->output == OUTPUT_JSON ? DOC_JSON : DOC_YAML);
	doc_open_map(&doc, NULL);
	doc_string(&doc, "kind", "ServiceRates");
	doc_number(&doc, "version", 1);
	doc_string(&doc, "node", facts->node);
	doc_string(&doc, "time", facts->time);
	doc_string(&doc, "note", facts->note);
	put_row(&doc, "total", &top->view, &top->rates.total);
	doc_open_list(&doc, "servicePorts");
	for (size_t i = 0; i < n; i++)
		put_row(&doc, NULL, &top->view, rows[i]);
	doc_close(&doc);
	doc_close(&doc);
}

/* The first round has no rates yet, and is not told. */
static void list(struct top *top)
{
	cleanup_text struct text text = {0};
	char now[TIME_MAX];
	const struct view_facts facts = {now, top->config->node_name, note_of(top)};

	if (!top->rates.measured)
		return;
	time_text(top->output, now);
	if (top->output == OUTPUT_HUMAN)
		view_list(&top->view, &top->rates, &facts, &text);
	else
		put_document(top, &facts, &text);
	if (snapshot_print(&text, &top->err) < 0)
		end(top, top->err.code);
	else if (top->count > 0 && --top->count == 0)
		end(top, 0);
}

/* -- rounds */

static const struct model *on_begin(void *arg)
{
	struct top *top = arg;

	return snapshot_followed(top->follower) ? top->model : NULL;
}

static void on_round(void *arg, const struct service_traffic *traffic, const char *error)
{
	struct top *top = arg;

	snprintf(top->failure, sizeof(top->failure), "%s", error ? error : "");
	if (error && top->batch) {
		end(top, err_set(&top->err, -EIO, "%s", error));
		return;
	}
	top->view.accounting = top_meter_accounting();
	if (!error)
		rates_take(&top->rates, traffic, clock_now_ns());
	if (top->batch)
		list(top);
	else
		draw(top);
}

/* -- keys and signals */

static void on_key(evutil_socket_t fd, short what attr_unused, void *arg)
{
	struct top *top = arg;
	char bytes[64];
	ssize_t n = read(fd, bytes, sizeof(bytes));
	enum view_action action;

	if (n <= 0) {
		if (n == 0 || (errno != EINTR && errno != EAGAIN))
			end(top, 0); /* the terminal is gone */
		return;
	}
	action = view_input(&top->view, bytes, (size_t)n);
	if (action == VIEW_QUIT)
		end(top, 0);
	else if (action == VIEW_DRAW)
		draw(top);
}

static void on_quit(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	end(arg, 0);
}

static void on_resize(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	draw(arg);
}

/* Ctrl-Z: the shell gets its terminal back, and we get it again with SIGCONT. */
static void on_stop(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	struct top *top = arg;

	terminal_close();
	raise(SIGSTOP);
	if (terminal_open(&top->err) < 0)
		end(top, top->err.code);
	else
		draw(top);
}

static void watch(struct top *top, int fd, short what, event_callback_fn fn)
{
	top->events[top->n_events++] = loop_watch(top->loop, fd, what | EV_PERSIST, fn, top);
}

static int watch_all(struct top *top)
{
	watch(top, SIGINT, EV_SIGNAL, on_quit);
	watch(top, SIGTERM, EV_SIGNAL, on_quit);
	if (top->batch)
		return 0;
	watch(top, STDIN_FILENO, EV_READ, on_key);
	watch(top, SIGWINCH, EV_SIGNAL, on_resize);
	watch(top, SIGTSTP, EV_SIGNAL, on_stop);
	return terminal_open(&top->err);
}

/* -- from begin to end */

static int run(struct top *top, const struct options *options)
{
	const struct top_meter_config config = {
		.loop = top->loop,
		.interval_ns = top->interval_ns,
		.changed = on_begin,
		.round = on_round,
		.arg = top,
	};
	int r = snapshot_follow(options, top->config, "top", top->loop, top->model, &top->follower,
				&top->err);

	if (r == 0)
		r = watch_all(top);
	if (r < 0)
		return r;
	top->meter = top_meter_new(&config);
	event_base_dispatch(top->loop);
	return top->result;
}

static void top_done(struct top *top)
{
	terminal_close();
	top_meter_free(top->meter);
	snapshot_unfollow(top->follower);
	for (size_t i = 0; i < top->n_events; i++)
		loop_free(top->events[i]);
	rates_done(&top->rates);
	model_free(top->model);
	event_base_free(top->loop);
}

static void check_job(const struct options *options, struct top *top, struct problems *problems)
{
	output_parse(options->output, &top->output, problems);
	top->batch = options->batch || top->output != OUTPUT_HUMAN || options->lists > 0 ||
		     !terminal_usable();
	top->count = options->lists;
	top->interval_ns = options->interval;
	if (options->lists < 0)
		problems_add(problems, "--count: %d is less than 0", options->lists);
	if (top->interval_ns < INTERVAL_LEAST_NS)
		problems_add(problems, "--interval: at least 100ms");
	if (!view_sort_parse(options->sort, &top->view.sort))
		problems_add(problems,
			     "--sort: \"%s\" is not connections, flows, packets, bytes or name",
			     options->sort);
}

int cmd_top(struct call *call)
{
	struct top top = {.config = &call->config};
	int r;

	check_job(&call->options, &top, &call->problems);
	if (call_is_wrong(call))
		return EXIT_USAGE;
	top.loop = event_base_new();
	top.model = model_new(call->config.node_name, 0);
	r = run(&top, &call->options);
	top_done(&top);
	return r < 0 ? call_fail(call, &top.err, EXIT_NO_STATE) : EXIT_DONE;
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads what there is to compare with, arms, and then has one loop until enough was seen, the time is
 * over or a signal comes. Packets may be under way at the same time; they are told one after the
 * other, in the order in which they came. Whatever happens, the kernel disarms when we are gone.
 */

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>

#include "backends/backend.h"
#include "base/clock.h"
#include "base/doc.h"
#include "base/text.h"
#include "commands/command.h"
#include "commands/output.h"
#include "commands/question.h"
#include "commands/snapshot.h"
#include "inspect/inspect_ops.h"
#include "inspect/trace_report.h"
#include "inspect/trace_rules.h"
#include "kernel/nft_tracer.h"

#define SECONDS_MAX 3600
#define COUNT_MAX   1000
/* A packet of which nothing was heard for so long came to no further hook. */
#define SILENCE_NS (300 * CLOCK_NS_PER_MS)

struct trace_job {
	struct question question;
	bool has_source;
	struct addr source;
	enum output output;
	int32_t seconds, count;
};

struct traced {
	struct trace *trace;
	struct trace_report *report;
	int64_t heard_ns;
	bool begun; /* to be told */
	size_t n_printed;
};

struct tracing {
	const struct trace_job *job;
	struct snapshot snapshot;
	struct explain *explain; /* NULL: nothing is known of the cluster */
	struct packet packet;    /* the destination; its address counts unless `any_local` */
	bool any_local;
	struct nft_tracer *tracer;
	struct trace_rules *rules;
	int signals; /* a descriptor */
	int64_t deadline_ns;
	bool interrupted, lost;
	struct traced *v;
	size_t n, capacity;
	size_t n_told; /* those before are printed to their end */
	struct human_style style;
};

/* -- the command line */

static void check_number(const char *flag, int32_t value, int32_t most, struct problems *problems)
{
	if (value < 1 || value > most)
		problems_add(problems, "--%s: %d is not within 1 and %d", flag, value, most);
}

static void check_job(const struct options *options, struct trace_job *job,
		      struct problems *problems)
{
	question_read(options, &job->question, problems);
	output_parse(options->output, &job->output, problems);
	job->seconds = options->seconds;
	job->count = options->count;
	check_number("seconds", job->seconds, SECONDS_MAX, problems);
	check_number("count", job->count, COUNT_MAX, problems);
	if (!options->from || !*options->from)
		return;
	job->has_source = addr_parse(options->from, &job->source) == 0;
	if (!job->has_source)
		problems_add(problems, "--from: \"%s\" is not an IP address", options->from);
	else
		job->question.family = (enum family)job->source.family;
}

/* -- before anything is armed */

/* The cluster's objects are for words and for comparing: an address can be traced without them. */
static int load(struct tracing *tracing, const struct call *call, struct err *err)
{
	int r = snapshot_load(call, true, &tracing->snapshot, err);

	if (r == 0 || tracing->job->question.destination.kind == PACKET_DESTINATION_SERVICE)
		return r;
	fprintf(stderr, "portolan trace: %s; there is nothing to compare with\n", err->text);
	return 0;
}

static int find_destination(struct tracing *tracing, struct err *err)
{
	const struct question *question = &tracing->job->question;
	const struct packet_destination *destination = &question->destination;
	struct packet *packet = &tracing->packet;
	int r = packet_destination_family(destination, tracing->snapshot.model, question->family,
					  &packet->family, err);

	if (r < 0)
		return r;
	tracing->any_local = destination->kind == PACKET_DESTINATION_NODE_PORT;
	tracing->explain = snapshot_explain(&tracing->snapshot, packet->family);
	if (tracing->explain) {
		r = packet_destination_resolve(destination, tracing->snapshot.model,
					       &tracing->snapshot.settings[packet->family],
					       question->protocol, packet, err);
	} else {
		packet->destination = destination->addr;
		packet->port = destination->port;
		packet->protocol =
			question->protocol == PROTOCOL_COUNT ? PROTOCOL_TCP : question->protocol;
	}
	if (r == 0 && tracing->job->has_source &&
	    tracing->job->source.family != (uint8_t)packet->family)
		r = err_set(err, -EINVAL, "--from is of another IP family than the destination");
	return r;
}

/* Can the rules of the mode be traced on this host? */
static int check_traceable(const struct call *call)
{
	const struct backend_ops *backend = call->config.backend;
	struct backend_host *host = NULL;
	struct err err;
	int r = 1;

	if (backend->open_host)
		host = backend->open_host(&call->config.mode, 2);
	if (backend->inspect->traceable)
		r = backend->inspect->traceable(host, &err);
	if (host)
		backend->close_host(host);
	return r > 0 ? EXIT_DONE : call_fail(call, &err, EXIT_NOT_POSSIBLE);
}

/* -- arming */

static void print_target(const struct tracing *tracing, char out[static ADDR_PORT_TEXT_MAX])
{
	if (tracing->any_local)
		snprintf(out, ADDR_PORT_TEXT_MAX, ":%u", tracing->packet.port);
	else
		addr_port_print(&tracing->packet.destination, tracing->packet.port, out);
}

static int arm(struct tracing *tracing, struct err *err)
{
	const struct trace_job *job = tracing->job;
	const struct nft_tracer_spec spec = {
		.family = tracing->packet.family,
		.protocol = protocol_number(tracing->packet.protocol),
		.destination = tracing->any_local ? NULL : &tracing->packet.destination,
		.port = tracing->packet.port,
		.source = job->has_source ? &job->source : NULL,
	};
	char target[ADDR_PORT_TEXT_MAX];
	int r = trace_rules_open(spec.family, &tracing->rules, err);

	if (r == 0)
		r = nft_tracer_open(&spec, &tracing->tracer, err);
	if (r == -EPERM)
		return err_set(err, r, "nf_tables' trace needs CAP_NET_ADMIN: run it as root");
	if (r == -EOPNOTSUPP)
		return err_wrap(err, r, "arming the trace, which takes Linux 5.12 or newer");
	if (r < 0)
		return err_wrap(err, r, "arming the trace");
	print_target(tracing, target);
	fprintf(stderr, "portolan trace: waiting %d s for %s to %s\n", job->seconds,
		protocol_name(tracing->packet.protocol), target);
	tracing->deadline_ns = clock_now_ns() + job->seconds * CLOCK_NS_PER_SECOND;
	return 0;
}

/* -- events */

/* Our own rule says which packets are ours: others may trace something else at the same time. */
static bool begins(const struct tracing *tracing, const struct nft_trace *event)
{
	return event->has_packet && event->handle &&
	       streq(event->table, nft_tracer_table(tracing->tracer));
}

/* What begins again is another packet, except one of this node to itself. */
static struct traced *find_traced(const struct tracing *tracing, const struct nft_trace *event)
{
	struct traced *found = NULL;

	for (size_t i = 0; i < tracing->n; i++) {
		struct traced *traced = &tracing->v[i];

		if (!trace_goes_on(traced->trace, event) ||
		    (begins(tracing, event) && !traced->trace->out))
			continue;
		if (traced->trace->id == event->id)
			return traced;
		found = traced;
	}
	return found;
}

static void on_event(void *arg, const struct nft_trace *event)
{
	struct tracing *tracing = arg;
	struct traced *traced = find_traced(tracing, event);

	if (traced) {
		trace_take(traced->trace, event);
		traced->heard_ns = clock_now_ns();
		return;
	}
	if (tracing->n == (size_t)tracing->job->count || !begins(tracing, event))
		return;
	array_grow(&tracing->v, &tracing->capacity, tracing->n, sizeof(*tracing->v));
	traced = &tracing->v[tracing->n++];
	*traced = (struct traced){.heard_ns = clock_now_ns()};
	traced->trace =
		trace_new(&trace_rules_ops, tracing->rules, tracing->packet.protocol, event);
	traced->report = trace_report_new(traced->trace, tracing->explain);
}

/* -- telling */

static bool has_ended(const struct traced *traced)
{
	return traced->trace->end != TRACE_UNDER_WAY;
}

static void tell_human(const struct tracing *tracing, struct traced *traced, struct text *text)
{
	struct printer printer;

	printer_init(&printer, &tracing->style, text);
	if (!traced->begun && tracing->n_told > 0)
		text_str(text, "\n");
	if (!traced->begun)
		trace_human_begin(traced->report, &printer);
	traced->begun = true;
	traced->n_printed = trace_human_steps(traced->report, &printer, traced->n_printed);
	if (has_ended(traced))
		trace_human_end(traced->report, &printer);
}

/* The next one is told when this one has ended; documents come as a whole. */
static int tell(struct tracing *tracing, struct err *err)
{
	cleanup_text struct text text = {0};
	bool ended = true;

	while (ended && tracing->n_told < tracing->n) {
		struct traced *traced = &tracing->v[tracing->n_told];

		ended = has_ended(traced);
		trace_report_follow(traced->report);
		if (ended)
			trace_report_finish(traced->report);
		if (tracing->job->output == OUTPUT_HUMAN)
			tell_human(tracing, traced, &text);
		tracing->n_told += ended;
	}
	return snapshot_print(&text, err);
}

static int tell_document(const struct tracing *tracing, struct err *err)
{
	cleanup_text struct text text = {0};
	char target[ADDR_PORT_TEXT_MAX];
	struct doc doc;

	print_target(tracing, target);
	doc_init(&doc, &text, tracing->job->output == OUTPUT_JSON ? DOC_JSON : DOC_YAML);
	doc_open_map(&doc, NULL);
	doc_string(&doc, "kind", "Trace");
	doc_number(&doc, "version", 1);
	doc_string(&doc, "node", tracing->snapshot.config->node_name);
	doc_string(&doc, "destination", target);
	doc_string(&doc, "protocol", protocol_name(tracing->packet.protocol));
	doc_open_list(&doc, "connections");
	for (size_t i = 0; i < tracing->n; i++)
		trace_doc(tracing->v[i].report, &doc, NULL);
	doc_close(&doc);
	doc_close(&doc);
	return snapshot_print(&text, err);
}

/* -- waiting */

/* When something is due at the latest. */
static int64_t next_due(const struct tracing *tracing)
{
	int64_t due = INT64_MAX;

	for (size_t i = 0; i < tracing->n; i++)
		if (!has_ended(&tracing->v[i]))
			due = MIN(due, tracing->v[i].heard_ns + SILENCE_NS);
	return due == INT64_MAX ? tracing->deadline_ns : due;
}

static int wait_for_news(struct tracing *tracing, struct err *err)
{
	struct pollfd fds[] = {
		{.fd = nft_tracer_fd(tracing->tracer), .events = POLLIN},
		{.fd = tracing->signals, .events = POLLIN},
	};
	int64_t left = next_due(tracing) - clock_now_ns();
	int ms = (int)((MAX(left, 0) + CLOCK_NS_PER_MS - 1) / CLOCK_NS_PER_MS);
	int r;

	if (poll(fds, ARRAY_SIZE(fds), ms) < 0 && errno != EINTR)
		return err_sys(err, -errno, "waiting for packets");
	tracing->interrupted = fds[1].revents;
	r = nft_tracer_read(tracing->tracer, on_event, tracing, err);
	if (r > 0 && !tracing->lost)
		fprintf(stderr,
			"portolan trace: the kernel told more than there is room for: steps "
			"are missing\n");
	tracing->lost = tracing->lost || r > 0;
	return r < 0 ? r : 0;
}

static void give_up(const struct tracing *tracing)
{
	int64_t now = clock_now_ns();

	for (size_t i = 0; i < tracing->n; i++)
		if (!has_ended(&tracing->v[i]) &&
		    (tracing->interrupted || now >= tracing->v[i].heard_ns + SILENCE_NS))
			trace_give_up(tracing->v[i].trace);
}

static bool is_done(const struct tracing *tracing)
{
	if (tracing->n_told < tracing->n)
		return false;
	return tracing->interrupted || tracing->n == (size_t)tracing->job->count ||
	       clock_now_ns() >= tracing->deadline_ns;
}

static int follow(struct tracing *tracing, struct err *err)
{
	int r = 0;

	while (r == 0 && !is_done(tracing)) {
		r = wait_for_news(tracing, err);
		give_up(tracing);
		if (r == 0)
			r = tell(tracing, err);
	}
	return r;
}

static int catch_signals(struct tracing *tracing, struct err *err)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	tracing->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return tracing->signals < 0 ? err_sys(err, -errno, "opening a descriptor for signals") : 0;
}

/* -- what came of it */

static int nothing_seen(const struct tracing *tracing)
{
	const char *how = tracing->packet.protocol == PROTOCOL_TCP
				  ? "curl -m 2 http://"
				  : "a first datagram, from a new socket, to ";
	char target[ADDR_PORT_TEXT_MAX];

	print_target(tracing, target);
	fprintf(stderr,
		"portolan trace: no new %s connection to %s%s came to this node; try it from a pod "
		"of this node, or from the node: %s%s%s\n",
		protocol_name(tracing->packet.protocol), target,
		tracing->job->has_source ? " from that address" : "", how,
		tracing->any_local ? "NODE" : "", target);
	return EXIT_NOTHING_SEEN;
}

static int exit_code(const struct tracing *tracing)
{
	int code = EXIT_DONE;

	if (tracing->n == 0)
		return nothing_seen(tracing);
	for (size_t i = 0; i < tracing->n; i++) {
		if (tracing->v[i].report->difference)
			return EXIT_KERNEL_DIFFERS;
		if (trace_verdict(tracing->v[i].trace) != PACKET_VERDICT_BACKEND)
			code = EXIT_FAILED;
	}
	return code;
}

static void tracing_done(struct tracing *tracing)
{
	for (size_t i = 0; i < tracing->n; i++) {
		trace_report_free(tracing->v[i].report);
		trace_free(tracing->v[i].trace);
	}
	free(tracing->v);
	nft_tracer_free(tracing->tracer);
	trace_rules_free(tracing->rules);
	util_close_fd(&tracing->signals);
	snapshot_done(&tracing->snapshot);
}

static int trace_job(const struct trace_job *job, const struct call *call)
{
	attr_cleanup(tracing_done) struct tracing tracing = {.job = job, .signals = -1};
	struct err err;
	int r;

	output_style(&tracing.style);
	r = load(&tracing, call, &err);
	if (r < 0)
		return call_fail(call, &err, EXIT_NO_STATE);
	r = find_destination(&tracing, &err);
	if (r < 0)
		return call_fail(call, &err, r == -EINVAL ? EXIT_USAGE : EXIT_NO_STATE);
	r = catch_signals(&tracing, &err);
	if (r == 0)
		r = arm(&tracing, &err);
	if (r == 0)
		r = follow(&tracing, &err);
	if (r == 0 && job->output != OUTPUT_HUMAN)
		r = tell_document(&tracing, &err);
	return r < 0 ? call_fail(call, &err, EXIT_NO_STATE) : exit_code(&tracing);
}

int cmd_trace(struct call *call)
{
	struct trace_job job = {0};
	int r;

	check_job(&call->options, &job, &call->problems);
	r = call_is_wrong(call) ? EXIT_USAGE : check_traceable(call);
	if (r == EXIT_DONE)
		r = trace_job(&job, call);
	question_done(&job.question);
	return r;
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Planned paths, told as the kernel would tell them: what is planned is no difference, and whatever is left
 * out, added or decided otherwise is one.
 */

#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <stdio.h>

#include "backends/modes.h"
#include "base/doc.h"
#include "build.h"
#include "inspect/trace_report.h"
#include "kernel/nft_tracer.h"

#define NODE_IP    "192.168.0.2"
#define CLUSTER_IP "10.96.0.10"
#define OWN_TABLE  NFT_TRACER_PREFIX "1"
#define NOBODY     SIZE_MAX

struct world {
	struct model *model;
	struct settings settings;
	struct addr addresses[2];
	struct explain *explain;
	const struct outcome *outcome; /* that is being told */
	enum hook hook;
};

static int set_up(void **state, const struct backend_ops *backend)
{
	struct world *world = xcalloc(1, sizeof(*world));
	struct service *service = build_service("default/web", CLUSTER_IP);
	struct draft *slice = build_slice("default/web-1", "web", FAMILY_IPV4);
	struct explain_input input = {.backend = backend, .settings = &world->settings};

	world->model = model_new("node-a", 0);
	build_port(service, "http", PROTOCOL_TCP, 80, 30080);
	build_slice_port(slice, "http", PROTOCOL_TCP, 8080);
	build_endpoint(slice, "10.244.1.1", "node-a", BUILD_READY);
	build_endpoint(slice, "10.244.2.2", "node-b", BUILD_READY);
	model_set_service(world->model, service);
	build_set_slice(world->model, slice);
	world->settings = (struct settings){
		.family = FAMILY_IPV4,
		.node_name = "node-a",
		.node_ip = build_addr(NODE_IP),
		.masquerade_mark = 0x4000,
		.detector = {.kind = DETECTOR_CIDR, .cidr = build_prefix("10.244.0.0/16")},
	};
	node_ports_init(&world->settings.node_ports, FAMILY_IPV4, NULL, 0);
	world->addresses[0] = build_addr(NODE_IP);
	world->addresses[1] = build_addr("127.0.0.1");
	input.model = world->model;
	input.host = (struct host){world->addresses, ARRAY_SIZE(world->addresses)};
	world->explain = explain_new(&input);
	*state = world;
	return 0;
}

static int iptables_setup(void **state)
{
	return set_up(state, &backend_iptables);
}

static int nftables_setup(void **state)
{
	return set_up(state, &backend_nftables);
}

static int teardown(void **state)
{
	struct world *world = *state;

	explain_free(world->explain);
	node_ports_done(&world->settings.node_ports);
	model_free(world->model);
	free(world);
	return 0;
}

/* -- the kernel's part */

static bool hook_of(void *arg, const struct nft_trace *event attr_unused, enum hook *ret)
{
	*ret = ((struct world *)arg)->hook;
	return true;
}

/* Handles count the planned steps; the foreign rule has none of them. */
static void rule_of(void *arg, const struct nft_trace *event, struct trace_rule *ret)
{
	const struct world *world = arg;
	bool planned = event->handle <= world->outcome->n_steps;

	*ret = (struct trace_rule){
		.position = 1,
		.length = 1,
		.text = planned ? world->outcome->steps[event->handle - 1].rule : "-A X -j ACCEPT",
		.effect = planned ? world->outcome->steps[event->handle - 1].effect : 0,
	};
}

static bool interface_of(void *arg attr_unused, uint32_t index attr_unused,
			 char name[static PACKET_INTERFACE_MAX])
{
	snprintf(name, PACKET_INTERFACE_MAX, "eth0");
	return true;
}

static const struct trace_ops ops = {hook_of, rule_of, interface_of};

static int32_t verdict_of(enum effect effect)
{
	switch (effect) {
	case EFFECT_JUMP:
		return NFT_JUMP;
	case EFFECT_GOTO:
		return NFT_GOTO;
	case EFFECT_RETURN:
		return NFT_RETURN;
	case EFFECT_DROP:
	case EFFECT_REJECT:
		return NF_DROP;
	case EFFECT_TRANSLATE:
	case EFFECT_MASQUERADE:
	case EFFECT_ACCEPT:
		return NF_ACCEPT;
	default:
		return NFT_CONTINUE;
	}
}

struct telling {
	struct trace *trace;
	struct nft_trace event;
};

static void tell_own(struct world *world, struct telling *telling, const char *chain,
		     enum hook hook)
{
	struct nft_trace event = telling->event;

	event.table = OWN_TABLE;
	event.chain = chain;
	event.has_packet = true;
	event.verdict = NFT_CONTINUE;
	event.oif = 2;
	world->hook = hook;
	if (telling->trace)
		trace_take(telling->trace, &event);
	else
		telling->trace = trace_new(&ops, world, PROTOCOL_TCP, &event);
}

static void tell_step(struct world *world, struct telling *telling, size_t i)
{
	const struct step *step = &world->outcome->steps[i];
	struct nft_trace *event = &telling->event;
	bool jumps = step->effect == EFFECT_JUMP || step->effect == EFFECT_GOTO;

	event->nfproto = NFPROTO_IPV4;
	event->table = step->table;
	event->chain = step->chain;
	event->handle = i + 1;
	event->verdict = verdict_of(step->effect);
	event->target = jumps ? step->target : NULL;
	event->has_packet = world->hook != step->hook;
	world->hook = step->hook;
	trace_take(telling->trace, event);
	if (step->effect == EFFECT_TRANSLATE) {
		event->packet.destination = world->outcome->backend;
		event->packet.port = world->outcome->backend_port;
	} else if (step->effect == EFFECT_MASQUERADE) {
		event->packet.source = build_addr(NODE_IP);
	}
}

/* The path of one planned outcome, without one of its steps. */
static struct trace *tell(struct world *world, const struct packet *packet, size_t without)
{
	struct telling telling = {.event = {.id = 1,
					    .packet = {.source = packet->source,
						       .destination = packet->destination,
						       .port = packet->port,
						       .source_port = 4711}}};
	size_t n = world->outcome->n_steps;

	tell_own(world, &telling, "prerouting", HOOK_PREROUTING);
	tell_own(world, &telling, NFT_TRACER_NEW "prerouting", HOOK_PREROUTING);
	for (size_t i = 0; i < n && telling.trace->end == TRACE_UNDER_WAY; i++)
		if (i != without && world->outcome->steps[i].effect != EFFECT_MISS)
			tell_step(world, &telling, i);
	if (telling.trace->end == TRACE_UNDER_WAY)
		tell_own(world, &telling, NFT_TRACER_LEFT, HOOK_POSTROUTING);
	return telling.trace;
}

static struct packet packet_of(struct world *world, const char *from, const char *to, uint16_t port)
{
	const struct sender_input sender = {&world->settings, NULL,
					    &explain_input(world->explain)->host};
	struct packet packet = {.destination = build_addr(to), .port = port};
	struct addr addr = build_addr(from);

	packet_from_address(&packet, &sender, &addr);
	snprintf(packet.interface, sizeof(packet.interface), "eth0");
	return packet;
}

/* -- tests */

typedef void check_fn(const struct trace_report *report, size_t without);

/* Each end that the packet may come to, told whole and without each of its steps. */
static void for_each_telling(struct world *world, const struct packet *packet, bool leave_out,
			     check_fn *check)
{
	struct explanation *planned = explain_packet(world->explain, packet);

	for (size_t i = 0; i < planned->path->n_outcomes; i++) {
		world->outcome = &planned->path->outcomes[i];
		for (size_t j = 0; j <= world->outcome->n_steps; j++) {
			size_t without = j == world->outcome->n_steps ? NOBODY : j;
			struct trace_report *report;
			struct trace *trace;

			if (leave_out == (without == NOBODY) ||
			    (leave_out && world->outcome->steps[j].effect == EFFECT_MISS))
				continue;
			trace = tell(world, packet, without);
			report = trace_report_new(trace, world->explain);
			trace_report_finish(report);
			check(report, without);
			trace_report_free(report);
			trace_free(trace);
		}
	}
	explanation_free(planned);
}

static void no_difference(const struct trace_report *report, size_t without attr_unused)
{
	if (report->difference)
		fail_msg("%s %s", report->summary, report->difference);
	assert_non_null(report->outcome);
	assert_int_equal(report->outcome->verdict, trace_verdict(report->trace));
	assert_int_equal(report->outcome->masquerade != MASQUERADE_NONE,
			 report->trace->masqueraded);
}

static void a_difference(const struct trace_report *report, size_t without)
{
	if (!report->difference)
		fail_msg("without step %zu all is said to be as planned: %s", without,
			 report->summary);
}

static void what_is_planned_is_no_difference(void **state)
{
	struct world *world = *state;
	const struct packet packets[] = {
		packet_of(world, "10.244.7.7", CLUSTER_IP, 80),
		packet_of(world, "10.244.1.1", CLUSTER_IP, 80), /* also to itself */
		packet_of(world, "203.0.113.7", CLUSTER_IP, 80),
		packet_of(world, "203.0.113.7", NODE_IP, 30080),
		packet_of(world, "203.0.113.7", "10.96.0.99", 80),
	};

	for (size_t i = 0; i < ARRAY_SIZE(packets); i++)
		for_each_telling(world, &packets[i], false, no_difference);
}

static void every_rule_that_is_not_met_is_a_difference(void **state)
{
	struct world *world = *state;
	const struct packet packet = packet_of(world, "203.0.113.7", NODE_IP, 30080);

	for_each_telling(world, &packet, true, a_difference);
}

static struct trace_report *tell_first(struct world *world, const struct packet *packet,
				       struct explanation **planned, struct trace **trace)
{
	struct trace_report *report;

	*planned = explain_packet(world->explain, packet);
	world->outcome = &(*planned)->path->outcomes[0];
	*trace = tell(world, packet, NOBODY);
	report = trace_report_new(*trace, world->explain);
	return report;
}

static void another_backend_is_a_difference(void **state)
{
	struct world *world = *state;
	const struct packet packet = packet_of(world, "10.244.7.7", CLUSTER_IP, 80);
	struct explanation *planned;
	struct trace *trace;
	struct trace_report *report = tell_first(world, &packet, &planned, &trace);

	trace->now.destination = build_addr("10.244.9.9");
	trace_report_finish(report);
	assert_string_equal(report->difference, "Connections should reach one of 10.244.1.1:8080, "
						"10.244.2.2:8080.");
	trace_report_free(report);
	trace_free(trace);
	explanation_free(planned);
}

/* Nobody plans for a client that is known, or for the second packet: where they end counts. */
static void remembered_clients_and_later_packets_may_take_another_way(void **state)
{
	struct world *world = *state;
	const struct packet packet = packet_of(world, "10.244.7.7", CLUSTER_IP, 80);
	struct explanation *planned;
	struct trace *trace;
	struct trace_report *report = tell_first(world, &packet, &planned, &trace);

	trace->n_steps = trace->settled = 1;
	trace->remembered = true;
	trace_report_finish(report);
	assert_null(report->difference);
	trace_report_free(report);
	report = trace_report_new(trace, world->explain);
	trace->remembered = trace->first = false;
	trace_report_finish(report);
	assert_null(report->difference);
	assert_non_null(strstr(report->summary, "not the first packet"));
	trace_report_free(report);
	trace_free(trace);
	explanation_free(planned);
}

/* Their rules are no part of any plan. */
static void rules_of_others_do_not_count(void **state)
{
	struct world *world = *state;
	const struct packet packet = packet_of(world, "10.244.7.7", CLUSTER_IP, 80);
	struct explanation *planned;
	struct trace *trace;
	struct trace_report *report = tell_first(world, &packet, &planned, &trace);

	trace->steps[0] = (struct step){.hook = HOOK_PREROUTING,
					.effect = EFFECT_ACCEPT,
					.table = "mangle",
					.chain = "PREROUTING",
					.handle = 99};
	trace_report_finish(report);
	assert_non_null(strstr(report->difference, "was not met")); /* the one that was here */
	assert_null(strstr(report->difference, "mangle"));
	trace_report_free(report);
	trace_free(trace);
	explanation_free(planned);
}

static void without_a_plan_nothing_is_compared(void **state)
{
	struct world *world = *state;
	const struct packet packet = packet_of(world, "203.0.113.7", NODE_IP, 30080);
	struct explanation *planned = explain_packet(world->explain, &packet);
	cleanup_text struct text text = {0};
	cleanup_free char *document = NULL;
	struct trace_report *report;
	struct trace *trace;
	struct doc doc;

	world->outcome = &planned->path->outcomes[0];
	trace = tell(world, &packet, NOBODY);
	report = trace_report_new(trace, NULL);
	trace_report_finish(report);
	assert_null(report->difference);
	doc_init(&doc, &text, DOC_JSON);
	trace_doc(report, &doc, NULL);
	document = text_dup(&text);
	assert_non_null(strstr(document, "\"compared\": false"));
	assert_non_null(strstr(document, "\"verdict\": \"backend\""));
	assert_non_null(strstr(document, "\"masquerade\": true"));
	trace_report_free(report);
	trace_free(trace);
	explanation_free(planned);
}

#define BOTH(test)                                                        \
	{#test " (iptables)", test, iptables_setup, teardown, NULL},      \
	{                                                                 \
#test " (nftables)", test, nftables_setup, teardown, NULL \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(what_is_planned_is_no_difference),
		BOTH(every_rule_that_is_not_met_is_a_difference),
		BOTH(another_backend_is_a_difference),
		BOTH(remembered_clients_and_later_packets_may_take_another_way),
		BOTH(rules_of_others_do_not_count),
		BOTH(without_a_plan_nothing_is_compared),
	};

	return cmocka_run_group_tests_name("trace_report", tests, NULL, NULL);
}

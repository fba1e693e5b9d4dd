/* SPDX-License-Identifier: Apache-2.0 */

/* Packets through the rules of both modes: where they end, with what share, and what is said of it. */

#include <stdio.h>

#include "backends/modes.h"
#include "base/doc.h"
#include "base/text.h"
#include "build.h"
#include "inspect/diff_explanation.h"
#include "inspect/diff_iptables.h"
#include "inspect/explain.h"
#include "inspect/iptables_rules.h"
#include "inspect/kernel_rules.h"

#define NODE_IP    "192.168.0.2"
#define CLUSTER_IP "10.96.0.10"
#define EXTERNAL   "198.51.100.1"
#define VIP        "198.51.100.9"

struct world {
	const struct backend_ops *backend;
	struct model *model;
	struct settings settings;
	struct addr addresses[2];
	struct explain *explain;
	struct explanation *found;
};

static struct world *world_new(const struct backend_ops *backend)
{
	struct world *world = xcalloc(1, sizeof(*world));

	world->backend = backend;
	world->model = model_new("node-a", 0);
	world->settings = (struct settings){
		.family = FAMILY_IPV4,
		.node_name = "node-a",
		.node_ip = build_addr(NODE_IP),
		.masquerade_mark = 0x4000,
		.allow_external_ips = true,
		.detector = {.kind = DETECTOR_CIDR, .cidr = build_prefix("10.244.0.0/16")},
	};
	node_ports_init(&world->settings.node_ports, FAMILY_IPV4, NULL, 0);
	world->addresses[0] = build_addr(NODE_IP);
	world->addresses[1] = build_addr("127.0.0.1");
	return world;
}

static int teardown(void **state)
{
	struct world *world = *state;

	explanation_free(world->found);
	explain_free(world->explain);
	node_ports_done(&world->settings.node_ports);
	model_free(world->model);
	free(world);
	return 0;
}

static int iptables_setup(void **state)
{
	*state = world_new(&backend_iptables);
	return 0;
}

static int nftables_setup(void **state)
{
	*state = world_new(&backend_nftables);
	return 0;
}

/* Service default/web with all kinds of addresses. */
static struct service *add_web(void)
{
	struct service *service = build_service("default/web", CLUSTER_IP);

	build_port(service, "http", PROTOCOL_TCP, 80, 30080);
	build_external_ip(service, EXTERNAL);
	build_vip(service, VIP);
	return service;
}

static struct draft *web_slice(void)
{
	struct draft *slice = build_slice("default/web-1", "web", FAMILY_IPV4);

	build_slice_port(slice, "http", PROTOCOL_TCP, 8080);
	return slice;
}

static struct draft *three_endpoints(void)
{
	struct draft *slice = web_slice();

	build_endpoint(slice, "10.244.1.1", "node-a", BUILD_READY);
	build_endpoint(slice, "10.244.2.2", "node-b", BUILD_READY);
	build_endpoint(slice, "10.244.3.3", "node-c", BUILD_READY);
	return slice;
}

/* from: "pod", "node", "outside" or an address */
static const struct explanation *explain(struct world *world, const char *to, uint16_t port,
					 const char *from)
{
	const struct explain_input input = {
		.backend = world->backend,
		.settings = &world->settings,
		.model = world->model,
		.host = {world->addresses, ARRAY_SIZE(world->addresses)},
	};
	const struct sender_input sender = {&world->settings, NULL, &input.host};
	struct packet packet = {.destination = build_addr(to), .port = port};
	enum origin origin;
	struct addr addr;

	if (origin_parse(from, &origin)) {
		packet_from(&packet, &sender, origin);
	} else {
		addr = build_addr(from);
		packet_from_address(&packet, &sender, &addr);
	}
	world->explain = world->explain ? world->explain : explain_new(&input);
	explanation_free(world->found);
	world->found = explain_packet(world->explain, &packet);
	return world->found;
}

static const struct outcome *outcome_to(const struct explanation *found, const char *backend)
{
	for (size_t i = 0; i < found->path->n_outcomes; i++) {
		char text[ADDR_TEXT_MAX];

		addr_print(&found->path->outcomes[i].backend, text);
		if (found->path->outcomes[i].verdict == PACKET_VERDICT_BACKEND &&
		    streq(text, backend))
			return &found->path->outcomes[i];
	}
	fail_msg("no backend %s", backend);
	return NULL;
}

static void assert_share(const struct outcome *outcome, uint64_t of, uint64_t in)
{
	assert_int_equal(outcome->share.of, of);
	assert_int_equal(outcome->share.in, in);
}

static void assert_verdict(const struct explanation *found, enum packet_verdict verdict)
{
	assert_string_equal(packet_verdict_name(explanation_verdict(found)),
			    packet_verdict_name(verdict));
}

/* -- shares, and who is reached */

static void all_ready_endpoints_have_equal_shares(void **state)
{
	struct world *world = *state;
	const struct explanation *found;

	model_set_service(world->model, add_web());
	build_set_slice(world->model, three_endpoints());
	found = explain(world, CLUSTER_IP, 80, "pod");
	assert_verdict(found, PACKET_VERDICT_BACKEND);
	assert_int_equal(found->path->n_outcomes, 3);
	assert_share(outcome_to(found, "10.244.1.1"), 1, 3);
	assert_share(outcome_to(found, "10.244.2.2"), 1, 3);
	assert_share(outcome_to(found, "10.244.3.3"), 1, 3);
	assert_int_equal(outcome_to(found, "10.244.3.3")->backend_port, 8080);
	assert_int_equal(found->entry, ENTRY_CLUSTER_IP);
	assert_string_equal(found->port->id, "default/web:http");
	assert_string_equal(found->summary, "Connections reach one of 3 backends, 1/3 each, and "
					    "keep the client's address.");
}

static void shares_of_a_thousand_endpoints_are_exact(void **state)
{
	struct world *world = *state;
	struct draft *slice = web_slice();
	const struct explanation *found;
	char addr[ADDR_TEXT_MAX];

	model_set_service(world->model, add_web());
	for (int i = 0; i < 1000; i++) {
		snprintf(addr, sizeof(addr), "10.244.%d.%d", i / 200, i % 200 + 1);
		build_endpoint(slice, addr, NULL, BUILD_READY);
	}
	build_set_slice(world->model, slice);
	found = explain(world, CLUSTER_IP, 80, "pod");
	assert_int_equal(found->path->n_outcomes, 1000);
	for (size_t i = 0; i < 1000; i++)
		assert_share(&found->path->outcomes[i], 1, 1000);
}

static void endpoints_left_out_have_their_reasons(void **state)
{
	struct world *world = *state;
	struct draft *slice = three_endpoints();
	const struct explanation *found;

	build_endpoint(slice, "10.244.4.4", "node-c", BUILD_UNREADY);
	build_endpoint(slice, "10.244.5.5", "node-c", BUILD_SERVING_TERMINATING);
	model_set_service(world->model, add_web());
	build_set_slice(world->model, slice);
	found = explain(world, CLUSTER_IP, 80, "pod");
	assert_int_equal(found->path->n_outcomes, 3);
	assert_int_equal(found->n_left_out, 2);
	assert_int_equal(found->left_out[0].reason, LEFT_OUT_NOT_READY);
	assert_int_equal(found->left_out[1].reason, LEFT_OUT_TERMINATING);
}

static void endpoints_of_another_zone_are_left_out(void **state)
{
	struct world *world = *state;
	struct draft *slice = web_slice();
	struct node *node = node_new("node-a");
	const struct explanation *found;

	node->zone = "a";
	model_set_node(world->model, node);
	build_hints(slice, build_endpoint(slice, "10.244.1.1", "node-a", BUILD_READY), "a", NULL);
	build_hints(slice, build_endpoint(slice, "10.244.2.2", "node-b", BUILD_READY), "b", NULL);
	model_set_service(world->model, add_web());
	build_set_slice(world->model, slice);
	found = explain(world, CLUSTER_IP, 80, "pod");
	assert_int_equal(found->path->n_outcomes, 1);
	outcome_to(found, "10.244.1.1");
	assert_int_equal(found->n_left_out, 1);
	assert_int_equal(found->left_out[0].reason, LEFT_OUT_OTHER_ZONE);
}

/* -- refusals */

static void no_ready_endpoint_is_refused(void **state)
{
	struct world *world = *state;
	struct draft *slice = web_slice();

	build_endpoint(slice, "10.244.1.1", "node-a", BUILD_UNREADY);
	build_endpoint(slice, "10.244.1.2", "node-a", BUILD_UNREADY);
	model_set_service(world->model, add_web());
	build_set_slice(world->model, slice);
	assert_verdict(explain(world, CLUSTER_IP, 80, "pod"), PACKET_VERDICT_REJECTED);
	assert_string_equal(world->found->summary,
			    "Connections are refused: service default/web:http has no ready "
			    "endpoint; 2 endpoints are not ready.");
	assert_verdict(explain(world, NODE_IP, 30080, "outside"), PACKET_VERDICT_REJECTED);
	assert_verdict(explain(world, VIP, 80, "outside"), PACKET_VERDICT_REJECTED);
	/* the rules of iptables mode have nothing about external destinations at hook output */
	assert_verdict(explain(world, EXTERNAL, 80, "node"), world->backend == &backend_nftables
								     ? PACKET_VERDICT_REJECTED
								     : PACKET_VERDICT_PASSED);
}

static void policy_local_without_local_endpoint_is_dropped(void **state)
{
	struct world *world = *state;
	struct service *service = add_web();
	struct draft *slice = web_slice();

	service->external_local = service->internal_local = true;
	build_endpoint(slice, "10.244.2.2", "node-b", BUILD_READY);
	model_set_service(world->model, service);
	build_set_slice(world->model, slice);
	assert_verdict(explain(world, CLUSTER_IP, 80, "pod"), PACKET_VERDICT_DROPPED);
	assert_string_equal(world->found->summary,
			    "Connections are dropped: internalTrafficPolicy of service default/web "
			    "is Local, and it has no ready endpoint on this node (node-a); 1 "
			    "endpoint is not on this node.");
	assert_verdict(explain(world, NODE_IP, 30080, "outside"), PACKET_VERDICT_DROPPED);
	assert_verdict(explain(world, VIP, 80, "outside"), PACKET_VERDICT_DROPPED);
	/* the node and pods may use all */
	assert_verdict(explain(world, VIP, 80, "node"), PACKET_VERDICT_BACKEND);
	assert_verdict(explain(world, VIP, 80, "pod"), PACKET_VERDICT_BACKEND);
}

static void source_ranges_drop_others(void **state)
{
	struct world *world = *state;
	struct service *service = add_web();

	build_source_range(service, "203.0.113.64/26");
	build_source_range(service, "198.18.0.0/15");
	model_set_service(world->model, service);
	build_set_slice(world->model, three_endpoints());
	assert_verdict(explain(world, VIP, 80, "203.0.113.65"), PACKET_VERDICT_BACKEND);
	assert_verdict(explain(world, VIP, 80, "198.19.0.1"), PACKET_VERDICT_BACKEND);
	assert_verdict(explain(world, EXTERNAL, 80, "outside"), PACKET_VERDICT_BACKEND);
	assert_verdict(explain(world, VIP, 80, "203.0.113.7"), PACKET_VERDICT_DROPPED);
	assert_string_equal(world->found->summary,
			    "Connections are dropped: 203.0.113.7 is not within "
			    "loadBalancerSourceRanges of service default/web (203.0.113.64/26, "
			    "198.18.0.0/15).");
	assert_int_equal(world->found->n_left_out, 0);
}

static void an_address_of_no_service_is_left_alone(void **state)
{
	struct world *world = *state;

	model_set_service(world->model, add_web());
	build_set_slice(world->model, three_endpoints());
	assert_verdict(explain(world, "10.96.0.99", 80, "pod"), PACKET_VERDICT_PASSED);
	assert_null(world->found->port);
	assert_verdict(explain(world, NODE_IP, 22, "outside"), PACKET_VERDICT_PASSED);
	/* an unused port of a cluster IP: nftables mode refuses it */
	assert_verdict(explain(world, CLUSTER_IP, 81, "pod"), world->backend == &backend_nftables
								      ? PACKET_VERDICT_REJECTED
								      : PACKET_VERDICT_PASSED);
	assert_non_null(strstr(world->found->summary, "service default/web has this cluster IP, "
						      "with 80/tcp"));
}

/* -- masquerading */

static void assert_masquerade(const struct explanation *found, enum masquerade masquerade)
{
	for (size_t i = 0; i < found->path->n_outcomes; i++)
		assert_string_equal(masquerade_name(found->path->outcomes[i].masquerade),
				    masquerade_name(masquerade));
}

static void who_is_masqueraded_and_why(void **state)
{
	struct world *world = *state;

	model_set_service(world->model, add_web());
	build_set_slice(world->model, three_endpoints());
	assert_masquerade(explain(world, CLUSTER_IP, 80, "pod"), MASQUERADE_NONE);
	assert_masquerade(explain(world, CLUSTER_IP, 80, "node"), MASQUERADE_NOT_A_POD);
	assert_masquerade(explain(world, CLUSTER_IP, 80, "outside"), MASQUERADE_NOT_A_POD);
	assert_masquerade(explain(world, EXTERNAL, 80, "pod"), MASQUERADE_EXTERNAL);
	assert_masquerade(explain(world, NODE_IP, 30080, "outside"), MASQUERADE_EXTERNAL);
}

static void a_pod_that_meets_itself_is_masqueraded(void **state)
{
	struct world *world = *state;
	const struct explanation *found;

	model_set_service(world->model, add_web());
	build_set_slice(world->model, three_endpoints());
	found = explain(world, CLUSTER_IP, 80, "10.244.1.1");
	assert_int_equal(outcome_to(found, "10.244.1.1")->masquerade, MASQUERADE_HAIRPIN);
	assert_int_equal(outcome_to(found, "10.244.2.2")->masquerade, MASQUERADE_NONE);
	assert_non_null(strstr(found->summary, "to 1 of them with this node's address"));
}

static void policy_local_keeps_the_address_of_outsiders(void **state)
{
	struct world *world = *state;
	struct service *service = add_web();
	const struct explanation *found;

	service->external_local = true;
	model_set_service(world->model, service);
	build_set_slice(world->model, three_endpoints());
	found = explain(world, VIP, 80, "outside");
	assert_int_equal(found->path->n_outcomes, 1);
	assert_int_equal(outcome_to(found, "10.244.1.1")->masquerade, MASQUERADE_NONE);
	assert_int_equal(found->n_left_out, 2);
	assert_int_equal(found->left_out[0].reason, LEFT_OUT_NOT_LOCAL);
	assert_masquerade(explain(world, VIP, 80, "node"), MASQUERADE_FROM_NODE);
	assert_int_equal(world->found->path->n_outcomes, 3);
	assert_masquerade(explain(world, VIP, 80, "pod"), MASQUERADE_NONE);
}

/* It ends at hook input, and nothing is masqueraded there. */
static void what_stays_on_the_node_keeps_its_source(void **state)
{
	struct world *world = *state;
	struct draft *slice = web_slice();
	const struct explanation *found;

	build_endpoint(slice, NODE_IP, "node-a", BUILD_READY);
	model_set_service(world->model, add_web());
	build_set_slice(world->model, slice);
	found = explain(world, NODE_IP, 30080, "outside");
	assert_int_equal(outcome_to(found, NODE_IP)->masquerade, MASQUERADE_NONE);
	/* the node's own packets leave by postrouting first */
	assert_masquerade(explain(world, CLUSTER_IP, 80, "node"), MASQUERADE_NOT_A_POD);
}

static void masquerade_all_concerns_pods_too(void **state)
{
	struct world *world = *state;

	world->settings.masquerade_all = true;
	model_set_service(world->model, add_web());
	build_set_slice(world->model, three_endpoints());
	assert_masquerade(explain(world, CLUSTER_IP, 80, "pod"), MASQUERADE_ALL);
}

static void pods_are_told_by_their_interface(void **state)
{
	struct world *world = *state;

	world->settings.detector = (struct detector){.kind = DETECTOR_INTERFACE};
	strcpy(world->settings.detector.interface, "veth");
	model_set_service(world->model, add_web());
	build_set_slice(world->model, three_endpoints());
	assert_masquerade(explain(world, CLUSTER_IP, 80, "pod"), MASQUERADE_NONE);
	assert_masquerade(explain(world, CLUSTER_IP, 80, "outside"), MASQUERADE_NOT_A_POD);
	assert_masquerade(explain(world, CLUSTER_IP, 80, "node"), MASQUERADE_NOT_A_POD);
}

/* -- affinity, and what is printed */

static void affinity_is_told(void **state)
{
	struct world *world = *state;
	struct service *service = add_web();
	const struct explanation *found;

	service->sticky_seconds = 600;
	model_set_service(world->model, service);
	build_set_slice(world->model, three_endpoints());
	for (size_t i = 0; i < 3; i++) {
		found = explain(world, CLUSTER_IP, 80, "pod");
		assert_int_equal(found->path->n_outcomes, 3);
		assert_share(&found->path->outcomes[i], 1, 3);
		assert_int_equal(found->path->outcomes[i].affinity, 600);
	}
	assert_non_null(strstr(world->found->summary, "a client stays with its backend for 600 s"));
}

static void steps_name_hooks_chains_and_rules(void **state)
{
	struct world *world = *state;
	const struct explanation *found;
	const struct step *step;

	model_set_service(world->model, add_web());
	build_set_slice(world->model, three_endpoints());
	found = explain(world, CLUSTER_IP, 80, "outside");
	assert_true(found->path->n_common > 2);
	assert_int_equal(found->path->outcomes[0].steps[0].hook, HOOK_PREROUTING);
	for (size_t i = 0; i < 3; i++) {
		const struct outcome *outcome = &found->path->outcomes[i];

		step = &outcome->steps[outcome->translated_at];
		assert_int_equal(step->effect, EFFECT_TRANSLATE);
		assert_non_null(step->rule);
		step = &outcome->steps[outcome->n_steps - 1];
		assert_int_equal(step->hook, HOOK_POSTROUTING);
		assert_int_equal(step->effect, EFFECT_MASQUERADE);
	}
}

static void human_text_is_narrow_and_without_colours(void **state)
{
	struct world *world = *state;
	cleanup_text struct text text = {0};
	cleanup_free char *printed = NULL;
	char *line, *rest;

	model_set_service(world->model, add_web());
	build_set_slice(world->model, three_endpoints());
	explanation_human(explain(world, VIP, 80, "outside"), &(struct human_style){0}, &text);
	printed = text_dup(&text);
	assert_null(strchr(printed, '\033'));
	assert_non_null(strstr(printed, "1/3 (33.33 %) 10.244.1.1:8080"));
	for (rest = printed; (line = strsep(&rest, "\n"));)
		assert_true(strlen(line) <= 80);
}

static void document_has_verdict_outcomes_and_summary(void **state)
{
	struct world *world = *state;
	cleanup_text struct text text = {0};
	cleanup_free char *printed = NULL;
	struct doc doc;

	model_set_service(world->model, add_web());
	build_set_slice(world->model, three_endpoints());
	doc_init(&doc, &text, DOC_JSON);
	explanation_doc(explain(world, CLUSTER_IP, 80, "node"), &doc, NULL);
	printed = text_dup(&text);
	assert_non_null(strstr(printed, "\"verdict\": \"backend\""));
	assert_non_null(strstr(printed, "\"share\": \"1/3\""));
	assert_non_null(strstr(printed, "\"masqueradeReason\": \"notAPod\""));
	assert_int_equal(doc.depth, 0);
}

/* -- the kernel's rules */

/* What iptables-save would list, with `change` made to each line, which may drop it. */
static void list_rules(struct world *world, struct kernel_rules *saved,
		       void (*change)(struct kernel_rules *saved, const char *line))
{
	struct rule_store *rules = explain_rules(world->explain);
	char head[256];

	for (enum table table = 0; table < TABLE_COUNT; table++) {
		struct stored_chain *chain;
		size_t at = 0;

		snprintf(head, sizeof(head), "*%s", table_name(table));
		kernel_rules_line(saved, head);
		while ((chain = map_next(&rules->chains[table], &at))) {
			snprintf(head, sizeof(head), ":%s - [0:0]", chain->name);
			kernel_rules_line(saved, head);
			for (size_t i = 0; i < chain->n; i++)
				change(saved, rule_store_text(rules, chain->v[i]));
		}
	}
	kernel_rules_line(saved, "COMMIT");
}

static void leave(struct kernel_rules *saved, const char *line)
{
	kernel_rules_line(saved, line);
}

static void drop_translations(struct kernel_rules *saved, const char *line)
{
	if (!strstr(line, "DNAT"))
		kernel_rules_line(saved, line);
}

static void add_foreign(struct kernel_rules *saved, const char *line)
{
	if (has_prefix(line, "-A KUBE-SERVICES") && strstr(line, "cluster IP"))
		kernel_rules_line(saved, "-A KUBE-SERVICES -s 192.0.2.1/32 -j DROP");
	kernel_rules_line(saved, line);
}

static void add_plugin(struct kernel_rules *saved, const char *line)
{
	if (has_prefix(line, "-A PREROUTING"))
		kernel_rules_line(saved, "-A PREROUTING -j CNI-HOSTPORT-DNAT");
	kernel_rules_line(saved, line);
	if (has_prefix(line, "-A PREROUTING")) /* behind ours */
		kernel_rules_line(saved, "-A PREROUTING -j ACCEPT");
}

static void add_thief(struct kernel_rules *saved, const char *line)
{
	if (has_prefix(line, "-A PREROUTING"))
		kernel_rules_line(saved,
				  "-A PREROUTING -m comment --comment \"-j CNI-X\" -j ACCEPT");
	kernel_rules_line(saved, line);
}

/* Steps and notes that differ. */
static void compare(struct world *world,
		    void (*change)(struct kernel_rules *saved, const char *line), size_t *ret_steps,
		    size_t *ret_notes)
{
	cleanup_kernel_rules struct kernel_rules *saved = kernel_rules_new(FAMILY_IPV4);
	cleanup_diff struct diff diff = {0};
	struct packet_path *path;

	model_set_service(world->model, add_web());
	build_set_slice(world->model, three_endpoints());
	explain(world, CLUSTER_IP, 80, "outside");
	list_rules(world, saved, change);
	diff_iptables_compare(&diff, explain_rules(world->explain), saved);
	diff_explanation_tell(&diff, world->found);
	path = world->found->path;
	*ret_steps = 0;
	for (size_t i = 0; i < path->n_outcomes; i++)
		for (size_t j = 0; j < path->outcomes[i].n_steps; j++)
			*ret_steps += path->outcomes[i].steps[j].kernel != NULL;
	*ret_notes = world->found->n_kernel_notes;
}

static void the_same_rules_are_no_difference(void **state)
{
	size_t steps, notes;

	compare(*state, leave, &steps, &notes);
	assert_int_equal(steps, 0);
	assert_int_equal(notes, 0);
}

static void a_rule_that_is_missing_is_told_at_its_step(void **state)
{
	size_t steps, notes;

	compare(*state, drop_translations, &steps, &notes);
	assert_int_equal(steps, 3);
}

static void a_foreign_rule_on_the_way_is_told(void **state)
{
	struct world *world = *state;
	size_t steps, notes;

	compare(world, add_foreign, &steps, &notes);
	assert_int_equal(steps, 0);
	assert_int_equal(notes, 1);
	assert_string_equal(world->found->kernel_notes[0],
			    "chain KUBE-SERVICES has a rule that is not planned: -A KUBE-SERVICES "
			    "-s 192.0.2.1/32 -j DROP");
}

static void a_plugin_before_ours_is_a_note(void **state)
{
	struct world *world = *state;
	size_t steps, notes;

	compare(world, add_plugin, &steps, &notes);
	assert_int_equal(notes, 1);
	assert_string_equal(world->found->kernel_notes[0],
			    "a rule of another program stands before ours in nat PREROUTING: "
			    "-A PREROUTING -j CNI-HOSTPORT-DNAT");
	assert_int_equal(world->found->kernel, KERNEL_SAME);
}

static void a_rule_before_ours_that_takes_packets_is_a_difference(void **state)
{
	struct world *world = *state;
	size_t steps, notes;

	compare(world, add_thief, &steps, &notes);
	assert_int_equal(steps, 0);
	assert_int_equal(notes, 1);
	assert_int_equal(world->found->kernel, KERNEL_DIFFERS);
}

#define BOTH(test)                                                        \
	{#test " (iptables)", test, iptables_setup, teardown, NULL},      \
	{                                                                 \
#test " (nftables)", test, nftables_setup, teardown, NULL \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(all_ready_endpoints_have_equal_shares),
		BOTH(shares_of_a_thousand_endpoints_are_exact),
		BOTH(endpoints_left_out_have_their_reasons),
		BOTH(endpoints_of_another_zone_are_left_out),
		BOTH(no_ready_endpoint_is_refused),
		BOTH(policy_local_without_local_endpoint_is_dropped),
		BOTH(source_ranges_drop_others),
		BOTH(an_address_of_no_service_is_left_alone),
		BOTH(who_is_masqueraded_and_why),
		BOTH(a_pod_that_meets_itself_is_masqueraded),
		BOTH(policy_local_keeps_the_address_of_outsiders),
		BOTH(what_stays_on_the_node_keeps_its_source),
		BOTH(masquerade_all_concerns_pods_too),
		BOTH(pods_are_told_by_their_interface),
		BOTH(affinity_is_told),
		BOTH(steps_name_hooks_chains_and_rules),
		BOTH(human_text_is_narrow_and_without_colours),
		BOTH(document_has_verdict_outcomes_and_summary),
		cmocka_unit_test_setup_teardown(the_same_rules_are_no_difference, iptables_setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_rule_that_is_missing_is_told_at_its_step,
						iptables_setup, teardown),
		cmocka_unit_test_setup_teardown(a_foreign_rule_on_the_way_is_told, iptables_setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_plugin_before_ours_is_a_note, iptables_setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			a_rule_before_ours_that_takes_packets_is_a_difference, iptables_setup,
			teardown),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

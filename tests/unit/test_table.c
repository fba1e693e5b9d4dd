/* SPDX-License-Identifier: Apache-2.0 */

/* What is read back of table kube-proxy, in a network namespace of its own; nft puts things there. */

#include <libmnl/libmnl.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>

#include "backends/nftables/batch_writer.h"
#include "backends/nftables/layout.h"
#include "backends/nftables/statement_read.h"
#include "backends/nftables/statement_text.h"
#include "backends/nftables/table.h"
#include "fake_tools.h"
#include "kernel/nft_batch.h"
#include "kernel/nft_dump.h"
#include "kernel/nft_socket.h"

static struct nft_socket *socket_;

static int set_up(void **state attr_unused)
{
	struct err err;

	private_network();
	assert_int_equal(nft_socket_open(&socket_, &err), 0);
	return 0;
}

static void nft(const char *command)
{
	cleanup_free char *line = xasprintf("nft '%s'", command);

	assert_int_equal(system(line), 0);
}

static int tear_down(void **state attr_unused)
{
	nft("flush ruleset");
	nft_socket_free(take(socket_));
	return 0;
}

/* The table as we make it, with all containers and no element. */
static void make_ours(enum family family)
{
	cleanup_nft_batch struct nft_batch *batch = nft_batch_new();
	struct batch_writer writer;
	struct err err;

	batch_writer_init(&writer, family, LAYOUT_TABLE, batch);
	batch_writer_table(&writer, LAYOUT_COMMENT);
	layout_containers(&writer.writer, &(struct settings){.family = family});
	batch_writer_done(&writer);
	if (nft_batch_commit(socket_, batch, 0, NULL, NULL, &err) < 0)
		fail_msg("%s", err.text);
}

static enum table_kind find(enum family family)
{
	enum table_kind kind = TABLE_KIND_COUNT;
	struct err err;

	if (table_find(socket_, family, &kind, &err) < 0)
		fail_msg("%s", err.text);
	return kind;
}

static void our_table_is_known_by_its_comment(void **state attr_unused)
{
	assert_int_equal(find(FAMILY_IPV4), TABLE_ABSENT);
	make_ours(FAMILY_IPV4);
	assert_int_equal(find(FAMILY_IPV4), TABLE_OURS);
	assert_int_equal(find(FAMILY_IPV6), TABLE_ABSENT);
}

static void any_other_comment_is_foreign(void **state attr_unused)
{
	static const char *const comments[] = {
		"comment \"rules for kube-proxy\";", /* kube-proxy's */
		"",
		"comment \"by Portolan\";",
	};

	for (size_t i = 0; i < ARRAY_SIZE(comments); i++) {
		cleanup_free char *command =
			xasprintf("add table ip6 kube-proxy { %s }", comments[i]);

		nft(command);
		assert_int_equal(find(FAMILY_IPV6), TABLE_FOREIGN);
		nft("delete table ip6 kube-proxy");
	}
}

static void the_layout_of_another_version_is_known_as_such(void **state attr_unused)
{
	nft("add table ip kube-proxy { comment \"rules for kube-proxy, by Portolan (layout 2)\"; "
	    "}");
	assert_int_equal(find(FAMILY_IPV4), TABLE_OTHER_LAYOUT);
}

static void
a_table_that_kube_proxy_took_over_is_foreign_though_it_keeps_our_comment(void **state attr_unused)
{
	make_ours(FAMILY_IPV4);
	nft("add map ip kube-proxy firewall-ips { type ipv4_addr . inet_proto . inet_service : "
	    "verdict; }");
	assert_int_equal(find(FAMILY_IPV4), TABLE_FOREIGN);
}

static void chains_are_listed_by_name(void **state attr_unused)
{
	cleanup_table_chains struct table_chains chains = {0};
	struct err err;

	nft("add table ip kube-proxy; add chain ip kube-proxy a; add chain ip kube-proxy b/c; "
	    "add table ip other; add chain ip other d; add table ip6 kube-proxy; "
	    "add chain ip6 kube-proxy e");
	assert_int_equal(table_list_chains(socket_, FAMILY_IPV4, &chains, &err), 0);
	assert_int_equal(chains.n, 2);
	assert_string_equal(chains.names[0], "a");
	assert_string_equal(chains.names[1], "b/c");
}

static struct port_plan port_at(const struct addr *addr, const struct service_port *port)
{
	static const struct service service;

	return (struct port_plan){
		.service = &service, .port = port, .cluster_ip = addr, .id = "ns1/web:http"};
}

static void ids_of_a_former_life_are_found(void **state attr_unused)
{
	const struct service_port port = {.protocol = PROTOCOL_TCP, .port = 80};
	struct endpoint endpoint = {.port = 8080};
	struct affinity_ids ids;
	struct port_plan plan;
	struct addr addr;
	struct err err;

	assert_int_equal(addr_parse("10.96.0.1", &addr), 0);
	assert_int_equal(addr_parse("10.1.0.1", &endpoint.addr), 0);
	plan = port_at(&addr, &port);
	affinity_ids_init(&ids);
	make_ours(FAMILY_IPV4);
	nft("add map ip kube-proxy clients-5 { type ipv4_addr : classid; size 10; "
	    "flags dynamic,timeout; comment \"10.96.0.1 ns1/web:http/tcp\"; }");
	nft("add map ip kube-proxy clients-6 { type ipv4_addr : classid; }"); /* nobody's */
	nft("add element ip kube-proxy members { 1000:5 . 10.1.0.1 . 8080 : 1000:9 }");
	nft("add element ip kube-proxy members { 1000:0 . 0.0.0.0 . 0 : 1000:400 }");
	if (table_find_ids(socket_, FAMILY_IPV4, &ids, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(affinity_ids_port(&ids, &plan), 5);
	assert_int_equal(affinity_ids_endpoint(&ids, 5, &endpoint), 9);
	assert_int_equal(ids.mark, 0x400);
	assert_int_equal(ids.next, 0x400);
	affinity_ids_done(&ids);
}

static char said[512];

static int on_client(void *arg attr_unused, const struct table_client *client)
{
	char from[ADDR_TEXT_MAX];

	addr_print(&client->addr, from);
	snprintf(said + strlen(said), sizeof(said) - strlen(said), "%s %u %u\n", from,
		 client->endpoint, (unsigned int)(client->timeout_ms / 1000));
	return 0;
}

static int refuse_client(void *arg, const struct table_client *client attr_unused)
{
	++*(int *)arg;
	return -ENOSPC;
}

static void on_restart(void *arg attr_unused)
{
	said[0] = '\0';
}

static const struct table_map map5 = {.container = CONTAINER_CLIENTS, .number = 5};
static const struct table_map map6 = {.container = CONTAINER_LOCAL_CLIENTS, .number = 6};

static void make_clients(void)
{
	make_ours(FAMILY_IPV4);
	make_ours(FAMILY_IPV6);
	nft("add map ip kube-proxy clients-5 { type ipv4_addr : classid; flags dynamic,timeout; }");
	nft("add map ip6 kube-proxy local-clients-6 { type ipv6_addr : classid; "
	    "flags dynamic,timeout; }");
	nft("add element ip kube-proxy clients-5 { 192.0.2.1 timeout 1h : 1000:5 }");
	nft("add element ip6 kube-proxy local-clients-6 { 2001:db8::1 timeout 2h : 1000:f }");
}

static void remembered_clients_are_read(void **state attr_unused)
{
	struct err err;

	make_clients();
	said[0] = '\0';
	if (table_each_client(socket_, FAMILY_IPV4, &map5, on_client, on_restart, NULL, &err) < 0 ||
	    table_each_client(socket_, FAMILY_IPV6, &map6, on_client, on_restart, NULL, &err) < 0)
		fail_msg("%s", err.text);
	assert_string_equal(said, "192.0.2.1 5 3600\n2001:db8::1 15 7200\n");
}

static void a_list_of_clients_can_be_left(void **state attr_unused)
{
	struct err err;
	int n = 0;

	make_clients();
	nft("add element ip kube-proxy clients-5 { 192.0.2.2 timeout 1h : 1000:5 }");
	assert_int_equal(
		table_each_client(socket_, FAMILY_IPV4, &map5, refuse_client, on_restart, &n, &err),
		-ENOSPC);
	assert_int_equal(n, 1);
	assert_int_equal(find(FAMILY_IPV4), TABLE_OURS); /* the socket is fit for more */
}

static void maps_of_clients_are_listed(void **state attr_unused)
{
	cleanup_table_maps struct table_maps maps = {0};
	struct err err;

	make_ours(FAMILY_IPV4);
	nft("add map ip kube-proxy clients-5 { type ipv4_addr : classid; flags dynamic,timeout; "
	    "size 7; comment \"whose\"; }");
	nft("add map ip kube-proxy local-clients-4294967295 { type ipv4_addr : classid; }");
	nft("add map ip kube-proxy clients-4294967296 { type ipv4_addr : classid; }"); /* no number */
	nft("add map ip kube-proxy clients-05 { type ipv4_addr : classid; }");
	nft("add table ip other; add map ip other clients-8 { type ipv4_addr : classid; }");
	assert_int_equal(table_list_maps(socket_, FAMILY_IPV4, &maps, &err), 0);
	assert_int_equal(maps.n, 2);
	assert_int_equal(maps.v[0].container, CONTAINER_CLIENTS);
	assert_int_equal(maps.v[0].number, 5);
	assert_int_equal(maps.v[0].size, 7);
	assert_string_equal(maps.v[0].comment, "whose");
	assert_int_equal(maps.v[1].container, CONTAINER_LOCAL_CLIENTS);
	assert_int_equal(maps.v[1].number, UINT32_MAX);
	assert_null(maps.v[1].comment);
}

static void a_list_of_what_is_not_there_is_an_error(void **state attr_unused)
{
	struct affinity_ids ids;
	struct err err;

	affinity_ids_init(&ids);
	assert_int_equal(table_find_ids(socket_, FAMILY_IPV4, &ids, &err), -ENOENT);
	affinity_ids_done(&ids);
}

/* -- rules */

/* Says what it is told to a batch, and keeps the rules. */
struct recorder {
	struct writer writer;
	struct batch_writer batch;
	struct nft_rule rules[512];
	size_t n;
};

static void record_chain(struct writer *writer, struct chain chain)
{
	struct batch_writer *batch = &((struct recorder *)writer)->batch;

	batch->writer.ops->chain(&batch->writer, chain);
}

static void record_clients(struct writer *writer, const struct clients_map *map)
{
	struct batch_writer *batch = &((struct recorder *)writer)->batch;

	batch->writer.ops->clients(&batch->writer, map);
}

static void record_rule(struct writer *writer, const struct nft_rule *rule)
{
	struct recorder *recorder = (struct recorder *)writer;

	assert_true(recorder->n < ARRAY_SIZE(recorder->rules));
	recorder->rules[recorder->n++] = *rule;
	recorder->batch.writer.ops->rule(&recorder->batch.writer, rule);
}

static const struct writer_ops recording = {
	.chain = record_chain, .clients = record_clients, .rule = record_rule};

static void write_layout(struct recorder *recorder, const struct settings *settings)
{
	const struct prefix cidr = {.addr.family = (uint8_t)settings->family, .length = 12};
	const struct layout_facts facts = {settings, &cidr, 1, true};
	const struct layout_affinity affinity = {.number = 7,
						 .seconds = 10800,
						 .protocol = PROTOCOL_UDP,
						 .local = true,
						 .clients = 10,
						 .comment = "a/b"};
	struct writer *writer = &recorder->writer;

	layout_fixed_chains(writer, settings);
	for (uint32_t n = 1; n < 4; n += 2)
		for (enum chain_id id = CHAIN_PICK; id < CHAIN_PICKS_END; id++)
			layout_numbered(writer, settings, (struct chain){id, n});
	layout_affinity_maps(writer, &affinity);
	for (enum chain_id id = CHAIN_RECALL; id <= CHAIN_REMEMBER_PORT; id++) {
		record_chain(writer, (struct chain){id, affinity.number});
		layout_affinity_rules(writer, &affinity, id);
	}
	for (enum chain_id id = 0; id < CHAIN_FIXED_COUNT; id++)
		layout_rules(writer, &facts, id);
}

struct listing {
	struct arena *arena;
	struct recorder *recorder;
	size_t n;
};

/* Rules of a chain come in their order, so of equal ones any will do. */
static int check_listed(void *arg, const struct nlmsghdr *message, struct err *err attr_unused)
{
	struct listing *listing = arg;
	struct recorder *recorder = listing->recorder;
	struct nft_rule rule;
	bool found = false;

	statement_read_rule(listing->arena, recorder->writer.family, message, &rule);
	for (size_t i = 0; i < recorder->n && !found; i++)
		found = rule.chain.id == recorder->rules[i].chain.id &&
			rule.chain.number == recorder->rules[i].chain.number &&
			nft_rule_equal(&rule, &recorder->rules[i]);
	if (!found) {
		cleanup_text struct text text = {0};

		statement_text_rule(&text, recorder->writer.family, &rule);
		fail_msg("%s is not what was written", text_dup(&text));
	}
	listing->n++;
	return 0;
}

static void check_rules(enum family family, const struct detector *detector)
{
	static const struct nft_dump_ops ops = {.message = check_listed};
	const struct nft_dump_request request = {
		.type = NFT_MSG_GETRULE, .family = family, .table = LAYOUT_TABLE};
	struct settings settings = {
		.family = family, .masquerade_mark = 0x4000, .detector = *detector};
	cleanup_nft_batch struct nft_batch *batch = nft_batch_new();
	cleanup_arena struct arena *arena = arena_new(65536);
	cleanup_free struct recorder *recorder = xcalloc(1, sizeof(*recorder));
	struct listing listing = {arena, recorder, 0};
	struct err err;

	make_ours(family);
	node_ports_init(&settings.node_ports, family, NULL, 0);
	recorder->writer = (struct writer){.ops = &recording, .family = family};
	batch_writer_init(&recorder->batch, family, LAYOUT_TABLE, batch);
	write_layout(recorder, &settings);
	batch_writer_done(&recorder->batch);
	if (nft_batch_commit(socket_, batch, 0, NULL, NULL, &err) < 0 ||
	    nft_dump(socket_, &request, &ops, &listing, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(listing.n, recorder->n);
	assert_true(listing.n > 80);
	node_ports_done(&settings.node_ports);
	nft("flush ruleset");
}

static void the_kernel_lists_each_rule_as_it_was_written(void **state attr_unused)
{
	for (enum family family = 0; family < FAMILY_COUNT; family++) {
		const struct prefix cidr = {.addr = {(uint8_t)family, {0xfd}}, .length = 16};

		check_rules(family, &(struct detector){.kind = DETECTOR_CIDR, .cidr = cidr});
		check_rules(family,
			    &(struct detector){.kind = DETECTOR_BRIDGE, .interface = "cni0"});
		check_rules(family,
			    &(struct detector){.kind = DETECTOR_INTERFACE, .interface = "veth"});
	}
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(our_table_is_known_by_its_comment),
		T(any_other_comment_is_foreign),
		T(the_layout_of_another_version_is_known_as_such),
		T(a_table_that_kube_proxy_took_over_is_foreign_though_it_keeps_our_comment),
		T(chains_are_listed_by_name),
		T(ids_of_a_former_life_are_found),
		T(remembered_clients_are_read),
		T(a_list_of_clients_can_be_left),
		T(maps_of_clients_are_listed),
		T(a_list_of_what_is_not_there_is_an_error),
		T(the_kernel_lists_each_rule_as_it_was_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

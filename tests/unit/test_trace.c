/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The way of real packets, from messages that the kernel sent (Linux 6.18; the seeds of the fuzz target).
 * What rules do is our own here, by their chains.
 */

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "backends/nftables/statement_put.h"
#include "inspect/trace_rules.h"
#include "kernel/nft_expr.h"
#include "kernel/nft_message.h"
#include "xtables/nft_rule.h"
#include "xtables/rule_text.h"

struct recording {
	uint32_t words[4096];
	size_t n; /* bytes */
};

static void load(const char *name, struct recording *ret)
{
	const char *source = getenv("PORTOLAN_SOURCE");
	cleanup_free char *path =
		xasprintf("%s/tests/fuzz/corpus/nft_trace/%s", source ? source : ".", name);
	FILE *file = fopen(path, "r");

	if (!file)
		fail_msg("%s is not there", path);
	ret->n = fread(ret->words, 1, sizeof(ret->words), file);
	fclose(file);
	assert_true(ret->n > 0 && ret->n < sizeof(ret->words));
}

/* -- what the kernel would be asked */

static bool hook_of(void *arg attr_unused, const struct nft_trace *event, enum hook *ret)
{
	static const struct {
		const char *word;
		enum hook hook;
	} words[] = {
		{"prerouting", HOOK_PREROUTING},
		{"PREROUTING", HOOK_PREROUTING},
		{"left", HOOK_POSTROUTING},
		{"postrouting", HOOK_POSTROUTING},
		{"POSTROUTING", HOOK_POSTROUTING},
		{"delivered", HOOK_INPUT},
		{"input", HOOK_INPUT},
		{"INPUT", HOOK_INPUT},
		{"output", HOOK_OUTPUT},
		{"OUTPUT", HOOK_OUTPUT},
		{"forward", HOOK_FORWARD},
		{"FORWARD", HOOK_FORWARD},
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (strstr(event->chain, words[i].word)) {
			*ret = words[i].hook;
			return true;
		}
	}
	return false;
}

/* What the rules of a chain do that the kernel does not say. */
struct deed {
	const char *chain;
	enum effect effect;
	bool recalls;
	const char *target;
};

static void rule_of(void *arg, const struct nft_trace *event, struct trace_rule *ret)
{
	const struct deed *deed = arg;

	*ret = (struct trace_rule){.position = 1, .length = 2};
	for (; deed && deed->chain; deed++) {
		if (!has_prefix(event->chain, deed->chain))
			continue;
		ret->effect = deed->effect;
		ret->recalls = deed->recalls;
		ret->target = deed->target;
	}
}

static bool interface_of(void *arg attr_unused, uint32_t index,
			 char name[static PACKET_INTERFACE_MAX])
{
	snprintf(name, PACKET_INTERFACE_MAX, "if%u", index);
	return true;
}

static const struct trace_ops ops = {hook_of, rule_of, interface_of};

static struct trace *replay_deeds(const char *name, enum protocol protocol,
				  const struct deed *deeds)
{
	struct recording recording;
	struct nft_datagram datagram;
	const struct nlmsghdr *message;
	struct trace *trace = NULL;
	struct nft_trace event;

	load(name, &recording);
	datagram = (struct nft_datagram){recording.words, recording.n, false};
	while ((message = nft_datagram_next(&datagram))) {
		assert_int_equal(nft_trace_decode(message, &event), 0);
		if (!trace) {
			trace = trace_new(&ops, (void *)deeds, protocol, &event);
			continue;
		}
		assert_true(trace_goes_on(trace, &event));
		trace_take(trace, &event);
		if (trace->end != TRACE_UNDER_WAY)
			break; /* the end of the table's chain is told twice */
	}
	assert_non_null(trace);
	return trace;
}

static struct trace *replay(const char *name)
{
	return replay_deeds(name, PROTOCOL_TCP, NULL);
}

/* -- a connection through a node port */

static void the_packet_as_it_was_sent_is_known(void **state attr_unused)
{
	struct trace *trace = replay("iptables-nodeport");
	char text[ADDR_PORT_TEXT_MAX];

	assert_int_equal(trace->packet.origin, ORIGIN_OUTSIDE);
	addr_port_print(&trace->packet.destination, trace->packet.port, text);
	assert_string_equal(text, "192.0.2.11:30001");
	addr_print(&trace->packet.source, text);
	assert_string_equal(text, "192.0.2.100");
	assert_true(has_prefix(trace->packet.interface, "if"));
	assert_true(trace->first);
	trace_free(trace);
}

static const struct step *find_effect(const struct trace *trace, enum effect effect)
{
	for (size_t i = 0; i < trace->n_steps; i++)
		if (trace->steps[i].effect == effect)
			return &trace->steps[i];
	return NULL;
}

static void translations_are_seen_by_the_next_headers(void **state attr_unused)
{
	struct trace *trace = replay("iptables-nodeport");
	const struct step *step = find_effect(trace, EFFECT_TRANSLATE);

	assert_int_equal(trace->end, TRACE_LEFT);
	assert_int_equal(trace_verdict(trace), PACKET_VERDICT_BACKEND);
	assert_true(has_prefix(step->chain, "KUBE-SEP-"));
	assert_true(has_prefix(step->target, "10.244.1.") && strstr(step->target, ":8080"));
	assert_int_equal(step->hook, HOOK_PREROUTING);
	step = find_effect(trace, EFFECT_MASQUERADE);
	assert_string_equal(step->chain, "KUBE-POSTROUTING");
	assert_int_equal(step->hook, HOOK_POSTROUTING);
	assert_ptr_equal(step, &trace->steps[trace->masqueraded_at]);
	assert_int_equal(trace->settled, trace->n_steps);
	trace_free(trace);
}

static void rules_tell_what_the_kernel_does_not(void **state attr_unused)
{
	static const struct deed deeds[] = {
		{"KUBE-MARK-MASQ", .effect = EFFECT_MARK},
		{"KUBE-POSTROUTING", .effect = EFFECT_UNMARK},
		{"KUBE-NODEPORTS", .effect = EFFECT_TRANSLATE}, /* but it jumps */
		{NULL},
	};
	struct trace *trace = replay_deeds("iptables-nodeport", PROTOCOL_TCP, deeds);

	assert_string_equal(find_effect(trace, EFFECT_MARK)->chain, "KUBE-MARK-MASQ");
	assert_string_equal(find_effect(trace, EFFECT_UNMARK)->chain, "KUBE-POSTROUTING");
	for (size_t i = 0; i < trace->n_steps; i++)
		if (streq(trace->steps[i].chain, "KUBE-NODEPORTS"))
			assert_int_equal(trace->steps[i].effect, EFFECT_JUMP);
	assert_false(trace->remembered);
	trace_free(trace);
}

static void a_rule_for_remembered_clients_says_so(void **state attr_unused)
{
	static const struct deed iptables[] = {{"KUBE-SVC-", .recalls = true}, {NULL}};
	static const struct deed update[] = {{"nodeport-pick", .effect = EFFECT_REMEMBER}, {NULL}};
	struct trace *trace = replay_deeds("iptables-nodeport", PROTOCOL_TCP, iptables);

	assert_true(trace->remembered);
	trace_free(trace);
	trace = replay_deeds("nftables-nodeport", PROTOCOL_TCP, update);
	assert_false(trace->remembered);
	trace_free(trace);
}

/* -- what a rule does, by its value */

#define MESSAGE_SIZE 8192

static struct nlmsghdr *begin_rule(char *buffer, const char *table)
{
	struct nlmsghdr *message = mnl_nlmsg_put_header(buffer);
	struct nfgenmsg *head;

	message->nlmsg_type = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWRULE;
	head = mnl_nlmsg_put_extra_header(message, sizeof(*head));
	head->nfgen_family = NFPROTO_IPV4;
	if (table)
		mnl_attr_put_strz(message, NFTA_RULE_TABLE, table);
	mnl_attr_put_u64(message, NFTA_RULE_HANDLE, htobe64(7));
	return message;
}

static struct trace_rule effect_of_rule(struct arena *arena, const struct rule *rule)
{
	_Alignas(struct nlmsghdr) char buffer[MESSAGE_SIZE] = {0};
	struct nlmsghdr *message = begin_rule(buffer, NULL);
	char words[RULE_TEXT_MAX];
	struct trace_rule ret;

	nft_rule_put(message, FAMILY_IPV4, rule);
	trace_rules_read(arena, FAMILY_IPV4, true, message, &ret);
	rule_print(rule, RULE_FORM_SAVE_IPV4, words);
	assert_string_equal(ret.text, words);
	return ret;
}

static void values_of_iptables_tell_effects(void **state attr_unused)
{
	cleanup_arena struct arena *arena = arena_new(1024);
	struct addr backend = {FAMILY_IPV4, {10, 244, 1, 2}};
	struct trace_rule effect;
	struct rule rule;

	rule_init(&rule, TABLE_NAT, "KUBE-MARK-MASQ");
	rule_comment(&rule, "-j DNAT --rcheck"); /* what people write says nothing */
	rule_mark_or(&rule, 0x4000);
	effect = effect_of_rule(arena, &rule);
	assert_int_equal(effect.effect, EFFECT_MARK);
	assert_false(effect.recalls);
	rule_init(&rule, TABLE_NAT, "KUBE-POSTROUTING");
	rule_mark_xor(&rule, 0x4000);
	assert_int_equal(effect_of_rule(arena, &rule).effect, EFFECT_UNMARK);
	rule_init(&rule, TABLE_NAT, "KUBE-POSTROUTING");
	rule_masquerade(&rule, true);
	assert_int_equal(effect_of_rule(arena, &rule).effect, EFFECT_MASQUERADE);
	rule_init(&rule, TABLE_FILTER, "KUBE-SERVICES");
	rule_verdict(&rule, TARGET_REJECT);
	assert_int_equal(effect_of_rule(arena, &rule).effect, EFFECT_REJECT);
	rule_init(&rule, TABLE_NAT, "KUBE-SEP-X");
	rule_recent_set(&rule, "KUBE-SEP-X");
	assert_int_equal(effect_of_rule(arena, &rule).effect, EFFECT_REMEMBER);
	rule_protocol(&rule, PROTOCOL_TCP);
	rule_dnat(&rule, &backend, 8080);
	effect = effect_of_rule(arena, &rule);
	assert_int_equal(effect.effect, EFFECT_TRANSLATE);
	assert_string_equal(effect.target, "10.244.1.2:8080");
	rule_init(&rule, TABLE_NAT, "KUBE-SVC-X");
	rule_recent_check(&rule, "KUBE-SEP-X", 600);
	rule_jump(&rule, "KUBE-SEP-X");
	effect = effect_of_rule(arena, &rule);
	assert_int_equal(effect.effect, 0);
	assert_true(effect.recalls);
}

static struct trace_rule effect_of_statement(struct arena *arena, const struct statement *statement)
{
	_Alignas(struct nlmsghdr) char buffer[MESSAGE_SIZE] = {0};
	struct nlmsghdr *message = begin_rule(buffer, "kube-proxy");
	const struct nft_rule rule = {.n = 1, .v = {*statement}};
	struct trace_rule ret;

	statement_put_all(message, FAMILY_IPV4, &rule);
	trace_rules_read(arena, FAMILY_IPV4, false, message, &ret);
	assert_non_null(ret.text);
	return ret;
}

static void statements_tell_effects(void **state attr_unused)
{
	static const struct {
		struct statement statement;
		enum effect effect;
		bool recalls;
	} rows[] = {
		{{.kind = STATEMENT_SET_MARK, .number = 0x4000}, EFFECT_MARK, false},
		{{.kind = STATEMENT_TOGGLE_MARK, .number = 0x4000}, 0, false},
		{{.kind = STATEMENT_UPDATE, .container = CONTAINER_CLIENTS, .map = 1, .number = 9},
		 EFFECT_REMEMBER,
		 false},
		{{.kind = STATEMENT_NOTE_FULL, .container = CONTAINER_FULL_CLIENTS, .number = 9},
		 0,
		 false},
		{{.kind = STATEMENT_DNAT,
		  .container = CONTAINER_AFFINITY_ENDPOINTS,
		  .key = {OPERAND_PRIORITY}},
		 EFFECT_TRANSLATE,
		 true},
		{{.kind = STATEMENT_DNAT, .container = CONTAINER_ENDPOINTS, .key = {OPERAND_DADDR}},
		 EFFECT_TRANSLATE,
		 false},
		{{.kind = STATEMENT_MASQUERADE}, EFFECT_MASQUERADE, false},
		{{.kind = STATEMENT_REJECT}, EFFECT_REJECT, false},
		{{.kind = STATEMENT_DROP}, 0, false},
	};
	cleanup_arena struct arena *arena = arena_new(1024);

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct trace_rule found = effect_of_statement(arena, &rows[i].statement);

		assert_int_equal(found.effect, rows[i].effect);
		assert_int_equal(found.recalls, rows[i].recalls);
	}
}

/* nat of another program, in a way that we do not write. */
static void raw_statements_tell_effects_by_name(void **state attr_unused)
{
	_Alignas(struct nlmsghdr) char buffer[MESSAGE_SIZE] = {0};
	cleanup_arena struct arena *arena = arena_new(1024);
	struct nlmsghdr *message = begin_rule(buffer, "theirs");
	struct nlattr *list = mnl_attr_nest_start(message, NFTA_RULE_EXPRESSIONS);
	struct trace_rule found;

	nft_expr_masquerade(message, 0);
	mnl_attr_nest_end(message, list);
	trace_rules_read(arena, FAMILY_IPV4, false, message, &found);
	assert_int_equal(found.effect, EFFECT_MASQUERADE);
	message = begin_rule(buffer, "theirs");
	list = mnl_attr_nest_start(message, NFTA_RULE_EXPRESSIONS);
	nft_expr_dnat(message, FAMILY_IPV4, NFT_REG_2, NFT_REG_3);
	mnl_attr_nest_end(message, list);
	trace_rules_read(arena, FAMILY_IPV4, false, message, &found);
	assert_int_equal(found.effect, EFFECT_TRANSLATE);
}

/* -- other ends */

static void a_refusal_ends_the_way_even_when_the_id_changed(void **state attr_unused)
{
	static const struct deed deeds[] = {{"KUBE-SERVICES", .effect = EFFECT_REJECT}, {NULL}};
	struct trace *trace = replay_deeds("iptables-refused", PROTOCOL_TCP, deeds);

	assert_int_equal(trace->end, TRACE_STOPPED);
	assert_int_equal(trace_verdict(trace), PACKET_VERDICT_REJECTED);
	assert_string_equal(trace_verdict_name(trace), "rejected");
	trace_free(trace);
	trace = replay("nftables-refused");
	assert_int_equal(trace_verdict(trace),
			 PACKET_VERDICT_DROPPED); /* the rule's value would say more */
	trace_free(trace);
}

static void datagrams_of_the_node_begin_at_output(void **state attr_unused)
{
	struct trace *trace = replay_deeds("nftables-udp", PROTOCOL_UDP, NULL);

	assert_int_equal(trace->packet.origin, ORIGIN_NODE);
	assert_int_equal(trace->packet.protocol, PROTOCOL_UDP);
	assert_string_equal(trace->packet.interface, "");
	assert_int_equal(trace->steps[0].hook, HOOK_OUTPUT);
	assert_int_equal(trace_verdict(trace), PACKET_VERDICT_BACKEND);
	trace_free(trace);
}

static void both_families_are_read(void **state attr_unused)
{
	struct trace *trace = replay("nftables-hairpin-ipv6");
	char text[ADDR_TEXT_MAX];

	assert_int_equal(trace->packet.family, FAMILY_IPV6);
	addr_print(&trace->packet.source, text);
	assert_string_equal(text, "fd00:10:244:1::11");
	addr_print(&trace->now.source, text);
	assert_string_equal(text, "fd00:10:244:1::1");
	assert_true(addr_equal(&trace->now.destination, &trace->packet.source));
	trace_free(trace);
}

static void silence_means_that_it_vanished(void **state attr_unused)
{
	struct recording recording;
	struct nft_trace event;
	struct trace *trace;

	load("iptables-nodeport", &recording);
	assert_int_equal(nft_trace_decode((const struct nlmsghdr *)recording.words, &event), 0);
	trace = trace_new(&ops, NULL, PROTOCOL_TCP, &event);
	trace_give_up(trace);
	assert_string_equal(trace_verdict_name(trace), "vanished");
	assert_int_equal(trace_verdict(trace), PACKET_VERDICT_DROPPED);
	assert_false(trace_goes_on(trace, &event));
	trace_free(trace);
}

/* A repeated SYN is translated as the first one was, and by no rule. */
static void a_later_packet_of_a_connection_blames_no_rule(void **state attr_unused)
{
	struct recording recording;
	struct nft_trace event, next;
	struct trace *trace;

	load("iptables-nodeport", &recording);
	assert_int_equal(nft_trace_decode((const struct nlmsghdr *)recording.words, &event), 0);
	trace = trace_new(&ops, NULL, PROTOCOL_TCP, &event);
	next = event;
	next.table = "mangle";
	next.chain = "PREROUTING";
	next.verdict = NF_ACCEPT;
	trace_take(trace, &next);
	next.table = "filter";
	next.chain = "FORWARD";
	next.packet.port = 8080;
	trace_take(trace, &next);
	assert_false(trace->first);
	assert_int_equal(trace_verdict(trace), PACKET_VERDICT_BACKEND);
	assert_int_equal(trace->steps[0].effect, EFFECT_ACCEPT);
	trace_free(trace);
}

/* -- messages that are none */

/* nlmsg_len is cut, byte by byte: what is left must be read to its end and no further. */
static void cut_messages_are_refused_or_read(void **state attr_unused)
{
	struct recording recording;
	struct nlmsghdr *message = (struct nlmsghdr *)recording.words;
	struct nft_trace event = {.id = 42};
	uint32_t whole;

	load("iptables-nodeport", &recording);
	whole = message->nlmsg_len;
	for (uint32_t n = sizeof(*message); n < whole; n++) {
		message->nlmsg_len = n;
		(void)nft_trace_decode(message, &event);
	}
	event.id = 42;
	message->nlmsg_len = sizeof(*message) + sizeof(struct nfgenmsg);
	assert_int_equal(nft_trace_decode(message, &event), -EBADMSG);
	message->nlmsg_len = whole;
	message->nlmsg_type = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWRULE;
	assert_int_equal(nft_trace_decode(message, &event), -EBADMSG);
	assert_int_equal(event.id, 42);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_packet_as_it_was_sent_is_known),
		cmocka_unit_test(translations_are_seen_by_the_next_headers),
		cmocka_unit_test(rules_tell_what_the_kernel_does_not),
		cmocka_unit_test(a_rule_for_remembered_clients_says_so),
		cmocka_unit_test(values_of_iptables_tell_effects),
		cmocka_unit_test(statements_tell_effects),
		cmocka_unit_test(raw_statements_tell_effects_by_name),
		cmocka_unit_test(a_refusal_ends_the_way_even_when_the_id_changed),
		cmocka_unit_test(datagrams_of_the_node_begin_at_output),
		cmocka_unit_test(both_families_are_read),
		cmocka_unit_test(silence_means_that_it_vanished),
		cmocka_unit_test(a_later_packet_of_a_connection_blames_no_rule),
		cmocka_unit_test(cut_messages_are_refused_or_read),
	};

	return cmocka_run_group_tests_name("trace", tests, NULL, NULL);
}

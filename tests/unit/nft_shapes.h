/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Rules to write: each shape that kube-proxy has, and as many random ones of the same shapes as
 * wanted. A list keeps the texts of its rules. Jumps lead to chains that hold no rules.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "backends/iptables/ruleset.h"
#include "base/arena.h"

struct shapes {
	enum family family;
	struct arena *arena;
	struct rule *rules;
	size_t n, capacity;
	bool nfacct;   /* may rules name NFACCT_SHAPE? */
	uint64_t seed; /* 0: fixed values */
};

#define NFACCT_SHAPE "shape_counter"
#define SHAPE_CHAIN  "KUBE-SHAPES"
#define SHAPE_JUMP   "KUBE-SVC-ABCDEFGHIJKLMNOP"

static uint32_t shape_random(struct shapes *shapes)
{
	shapes->seed = shapes->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(shapes->seed >> 33);
}

/* A number from 0 to n - 1; without a seed the one given. */
static uint32_t shape_pick(struct shapes *shapes, uint32_t n, uint32_t fixed)
{
	return shapes->seed ? shape_random(shapes) % n : fixed;
}

static const char *shape_text(struct shapes *shapes, const char *fixed, size_t max)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789/:.->";
	char *text;
	size_t n;

	if (!shapes->seed)
		return fixed;
	n = 1 + shape_random(shapes) % max;
	text = arena_alloc(shapes->arena, n + 1);
	for (size_t i = 0; i < n; i++)
		text[i] = letters[shape_random(shapes) % (sizeof(letters) - 1)];
	text[0] = 'x'; /* no word begins with '-' */
	for (size_t i = 0; i + 1 < n && max > 31; i += 5 + shape_random(shapes) % 30)
		text[i] = i ? ' ' : 'y';
	text[n] = '\0';
	return text;
}

static const char *shape_comment(struct shapes *shapes, const char *fixed)
{
	return shape_text(shapes, fixed, RULE_COMMENT_MAX);
}

static struct addr shape_addr(struct shapes *shapes, const char *ipv4, const char *ipv6)
{
	struct addr addr = {.family = (uint8_t)shapes->family};

	if (!shapes->seed)
		assert_int_equal(addr_parse(shapes->family == FAMILY_IPV4 ? ipv4 : ipv6, &addr), 0);
	for (size_t i = 0; shapes->seed && i < addr_bytes(shapes->family); i++)
		addr.bytes[i] = (uint8_t)shape_random(shapes);
	if (shapes->seed && addr.bytes[0] == 0)
		addr.bytes[0] = 1; /* IPv4-mapped and zero addresses are no IPv6 ones for us */
	return addr;
}

static struct prefix shape_prefix(struct shapes *shapes, unsigned int length)
{
	struct prefix prefix = {.addr = shape_addr(shapes, "10.65.201.77", "fd65:c9::1:77")};
	unsigned int bits = addr_bits(shapes->family);

	prefix.length = (uint8_t)MIN(bits, 1 + shape_pick(shapes, bits, length - 1));
	return prefix;
}

static uint16_t shape_port(struct shapes *shapes, uint16_t fixed)
{
	return (uint16_t)(1 + shape_pick(shapes, 65535, fixed - 1U));
}

static uint32_t shape_mark(struct shapes *shapes)
{
	return UINT32_C(1) << shape_pick(shapes, 32, 14);
}

static void shape_nfacct(const struct shapes *shapes, struct rule *rule)
{
	if (shapes->nfacct)
		rule_nfacct(rule, NFACCT_SHAPE);
}

static struct rule *shape_rule(struct shapes *shapes, enum table table, const char *chain)
{
	struct rule *rule;

	array_grow(&shapes->rules, &shapes->capacity, shapes->n, sizeof(*shapes->rules));
	rule = &shapes->rules[shapes->n++];
	rule_init(rule, table, chain);
	return rule;
}

/* N1-N4, F1-F4 */
static void shapes_fixed(struct shapes *shapes)
{
	const unsigned int known = CTSTATE_RELATED | CTSTATE_ESTABLISHED;
	struct prefix loopback = {
		.addr = {.family = (uint8_t)shapes->family, .bytes = {127}},
		.length = 8,
	};
	struct rule *rule;

	rule = shape_rule(shapes, TABLE_NAT, SHAPE_CHAIN);
	rule_mark(rule, true, shape_mark(shapes));
	rule_verdict(rule, TARGET_RETURN);
	rule = shape_rule(shapes, TABLE_NAT, SHAPE_CHAIN);
	rule_mark_xor(rule, shape_mark(shapes));
	for (int i = 0; i < 2; i++) {
		rule = shape_rule(shapes, TABLE_NAT, SHAPE_CHAIN);
		rule_comment(rule, shape_comment(shapes, "kubernetes service traffic"));
		rule_masquerade(rule, i);
	}
	rule = shape_rule(shapes, TABLE_NAT, SHAPE_CHAIN);
	rule_mark_or(rule, shape_mark(shapes));

	rule = shape_rule(shapes, TABLE_FILTER, SHAPE_CHAIN);
	rule_comment(rule, shape_comment(shapes, "block incoming localnet connections"));
	rule_destination(rule, false, &loopback);
	rule_source(rule, true, &loopback);
	rule_ctstate(rule, true, known | CTSTATE_DNAT);
	rule_verdict(rule, TARGET_DROP);
	for (unsigned int i = 0; i < 2; i++) {
		rule = shape_rule(shapes, TABLE_FILTER, SHAPE_CHAIN);
		rule_ctstate(rule, false, 1 + shape_pick(shapes, 31, CTSTATE_INVALID - 1));
		if (i)
			shape_nfacct(shapes, rule);
		rule_verdict(rule, TARGET_DROP);
	}
	rule = shape_rule(shapes, TABLE_FILTER, SHAPE_CHAIN);
	rule_comment(rule, shape_comment(shapes, "kubernetes forwarding rules"));
	rule_mark(rule, false, shape_mark(shapes));
	rule_verdict(rule, TARGET_ACCEPT);
	rule = shape_rule(shapes, TABLE_FILTER, SHAPE_CHAIN);
	rule_comment(rule, shape_comment(shapes, "kubernetes forwarding conntrack rule"));
	rule_ctstate(rule, false, known);
	rule_verdict(rule, TARGET_ACCEPT);
}

/* N5: all addresses, all but loopback, one */
static void shapes_node_ports(struct shapes *shapes)
{
	struct addr addr = shape_addr(shapes, "192.168.3.4", "fd00::3:4");
	struct prefix prefix = shape_prefix(shapes, shapes->family == FAMILY_IPV4 ? 8 : 128);

	for (int i = 0; i < 3; i++) {
		struct rule *rule = shape_rule(shapes, TABLE_NAT, SHAPE_CHAIN);

		rule_comment(rule, shape_comment(shapes, "kubernetes service nodeports; NOTE"));
		if (i < 2)
			rule_destination_local(rule);
		if (i == 1)
			rule_destination(rule, true, &prefix);
		if (i == 2)
			rule_destination_addr(rule, &addr);
		rule_jump(rule, SHAPE_JUMP);
	}
}

/* A1-A5 in both tables: a destination and a port */
static void shapes_entries(struct shapes *shapes, enum protocol protocol)
{
	static const enum target_kind targets[] = {TARGET_CHAIN, TARGET_REJECT, TARGET_DROP};
	struct rule *rule;

	for (size_t i = 0; i < ARRAY_SIZE(targets); i++) {
		struct addr addr = shape_addr(shapes, "10.96.10.20", "fd00:96::a:14");

		rule = shape_rule(shapes, i ? TABLE_FILTER : TABLE_NAT, SHAPE_CHAIN);
		rule_comment(rule, shape_comment(shapes, "shop/cart:http cluster IP"));
		rule_protocol(rule, protocol);
		rule_destination_addr(rule, &addr);
		rule_port(rule, shape_port(shapes, 80));
		if (targets[i] == TARGET_CHAIN)
			rule_jump(rule, SHAPE_JUMP);
		else
			rule_verdict(rule, targets[i]);
	}
	rule = shape_rule(shapes, TABLE_NAT, SHAPE_CHAIN);
	rule_comment(rule, shape_comment(shapes, "shop/cart:http"));
	rule_protocol(rule, protocol);
	if (shapes->family == FAMILY_IPV4)
		rule_destination(rule, false, &(struct prefix){{FAMILY_IPV4, {127}}, .length = 8});
	rule_port(rule, shape_port(shapes, 30080));
	shape_nfacct(shapes, rule);
	rule_jump(rule, SHAPE_JUMP);
}

/* A6-A8: a port alone, or on a local address */
static void shapes_ports(struct shapes *shapes, enum protocol protocol)
{
	static const enum target_kind targets[] = {TARGET_ACCEPT, TARGET_REJECT, TARGET_DROP};
	struct rule *rule = shape_rule(shapes, TABLE_NAT, SHAPE_CHAIN);

	rule_comment(rule, shape_comment(shapes, "shop/cart:http"));
	rule_protocol(rule, protocol);
	rule_port(rule, shape_port(shapes, 30081));
	rule_jump(rule, SHAPE_JUMP);
	for (size_t i = 0; i < ARRAY_SIZE(targets); i++) {
		rule = shape_rule(shapes, TABLE_FILTER, SHAPE_CHAIN);
		rule_comment(rule, shape_comment(shapes, "shop/cart:http has no endpoints"));
		if (targets[i] != TARGET_ACCEPT)
			rule_destination_local(rule);
		rule_protocol(rule, protocol);
		rule_port(rule, shape_port(shapes, 30082));
		rule_verdict(rule, targets[i]);
	}
}

static const char *shape_interface(struct shapes *shapes, bool prefix)
{
	const char *name = shape_text(shapes, "cni0", 14);
	char *with = arena_alloc(shapes->arena, strlen(name) + 2);

	strcpy(with, name);
	if (prefix)
		strcat(with, "+");
	for (char *c = with; *c; c++)
		if (*c == '/' || *c == ':' || *c == ' ' || *c == '>')
			*c = '_';
	return with;
}

static void begin_not_local(struct shapes *shapes, enum protocol protocol, struct rule **ret)
{
	struct addr addr = shape_addr(shapes, "10.96.10.21", "fd00:96::a:15");

	*ret = shape_rule(shapes, TABLE_NAT, SHAPE_CHAIN);
	rule_comment(*ret, shape_comment(shapes, "shop/cart:http cluster IP"));
	rule_protocol(*ret, protocol);
	rule_destination_addr(*ret, &addr);
	rule_port(*ret, shape_port(shapes, 81));
}

/* B1': not from a CIDR, of every length when values are fixed; not from an interface */
static void shapes_not_local(struct shapes *shapes, enum protocol protocol)
{
	unsigned int bits = shapes->seed ? 1 : addr_bits(shapes->family);
	struct rule *rule;

	for (unsigned int length = 1; length <= bits; length++) {
		struct prefix prefix = shape_prefix(shapes, length);

		begin_not_local(shapes, protocol, &rule);
		rule_source(rule, true, &prefix);
		rule_jump(rule, SHAPE_JUMP);
	}
	for (int i = 0; i < 2; i++) {
		begin_not_local(shapes, protocol, &rule);
		rule_interface(rule, true, shape_interface(shapes, i));
		rule_jump(rule, SHAPE_JUMP);
	}
}

/* B3-B10 */
static void shapes_external(struct shapes *shapes)
{
	struct prefix prefix = shape_prefix(shapes, 24);
	struct rule *rule;

	for (int i = 0; i < 3; i++) {
		rule = shape_rule(shapes, TABLE_NAT, SHAPE_CHAIN);
		rule_comment(rule, shape_comment(shapes, "pod traffic for shop/cart:http"));
		if (i == 0)
			rule_source(rule, false, &prefix);
		else
			rule_interface(rule, false, shape_interface(shapes, i == 1));
		rule_jump(rule, SHAPE_JUMP);
	}
	rule = shape_rule(shapes, TABLE_NAT, SHAPE_CHAIN);
	rule_comment(rule, shape_comment(shapes, "masquerade LOCAL traffic for shop/cart"));
	rule_source_local(rule);
	rule_jump(rule, SHAPE_JUMP);
	rule = shape_rule(shapes, TABLE_NAT, SHAPE_CHAIN);
	rule_comment(rule, shape_comment(shapes, "other traffic to shop/cart:http"));
	rule = shape_rule(shapes, TABLE_NAT, SHAPE_CHAIN);
	rule_jump(rule, SHAPE_JUMP);
}

/* E1-E3, S1, with and without comments */
static void shapes_endpoints(struct shapes *shapes, bool comments)
{
	const char *comment = shape_comment(shapes, "shop/cart:http -> 10.244.3.4:8080");
	const uint32_t one_in[] = {2, 3, 7, 255, 256, 1000, 100001};
	struct addr addr = shape_addr(shapes, "10.244.3.4", "fd00:244::3:4");
	struct rule *rule;

	rule = shape_rule(shapes, TABLE_NAT, SHAPE_CHAIN);
	if (comments)
		rule_comment(rule, comment);
	rule_recent_check(rule, SHAPE_JUMP, 1 + shape_pick(shapes, 86400, 10799));
	rule_jump(rule, SHAPE_JUMP);
	for (size_t i = 0; i < (shapes->seed ? 1 : ARRAY_SIZE(one_in)); i++) {
		rule = shape_rule(shapes, TABLE_NAT, SHAPE_CHAIN);
		if (comments)
			rule_comment(rule, comment);
		rule_statistic(rule, 2 + shape_pick(shapes, 5000, one_in[i] - 2));
		rule_jump(rule, SHAPE_JUMP);
	}
	for (int i = 0; i < 2; i++) {
		rule = shape_rule(shapes, TABLE_NAT, SHAPE_CHAIN);
		if (comments)
			rule_comment(rule, comment);
		if (i)
			rule_source_addr(rule, &addr);
		rule_jump(rule, SHAPE_JUMP);
	}
}

/* S2 */
static void shapes_dnat(struct shapes *shapes, enum protocol protocol)
{
	for (unsigned int i = 0; i < 4; i++) {
		struct addr addr = shape_addr(shapes, "10.244.3.5", "fd00:244::3:5");
		struct rule *rule = shape_rule(shapes, TABLE_NAT, SHAPE_CHAIN);

		if (i & 1)
			rule_comment(rule, shape_comment(shapes, "shop/cart:http"));
		if (i & 2)
			rule_recent_set(rule, SHAPE_JUMP);
		rule_protocol(rule, protocol);
		rule_dnat(rule, &addr, shape_port(shapes, 8080));
	}
}

/* Each shape once. */
static void shapes_add(struct shapes *shapes)
{
	shapes_fixed(shapes);
	shapes_node_ports(shapes);
	for (unsigned int i = 0; i < PROTOCOL_COUNT; i++) {
		shapes_entries(shapes, (enum protocol)i);
		shapes_ports(shapes, (enum protocol)i);
		if (i == 0 || shapes->seed) /* every length, for one protocol */
			shapes_not_local(shapes, (enum protocol)i);
		shapes_dnat(shapes, (enum protocol)i);
	}
	shapes_external(shapes);
	shapes_endpoints(shapes, true);
	shapes_endpoints(shapes, false);
}

attr_unused static void shapes_jumps(struct shapes *shapes)
{
	for (size_t i = 0; i < RULESET_JUMPS; i++)
		ruleset_jump(i, shape_rule(shapes, TABLE_FILTER, SHAPE_CHAIN));
}

attr_unused static void shapes_init(struct shapes *shapes, enum family family, bool nfacct)
{
	*shapes = (struct shapes){.family = family, .arena = arena_new(4096), .nfacct = nfacct};
}

static void shapes_done(struct shapes *shapes)
{
	arena_free(shapes->arena);
	free(shapes->rules);
}

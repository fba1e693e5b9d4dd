/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Rules read back: the value that we would have written whoever wrote the rule and however often it was
 * met; another one, and another digest, for whatever iptables-save would print differently; and no
 * trust in a message.
 */

#include <net/if.h>
#include <sys/ioctl.h>

#include "nft_lab.h"
#include "xtables/rule_compare.h"
#include "xtables/xt_info.h"

/* -- what the kernel lists */

struct listing {
	const struct shapes *shapes;
	enum table table; /* rules come table by table, as they were written */
	size_t at;
	size_t n;
};

/* The next of the written rules that is in this table. */
static const struct rule *next_rule(struct listing *listing, const char *table)
{
	const struct shapes *shapes = listing->shapes;

	if (!streq(table_name(listing->table), table)) {
		listing->at = 0;
		while (!streq(table_name(listing->table), table))
			listing->table++;
	}
	while (listing->at < shapes->n && shapes->rules[listing->at].table != listing->table)
		listing->at++;
	assert_true(listing->at < shapes->n);
	return &shapes->rules[listing->at++];
}

static void expect_digest(void *arg, const struct nlmsghdr *message)
{
	struct listing *listing = arg;
	struct nft_rule_read read;
	struct nft_rule_seen seen;
	const struct rule *rule;

	assert_int_equal(nft_rule_digest_message(message, &seen), 0);
	rule = next_rule(listing, seen.table);
	assert_int_equal(nft_rule_read(message, &read), 0);
	assert_int_equal(read.rule.table, rule->table);
	assert_string_equal(read.rule.chain, rule->chain);
	assert_int_equal(read.handle, seen.handle);
	if (!rule_equal(&read.rule, rule))
		fail_msg("rule %zu of table %s reads as another", listing->at, seen.table);
	assert_int_equal(seen.family, listing->shapes->family);
	assert_string_equal(seen.chain, rule->chain);
	assert_true(seen.handle > 0);
	if (seen.digest != rule_hash(rule))
		fail_msg("rule %zu of table %s has another digest", listing->at, seen.table);
	listing->n++;
}

static void expect_listing(const struct shapes *shapes)
{
	struct listing listing = {.shapes = shapes};

	lab_dump(shapes->family, NFT_MSG_GETRULE, expect_digest, &listing);
	assert_int_equal(listing.n, shapes->n);
}

/* All rules in one chain of each table: a dump lists chain by chain. */
static void rules_of_the_tools(enum family family, uint64_t seed, int rounds)
{
	struct shapes shapes;

	lab_enter_new();
	shapes_init(&shapes, family, lab_nfacct());
	shapes.seed = seed;
	for (int i = 0; i < rounds; i++)
		shapes_add(&shapes);
	lab_write_with_tool(&shapes);
	expect_listing(&shapes);
	shapes_done(&shapes);
}

static void rules_written_by_iptables_have_the_digest_of_ours(void **state attr_unused)
{
	for (int family = 0; family < FAMILY_COUNT; family++) {
		rules_of_the_tools((enum family)family, 0, 1);
		rules_of_the_tools((enum family)family, 77 + (uint64_t)family, 10);
	}
}

static void rules_written_by_iptables_1_8_11_have_the_digest_of_ours(void **state attr_unused)
{
	lab_newer_tools();
	for (int family = 0; family < FAMILY_COUNT; family++)
		rules_of_the_tools((enum family)family, 0, 1);
	lab_usual_tools();
}

static void jumps_written_by_iptables_have_the_digest_of_ours(void **state attr_unused)
{
	for (int family = 0; family < FAMILY_COUNT; family++)
		for (size_t i = 0; i < RULESET_JUMPS; i++) {
			struct shapes shapes;

			lab_enter_new();
			shapes_init(&shapes, (enum family)family, false);
			ruleset_jump(i, shape_rule(&shapes, TABLE_FILTER, SHAPE_CHAIN));
			lab_write_with_tool(&shapes);
			expect_listing(&shapes);
			shapes_done(&shapes);
		}
}

static void keep_digest(void *arg, const struct nlmsghdr *message)
{
	struct nft_rule_seen seen;

	assert_int_equal(nft_rule_digest_message(message, &seen), 0);
	*(uint64_t *)arg = seen.digest;
}

/* nft writes expressions in the order of its words. */
static uint64_t digest_by_nft(const char *words)
{
	cleanup_free char *command =
		xasprintf("nft 'table ip nat { chain KUBE-B { }; chain KUBE-A { %s; }; }'", words);
	uint64_t digest = 0;

	lab_enter_new();
	assert_int_equal(system(command), 0);
	lab_dump(FAMILY_IPV4, NFT_MSG_GETRULE, keep_digest, &digest);
	return digest;
}

static void the_order_of_the_first_comparisons_does_not_count(void **state attr_unused)
{
	static const struct prefix source = {{FAMILY_IPV4, {10, 1}}, 16};
	static const struct addr destination = {FAMILY_IPV4, {10, 2, 3, 4}};
	struct rule rule;
	uint64_t digest;

	rule_init(&rule, TABLE_NAT, "KUBE-A");
	rule_source(&rule, false, &source);
	rule_destination_addr(&rule, &destination);
	rule_jump(&rule, "KUBE-B");
	digest = rule_hash(&rule);
	assert_int_equal(
		digest_by_nft("ip daddr 10.2.3.4 ip saddr 10.1.0.0/16 counter jump KUBE-B"),
		digest);
	/* turned, they are other comparisons */
	assert_int_not_equal(
		digest_by_nft("ip saddr 10.2.3.4 ip daddr 10.1.0.0/16 counter jump KUBE-B"),
		digest);
	assert_int_not_equal(
		digest_by_nft("ip daddr 10.2.3.4 ip saddr != 10.1.0.0/16 counter jump KUBE-B"),
		digest);
	/* behind something else, the place counts */
	assert_int_not_equal(
		digest_by_nft("ip daddr 10.2.3.4 counter ip saddr 10.1.0.0/16 jump KUBE-B"),
		digest);
}

static void comments_of_nft_and_foreign_expressions_count(void **state attr_unused)
{
	struct rule rule;
	uint64_t digest;

	rule_init(&rule, TABLE_NAT, "KUBE-A");
	rule_jump(&rule, "KUBE-B");
	digest = rule_hash(&rule);
	assert_int_equal(digest_by_nft("counter jump KUBE-B"), digest);
	assert_int_not_equal(digest_by_nft("jump KUBE-B"), digest);
	assert_int_not_equal(digest_by_nft("counter goto KUBE-B"), digest);
	assert_int_not_equal(digest_by_nft("counter jump KUBE-B comment \"x\""), digest);
	assert_int_not_equal(digest_by_nft("limit rate 5/second counter jump KUBE-B"), digest);
}

/* -- after packets */

static void bring_up_loopback(void)
{
	struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &request), 0);
	close(fd);
}

static void send_packets(enum family family)
{
	int domain = family == FAMILY_IPV4 ? AF_INET : AF_INET6;
	struct sockaddr_in ipv4 = {.sin_family = AF_INET, .sin_port = htons(9)};
	struct sockaddr_in6 ipv6 = {.sin6_family = AF_INET6, .sin6_port = htons(9)};
	const struct sockaddr *to = domain == AF_INET ? (void *)&ipv4 : (void *)&ipv6;
	socklen_t size = domain == AF_INET ? sizeof(ipv4) : sizeof(ipv6);
	int fd = socket(domain, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	ipv4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ipv6.sin6_addr = in6addr_loopback;
	for (int i = 0; i < 40; i++)
		assert_int_equal(sendto(fd, "x", 1, 0, to, size), 1);
	close(fd);
}

/* In OUTPUT, where each packet meets each of them; none ends its way. */
static void rules_to_be_met(struct shapes *shapes)
{
	struct rule *rule = shape_rule(shapes, TABLE_FILTER, "OUTPUT");

	rule_recent_set(rule, "KUBE-SEP-MET");
	rule = shape_rule(shapes, TABLE_FILTER, "OUTPUT");
	rule_comment(rule, "met by some");
	rule_recent_check(rule, "KUBE-SEP-MET", 10800);
	rule_jump(rule, SHAPE_JUMP);
	rule = shape_rule(shapes, TABLE_FILTER, "OUTPUT");
	rule_statistic(rule, 2);
	rule_jump(rule, SHAPE_JUMP);
	rule = shape_rule(shapes, TABLE_FILTER, "OUTPUT");
	rule_ctstate(rule, false, CTSTATE_NEW);
	shape_nfacct(shapes, rule);
	rule_jump(rule, SHAPE_JUMP);
	rule = shape_rule(shapes, TABLE_FILTER, "OUTPUT");
	rule_protocol(rule, PROTOCOL_UDP);
	rule_port(rule, 9);
	rule_jump(rule, SHAPE_JUMP);
}

static void packets_change_no_digest(void **state attr_unused)
{
	for (int family = 0; family < FAMILY_COUNT; family++) {
		cleanup_free char *command = NULL, *save = NULL;
		struct shapes shapes;

		lab_enter_new();
		bring_up_loopback();
		shapes_init(&shapes, (enum family)family, lab_nfacct());
		rules_to_be_met(&shapes);
		lab_write_with_tool(&shapes);
		send_packets((enum family)family);
		command = xasprintf("%s-save -c", lab_tool((enum family)family));
		save = shell_output(command);
		assert_non_null(strstr(save, "\n[40:"));
		assert_null(strstr(save, "\n[0:0] -A"));
		expect_listing(&shapes);
		shapes_done(&shapes);
	}
}

/* -- what differs */

/* Rules of which iptables-save would print the same, but for the chain, and only those. */
static void digests_differ_where_words_do(void **state attr_unused)
{
	for (int family = 0; family < FAMILY_COUNT; family++) {
		struct shapes shapes;
		cleanup_free uint64_t *digests = NULL;
		char **words;
		size_t equal = 0;

		shapes_init(&shapes, (enum family)family, true);
		shapes_jumps(&shapes);
		shapes_add(&shapes);
		shapes.seed = 99;
		for (int i = 0; i < 5; i++)
			shapes_add(&shapes);
		words = xcalloc(shapes.n, sizeof(*words));
		digests = xcalloc(shapes.n, sizeof(*digests));
		for (size_t i = 0; i < shapes.n; i++) {
			char line[RULE_TEXT_MAX];

			*put_rule_words(line, &shapes.rules[i], RULE_FORM_RESTORE) = '\0';
			words[i] = xstrdup(line);
			digests[i] = rule_hash(&shapes.rules[i]);
		}
		for (size_t i = 0; i < shapes.n; i++)
			for (size_t j = 0; j < i; j++) {
				bool same = streq(words[i], words[j]);

				if (same != (digests[i] == digests[j]))
					fail_msg("\"%s\" and \"%s\"", words[i], words[j]);
				equal += same;
			}
		assert_true(equal > 0);
		for (size_t i = 0; i < shapes.n; i++)
			free(words[i]);
		free(words);
		shapes_done(&shapes);
	}
}

/* A rule with everything that can change in it, in two lists for what excludes each other. */
static void make_first(struct rule *rule)
{
	static const struct prefix prefix = {{FAMILY_IPV4, {10, 1, 2}}, 22};

	rule_init(rule, TABLE_NAT, "KUBE-A");
	rule_comment(rule, "some text");
	rule_interface(rule, false, "cni0");
	rule_protocol(rule, PROTOCOL_TCP);
	rule_source(rule, false, &prefix);
	rule_destination(rule, false, &prefix);
	rule_port(rule, 80);
	rule_mark(rule, false, 0x4000);
	rule_jump(rule, "KUBE-B");
}

static void make_second(struct rule *rule)
{
	static const struct addr addr = {FAMILY_IPV4, {10, 1, 2, 3}};

	rule_init(rule, TABLE_NAT, "KUBE-A");
	rule_ctstate(rule, false, CTSTATE_NEW);
	rule_source_local(rule);
	rule_statistic(rule, 5);
	rule_recent_check(rule, "KUBE-SEP-A", 100);
	rule_nfacct(rule, "counter");
	rule_protocol(rule, PROTOCOL_UDP);
	rule_dnat(rule, &addr, 8080);
}

/* Gives every change in turn: 0 is none, false: there are no more. */
static bool change_first(struct rule *rule, int which)
{
	struct match *m = rule->matches;

	switch (which) {
	case 0:
		return true;
	case 1:
		m[0].text = "some texT";
		return true;
	case 2:
		m[0].text = "some text ";
		return true;
	case 3:
		m[1].text = "cni1";
		return true;
	case 4:
		m[1].text = "cni0+";
		return true;
	case 5:
		m[1].invert = true;
		return true;
	case 6:
		m[2].protocol = PROTOCOL_UDP;
		return true;
	case 7:
		m[2].protocol = PROTOCOL_SCTP;
		return true;
	case 8:
		m[3].prefix.addr.bytes[1]++;
		return true;
	case 9:
		m[3].prefix.length = 23;
		return true;
	case 10:
		m[3].prefix.length = 24;
		return true;
	case 11:
		m[3].invert = true;
		return true;
	case 12:
		m[4].prefix.addr.bytes[0]++;
		return true;
	case 13:
		m[4].invert = true;
		return true;
	case 14:
		m[5].port = 81;
		return true;
	case 15:
		m[6].mark = 0x8000;
		return true;
	case 16:
		m[6].invert = true;
		return true;
	case 17:
		rule->target.chain = "KUBE-C";
		return true;
	case 18:
		rule->target.chain = "KUBE-BB";
		return true;
	case 19:
		rule->target.kind = TARGET_NONE;
		return true;
	case 20:
		rule->target.kind = TARGET_ACCEPT;
		return true;
	case 21:
		rule->target.kind = TARGET_DROP;
		return true;
	case 22:
		rule->target.kind = TARGET_RETURN;
		return true;
	case 23:
		rule->target.kind = TARGET_REJECT;
		return true;
	case 24:
		rule->n_matches--;
		return true;
	case 25:
		m[3].prefix.length = 0;
		return true;
	case 26:
		m[3].prefix.length = 0;
		m[3].invert = true;
		return true;
	case 27:
		m[3].kind = MATCH_DESTINATION;
		m[4].kind = MATCH_SOURCE;
		m[4].prefix.length = 21;
		return true;
	default:
		return false;
	}
}

static bool change_second(struct rule *rule, int which)
{
	struct match *m = rule->matches;

	switch (which) {
	case 0:
		return true;
	case 1:
		m[0].ctstate = CTSTATE_RELATED;
		return true;
	case 2:
		m[0].ctstate |= CTSTATE_DNAT;
		return true;
	case 3:
		m[0].invert = true;
		return true;
	case 4:
		m[1].kind = MATCH_DESTINATION_TYPE_LOCAL;
		return true;
	case 5:
		m[2].one_in = 6;
		return true;
	case 6:
		m[3].recent.name = "KUBE-SEP-B";
		return true;
	case 7:
		m[3].recent.seconds = 101;
		return true;
	case 8:
		m[3].kind = MATCH_RECENT_SET;
		return true;
	case 9:
		m[4].text = "counter2";
		return true;
	case 10:
		m[5].protocol = PROTOCOL_TCP;
		return true;
	case 11:
		m[5].protocol = PROTOCOL_SCTP;
		return true;
	case 12:
		rule->target.dnat.addr.bytes[3]++;
		return true;
	case 13:
		rule->target.dnat.port++;
		return true;
	case 14:
		rule->target.kind = TARGET_MASQUERADE;
		rule->target.random_fully = false;
		return true;
	case 15:
		rule->target.kind = TARGET_MASQUERADE;
		rule->target.random_fully = true;
		return true;
	case 16:
		rule->target.kind = TARGET_MARK_OR;
		rule->target.mark = 1;
		return true;
	case 17:
		rule->target.kind = TARGET_MARK_XOR;
		rule->target.mark = 1;
		return true;
	case 18:
		rule->target.kind = TARGET_MARK_XOR;
		rule->target.mark = 2;
		return true;
	case 19:
		m[0] = m[1];
		m[1].kind = MATCH_CTSTATE;
		m[1].ctstate = CTSTATE_NEW;
		return true;
	default:
		return false;
	}
}

static void each_change_gives_another(void (*make)(struct rule *),
				      bool (*change)(struct rule *, int))
{
	uint64_t digests[64];
	struct rule rule;
	int n = 0;

	for (make(&rule); change(&rule, n); make(&rule)) {
		digests[n] = rule_hash(&rule);
		for (int i = 0; i < n; i++)
			if (digests[i] == digests[n])
				fail_msg("changes %d and %d have one digest", i, n);
		n++;
	}
	assert_true(n > 10);
}

static void each_single_change_gives_another_digest(void **state attr_unused)
{
	each_change_gives_another(make_first, change_first);
	each_change_gives_another(make_second, change_second);
}

static void table_and_chain_do_not_count(void **state attr_unused)
{
	struct rule rule;
	uint64_t digest;

	make_first(&rule);
	digest = rule_hash(&rule);
	rule.chain = "KUBE-ELSE";
	rule.table = TABLE_FILTER;
	assert_int_equal(rule_hash(&rule), digest);
}

static void everything_is_no_match_at_all(void **state attr_unused)
{
	struct prefix all = {{FAMILY_IPV6, {0}}, 0};
	struct rule with, without;

	rule_init(&with, TABLE_NAT, "KUBE-A");
	rule_source(&with, false, &all);
	rule_jump(&with, "KUBE-B");
	rule_init(&without, TABLE_NAT, "KUBE-A");
	rule_jump(&without, "KUBE-B");
	assert_int_equal(rule_hash(&with), rule_hash(&without));
}

/* -- there and back */

static struct nlmsghdr *begin_rule(void *room, enum family family)
{
	struct nlmsghdr *message = mnl_nlmsg_put_header(room);
	struct nfgenmsg *head = mnl_nlmsg_put_extra_header(message, sizeof(*head));

	message->nlmsg_type = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWRULE;
	head->nfgen_family = lab_family(family);
	mnl_attr_put_u64(message, NFTA_RULE_HANDLE, htobe64(4711));
	return message;
}

static void read_back(enum family family, const struct rule *rule)
{
	_Alignas(struct nlmsghdr) uint8_t room[NFT_RULE_MESSAGE_MAX];
	struct nlmsghdr *message = begin_rule(room, family);
	struct nft_rule_read read;

	nft_rule_put(message, family, rule);
	assert_int_equal(nft_rule_read(message, &read), 0);
	assert_int_equal(read.family, family);
	assert_int_equal(read.handle, 4711);
	assert_string_equal(read.table, table_name(rule->table));
	assert_string_equal(read.rule.chain, rule->chain);
	if (!rule_equal(&read.rule, rule)) {
		char line[RULE_TEXT_MAX];

		rule_print(rule, RULE_FORM_RESTORE, line);
		fail_msg("\"%s\" reads as another", line);
	}
}

static void each_rule_is_read_as_it_was_put(void **state attr_unused)
{
	for (int family = 0; family < FAMILY_COUNT; family++) {
		struct shapes shapes;

		shapes_init(&shapes, (enum family)family, true);
		shapes_jumps(&shapes);
		shapes_add(&shapes);
		shapes.seed = 4242 + (uint64_t)family;
		for (int i = 0; i < 50; i++)
			shapes_add(&shapes);
		assert_true(shapes.n > 1000);
		for (size_t i = 0; i < shapes.n; i++)
			read_back((enum family)family, &shapes.rules[i]);
		shapes_done(&shapes);
	}
}

/* As many endpoints as anybody will have, and some more. */
static void each_share_is_read_as_it_was_put(void **state attr_unused)
{
	for (unsigned int one_in = 1; one_in <= 100000; one_in += one_in < 3000 ? 1 : 97) {
		struct rule rule;

		rule_init(&rule, TABLE_NAT, "KUBE-A");
		rule_statistic(&rule, one_in);
		read_back(FAMILY_IPV4, &rule);
	}
}

static void interfaces_are_read_as_they_were_put(void **state attr_unused)
{
	static const char *const names[] = {
		"+", "a", "veth+", "a-name-of-15-ch", "a-name-of-15-c+", "a-name-of-16-cha", ""};

	for (size_t i = 0; i < 2 * ARRAY_SIZE(names); i++) {
		struct rule rule;

		rule_init(&rule, TABLE_NAT, "KUBE-A");
		rule_interface(&rule, i % 2, names[i / 2]);
		read_back(FAMILY_IPV4, &rule);
	}
}

/* Before 1.8.8, iptables had xt matches for the port and the mark. */
static void rules_of_older_iptables_are_the_same_values(void **state attr_unused)
{
	_Alignas(struct nlmsghdr) uint8_t room[NFT_RULE_MESSAGE_MAX];
	const struct match mark = {.kind = MATCH_MARK, .invert = true, .mark = 0x4000};
	struct nlmsghdr *message = begin_rule(room, FAMILY_IPV4);
	struct nft_rule_read read;
	struct nlattr *list;
	struct rule rule;

	rule_init(&rule, TABLE_NAT, "KUBE-A");
	rule_protocol(&rule, PROTOCOL_TCP);
	rule_port(&rule, 443);
	rule_mark(&rule, true, 0x4000);
	rule_jump(&rule, "KUBE-B");
	mnl_attr_put_strz(message, NFTA_RULE_TABLE, "nat");
	mnl_attr_put_strz(message, NFTA_RULE_CHAIN, "KUBE-A");
	list = mnl_attr_nest_start(message, NFTA_RULE_EXPRESSIONS);
	nft_expr_protocol(message, NFT_REG_1, IPPROTO_TCP);
	xt_put_port(message, PROTOCOL_TCP, 443);
	xt_put_match(message, &mark);
	nft_expr_counter(message);
	nft_expr_verdict(message, NFT_JUMP, "KUBE-B");
	mnl_attr_nest_end(message, list);
	assert_int_equal(nft_rule_read(message, &read), 0);
	assert_true(rule_equal(&read.rule, &rule));
}

static void keep_rule(void *arg, const struct nlmsghdr *message)
{
	_Alignas(struct nlmsghdr) static uint8_t kept[NFT_RULE_MESSAGE_MAX];

	assert_true(message->nlmsg_len <= sizeof(kept));
	memcpy(kept, message, message->nlmsg_len);
	assert_int_equal(nft_rule_read((const void *)kept, arg), 0);
}

/* The words of other programs' rules, behind "-A FORWARD", and what is understood of them. */
static const struct foreign {
	const char *words;
	const char *others[2]; /* matches by their names */
	enum target_kind target;
	const char *name; /* of the target */
} foreigns[] = {
	{"-m multiport -p tcp --dports 1,2 -j KUBE-B", {"multiport"}, TARGET_CHAIN, "KUBE-B"},
	{"-g KUBE-B", {0}, TARGET_GOTO, "KUBE-B"},
	{"-o eth0 -m limit --limit 5/min -j ACCEPT", {"meta", "limit"}, TARGET_ACCEPT, NULL},
	{"-p tcp --sport 7 -j DROP", {"payload"}, TARGET_DROP, NULL},
	{"-p icmp -j LOG", {"cmp"}, TARGET_OTHER, "LOG"},
	{"-m mark --mark 1/3 -j REJECT --reject-with tcp-reset -p tcp",
	 {"cmp"},
	 TARGET_OTHER,
	 "REJECT"},
	{"-m recent --name x --rcheck -j RETURN", {"recent"}, TARGET_RETURN, NULL},
	{"-m state --state RELATED,ESTABLISHED -j ACCEPT", {0}, TARGET_ACCEPT, NULL},
	{"-m conntrack --ctstate UNTRACKED", {"conntrack"}, TARGET_NONE, NULL},
};

static void rules_of_others_are_read_as_far_as_they_are_understood(void **state attr_unused)
{
	for (size_t i = 0; i < ARRAY_SIZE(foreigns); i++) {
		const struct foreign *foreign = &foreigns[i];
		cleanup_free char *command = xasprintf(
			"iptables-nft -N KUBE-B && iptables-nft -A FORWARD %s", foreign->words);
		struct nft_rule_read read;
		size_t n = 0;

		lab_enter_new();
		assert_int_equal(system(command), 0);
		lab_dump(FAMILY_IPV4, NFT_MSG_GETRULE, keep_rule, &read);
		for (size_t j = 0; j < read.rule.n_matches; j++) {
			if (read.rule.matches[j].kind != MATCH_OTHER)
				continue;
			assert_true(n < ARRAY_SIZE(foreign->others) && foreign->others[n]);
			assert_string_equal(read.rule.matches[j].text, foreign->others[n++]);
		}
		assert_true(n == ARRAY_SIZE(foreign->others) || !foreign->others[n]);
		assert_int_equal(read.rule.target.kind, foreign->target);
		if (foreign->name)
			assert_string_equal(read.rule.target.chain, foreign->name);
	}
}

/* -- messages that lie */

struct kept {
	uint8_t *bytes;
	size_t n;
};

static void keep_largest(void *arg, const struct nlmsghdr *message)
{
	struct kept *kept = arg;

	if (message->nlmsg_len <= kept->n)
		return;
	kept->n = message->nlmsg_len;
	kept->bytes = xrealloc(kept->bytes, kept->n);
	memcpy(kept->bytes, message, kept->n);
}

/* A rule as the kernel lists it: every kind of attribute. */
static void keep_real(struct kept *kept)
{
	struct shapes shapes;

	lab_enter_new();
	shapes_init(&shapes, FAMILY_IPV4, lab_nfacct());
	shapes_add(&shapes);
	assert_int_equal(lab_write_ours(&shapes), 0);
	lab_dump(FAMILY_IPV4, NFT_MSG_GETRULE, keep_largest, kept);
	shapes_done(&shapes);
}

/* In memory of exactly its size, so that a step too far is seen. */
static int read_copy(const uint8_t *bytes, size_t n, struct nft_rule_seen *ret)
{
	cleanup_free struct nlmsghdr *message = xmalloc(n);

	memcpy(message, bytes, n);
	message->nlmsg_len = (uint32_t)n;
	return nft_rule_digest_message(message, ret);
}

static void a_message_that_was_cut_is_refused(void **state attr_unused)
{
	struct nft_rule_seen seen = {.handle = 4711};
	struct kept kept = {0};

	keep_real(&kept);
	assert_true(kept.n > 400);
	for (size_t n = sizeof(struct nlmsghdr); n + 4 <= kept.n; n++) {
		int r = read_copy(kept.bytes, n, &seen);

		if (r != -EBADMSG)
			fail_msg("%zu of %zu bytes: %d", n, kept.n, r);
		assert_int_equal(seen.handle, 4711);
	}
	assert_int_equal(read_copy(kept.bytes, kept.n, &seen), 0);
	free(kept.bytes);
}

static void other_messages_are_refused(void **state attr_unused)
{
	struct nft_rule_seen seen;
	struct kept kept = {0};
	struct nlmsghdr *message;
	struct nfgenmsg *head;

	keep_real(&kept);
	message = (void *)kept.bytes;
	head = mnl_nlmsg_get_payload(message);
	head->nfgen_family = NFPROTO_INET;
	assert_int_equal(nft_rule_digest_message(message, &seen), -EAFNOSUPPORT);
	head->nfgen_family = NFPROTO_IPV4;
	message->nlmsg_type = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_DELRULE;
	assert_int_equal(nft_rule_digest_message(message, &seen), 0);
	message->nlmsg_type = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWCHAIN;
	assert_int_equal(nft_rule_digest_message(message, &seen), -EBADMSG);
	message->nlmsg_type = NLMSG_DONE;
	assert_int_equal(nft_rule_digest_message(message, &seen), -EBADMSG);
	free(kept.bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_written_by_iptables_have_the_digest_of_ours),
		cmocka_unit_test(rules_written_by_iptables_1_8_11_have_the_digest_of_ours),
		cmocka_unit_test(jumps_written_by_iptables_have_the_digest_of_ours),
		cmocka_unit_test(the_order_of_the_first_comparisons_does_not_count),
		cmocka_unit_test(comments_of_nft_and_foreign_expressions_count),
		cmocka_unit_test(packets_change_no_digest),
		cmocka_unit_test(digests_differ_where_words_do),
		cmocka_unit_test(each_single_change_gives_another_digest),
		cmocka_unit_test(table_and_chain_do_not_count),
		cmocka_unit_test(everything_is_no_match_at_all),
		cmocka_unit_test(each_rule_is_read_as_it_was_put),
		cmocka_unit_test(each_share_is_read_as_it_was_put),
		cmocka_unit_test(interfaces_are_read_as_they_were_put),
		cmocka_unit_test(rules_of_older_iptables_are_the_same_values),
		cmocka_unit_test(rules_of_others_are_read_as_far_as_they_are_understood),
		cmocka_unit_test(a_message_that_was_cut_is_refused),
		cmocka_unit_test(other_messages_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */

/* Hunks of a diff: which lines differ, what stands around them, whose they are. */

#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>

#include "base/doc.h"
#include "build.h"
#include "inspect/diff_elements.h"
#include "inspect/diff_iptables.h"
#include "inspect/kernel_rules.h"
#include "kernel/nft_message.h"
#include "model/model.h"
#include "plan/plan_store.h"

static const struct diff_place place = {FAMILY_IPV4, "nat", "chain", "KUBE-SERVICES"};

/* Lines of one word each; "web=line" is one of Service default/web, "!line" a foreign one, "$line" must be the last, "~line" was met by no packet. */
struct side {
	struct diff_texts texts;
	char *words;
};

static struct side side_of(const char *lines)
{
	struct side side = {.words = xstrdup(lines)};
	char *rest = side.words, *word;

	while ((word = strsep(&rest, " "))) {
		char *equals = strchr(word, '=');
		struct diff_text *text;
		const char *line = equals ? equals + 1 : word + strspn(word, "!$~");

		if (!*word)
			continue;
		if (equals)
			*equals = '\0';
		text = diff_texts_add(&side.texts, line, line, equals ? word : NULL);
		text->foreign = *word == '!';
		text->last = *word == '$';
		text->unmet = *word == '~';
	}
	return side;
}

static void side_done(struct side *side)
{
	diff_texts_done(&side->texts);
	free(side->words);
}

typedef void compare_fn(struct diff *diff, const struct diff_place *place,
			const struct diff_texts *wanted, const struct diff_texts *kernel);

/* Without the two lines that name the table. */
static void expect(compare_fn *compare, const char *wanted, const char *kernel,
		   const char *expected)
{
	struct side left = side_of(wanted), right = side_of(kernel);
	cleanup_diff struct diff diff = {0};
	cleanup_text struct text text = {0};
	cleanup_free char *all = NULL;
	static const char head[] = "--- wanted/ipv4/nat\n+++ kernel/ipv4/nat\n";

	compare(&diff, &place, &left.texts, &right.texts);
	diff_human(&diff, false, &text);
	all = text_dup(&text);
	if (diff.n > 0)
		assert_memory_equal(all, head, strlen(head));
	assert_string_equal(diff.n > 0 ? all + strlen(head) : all, expected);
	side_done(&left);
	side_done(&right);
}

static void equal_lines_are_no_hunk(void **state attr_unused)
{
	expect(diff_ordered, "a b c", "a b c", "");
	expect(diff_ordered, "", "", "");
	expect(diff_unordered, "a b c", "c a b", "");
	expect(diff_unordered, "", "", "");
}

static void ordered_lines_have_three_others_around(void **state attr_unused)
{
	expect(diff_ordered, "a b c d e f g h i", "a b c d f g h i",
	       "@@ -2,7 +2,6 @@ chain KUBE-SERVICES\n b\n c\n d\n-e\n f\n g\n h\n");
	expect(diff_ordered, "a b", "a x b", "@@ -1,2 +1,3 @@ chain KUBE-SERVICES\n a\n+x\n b\n");
	expect(diff_ordered, "a", "", "@@ -1,1 +0,0 @@ chain KUBE-SERVICES\n-a\n");
	expect(diff_ordered, "", "a", "@@ -0,0 +1,1 @@ chain KUBE-SERVICES\n+a\n");
}

static void ordered_lines_far_apart_are_two_hunks(void **state attr_unused)
{
	expect(diff_ordered, "a b c d e f g h i j", "x b c d e f g h i y",
	       "@@ -1,4 +1,4 @@ chain KUBE-SERVICES\n-a\n+x\n b\n c\n d\n"
	       "@@ -7,4 +7,4 @@ chain KUBE-SERVICES\n g\n h\n i\n-j\n+y\n");
}

static void ordered_lines_that_changed_places_are_a_difference(void **state attr_unused)
{
	expect(diff_ordered, "a b", "b a", "@@ -1,2 +1,2 @@ chain KUBE-SERVICES\n-a\n b\n+a\n");
}

static void unordered_lines_stand_alone(void **state attr_unused)
{
	expect(diff_unordered, "a b c", "c a", "@@ -3,1 +2,0 @@ chain KUBE-SERVICES\n-b\n");
	expect(diff_unordered, "a b c", "x c b a", "@@ -0,0 +1,1 @@ chain KUBE-SERVICES\n+x\n");
	expect(diff_unordered, "a", "", "@@ -1,1 +0,0 @@ chain KUBE-SERVICES\n-a\n");
}

static void a_line_that_is_there_twice_is_a_difference(void **state attr_unused)
{
	expect(diff_unordered, "a b", "a b a", "@@ -2,0 +3,1 @@ chain KUBE-SERVICES\n+a\n");
	expect(diff_unordered, "a a b", "a b", "@@ -2,1 +1,0 @@ chain KUBE-SERVICES\n-a\n");
}

static void an_unmet_line_may_be_missing(void **state attr_unused)
{
	expect(diff_unordered, "a ~b c", "a c", "");
	expect(diff_unordered, "a ~b c", "c b a", "");
	expect(diff_unordered, "a ~b c", "a", "@@ -2,1 +1,0 @@ chain KUBE-SERVICES\n-c\n");
}

static void foreign_lines_count_but_are_no_difference(void **state attr_unused)
{
	expect(diff_unordered, "a b", "!x b !y a", "");
	expect(diff_unordered, "a b", "!x !y b", "@@ -1,1 +0,0 @@ chain KUBE-SERVICES\n-a\n");
	expect(diff_unordered, "b", "!x !y b z", "@@ -3,0 +4,1 @@ chain KUBE-SERVICES\n+z\n");
}

static void the_last_line_must_be_the_last(void **state attr_unused)
{
	expect(diff_unordered, "a b $z", "b a z", "");
	expect(diff_unordered, "a b $z", "a z b",
	       "@@ -1,0 +2,1 @@ chain KUBE-SERVICES\n+z\n@@ -3,1 +3,0 @@ chain "
	       "KUBE-SERVICES\n-z\n");
	expect(diff_unordered, "a $z", "a", "@@ -2,1 +1,0 @@ chain KUBE-SERVICES\n-z\n");
}

static void hunks_belong_to_one_service(void **state attr_unused)
{
	expect(diff_unordered, "d/a=1 d/a=2 d/b=3", "",
	       "@@ -1,2 +0,0 @@ chain KUBE-SERVICES, service d/a\n-1\n-2\n"
	       "@@ -3,1 +0,0 @@ chain KUBE-SERVICES, service d/b\n-3\n");
}

static void a_large_replacement_is_not_compared_line_by_line(void **state attr_unused)
{
	cleanup_text struct text a = {0}, b = {0};
	cleanup_free char *wanted = NULL, *kernel = NULL;
	struct side left, right;
	cleanup_diff struct diff diff = {0};

	for (int i = 0; i < 5000; i++) {
		text_printf(&a, "a%d ", i);
		text_printf(&b, "b%d ", i);
	}
	wanted = text_dup(&a);
	kernel = text_dup(&b);
	left = side_of(wanted);
	right = side_of(kernel);
	diff_ordered(&diff, &place, &left.texts, &right.texts);
	assert_int_equal(diff.n, 1);
	assert_int_equal(diff.v[0].n_lines, 10000);
	side_done(&left);
	side_done(&right);
}

static void colours_are_around_lines(void **state attr_unused)
{
	const size_t at[DIFF_SIDES] = {1, 1};
	cleanup_diff struct diff diff = {0};
	cleanup_text struct text text = {0};
	cleanup_free char *all = NULL;

	diff_put(&diff, &place, '-', at, "a\033[2J", NULL);
	diff_human(&diff, true, &text);
	all = text_dup(&text);
	assert_string_equal(all, "\033[1m--- wanted/ipv4/nat\033[0m\n"
				 "\033[1m+++ kernel/ipv4/nat\033[0m\n"
				 "\033[36m@@ -1,1 +0,0 @@ chain KUBE-SERVICES\033[0m\n"
				 "\033[31m-a?[2J\033[0m\n");
}

static void documents_say_the_same(void **state attr_unused)
{
	const size_t at[DIFF_SIDES] = {4, 5};
	cleanup_diff struct diff diff = {0};
	cleanup_text struct text text = {0};
	cleanup_free char *all = NULL;
	struct doc doc;

	diff_put(&diff, &place, '-', at, "a", "default/web");
	diff_put(&diff, &place, '+', (const size_t[]){5, 5}, "b", NULL);
	doc_init(&doc, &text, DOC_YAML);
	doc_open_map(&doc, NULL);
	diff_doc(&diff, &doc);
	doc_close(&doc);
	all = text_dup(&text);
	assert_string_equal(all, "differences:\n"
				 "  - family: \"ipv4\"\n"
				 "    table: \"nat\"\n"
				 "    kind: \"chain\"\n"
				 "    name: \"KUBE-SERVICES\"\n"
				 "    service: \"default/web\"\n"
				 "    wantedLine: 4\n"
				 "    kernelLine: 5\n"
				 "    missing:\n"
				 "      - \"a\"\n"
				 "    unwanted:\n"
				 "      - \"b\"\n");
}

/* -- a Service in both modes */

struct world {
	struct model *model;
	struct settings settings;
	struct addr address;
};

static struct draft *web_slice(void)
{
	struct draft *slice = build_slice("default/web-1", "web", FAMILY_IPV4);

	build_slice_port(slice, "http", PROTOCOL_TCP, 8080);
	build_endpoint(slice, "10.244.1.1", "node-a", BUILD_READY);
	build_endpoint(slice, "10.244.2.2", "node-b", BUILD_READY);
	return slice;
}

static int setup(void **state)
{
	struct world *world = xcalloc(1, sizeof(*world));
	struct service *service = build_service("default/web", "10.96.0.10");

	*world = (struct world){
		.model = model_new("node-a", 0),
		.settings =
			{
				.family = FAMILY_IPV4,
				.node_name = "node-a",
				.node_ip = build_addr("192.168.0.2"),
				.masquerade_mark = 0x4000,
				.allow_external_ips = true,
				.detector = {.kind = DETECTOR_NONE},
			},
		.address = build_addr("192.168.0.2"),
	};
	node_ports_init(&world->settings.node_ports, FAMILY_IPV4, NULL, 0);
	build_port(service, "http", PROTOCOL_TCP, 80, 0);
	model_set_service(world->model, service);
	build_set_slice(world->model, web_slice());
	*state = world;
	return 0;
}

static int teardown(void **state)
{
	struct world *world = *state;

	node_ports_done(&world->settings.node_ports);
	model_free(world->model);
	free(world);
	return 0;
}

static struct rule_store *iptables_of(struct world *world)
{
	struct rule_store *rules = rule_store_new(FAMILY_IPV4);
	const struct host host = {&world->address, 1};
	struct plan_once once;

	plan_once_take(&once, &world->settings, world->model);
	iptables_rules_plan(rules, &world->settings, once.delta, &host, NULL);
	plan_once_done(&once);
	return rules;
}

/* What iptables-save would list, each line changed by a function, which may leave it out: NULL. */
static struct kernel_rules *save(struct rule_store *rules, char *(*change)(const char *line))
{
	struct kernel_rules *saved = kernel_rules_new(FAMILY_IPV4);

	for (enum table table = 0; table < TABLE_COUNT; table++) {
		cleanup_free char *head = xasprintf("*%s", table_name(table));
		const struct stored_chain *chain;
		size_t at = 0;

		kernel_rules_line(saved, head);
		while ((chain = map_next(&rules->chains[table], &at))) {
			cleanup_free char *name = xasprintf(":%s - [0:0]", chain->name);

			kernel_rules_line(saved, name);
			for (size_t i = 0; i < chain->n; i++) {
				cleanup_free char *line =
					change(rule_store_text(rules, chain->v[i]));

				if (line)
					kernel_rules_line(saved, line);
			}
		}
	}
	return saved;
}

static void expect_rules(struct world *world, char *(*change)(const char *line),
			 const char *expected)
{
	struct rule_store *rules = iptables_of(world);
	struct kernel_rules *saved = save(rules, change);
	cleanup_diff struct diff diff = {0};
	cleanup_text struct text text = {0};
	cleanup_free char *all = NULL;

	diff_iptables_compare(&diff, rules, saved);
	diff_human(&diff, false, &text);
	all = text_dup(&text);
	assert_string_equal(all, expected);
	kernel_rules_free(saved);
	rule_store_free(rules);
}

/* A large cluster has no such comments; whether it is large may have changed since. */
static char *without_endpoint_comments(const char *line)
{
	static const char begin[] = " -m comment --comment \"default/web:http ->";
	char *copy = xstrdup(line), *at = strstr(copy, begin);

	if (at) {
		const char *end = strchr(at + strlen(begin), '"') + 1;

		memmove(at, end, strlen(end) + 1);
	}
	return copy;
}

static void comments_of_endpoints_are_no_difference(void **state)
{
	expect_rules(*state, without_endpoint_comments, "");
}

static char *without_cluster_ip(const char *line)
{
	return has_prefix(line, "-A KUBE-SERVICES") && strstr(line, "cluster IP") ? NULL
										  : xstrdup(line);
}

static void a_missing_rule_names_its_service(void **state)
{
	expect_rules(*state, without_cluster_ip,
		     "--- wanted/ipv4/nat\n+++ kernel/ipv4/nat\n"
		     "@@ -1,1 +0,0 @@ chain KUBE-SERVICES, service default/web\n"
		     "--A KUBE-SERVICES -d 10.96.0.10/32 -p tcp -m comment --comment "
		     "\"default/web:http cluster IP\" -m tcp --dport 80 -j "
		     "KUBE-SVC-CDGGSHYLG3RE2FKL\n");
}

static char *other_mark(const char *line)
{
	return has_prefix(line, "-A KUBE-MARK-MASQ")
		       ? xstrdup("-A KUBE-MARK-MASQ -j MARK --set-xmark 0x8000/0x8000")
		       : xstrdup(line);
}

static void a_changed_rule_is_both(void **state)
{
	expect_rules(*state, other_mark,
		     "--- wanted/ipv4/nat\n+++ kernel/ipv4/nat\n"
		     "@@ -1,1 +1,1 @@ chain KUBE-MARK-MASQ\n"
		     "--A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000\n"
		     "+-A KUBE-MARK-MASQ -j MARK --set-xmark 0x8000/0x8000\n");
}

static char *leave(const char *line)
{
	return xstrdup(line);
}

static void a_chain_of_a_service_that_is_gone_is_named(void **state)
{
	struct rule_store *rules = iptables_of(*state);
	struct kernel_rules *saved = save(rules, leave);
	cleanup_diff struct diff diff = {0};
	cleanup_text struct text text = {0};
	cleanup_free char *all = NULL;

	kernel_rules_line(saved, "*nat");
	kernel_rules_line(saved, ":KUBE-SVC-AAAAAAAAAAAAAAAA - [0:0]");
	kernel_rules_line(saved, "-A KUBE-SVC-AAAAAAAAAAAAAAAA -m comment --comment "
				 "\"old/gone:http cluster IP\" -j KUBE-MARK-MASQ");
	kernel_rules_line(saved, ":KUBE-ROUTER-SERVICES - [0:0]");
	kernel_rules_line(saved, "-A PREROUTING -j KUBE-ROUTER-SERVICES");
	diff_iptables_compare(&diff, rules, saved);
	diff_human(&diff, false, &text);
	all = text_dup(&text);
	assert_string_equal(all,
			    "--- wanted/ipv4/nat\n+++ kernel/ipv4/nat\n"
			    "@@ -0,0 +0,2 @@ chain KUBE-SVC-AAAAAAAAAAAAAAAA, service old/gone\n"
			    "+:KUBE-SVC-AAAAAAAAAAAAAAAA - [0:0]\n"
			    "+-A KUBE-SVC-AAAAAAAAAAAAAAAA -m comment --comment \"old/gone:http "
			    "cluster IP\" -j KUBE-MARK-MASQ\n");
	kernel_rules_free(saved);
	rule_store_free(rules);
}

/* -- elements */

static struct nftables_rules *nftables_of(struct world *world)
{
	struct nftables_rules *rules = nftables_rules_new(FAMILY_IPV4);
	const struct host host = {&world->address, 1};
	struct plan_once once;

	plan_once_take(&once, &world->settings, world->model);
	nftables_rules_plan(rules, &world->settings, once.delta, &host, false);
	plan_once_done(&once);
	return rules;
}

static void put_value(struct nlmsghdr *message, uint16_t type, const uint8_t *data, size_t n)
{
	struct nlattr *nest = mnl_attr_nest_start(message, type);

	mnl_attr_put(message, NFTA_DATA_VALUE, n, data);
	mnl_attr_nest_end(message, nest);
}

/* A list of one element without a verdict; a range has an end, too. */
static void list_one(struct diff_elements *kernel, const struct element *element,
		     const uint8_t *end)
{
	_Alignas(struct nlmsghdr) char buffer[1024] = {0};
	struct nlmsghdr *message = mnl_nlmsg_put_header(buffer);
	struct nlattr *list, *one;
	struct err err;

	message->nlmsg_type = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWSETELEM;
	mnl_nlmsg_put_extra_header(message, sizeof(struct nfgenmsg));
	list = mnl_attr_nest_start(message, NFTA_SET_ELEM_LIST_ELEMENTS);
	one = mnl_attr_nest_start(message, NFTA_LIST_ELEM);
	put_value(message, NFTA_SET_ELEM_KEY, element->bytes, element->key_size);
	if (end)
		put_value(message, NFTA_SET_ELEM_KEY_END, end, element->key_size);
	if (element->data_size > 0)
		put_value(message, NFTA_SET_ELEM_DATA, element->bytes + element->key_size,
			  element->data_size);
	mnl_attr_nest_end(message, one);
	mnl_attr_nest_end(message, list);
	assert_int_equal(diff_elements_take(kernel, message, &err), 0);
}

static struct element slot(uint32_t number, const char *endpoint)
{
	struct addr destination = build_addr("10.96.0.10"), addr = build_addr(endpoint);
	struct element element;

	element_begin(&element, CONTAINER_ENDPOINTS);
	element_key_addr(&element, &destination);
	element_key_protocol(&element, PROTOCOL_TCP);
	element_key_port(&element, 80);
	element_key_number(&element, number);
	element_data_endpoint(&element, &addr, 8080);
	return element;
}

static void expect_slots(struct world *world, const struct element *v, size_t n,
			 const char *expected)
{
	const struct diff_place map = {FAMILY_IPV4, "kube-proxy", "map", "endpoints"};
	struct nftables_rules *rules = nftables_of(world);
	struct diff_elements kernel;
	cleanup_diff struct diff diff = {0};
	cleanup_text struct text text = {0};
	cleanup_free char *all = NULL;

	diff_elements_init(&kernel, FAMILY_IPV4, CONTAINER_ENDPOINTS);
	for (size_t i = 0; i < n; i++)
		list_one(&kernel, &v[i], NULL);
	diff_elements_compare(&diff, &map, rules, &kernel);
	diff_human(&diff, false, &text);
	all = text_dup(&text);
	assert_string_equal(*all ? strstr(all, "@@") : all, expected);
	diff_elements_done(&kernel);
	nftables_rules_free(rules);
}

static void endpoints_may_have_any_slot(void **state)
{
	const struct element v[] = {slot(1, "10.244.1.1"), slot(0, "10.244.2.2")};

	expect_slots(*state, v, 2, "");
}

static void a_missing_endpoint_is_said_to_be_in_the_free_slot(void **state)
{
	const struct element v[] = {slot(1, "10.244.1.1")};

	expect_slots(*state, v, 1,
		     "@@ -1,1 +0,0 @@ map endpoints, service default/web\n"
		     "-10.96.0.10 . tcp . 80 . 0 : 10.244.2.2 . 8080\n");
}

static void a_changed_endpoint_is_both(void **state)
{
	const struct element v[] = {slot(0, "10.244.1.1"), slot(1, "10.244.9.9")};

	expect_slots(*state, v, 2,
		     "@@ -2,1 +2,1 @@ map endpoints, service default/web\n"
		     "-10.96.0.10 . tcp . 80 . 1 : 10.244.2.2 . 8080\n"
		     "+10.96.0.10 . tcp . 80 . 1 : 10.244.9.9 . 8080\n");
}

static void a_slot_beyond_the_group_is_not_wanted(void **state)
{
	const struct element v[] = {slot(0, "10.244.1.1"), slot(7, "10.244.2.2")};

	expect_slots(*state, v, 2,
		     "@@ -2,1 +2,1 @@ map endpoints, service default/web\n"
		     "-10.96.0.10 . tcp . 80 . 1 : 10.244.2.2 . 8080\n"
		     "+10.96.0.10 . tcp . 80 . 7 : 10.244.2.2 . 8080\n");
}

/* A hash table that grows while it is listed begins again. */
static void an_element_that_is_listed_twice_is_one(void **state)
{
	const struct element v[] = {slot(0, "10.244.1.1"), slot(1, "10.244.2.2"),
				    slot(0, "10.244.1.1")};

	expect_slots(*state, v, 3, "");
}

static void ranges_are_prefixes_or_odd(void **state)
{
	const struct diff_place set = {FAMILY_IPV4, "kube-proxy", "set", "source-ranges"};
	struct nftables_rules *rules = nftables_of(*state);
	struct addr destination = build_addr("10.96.0.10"), from = build_addr("10.2.0.0");
	struct element element;
	struct diff_elements kernel;
	cleanup_diff struct diff diff = {0};
	uint8_t end[ELEMENT_BYTES];

	element_begin(&element, CONTAINER_SOURCE_RANGES);
	element_key_addr(&element, &destination);
	element_key_protocol(&element, PROTOCOL_TCP);
	element_key_port(&element, 80);
	element_key_addr(&element, &from);
	memcpy(end, element.bytes, sizeof(end));
	end[element.key_size - 1] = 255;
	diff_elements_init(&kernel, FAMILY_IPV4, CONTAINER_SOURCE_RANGES);
	list_one(&kernel, &element, end);
	end[element.key_size - 1] = 5;
	list_one(&kernel, &element, end);
	diff_elements_compare(&diff, &set, rules, &kernel);
	assert_int_equal(diff.n, 1);
	assert_int_equal(diff.v[0].n_lines, 2);
	assert_string_equal(diff.v[0].v[0].text, "10.96.0.10 . tcp . 80 . 10.2.0.0-10.2.0.5");
	assert_string_equal(diff.v[0].v[1].text, "10.96.0.10 . tcp . 80 . 10.2.0.0/24");
	diff_elements_done(&kernel);
	nftables_rules_free(rules);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_lines_are_no_hunk),
		cmocka_unit_test(ordered_lines_have_three_others_around),
		cmocka_unit_test(ordered_lines_far_apart_are_two_hunks),
		cmocka_unit_test(ordered_lines_that_changed_places_are_a_difference),
		cmocka_unit_test(unordered_lines_stand_alone),
		cmocka_unit_test(a_line_that_is_there_twice_is_a_difference),
		cmocka_unit_test(an_unmet_line_may_be_missing),
		cmocka_unit_test(foreign_lines_count_but_are_no_difference),
		cmocka_unit_test(the_last_line_must_be_the_last),
		cmocka_unit_test(hunks_belong_to_one_service),
		cmocka_unit_test(a_large_replacement_is_not_compared_line_by_line),
		cmocka_unit_test(colours_are_around_lines),
		cmocka_unit_test(documents_say_the_same),
		cmocka_unit_test_setup_teardown(comments_of_endpoints_are_no_difference, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_missing_rule_names_its_service, setup, teardown),
		cmocka_unit_test_setup_teardown(a_changed_rule_is_both, setup, teardown),
		cmocka_unit_test_setup_teardown(a_chain_of_a_service_that_is_gone_is_named, setup,
						teardown),
		cmocka_unit_test_setup_teardown(endpoints_may_have_any_slot, setup, teardown),
		cmocka_unit_test_setup_teardown(a_missing_endpoint_is_said_to_be_in_the_free_slot,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_changed_endpoint_is_both, setup, teardown),
		cmocka_unit_test_setup_teardown(a_slot_beyond_the_group_is_not_wanted, setup,
						teardown),
		cmocka_unit_test_setup_teardown(an_element_that_is_listed_twice_is_one, setup,
						teardown),
		cmocka_unit_test_setup_teardown(ranges_are_prefixes_or_odd, setup, teardown),
	};

	return cmocka_run_group_tests_name("diff", tests, NULL, NULL);
}

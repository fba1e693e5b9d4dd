/* SPDX-License-Identifier: Apache-2.0 */

/* What top shows: rates from sums, the order of rows, keys, and screens as exact text. */

#include <linux/netfilter/nf_conntrack_common.h>
#include <netinet/in.h>

#include "base/clock.h"
#include "build.h"
#include "inspect/view.h"

static struct rate_row rows[] = {
	{"default/web:http/tcp", 12.5, 1500, 2500000, 300},
	{"kube-system/kube-dns:dns/udp", 130, 2600, 312000, 4000},
	{"default/idle:80/tcp", 0, 0, 0, 2},
};

static struct rates rates_of(void)
{
	return (struct rates){
		.v = rows,
		.n = ARRAY_SIZE(rows),
		.total = {NULL, 142.5, 4100, 2812000, 4302},
		.measured = true,
	};
}

static const struct view_facts facts = {"12:34:56", "node1", ""};

static void expect_screen(struct view *view, size_t width, size_t height, const char *expected)
{
	const struct rates rates = rates_of();
	cleanup_text struct text text = {0};
	cleanup_free char *screen = NULL;

	view_draw(view, &rates, &facts, width, height, &text);
	screen = text_dup(&text);
	assert_string_equal(screen, expected);
}

static void a_screen_has_all_columns(void **state attr_unused)
{
	struct view view = {.accounting = true};

	expect_screen(&view, 100, 7,
		      "portolan top node1 12:34:56: 3 ports, 4302 flows, 142 connections/s, 4100 "
		      "packets/s, 2.8M bytes/s\n"
		      "by connections, h: help\n"
		      "SERVICE PORT                   CONN/S    FLOWS    PKT/S   BYTE/S\n"
		      "kube-system/kube-dns:dns/udp      130     4000     2600     312k\n"
		      "default/web:http/tcp               12      300     1500     2.5M\n"
		      "default/idle:80/tcp                 0        2        0        0\n");
}

static void a_narrow_screen_leaves_columns_out_and_cuts_names(void **state attr_unused)
{
	struct view view = {.accounting = true, .sort = VIEW_NAME};

	expect_screen(&view, 45, 6,
		      "portolan top node1 12:34:56: 3 ports, 4302 fl\n"
		      "by name, h: help\n"
		      "SERVICE PORT                  CONN/S    FLOWS\n"
		      "default/idle:80/tcp                0        2\n"
		      "default/web:http/tcp              12      300\n"
		      "kube-system/kube-dns:dns/u~      130     4000");
	expect_screen(&view, 20, 5,
		      "portolan top node1 1\n"
		      "by name, h: help\n"
		      "SERVICE PO~   CONN/S\n"
		      "default/id~        0\n"
		      "default/we~       12");
	expect_screen(&view, 5, 4, "porto\nby na\nSERVI\ndefau");
}

static void a_low_screen_shows_what_fits(void **state attr_unused)
{
	struct view view = {0};

	expect_screen(&view, 30, 1, "portolan top node1 12:34:56: 3");
	expect_screen(&view, 30, 0, "");
}

static void without_accounting_there_are_no_packets(void **state attr_unused)
{
	struct view view = {.filter = "idle"};

	expect_screen(&view, 80, 5,
		      "portolan top node1 12:34:56: 3 ports, 4302 flows, 142 connections/s\n"
		      "by connections, only \"idle\", h: help\n"
		      "SERVICE PORT          CONN/S    FLOWS    PKT/S   BYTE/S\n"
		      "default/idle:80/tcp        0        2        -        -\n");
}

static const char *first_after(struct view *view, const char *keys)
{
	const struct rates rates = rates_of();
	size_t n;
	cleanup_free const struct rate_row **sorted = NULL;

	assert_int_equal(view_input(view, keys, strlen(keys)), VIEW_DRAW);
	sorted = view_rows(view, &rates, &n);
	return n > 0 ? sorted[0]->name : NULL;
}

static void keys_sort(void **state attr_unused)
{
	struct view view = {0};

	assert_string_equal(first_after(&view, "b"), "default/web:http/tcp");
	assert_string_equal(first_after(&view, "p"), "kube-system/kube-dns:dns/udp");
	assert_string_equal(first_after(&view, "r"), "default/idle:80/tcp");
	assert_string_equal(first_after(&view, "f"), "kube-system/kube-dns:dns/udp");
	assert_string_equal(first_after(&view, "n"), "default/idle:80/tcp");
	assert_string_equal(first_after(&view, "c"), "kube-system/kube-dns:dns/udp");
}

static void a_filter_counts_as_it_is_typed(void **state attr_unused)
{
	struct view view = {.accounting = true};

	assert_string_equal(first_after(&view, "/WEB"), "default/web:http/tcp");
	expect_screen(&view, 60, 4,
		      "portolan top node1 12:34:56: 3 ports, 4302 flows, 142 connec\n"
		      "filter: WEB_\n"
		      "SERVICE PORT           CONN/S    FLOWS    PKT/S   BYTE/S\n"
		      "default/web:http/tcp       12      300     1500     2.5M");
	assert_null(first_after(&view, "q")); /* a letter like any other */
	assert_string_equal(first_after(&view, "\177\177\177"), "default/web:http/tcp");
	assert_string_equal(view.filter, "W");
	assert_string_equal(first_after(&view, "\r"), "default/web:http/tcp");
	assert_false(view.typing);
	assert_string_equal(first_after(&view, "\033"), "kube-system/kube-dns:dns/udp");
	assert_string_equal(view.filter, "");
}

static void letters_of_several_bytes_are_cut_and_rubbed_out_whole(void **state attr_unused)
{
	struct view view = {.accounting = true};

	assert_null(first_after(&view, "/\xc3\xa9\xe2\x82\xac"));
	expect_screen(&view, 9, 2, "portolan \nfilter: \xc3\xa9");
	assert_null(first_after(&view, "\177"));
	assert_string_equal(view.filter, "\xc3\xa9");
	for (int i = 0; i < 100; i++)
		view_input(&view, "\xc3\xa9", 2);
	assert_true(strlen(view.filter) < VIEW_FILTER_MAX);
}

static void arrows_move_and_stop_at_the_end(void **state attr_unused)
{
	struct view view = {.accounting = true};

	assert_int_equal(view_input(&view, "\033[B\033[B\033[B\033[B\033[B", 15), VIEW_DRAW);
	expect_screen(&view, 64, 5,
		      "portolan top node1 12:34:56: 3 ports, 4302 flows, 142 connection\n"
		      "by connections, h: help\n"
		      "SERVICE PORT                   CONN/S    FLOWS    PKT/S   BYTE/S\n"
		      "default/idle:80/tcp                 0        2        0        0\n");
	assert_int_equal(view.first, 2);
	view_input(&view, "\033[A", 3);
	assert_int_equal(view.first, 1);
	view_input(&view, "\033[5~", 4);
	assert_int_equal(view.first, 0);
	view_input(&view, "j", 1);
	assert_int_equal(view.first, 1);
	assert_int_equal(view_input(&view, "\033[24~x", 6), VIEW_NOTHING); /* a key without use */
}

static void help_is_shown_and_goes(void **state attr_unused)
{
	struct view view = {0};
	const struct rates rates = rates_of();
	cleanup_text struct text text = {0};
	cleanup_free char *screen = NULL;

	assert_int_equal(view_input(&view, "?", 1), VIEW_DRAW);
	view_draw(&view, &rates, &facts, 80, 24, &text);
	screen = text_dup(&text);
	assert_non_null(strstr(screen, "c  sort by new connections a second"));
	assert_null(strstr(screen, "default/web"));
	view_input(&view, "h", 1);
	assert_false(view.help);
}

static void q_and_interrupt_quit(void **state attr_unused)
{
	struct view view = {0};

	assert_int_equal(view_input(&view, "q", 1), VIEW_QUIT);
	view.typing = true;
	assert_int_equal(view_input(&view, "ab\003", 3), VIEW_QUIT);
	assert_int_equal(view_input(&view, "", 0), VIEW_NOTHING);
}

static void numbers_are_short(void **state attr_unused)
{
	static const struct {
		double number;
		const char *text;
	} cases[] = {
		{0, "0"},        {0.04, "0"},       {0.06, "0.1"},     {9.94, "9.9"},
		{9.96, "10"},    {9999, "9999"},    {9999.6, "10.0k"}, {99949, "99.9k"},
		{99960, "100k"}, {999940, "1000k"}, {999960, "1.0M"},  {2.5e9, "2.5G"},
		{1e18, "1.0E"},  {5e21, "5000E"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char out[VIEW_NUMBER_MAX];

		view_number(cases[i].number, out);
		assert_string_equal(out, cases[i].text);
	}
}

static void a_list_has_all_rows(void **state attr_unused)
{
	const struct rates rates = rates_of();
	const struct view view = {.accounting = true};
	cleanup_text struct text text = {0};
	cleanup_free char *list = NULL;

	view_list(&view, &rates, &facts, &text);
	list = text_dup(&text);
	assert_string_equal(list,
			    "portolan top node1 12:34:56: 3 ports, 4302 flows, 142 connections/s, "
			    "4100 packets/s, 2.8M bytes/s\n"
			    "SERVICE PORT                   CONN/S    FLOWS    PKT/S   BYTE/S\n"
			    "kube-system/kube-dns:dns/udp      130     4000     2600     312k\n"
			    "default/web:http/tcp               12      300     1500     2.5M\n"
			    "default/idle:80/tcp                 0        2        0        0\n");
}

/* -- rates */

static struct conntrack_flow flow_of(uint32_t id, uint64_t packets)
{
	struct conntrack_flow flow = {
		.protocol = IPPROTO_TCP,
		.status = IPS_DST_NAT | IPS_CONFIRMED,
		.id = id,
		.counted = true,
		.packets = {packets, packets},
		.bytes = {100 * packets, 100 * packets},
	};

	flow.original.src = build_addr("10.244.0.5");
	flow.original.src_port = (uint16_t)(1024 + id);
	flow.original.dst = build_addr("10.96.0.1");
	flow.original.dst_port = 80;
	return flow;
}

/* A round that finds flows 1 to n, each with so many packets either way. */
static void look(struct service_traffic *traffic, const struct model *model, uint32_t n,
		 uint64_t packets)
{
	service_traffic_begin(traffic, model);
	for (uint32_t i = 1; i <= n; i++) {
		const struct conntrack_flow flow = flow_of(i, packets);

		service_traffic_see(traffic, &flow);
	}
	service_traffic_end(traffic);
	while (service_traffic_sweep(traffic, 1000))
		;
}

static void rates_are_what_came_since_the_last_look(void **state attr_unused)
{
	struct model *model = model_new("node-a", 0);
	struct service *service = build_service("default/web", "10.96.0.1");
	struct service_traffic *traffic = service_traffic_new(SIZE_MAX);
	cleanup_rates struct rates rates = {0};

	build_port(service, "http", PROTOCOL_TCP, 80, 0);
	model_set_service(model, service);
	look(traffic, model, 2, 10);
	rates_take(&rates, traffic, 5 * CLOCK_NS_PER_SECOND);
	assert_false(rates.measured);
	assert_int_equal(rates.n, 1);
	assert_int_equal(rates.v[0].flows, 2);
	assert_true(rates.v[0].connections == 0 && rates.v[0].packets == 0);

	look(traffic, NULL, 6, 20); /* four more; 2 x 2 x 10 and 4 x 2 x 20 packets */
	rates_take(&rates, traffic, 7 * CLOCK_NS_PER_SECOND);
	assert_true(rates.measured);
	assert_string_equal(rates.v[0].name, "default/web:http/tcp");
	assert_true(rates.v[0].connections == 2);
	assert_true(rates.v[0].packets == 100);
	assert_true(rates.v[0].bytes == 10000);
	assert_int_equal(rates.total.flows, 6);
	assert_true(rates.total.bytes == 10000);

	look(traffic, NULL, 6, 20);
	rates_take(&rates, traffic, 8 * CLOCK_NS_PER_SECOND);
	assert_true(rates.v[0].connections == 0 && rates.v[0].bytes == 0);
	service_traffic_free(traffic);
	model_free(model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_screen_has_all_columns),
		cmocka_unit_test(a_narrow_screen_leaves_columns_out_and_cuts_names),
		cmocka_unit_test(a_low_screen_shows_what_fits),
		cmocka_unit_test(without_accounting_there_are_no_packets),
		cmocka_unit_test(keys_sort),
		cmocka_unit_test(a_filter_counts_as_it_is_typed),
		cmocka_unit_test(letters_of_several_bytes_are_cut_and_rubbed_out_whole),
		cmocka_unit_test(arrows_move_and_stop_at_the_end),
		cmocka_unit_test(help_is_shown_and_goes),
		cmocka_unit_test(q_and_interrupt_quit),
		cmocka_unit_test(numbers_are_short),
		cmocka_unit_test(a_list_has_all_rows),
		cmocka_unit_test(rates_are_what_came_since_the_last_look),
	};

	return cmocka_run_group_tests_name("view", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Services and slices go into a real model; the boxes, links and pictures made from it are looked at. */
#include <stdio.h>

#include "inspect/chart.h"
#include "plan_world.h"

static struct chart *draw(struct world *world, bool chain_names)
{
	struct model_changes changes;
	const struct chart_input input = {
		.model = world->model,
		.settings = {[FAMILY_IPV4] = &world->settings},
		.chain_names = chain_names,
	};

	model_take_changes(world->model, FAMILY_IPV4, &changes);
	model_changes_done(&changes);
	return chart_new(&input);
}

static const struct chart_box *find_box(const struct chart *chart, const char *text)
{
	for (size_t i = 0; i < chart->n_boxes; i++)
		if (streq(chart->boxes[i].text, text))
			return &chart->boxes[i];
	fail_msg("no box says \"%s\"", text);
	return NULL;
}

/* The label of the link between two boxes; NULL when there is none. */
static const char *find_link(const struct chart *chart, const char *from, const char *to)
{
	for (size_t i = 0; i < chart->n_links; i++)
		if (streq(chart->boxes[chart->links[i].from].text, from) &&
		    streq(chart->boxes[chart->links[i].to].text, to))
			return chart->links[i].label;
	return NULL;
}

static void add_service(struct world *world, const char *key, const char *cluster_ip)
{
	struct service *service = build_service(key, cluster_ip);

	build_port(service, "", PROTOCOL_TCP, 80, 0);
	model_set_service(world->model, service);
}

/* One here, one elsewhere, one not ready, one that goes. */
static struct draft *mixed_slice(void)
{
	struct draft *slice = new_slice();

	build_endpoint(slice, "10.0.1.1", NODE, BUILD_READY);
	build_endpoint(slice, "10.0.2.1", OTHER, BUILD_READY);
	build_endpoint(slice, "10.0.2.2", OTHER, BUILD_UNREADY);
	build_endpoint(slice, "10.0.2.3", OTHER, BUILD_SERVING_TERMINATING);
	return slice;
}

static void chart_leads_from_the_cluster_ip_to_ready_endpoints(void **state attr_unused)
{
	struct world world = world_new();
	struct chart *chart;

	add_service(&world, KEY, "172.30.1.1");
	build_set_slice(world.model, mixed_slice());
	chart = draw(&world, false);
	assert_int_equal(chart->n_frames, 1);
	assert_string_equal(chart->frames[0].title, KEY "  80/TCP");
	assert_int_equal(find_box(chart, "172.30.1.1:80")->kind, CHART_ENTRY);
	assert_non_null(find_link(chart, "172.30.1.1:80", "all endpoints"));
	assert_string_equal(find_link(chart, "all endpoints", "10.0.1.1:80"), "1/2");
	assert_string_equal(find_link(chart, "all endpoints", "10.0.2.1:80"), "1/2");
	assert_string_equal(find_box(chart, "10.0.1.1:80")->note, "on this node");
	assert_int_equal(chart->n_endpoints, 2);
	chart_free(chart);
	world_done(&world);
}

static void chart_says_why_an_endpoint_is_left_out(void **state attr_unused)
{
	struct world world = world_new();
	struct chart *chart;

	add_service(&world, KEY, "172.30.1.1");
	build_set_slice(world.model, mixed_slice());
	chart = draw(&world, false);
	assert_int_equal(find_box(chart, "10.0.2.2:80")->kind, CHART_LEFT_OUT);
	assert_string_equal(find_box(chart, "10.0.2.2:80")->note, "not ready");
	assert_string_equal(find_box(chart, "10.0.2.3:80")->note, "terminating");
	assert_null(find_link(chart, "all endpoints", "10.0.2.2:80"));
	chart_free(chart);
	world_done(&world);
}

/* Two groups: pods get any endpoint, the outside only this node's. */
static void chart_shows_policy_local_as_a_group_of_its_own(void **state attr_unused)
{
	struct world world = world_new();
	struct service *service = build_service(KEY, "172.30.1.1");
	struct chart *chart;

	build_port(service, "", PROTOCOL_TCP, 80, 30080);
	build_vip(service, "1.2.3.4");
	build_source_range(service, "203.0.113.0/25");
	service->external_local = true;
	model_set_service(world.model, service);
	build_set_slice(world.model, mixed_slice());
	chart = draw(&world, true);
	assert_non_null(find_link(chart, "172.30.1.1:80", "all endpoints"));
	assert_non_null(find_link(chart, "node:30080", "endpoints on this node"));
	assert_non_null(find_link(chart, "1.2.3.4:80", "endpoints on this node"));
	assert_string_equal(find_box(chart, "1.2.3.4:80")->note,
			    "load balancer, from 1 source range only");
	assert_string_equal(find_link(chart, "endpoints on this node", "10.0.1.1:80"), "1/1");
	assert_string_equal(find_link(chart, "all endpoints", "10.0.1.1:80"), "1/2");
	assert_null(find_link(chart, "endpoints on this node", "10.0.2.1:80"));
	assert_string_equal(chart->frames[0].note, "externalTrafficPolicy Local");
	assert_memory_equal(find_box(chart, "node:30080")->detail, "KUBE-EXT-", 9);
	assert_memory_equal(find_box(chart, "10.0.1.1:80")->detail, "KUBE-SEP-", 9);
	assert_memory_equal(find_box(chart, "endpoints on this node")->detail, "KUBE-SVL-", 9);
	chart_free(chart);
	world_done(&world);
}

static void chart_shows_an_entry_that_goes_nowhere(void **state attr_unused)
{
	struct world world = world_new();
	struct chart *chart;

	add_service(&world, KEY, "172.30.1.1");
	chart = draw(&world, false);
	assert_int_equal(find_box(chart, "172.30.1.1:80")->kind, CHART_REFUSED);
	assert_string_equal(find_box(chart, "172.30.1.1:80")->note,
			    "cluster IP, refused: no endpoints");
	assert_int_equal(chart->n_links, 0);
	chart_free(chart);
	world_done(&world);
}

static void chart_draws_many_endpoints_as_one_box(void **state attr_unused)
{
	struct world world = world_new();
	struct draft *slice = new_slice();
	struct chart *chart;

	add_service(&world, KEY, "172.30.1.1");
	for (unsigned int i = 1; i <= 200; i++) {
		char ip[32];

		snprintf(ip, sizeof(ip), "10.0.9.%u", i);
		build_endpoint(slice, ip, OTHER, BUILD_READY);
	}
	build_set_slice(world.model, slice);
	chart = draw(&world, false);
	assert_string_equal(find_link(chart, "all endpoints", "180 more endpoints"), "180/200");
	assert_int_equal(chart->n_endpoints, 200);
	assert_true(chart->n_boxes < 30);
	chart_free(chart);
	world_done(&world);
}

static void add_many(struct world *world, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		char key[48], ip[32];

		snprintf(key, sizeof(key), "team-%u/svc-%u", i % 3, i);
		snprintf(ip, sizeof(ip), "172.30.%u.%u", i / 200, 1 + i % 200);
		add_service(world, key, ip);
	}
}

static void chart_of_too_many_services_is_folded_by_namespace(void **state attr_unused)
{
	struct world world = world_new();
	struct chart *chart;

	add_many(&world, CHART_MAX_SERVICES);
	chart = draw(&world, false);
	assert_false(chart->folded);
	assert_int_equal(chart->n_frames, CHART_MAX_SERVICES);
	chart_free(chart);
	add_many(&world, CHART_MAX_SERVICES + 1);
	chart = draw(&world, false);
	assert_true(chart->folded);
	assert_int_equal(chart->n_frames, 3);
	assert_string_equal(chart->boxes[0].text, "67 services");
	assert_string_equal(chart->boxes[0].detail, "67 without an endpoint");
	assert_int_equal(chart->n_services, CHART_MAX_SERVICES + 1);
	chart_free(chart);
	world_done(&world);
}

static bool overlap(double x1, double w1, double x2, double w2)
{
	return x1 < x2 + w2 && x2 < x1 + w1;
}

static void assert_apart(const struct chart *chart)
{
	for (size_t i = 0; i < chart->n_boxes; i++) {
		const struct chart_box *a = &chart->boxes[i];
		const struct chart_frame *frame = &chart->frames[a->frame];

		assert_true(a->x >= frame->x && a->x + a->w <= frame->x + frame->w);
		assert_true(a->y >= frame->y && a->y + a->h <= frame->y + frame->h);
		assert_true(frame->x + frame->w <= chart->w && frame->y + frame->h <= chart->h);
		for (size_t k = 0; k < i; k++) {
			const struct chart_box *b = &chart->boxes[k];

			assert_false(overlap(a->x, a->w, b->x, b->w) &&
				     overlap(a->y, a->h, b->y, b->h));
		}
	}
}

static void chart_boxes_lie_in_their_frame_and_apart(void **state attr_unused)
{
	struct world world = world_new();
	struct chart *chart;

	add_many(&world, 40);
	add_service(&world, KEY, "172.30.99.1");
	build_set_slice(world.model, mixed_slice());
	chart = draw(&world, true);
	chart_layout(chart);
	assert_apart(chart);
	chart_free(chart);
	world_done(&world);
}

static void chart_is_laid_out_from_left_to_right(void **state attr_unused)
{
	struct world world = world_new();
	struct chart *chart;

	add_service(&world, KEY, "172.30.1.1");
	build_set_slice(world.model, mixed_slice());
	chart = draw(&world, false);
	chart_layout(chart);
	assert_true(find_box(chart, "172.30.1.1:80")->x < find_box(chart, "all endpoints")->x);
	assert_true(find_box(chart, "all endpoints")->x < find_box(chart, "10.0.1.1:80")->x);
	assert_true(find_box(chart, "10.0.2.2:80")->x == find_box(chart, "10.0.1.1:80")->x);
	chart_free(chart);
	world_done(&world);
}

/* The whole text of one format, for the caller to free. */
static char *written(struct world *world, enum chart_format format)
{
	struct chart *chart = draw(world, true);
	struct text text;
	char *copy;

	text_init(&text);
	chart_layout(chart);
	chart_write(chart, format, &text);
	copy = text_dup(&text);
	text_done(&text);
	chart_free(chart);
	return copy;
}

static void chart_of_nothing_is_still_a_picture(void **state attr_unused)
{
	struct world world = world_new();

	for (enum chart_format format = 0; format < CHART_FORMAT_COUNT; format++) {
		cleanup_free char *text = written(&world, format);

		assert_true(strlen(text) > 10);
	}
	world_done(&world);
}

static void chart_svg_refers_to_nothing_outside(void **state attr_unused)
{
	struct world world = world_new();
	cleanup_free char *svg = NULL;

	add_service(&world, KEY, "172.30.1.1");
	build_set_slice(world.model, mixed_slice());
	svg = written(&world, CHART_SVG);
	assert_null(strstr(svg, "href"));
	assert_null(strstr(svg, "@import"));
	assert_null(strstr(svg, "<script"));
	assert_non_null(strstr(svg, "prefers-color-scheme:dark"));
	assert_non_null(strstr(svg, "<title>10.0.2.2:80, not ready</title>"));
	world_done(&world);
}

static void chart_format_names(void **state attr_unused)
{
	enum chart_format format;

	assert_int_equal(chart_format_parse("mermaid", &format), 0);
	assert_int_equal(format, CHART_MERMAID);
	assert_true(chart_format_parse("png", &format) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chart_leads_from_the_cluster_ip_to_ready_endpoints),
		cmocka_unit_test(chart_says_why_an_endpoint_is_left_out),
		cmocka_unit_test(chart_shows_policy_local_as_a_group_of_its_own),
		cmocka_unit_test(chart_shows_an_entry_that_goes_nowhere),
		cmocka_unit_test(chart_draws_many_endpoints_as_one_box),
		cmocka_unit_test(chart_of_too_many_services_is_folded_by_namespace),
		cmocka_unit_test(chart_boxes_lie_in_their_frame_and_apart),
		cmocka_unit_test(chart_is_laid_out_from_left_to_right),
		cmocka_unit_test(chart_of_nothing_is_still_a_picture),
		cmocka_unit_test(chart_svg_refers_to_nothing_outside),
		cmocka_unit_test(chart_format_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

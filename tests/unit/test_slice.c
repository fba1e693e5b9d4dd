/* SPDX-License-Identifier: Apache-2.0 */
#include "slice_text.h"
#include "slice_view.h"

#define BASE "ns/s1 svc http=80/tcp,https=443/tcp 10.0.0.1@a,10.0.0.2@b"

/* As node "a" sees them; releases both drafts. */
static bool equal_drafts(struct draft *x, struct draft *y)
{
	struct slice *a = build_finish(x, "a"), *b = build_finish(y, "a");
	bool result = slice_equal(a, b);

	assert_int_equal(result, slice_equal(b, a));
	slice_unref(a);
	slice_unref(b);
	return result;
}

static bool equal(const char *x, const char *y)
{
	return equal_drafts(slice_from_text(x), slice_from_text(y));
}

static void names_are_set_at_birth(void **state attr_unused)
{
	struct slice_writer writer;
	struct slice *slice;

	slice_writer_init(&writer, "ns", "svc-x7", "svc", FAMILY_IPV6);
	slice = slice_writer_finish(&writer);
	assert_string_equal(slice_key(slice), "ns/svc-x7");
	assert_string_equal(slice_service_key(slice), "ns/svc");
	assert_int_equal(slice->family, FAMILY_IPV6);
	assert_ptr_equal(slice_ref(slice), slice);
	assert_null(slice_unref(slice));
	assert_null(slice_unref(slice));
	assert_null(slice_unref(NULL));
}

static void es_data_changed_identical_content_is_no_change(void **state attr_unused)
{
	assert_true(equal(BASE, BASE));
	assert_true(equal("ns/s svc - -", "ns/s svc - -"));
}

static void es_data_changed_order_of_ports_is_a_change(void **state attr_unused)
{
	assert_false(equal(BASE, "ns/s1 svc https=443/tcp,http=80/tcp 10.0.0.1@a,10.0.0.2@b"));
}

static void es_data_changed_order_of_endpoints_is_a_change(void **state attr_unused)
{
	assert_false(equal(BASE, "ns/s1 svc http=80/tcp,https=443/tcp 10.0.0.2@b,10.0.0.1@a"));
}

static void es_data_changed_port_added_or_removed_is_a_change(void **state attr_unused)
{
	assert_false(equal(BASE, "ns/s1 svc http=80/tcp 10.0.0.1@a,10.0.0.2@b"));
	assert_false(equal(BASE, "ns/s1 svc http=80/tcp,https=443/tcp,x=1/tcp 10.0.0.1@a,"
				 "10.0.0.2@b"));
}

static void es_data_changed_endpoint_added_or_removed_is_a_change(void **state attr_unused)
{
	assert_false(equal(BASE, "ns/s1 svc http=80/tcp,https=443/tcp 10.0.0.1@a"));
	assert_false(equal(BASE, "ns/s1 svc http=80/tcp,https=443/tcp 10.0.0.1@a,10.0.0.2@b,"
				 "10.0.0.3"));
}

static void es_data_changed_every_field_of_a_port_counts(void **state attr_unused)
{
	assert_false(equal("ns/s svc a=80/tcp 10.0.0.1", "ns/s svc b=80/tcp 10.0.0.1"));
	assert_false(equal("ns/s svc a=80/tcp 10.0.0.1", "ns/s svc a=81/tcp 10.0.0.1"));
	assert_false(equal("ns/s svc a=80/tcp 10.0.0.1", "ns/s svc a=80/udp 10.0.0.1"));
}

static void es_data_changed_every_field_of_an_endpoint_counts(void **state attr_unused)
{
	assert_false(equal("ns/s svc - 10.0.0.1", "ns/s svc - 10.0.0.2"));
	assert_false(equal("ns/s svc - 10.0.0.1", "ns/s svc - 10.0.0.1!u"));
	assert_false(equal("ns/s svc - 10.0.0.1", "ns/s svc - 10.0.0.1@a"));
	assert_false(equal("ns/s svc - 10.0.0.1@a", "ns/s svc - 10.0.0.1@b"));
}

static void which_other_node_an_endpoint_is_on_does_not_count(void **state attr_unused)
{
	assert_true(equal("ns/s svc - 10.0.0.1@b", "ns/s svc - 10.0.0.1@c"));
	assert_true(equal("ns/s svc - 10.0.0.1@b", "ns/s svc - 10.0.0.1"));
}

static struct draft *hinted(const char *zones, const char *nodes)
{
	struct draft *draft = slice_from_text(BASE);

	build_hints(draft, &draft->endpoints[0], zones, nodes);
	return draft;
}

static void hints_count(void **state attr_unused)
{
	assert_false(equal_drafts(hinted("zone-a", NULL), slice_from_text(BASE)));
	assert_false(equal_drafts(hinted("zone-a", NULL), hinted("zone-b", NULL)));
	assert_false(equal_drafts(hinted("zone-a", NULL), hinted(NULL, "zone-a")));
	assert_false(equal_drafts(hinted("a,b", NULL), hinted("a", "b")));
	assert_true(equal_drafts(hinted("zone-a", NULL), hinted("zone-a", NULL)));
	assert_true(equal_drafts(hinted(NULL, NULL), slice_from_text(BASE)));
}

static void owner_and_family_count(void **state attr_unused)
{
	assert_false(equal_drafts(build_slice("ns/s", "svc", FAMILY_IPV4),
				  build_slice("ns/s", "svc", FAMILY_IPV6)));
	assert_false(equal("ns/s svc - -", "ns/s other - -"));
	assert_false(equal("ns/s svc - -", "ns/t svc - -"));
}

static void trigger_time_does_not_count(void **state attr_unused)
{
	struct draft *later = slice_from_text(BASE);

	later->trigger_time_ns = 5;
	assert_true(equal_drafts(slice_from_text(BASE), later));
}

static void assert_same_hints(const struct endpoint_hints *written,
			      const struct endpoint_hints *read)
{
	assert_int_equal(read->n_zones, written->n_zones);
	assert_int_equal(read->n_nodes, written->n_nodes);
	for (size_t i = 0; i < read->n_zones; i++)
		assert_string_equal(read->zones[i], written->zones[i]);
	for (size_t i = 0; i < read->n_nodes; i++)
		assert_string_equal(read->nodes[i], written->nodes[i]);
}

static void assert_same_endpoint(const struct draft_endpoint *written,
				 const struct slice_endpoint *read)
{
	bool local = written->node && streq(written->node, "n");

	assert_true(addr_equal(&written->addr, &read->addr));
	assert_int_equal(read->flags, written->flags | (local ? ENDPOINT_LOCAL : 0));
	assert_int_equal(!read->hints, !written->hints);
}

static void all_that_was_written_but_nodes_is_read(void **state attr_unused)
{
	static const char *const texts[] = {
		BASE,
		"ns/s svc - -",
		"ns/s svc =80/sctp 10.0.0.1,10.0.0.2!t,10.0.0.3@n!s,10.0.0.4!u",
		"ns/s svc a=65535/udp fd00::1@n,fd00::2",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct draft *draft = slice_from_text(texts[i]);
		cleanup_arena struct arena *arena = arena_new(0);
		struct slice *slice;
		struct slice_view view;

		if (draft->n_endpoints)
			build_hints(draft, &draft->endpoints[0], "zone-a,zone-b", "node-a");
		slice = build_write(draft, "n");
		view = slice_view(slice, arena);
		assert_string_equal(slice_key(slice), draft->key);
		assert_int_equal(slice->n_ports, draft->n_ports);
		assert_int_equal(slice->n_endpoints, draft->n_endpoints);
		for (size_t j = 0; j < draft->n_ports; j++) {
			assert_string_equal(view.ports[j].name, draft->ports[j].name);
			assert_int_equal(view.ports[j].protocol, draft->ports[j].protocol);
			assert_int_equal(view.ports[j].port, draft->ports[j].port);
		}
		for (size_t j = 0; j < draft->n_endpoints; j++)
			assert_same_endpoint(&draft->endpoints[j], &view.endpoints[j]);
		if (draft->n_endpoints)
			assert_same_hints(draft->endpoints[0].hints, view.hints[0]);
		slice_unref(slice);
		build_drop(draft);
	}
}

static void opened_hints_take_no_more_than_was_said(void **state attr_unused)
{
	struct slice *slice = build_finish(hinted("zone-a,b", "node-c"), "");
	cleanup_arena struct arena *viewed = arena_new(512);
	const char *hints = slice_view(slice, viewed).endpoints[0].hints;
	size_t size = slice_hints_size(hints);
	cleanup_arena struct arena *arena = arena_new(size);
	size_t before = arena_size(arena);

	slice_hints_open(hints, arena);
	assert_int_equal(arena_size(arena), before);
	slice_unref(slice);
}

static void a_copy_is_equal_and_stands_alone(void **state attr_unused)
{
	struct draft *draft = hinted("zone-a", NULL);
	struct slice *slice, *copy;

	draft->trigger_time_ns = 5;
	slice = build_finish(draft, "a");
	slice->next = slice;
	copy = slice_copy(slice);
	assert_null(slice_unref(slice));
	slice = build_finish(hinted("zone-a", NULL), "a");
	assert_true(slice_equal(copy, slice));
	assert_null(copy->next);
	assert_true(copy->trigger_time_ns == 0);
	assert_int_equal(copy->refs, 1);
	slice_unref(copy);
	slice_unref(slice);
}

static void a_slice_is_small(void **state attr_unused)
{
	struct slice *slice =
		build_finish(slice_from_text("default/web-abcde web http=8080/tcp 10.0.0.1@node-1,"
					     "10.0.0.2@node-2,10.0.0.3@node-3,10.0.0.4@node-4,"
					     "10.0.0.5@node-5"),
			     "node-1");

	assert_true(offsetof(struct slice, data) + slice->size <= 96);
	slice_unref(slice);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_set_at_birth),
		cmocka_unit_test(es_data_changed_identical_content_is_no_change),
		cmocka_unit_test(es_data_changed_order_of_ports_is_a_change),
		cmocka_unit_test(es_data_changed_order_of_endpoints_is_a_change),
		cmocka_unit_test(es_data_changed_port_added_or_removed_is_a_change),
		cmocka_unit_test(es_data_changed_endpoint_added_or_removed_is_a_change),
		cmocka_unit_test(es_data_changed_every_field_of_a_port_counts),
		cmocka_unit_test(es_data_changed_every_field_of_an_endpoint_counts),
		cmocka_unit_test(which_other_node_an_endpoint_is_on_does_not_count),
		cmocka_unit_test(hints_count),
		cmocka_unit_test(owner_and_family_count),
		cmocka_unit_test(trigger_time_does_not_count),
		cmocka_unit_test(all_that_was_written_but_nodes_is_read),
		cmocka_unit_test(opened_hints_take_no_more_than_was_said),
		cmocka_unit_test(a_copy_is_equal_and_stands_alone),
		cmocka_unit_test(a_slice_is_small),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "model/packed.h"
#include "slice_text.h"

#define BASE "ns/s1 svc http=80/tcp,https=443/tcp 10.0.0.1@a,10.0.0.2@b"

static bool equal(const char *x, const char *y)
{
	struct slice *a = slice_from_text(x), *b = slice_from_text(y);
	bool result = slice_equal(a, b);

	assert_int_equal(result, slice_equal(b, a));
	slice_unref(a);
	slice_unref(b);
	return result;
}

static void names_are_set_at_birth(void **state attr_unused)
{
	struct slice *slice = slice_new("ns", "svc-x7", "svc", FAMILY_IPV6);

	assert_string_equal(slice->key, "ns/svc-x7");
	assert_string_equal(slice->service_key, "ns/svc");
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
	assert_false(equal("ns/s svc - 10.0.0.1", "ns/s svc - 10.0.0.1@node"));
	assert_false(equal("ns/s svc - 10.0.0.1@a", "ns/s svc - 10.0.0.1@b"));
}

static void hints_count(void **state attr_unused)
{
	struct slice *a = slice_from_text(BASE), *b = slice_from_text(BASE);

	build_hints(a, &a->endpoints[0], "zone-a", NULL);
	assert_false(slice_equal(a, b));
	build_hints(b, &b->endpoints[0], "zone-b", NULL);
	assert_false(slice_equal(a, b));
	build_hints(b, &b->endpoints[0], NULL, "zone-a");
	assert_false(slice_equal(a, b));
	build_hints(b, &b->endpoints[0], "zone-a", NULL);
	assert_true(slice_equal(a, b));
	slice_unref(a);
	slice_unref(b);
}

static void owner_and_family_count(void **state attr_unused)
{
	struct slice *a = build_slice("ns/s", "svc", FAMILY_IPV4);
	struct slice *b = build_slice("ns/s", "svc", FAMILY_IPV6);

	assert_false(slice_equal(a, b));
	slice_unref(a);
	slice_unref(b);
	assert_false(equal("ns/s svc - -", "ns/s other - -"));
	assert_false(equal("ns/s svc - -", "ns/t svc - -"));
}

static void trigger_time_does_not_count(void **state attr_unused)
{
	struct slice *a = slice_from_text(BASE), *b = slice_from_text(BASE);

	b->trigger_time_ns = 5;
	assert_true(slice_equal(a, b));
	slice_unref(a);
	slice_unref(b);
}

/* Nodes are not kept: only which endpoints are on this one. */
static void mark_local(struct slice *slice, const char *node_name)
{
	for (size_t i = 0; i < slice->n_endpoints; i++) {
		struct slice_endpoint *endpoint = &slice->endpoints[i];

		if (endpoint->node && streq(endpoint->node, node_name))
			endpoint->flags |= ENDPOINT_LOCAL;
		endpoint->node = NULL;
	}
}

static void packed_slice_opens_with_all_it_had_but_nodes(void **state attr_unused)
{
	static const char *const texts[] = {
		BASE,
		"ns/s svc - -",
		"ns/s svc =80/sctp 10.0.0.1,10.0.0.2!t,10.0.0.3@n!s,10.0.0.4!u",
		"ns/s svc a=65535/udp fd00::1@n,fd00::2",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct slice *slice = slice_from_text(texts[i]), *again;
		cleanup_arena struct arena *arena = arena_new(0);
		cleanup_free struct packed *packed = NULL;

		if (slice->n_endpoints)
			build_hints(slice, &slice->endpoints[0], "zone-a,zone-b", "node-a");
		packed = packed_new(slice, "n");
		again = packed_open(packed, arena);
		assert_string_equal(packed_key(packed), slice->key);
		assert_string_equal(packed_service_key(packed), slice->service_key);
		mark_local(slice, "n");
		assert_true(slice_equal(slice, again));
		assert_int_equal(again->n_ports, slice->n_ports);
		assert_int_equal(again->n_endpoints, slice->n_endpoints);
		if (slice->n_endpoints) {
			assert_int_equal(again->endpoints[0].hints->n_zones, 2);
			assert_string_equal(again->endpoints[0].hints->zones[1], "zone-b");
			assert_string_equal(again->endpoints[0].hints->nodes[0], "node-a");
		}
		slice_unref(slice);
	}
}

static void packed_slice_is_small(void **state attr_unused)
{
	struct slice *slice = slice_from_text("default/web-abcde web http=8080/tcp 10.0.0.1@node-1,"
					      "10.0.0.2@node-2,10.0.0.3@node-3,10.0.0.4@node-4,"
					      "10.0.0.5@node-5");
	cleanup_free struct packed *packed = packed_new(slice, "node-1");

	assert_true(packed->size < 88);
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
		cmocka_unit_test(hints_count),
		cmocka_unit_test(owner_and_family_count),
		cmocka_unit_test(trigger_time_does_not_count),
		cmocka_unit_test(packed_slice_opens_with_all_it_had_but_nodes),
		cmocka_unit_test(packed_slice_is_small),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "slice_text.h"

/* Merges slices given as text, on a node called "host1", and compares "name/protocol: list" for
 * each. */
static void assert_merged(const char *const *texts, const char *const *wanted)
{
	struct slice *slices[8], *chain = NULL;
	struct endpoints **lists;
	size_t n_slices = 0, n, n_wanted = 0;

	for (; texts[n_slices]; n_slices++)
		slices[n_slices] = build_finish(slice_from_text(texts[n_slices]), "host1");
	for (size_t i = n_slices; i-- > 0; chain = slices[i])
		slices[i]->next = chain;
	lists = endpoints_merge(chain, &n);
	for (; wanted[n_wanted]; n_wanted++) {
		cleanup_free char *text = NULL, *line = NULL;

		assert_true(n_wanted < n);
		text = list_to_text(lists[n_wanted]);
		line = xasprintf("%s/%s: %s", lists[n_wanted]->port_name,
				 protocol_name(lists[n_wanted]->protocol), text);
		assert_string_equal(line, wanted[n_wanted]);
	}
	assert_int_equal(n, n_wanted);
	for (size_t i = 0; i < n_slices; i++)
		slice_unref(slices[i]);
	for (size_t i = 0; i < n; i++)
		endpoints_unref(lists[i]);
	free(lists);
}

#define SLICES(...) ((const char *const[]){__VA_ARGS__ __VA_OPT__(, ) NULL})
#define LISTS(...)  ((const char *const[]){__VA_ARGS__ __VA_OPT__(, ) NULL})

static void map_from_esc_two_ports_give_two_lists(void **state attr_unused)
{
	assert_merged(SLICES("ns/s1 svc port-0=80/tcp,port-1=443/tcp "
			     "10.0.1.1@host1,10.0.1.2@host2,10.0.1.3@host1,10.0.1.4"),
		      LISTS("port-0/tcp: 10.0.1.1:80* 10.0.1.2:80 10.0.1.3:80* 10.0.1.4:80",
			    "port-1/tcp: 10.0.1.1:443* 10.0.1.2:443 10.0.1.3:443* 10.0.1.4:443"));
}

static void map_from_esc_slices_merge_into_one_list(void **state attr_unused)
{
	assert_merged(SLICES("ns/s1 svc p=80/tcp 10.0.1.1,10.0.1.2",
			     "ns/s2 svc p=80/tcp 10.0.2.1,10.0.2.2@host1"),
		      LISTS("p/tcp: 10.0.1.1:80 10.0.1.2:80 10.0.2.1:80 10.0.2.2:80*"));
}

static void map_from_esc_same_ip_with_different_ports_stays_two(void **state attr_unused)
{
	assert_merged(SLICES("ns/s1 svc p=80/tcp 10.0.1.1,10.0.1.2",
			     "ns/s2 svc p=8080/tcp 10.0.1.1,10.0.1.2"),
		      LISTS("p/tcp: 10.0.1.1:80 10.0.1.1:8080 10.0.1.2:80 10.0.1.2:8080"));
}

static void map_from_esc_sorts_by_printed_text(void **state attr_unused)
{
	assert_merged(SLICES("ns/s1 svc p=80/tcp 10.1.1.2,10.1.1.1,10.1.1.11,9.9.9.9,10.1.1.10"),
		      LISTS("p/tcp: 10.1.1.10:80 10.1.1.11:80 10.1.1.1:80 10.1.1.2:80 9.9.9.9:80"));
	assert_merged(SLICES("ns/s1 svc p=80/tcp fd00::2,fd00::10,fd00::1,2001::1"),
		      LISTS("p/tcp: [2001::1]:80 [fd00::10]:80 [fd00::1]:80 [fd00::2]:80"));
}

static void map_from_esc_same_name_with_two_protocols_gives_two_lists(void **state attr_unused)
{
	assert_merged(
		SLICES("ns/s1 svc dns=53/udp,dns=53/tcp,dns=54/sctp 10.0.0.1"),
		LISTS("dns/tcp: 10.0.0.1:53", "dns/udp: 10.0.0.1:53", "dns/sctp: 10.0.0.1:54"));
}

static void map_from_esc_port_without_endpoints_gives_no_list(void **state attr_unused)
{
	assert_merged(SLICES("ns/s1 svc p=80/tcp -", "ns/s2 svc - 10.0.0.1"), LISTS());
	assert_merged(SLICES(), LISTS());
}

static void map_from_esc_unnamed_port_is_a_port(void **state attr_unused)
{
	assert_merged(SLICES("ns/s1 svc =80/tcp 10.0.0.1!s,10.0.0.2!u,10.0.0.3!t"),
		      LISTS("/tcp: 10.0.0.1:80!s 10.0.0.2:80!u 10.0.0.3:80!t"));
}

static void info_by_port_groups_by_name_and_address(void **state attr_unused)
{
	assert_merged(SLICES("ns/s1 svc a=80/tcp 10.0.0.1,10.0.0.1,10.0.0.2",
			     "ns/s2 svc a=80/tcp,b=443/tcp 10.0.0.2"),
		      LISTS("a/tcp: 10.0.0.1:80 10.0.0.2:80", "b/tcp: 10.0.0.2:443"));
}

static void info_by_port_prefers_non_terminating_first(void **state attr_unused)
{
	assert_merged(SLICES("ns/s1 svc p=80/tcp 10.0.0.1,10.0.0.1!s,10.0.0.1!t"),
		      LISTS("p/tcp: 10.0.0.1:80"));
}

static void info_by_port_prefers_non_terminating_last(void **state attr_unused)
{
	assert_merged(SLICES("ns/s1 svc p=80/tcp 10.0.0.1!s,10.0.0.1!t,10.0.0.1@host1"),
		      LISTS("p/tcp: 10.0.0.1:80*"));
}

static void info_by_port_prefers_non_terminating_in_another_slice(void **state attr_unused)
{
	assert_merged(SLICES("ns/s1 svc p=80/tcp 10.0.0.1!s", "ns/s2 svc p=80/tcp 10.0.0.1"),
		      LISTS("p/tcp: 10.0.0.1:80"));
	assert_merged(SLICES("ns/s1 svc p=80/tcp 10.0.0.1", "ns/s2 svc p=80/tcp 10.0.0.1!s"),
		      LISTS("p/tcp: 10.0.0.1:80"));
}

/* Unready is not terminating: the later entry replaces the earlier one. */
static void info_by_port_last_non_terminating_wins(void **state attr_unused)
{
	assert_merged(SLICES("ns/s1 svc p=80/tcp 10.0.0.1,10.0.0.1!u,10.0.0.1!t"),
		      LISTS("p/tcp: 10.0.0.1:80!u"));
	assert_merged(SLICES("ns/s1 svc p=80/tcp 10.0.0.1!s,10.0.0.1!t"),
		      LISTS("p/tcp: 10.0.0.1:80!s"));
}

static void order_of_slices_does_not_matter(void **state attr_unused)
{
	assert_merged(SLICES("ns/s1 svc p=80/tcp 10.0.0.1!u", "ns/s2 svc p=80/tcp 10.0.0.1"),
		      LISTS("p/tcp: 10.0.0.1:80"));
	assert_merged(SLICES("ns/s2 svc p=80/tcp 10.0.0.1", "ns/s1 svc p=80/tcp 10.0.0.1!u"),
		      LISTS("p/tcp: 10.0.0.1:80"));
}

static void local_needs_the_exact_node_name(void **state attr_unused)
{
	struct draft *slice;
	struct endpoints *list;

	assert_merged(SLICES("ns/s1 svc p=80/tcp 10.0.0.1@HOST1,10.0.0.2@host11,10.0.0.3@host1"),
		      LISTS("p/tcp: 10.0.0.1:80 10.0.0.2:80 10.0.0.3:80*"));
	slice = slice_from_text("ns/s1 svc p=80/tcp 10.0.0.1@");
	list = build_list(slice, ""); /* an unknown own name makes nothing local */
	assert_int_equal(list->v[0].flags & ENDPOINT_LOCAL, 0);
	endpoints_unref(list);
}

static void address_of_the_other_family_is_left_out(void **state attr_unused)
{
	struct draft *slice = build_slice("ns/s", "svc", FAMILY_IPV4);
	struct endpoints *list;

	build_slice_port(slice, "p", PROTOCOL_TCP, 80);
	build_endpoint(slice, "fd00::1", NULL, BUILD_READY);
	build_endpoint(slice, "10.0.0.1", NULL, BUILD_READY);
	list = build_list(slice, "host1");
	assert_int_equal(list->n, 1);
	assert_int_equal(list->v[0].addr.family, FAMILY_IPV4);
	endpoints_unref(list);
}

static void hints_are_copied_and_shared_within_a_list(void **state attr_unused)
{
	struct draft *slice = slice_from_text("ns/s svc p=80/tcp "
					      "10.0.0.1,10.0.0.2,10.0.0.3,10.0.0.4,10.0.0.5");
	struct endpoints *list;

	build_hints(slice, &slice->endpoints[0], "zone-a,zone-b", NULL);
	build_hints(slice, &slice->endpoints[1], NULL, "node-a");
	build_hints(slice, &slice->endpoints[2], "zone-a,zone-b", NULL);
	build_hints(slice, &slice->endpoints[3], NULL, NULL); /* both lists empty: no hint */
	list = build_list(slice, "host1");                    /* releases the slice */
	assert_int_equal(list->hints[0]->n_zones, 2);
	assert_string_equal(list->hints[0]->zones[0], "zone-a");
	assert_string_equal(list->hints[0]->zones[1], "zone-b");
	assert_int_equal(list->hints[0]->n_nodes, 0);
	assert_int_equal(list->hints[1]->n_zones, 0);
	assert_string_equal(list->hints[1]->nodes[0], "node-a");
	assert_ptr_equal(list->hints[2], list->hints[0]);
	assert_null(list->hints[3]);
	assert_null(list->hints[4]);
	endpoints_unref(list);
}

/* More kinds of hints than are remembered: each endpoint still has its own. */
static void many_different_hints_stay_apart(void **state attr_unused)
{
	struct draft *slice = build_slice("ns/s", "svc", FAMILY_IPV4);
	struct endpoints *list;
	char text[32];

	build_slice_port(slice, "p", PROTOCOL_TCP, 80);
	for (unsigned int i = 0; i < 100; i++) {
		snprintf(text, sizeof(text), "10.0.0.%u", 100 + i);
		build_endpoint(slice, text, NULL, BUILD_READY);
		snprintf(text, sizeof(text), "node-%u", i % 20);
		build_hints(slice, &slice->endpoints[i], "zone-a", text);
	}
	list = build_list(slice, "host1");
	assert_int_equal(list->n, 100);
	for (unsigned int i = 0; i < 100; i++) {
		snprintf(text, sizeof(text), "node-%u", i % 20);
		assert_string_equal(list->hints[i]->nodes[0], text);
	}
	endpoints_unref(list);
}

/* As many as an API server lets a slice have; no step may look at all others for each. */
static void twenty_thousand_ports_are_merged_and_found(void **state attr_unused)
{
	enum { MANY = 20000 };
	struct draft *slice = build_slice("ns/s", "svc", FAMILY_IPV4);
	struct endpoints **lists;
	struct slice *written;
	char name[32];
	size_t n;

	build_endpoint(slice, "10.0.0.1", NULL, BUILD_READY);
	slice->ports = arena_array(slice->arena, MANY, sizeof(*slice->ports));
	for (slice->n_ports = 0; slice->n_ports < MANY; slice->n_ports++) {
		snprintf(name, sizeof(name), "p%zu", slice->n_ports);
		slice->ports[slice->n_ports].name = arena_strdup(slice->arena, name);
		slice->ports[slice->n_ports].port = (uint16_t)(slice->n_ports + 1);
	}
	written = build_finish(slice, "host1");
	lists = endpoints_merge(written, &n);
	assert_int_equal(n, MANY);
	for (size_t i = 0; i < n; i++) {
		struct endpoints *found;

		snprintf(name, sizeof(name), "p%zu", i);
		found = endpoints_find(lists, n, name, PROTOCOL_TCP);
		assert_non_null(found);
		assert_int_equal(found->v[0].port, i + 1);
	}
	assert_null(endpoints_find(lists, n, "p0", PROTOCOL_UDP));
	assert_null(endpoints_find(lists, n, "", PROTOCOL_TCP));
	for (size_t i = 0; i < n; i++)
		endpoints_unref(lists[i]);
	free(lists);
	slice_unref(written);
}

static void lists_are_shared_by_reference(void **state attr_unused)
{
	struct endpoints *list = build_list(slice_from_text("ns/s svc p=80/tcp 10.0.0.1"), "host1");

	assert_ptr_equal(endpoints_ref(list), list);
	assert_null(endpoints_unref(list));
	assert_string_equal(list->port_name, "p");
	assert_null(endpoints_unref(list));
	assert_null(endpoints_unref(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(map_from_esc_two_ports_give_two_lists),
		cmocka_unit_test(map_from_esc_slices_merge_into_one_list),
		cmocka_unit_test(map_from_esc_same_ip_with_different_ports_stays_two),
		cmocka_unit_test(map_from_esc_sorts_by_printed_text),
		cmocka_unit_test(map_from_esc_same_name_with_two_protocols_gives_two_lists),
		cmocka_unit_test(map_from_esc_port_without_endpoints_gives_no_list),
		cmocka_unit_test(map_from_esc_unnamed_port_is_a_port),
		cmocka_unit_test(info_by_port_groups_by_name_and_address),
		cmocka_unit_test(info_by_port_prefers_non_terminating_first),
		cmocka_unit_test(info_by_port_prefers_non_terminating_last),
		cmocka_unit_test(info_by_port_prefers_non_terminating_in_another_slice),
		cmocka_unit_test(info_by_port_last_non_terminating_wins),
		cmocka_unit_test(order_of_slices_does_not_matter),
		cmocka_unit_test(local_needs_the_exact_node_name),
		cmocka_unit_test(address_of_the_other_family_is_left_out),
		cmocka_unit_test(hints_are_copied_and_shared_within_a_list),
		cmocka_unit_test(many_different_hints_stay_apart),
		cmocka_unit_test(twenty_thousand_ports_are_merged_and_found),
		cmocka_unit_test(lists_are_shared_by_reference),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

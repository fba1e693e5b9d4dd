/* SPDX-License-Identifier: Apache-2.0 */

/* Readers at different paces, of plans that are made once. */

#include "base/text.h"
#include "plan/plan_store.h"
#include "plan/withheld.h"
#include "plan_world.h"

static size_t n_planned;

struct service_plan *__real_plan_service(const struct settings *settings, const struct model *model,
					 const char *key);
struct service_plan *__wrap_plan_service(const struct settings *settings, const struct model *model,
					 const char *key);

struct service_plan *__wrap_plan_service(const struct settings *settings, const struct model *model,
					 const char *key)
{
	n_planned++;
	return __real_plan_service(settings, model, key);
}

struct lab {
	struct world world;
	struct plan_store *store;
	struct plan_reader *a, *b;
	size_t n_conflicts;
};

static void note_conflict(void *arg, const struct conflict *conflict attr_unused)
{
	struct lab *lab = arg;

	lab->n_conflicts++;
}

static void lab_init(struct lab *lab)
{
	*lab = (struct lab){.world = world_new()};
	lab->store = plan_store_new(&lab->world.settings, lab->world.model, 2);
	plan_store_on_conflict(lab->store, note_conflict, lab);
	lab->a = plan_reader_new(lab->store);
	lab->b = plan_reader_new(lab->store);
	n_planned = 0;
}

static void lab_done(struct lab *lab)
{
	plan_reader_free(lab->a);
	plan_reader_free(lab->b);
	plan_store_free(lab->store);
	world_done(&lab->world);
}

/* ns/NAME at that cluster IP; created: in the order of those who ask for the same. */
static void serve(struct lab *lab, const char *key, const char *ip, const char *external,
		  uint32_t created)
{
	struct service *service = build_service(key, ip);

	build_port(service, "", PROTOCOL_TCP, 80, 0);
	if (external)
		build_external_ip(service, external);
	service->created_s = created;
	model_set_service(lab->world.model, service);
}

/* Ready ones, with blanks between; each may name the zone that it is for: "10.1.1.1@a". */
static void endpoints(struct lab *lab, const char *name, const char *addresses)
{
	cleanup_free char *key = xasprintf("ns/%s-1", name);
	cleanup_free char *copy = xstrdup(addresses);
	struct draft *slice = build_slice(key, name, FAMILY_IPV4);
	char *rest = copy, *word;

	build_slice_port(slice, "", PROTOCOL_TCP, 8080);
	while ((word = strsep(&rest, " "))) {
		char *zone = strchr(word, '@');
		struct draft_endpoint *endpoint;

		if (zone)
			*zone++ = '\0';
		endpoint = build_endpoint(slice, word, OTHER, BUILD_READY);
		if (zone)
			build_hints(slice, endpoint, zone, NULL);
	}
	build_set_slice(lab->world.model, slice);
}

static void update(struct lab *lab)
{
	struct model_changes changes;

	plan_store_update(lab->store, &changes);
	model_changes_done(&changes);
}

static char *words_of(const struct plan_delta *delta)
{
	cleanup_text struct text text = {0};

	text_init(&text);
	for (size_t i = 0; i < delta->n_changes; i++) {
		const struct plan_change *change = &delta->changes[i];

		assert_true(change->applied || change->wanted);
		text_printf(&text, "%c%s ",
			    !change->applied                    ? '+'
			    : !change->wanted                   ? '-'
			    : change->applied == change->wanted ? '='
								: '~',
			    change->key);
	}
	for (size_t i = 0; i < delta->n_renewed; i++) {
		assert_ptr_not_equal(delta->renewed[i].applied, delta->renewed[i].wanted);
		assert_true(
			service_plan_equal(delta->renewed[i].applied, delta->renewed[i].wanted));
		text_printf(&text, "(%s) ", delta->renewed[i].key);
	}
	return text_dup(&text);
}

/* "+ns/a ~ns/b -ns/c =ns/d (ns/e) ": came, changed, gone, as it was, renewed. */
static void expect_taken(struct plan_reader *reader, bool full, const char *expected)
{
	cleanup_free char *words = words_of(plan_reader_take(reader, full));

	assert_string_equal(words, expected);
}

static void expect(struct plan_reader *reader, const char *expected)
{
	expect_taken(reader, false, expected);
	plan_reader_commit(reader);
}

static void expect_failing(struct plan_reader *reader, const char *expected)
{
	expect_taken(reader, false, expected);
	plan_reader_fail(reader);
}

static void readers_have_each_their_pace(void **state attr_unused)
{
	struct lab lab;

	lab_init(&lab);
	serve(&lab, "ns/web", "10.96.0.1", NULL, 0);
	serve(&lab, "ns/api", "10.96.0.2", NULL, 0);
	update(&lab);
	expect(lab.a, "+ns/api +ns/web ");
	expect(lab.a, "");
	endpoints(&lab, "web", "10.1.1.1");
	update(&lab);
	expect(lab.a, "~ns/web ");
	model_remove_service(lab.world.model, "ns/api");
	update(&lab);
	expect(lab.a, "-ns/api ");
	expect(lab.b, "+ns/web "); /* of the other it never heard */
	expect(lab.a, "");
	expect(lab.b, "");
	lab_done(&lab);
}

static void a_failure_leaves_the_delta(void **state attr_unused)
{
	struct lab lab;

	lab_init(&lab);
	serve(&lab, "ns/web", "10.96.0.1", NULL, 0);
	serve(&lab, "ns/api", "10.96.0.2", NULL, 0);
	update(&lab);
	expect_failing(lab.a, "+ns/api +ns/web ");
	serve(&lab, "ns/new", "10.96.0.3", NULL, 0);
	update(&lab);
	expect_failing(lab.a, "+ns/api +ns/new +ns/web ");
	expect(lab.a, "+ns/api +ns/new +ns/web ");
	endpoints(&lab, "web", "10.1.1.1");
	update(&lab);
	expect_failing(lab.a, "~ns/web ");
	model_remove_service(lab.world.model, "ns/api");
	update(&lab);
	expect(lab.a, "-ns/api ~ns/web ");
	expect(lab.a, "");
	lab_done(&lab);
}

static void what_was_taken_back_is_no_change(void **state attr_unused)
{
	struct lab lab;

	lab_init(&lab);
	serve(&lab, "ns/web", "10.96.0.1", NULL, 0);
	endpoints(&lab, "web", "10.1.1.1");
	update(&lab);
	expect(lab.a, "+ns/web ");
	endpoints(&lab, "web", "10.1.1.1 10.1.1.2");
	update(&lab);
	expect_failing(lab.a, "~ns/web ");
	endpoints(&lab, "web", "10.1.1.1");
	update(&lab);
	expect(lab.a, "(ns/web) ");
	expect(lab.a, "");
	serve(&lab, "ns/new", "10.96.0.3", NULL, 0);
	update(&lab);
	expect_failing(lab.a, "+ns/new ");
	model_remove_service(lab.world.model, "ns/new"); /* never applied and removed */
	update(&lab);
	expect(lab.a, "");
	model_remove_service(lab.world.model, "ns/web");
	update(&lab);
	expect_failing(lab.a, "-ns/web ");
	serve(&lab, "ns/web", "10.96.0.1", NULL, 0); /* removed and added again */
	update(&lab);
	expect(lab.a, "(ns/web) ");
	lab_done(&lab);
}

static void what_changes_while_a_delta_is_out_is_in_the_next(void **state attr_unused)
{
	struct lab lab;

	lab_init(&lab);
	serve(&lab, "ns/web", "10.96.0.1", NULL, 0);
	serve(&lab, "ns/api", "10.96.0.2", NULL, 0);
	update(&lab);
	expect_taken(lab.a, false, "+ns/api +ns/web ");
	endpoints(&lab, "web", "10.1.1.1");
	model_remove_service(lab.world.model, "ns/api");
	update(&lab);
	plan_reader_commit(lab.a);
	expect(lab.a, "-ns/api ~ns/web ");
	expect(lab.a, "");
	lab_done(&lab);
}

static void a_full_delta_has_every_service(void **state attr_unused)
{
	struct lab lab;

	lab_init(&lab);
	serve(&lab, "ns/web", "10.96.0.1", NULL, 0);
	serve(&lab, "ns/api", "10.96.0.2", NULL, 0);
	serve(&lab, "ns/dns", "10.96.0.3", NULL, 0);
	update(&lab);
	expect(lab.a, "+ns/api +ns/dns +ns/web ");
	endpoints(&lab, "web", "10.1.1.1");
	model_remove_service(lab.world.model, "ns/dns");
	update(&lab);
	expect_taken(lab.a, true, "=ns/api -ns/dns ~ns/web ");
	plan_reader_fail(lab.a);
	expect(lab.a, "-ns/dns ~ns/web ");
	expect_taken(lab.a, true, "=ns/api =ns/web ");
	plan_reader_commit(lab.a);
	expect_taken(lab.b, true, "+ns/api +ns/web ");
	plan_reader_commit(lab.b);
	expect(lab.b, "");
	lab_done(&lab);
}

static void a_service_is_planned_once_for_all_readers(void **state attr_unused)
{
	struct lab lab;

	lab_init(&lab);
	serve(&lab, "ns/web", "10.96.0.1", NULL, 0);
	serve(&lab, "ns/api", "10.96.0.2", NULL, 0);
	update(&lab);
	assert_int_equal(n_planned, 2);
	expect_failing(lab.a, "+ns/api +ns/web ");
	expect_taken(lab.a, true, "+ns/api +ns/web ");
	plan_reader_commit(lab.a);
	expect(lab.b, "+ns/api +ns/web ");
	update(&lab);
	assert_int_equal(n_planned, 2);
	endpoints(&lab, "web", "10.1.1.1");
	update(&lab);
	expect(lab.a, "~ns/web ");
	expect(lab.b, "~ns/web ");
	assert_int_equal(n_planned, 3);
	lab_done(&lab);
}

static void nothing_is_planned_while_nobody_reads(void **state attr_unused)
{
	struct lab lab;

	lab_init(&lab);
	lab.a = plan_reader_free(lab.a);
	lab.b = plan_reader_free(lab.b);
	serve(&lab, "ns/web", "10.96.0.1", NULL, 0);
	update(&lab);
	assert_int_equal(n_planned, 0);
	assert_false(model_has_changes(lab.world.model, FAMILY_IPV4));
	lab.a = plan_reader_new(lab.store);
	update(&lab);
	expect(lab.a, "+ns/web ");
	lab.b = plan_reader_new(lab.store); /* finds what is there */
	expect(lab.b, "+ns/web ");
	assert_int_equal(n_planned, 1);
	lab_done(&lab);
}

static void set_node(struct lab *lab, const char *zone, const char *address)
{
	struct node *node = node_new(NODE);

	node->zone = arena_strdup(node->arena, zone);
	node->addresses = arena_array(node->arena, 1, sizeof(*node->addresses));
	node->addresses[node->n_addresses++] = build_addr(address);
	model_set_node(lab->world.model, node);
}

static void another_zone_plans_everything_anew(void **state attr_unused)
{
	struct lab lab;

	lab_init(&lab);
	set_node(&lab, "a", "192.0.2.1");
	serve(&lab, "ns/web", "10.96.0.1", NULL, 0);
	serve(&lab, "ns/api", "10.96.0.2", NULL, 0);
	endpoints(&lab, "web", "10.1.1.1@a 10.1.1.2@b");
	endpoints(&lab, "api", "10.1.2.1");
	update(&lab);
	expect(lab.a, "+ns/api +ns/web ");
	n_planned = 0;
	set_node(&lab, "a", "192.0.2.2");
	update(&lab);
	assert_int_equal(n_planned, 0);
	set_node(&lab, "b", "192.0.2.2");
	model_remove_service(lab.world.model, "ns/api");
	serve(&lab, "ns/new", "10.96.0.3", NULL, 0);
	update(&lab);
	expect(lab.a, "-ns/api +ns/new ~ns/web "); /* the others are the same in any zone */
	expect(lab.b, "+ns/new +ns/web ");
	lab_done(&lab);
}

static bool is_withheld(struct plan_reader *reader, const char *key)
{
	const struct plan_delta *delta = plan_reader_take(reader, true);
	bool withheld = false;

	for (size_t i = 0; i < delta->n_changes; i++)
		if (streq(delta->changes[i].key, key))
			withheld = delta->changes[i].wanted->withheld != NULL;
	plan_reader_fail(reader);
	return withheld;
}

static void who_loses_an_address_has_changed(void **state attr_unused)
{
	const struct plan_delta *out;
	struct lab lab;

	lab_init(&lab);
	serve(&lab, "ns/young", "10.96.0.1", "198.51.100.1", 200);
	serve(&lab, "ns/other", "10.96.0.3", NULL, 0);
	update(&lab);
	expect(lab.a, "+ns/other +ns/young ");
	out = plan_reader_take(lab.b, false);
	serve(&lab, "ns/old", "10.96.0.2", "198.51.100.1", 100);
	update(&lab);
	expect(lab.a, "+ns/old ~ns/young ");
	assert_true(is_withheld(lab.a, "ns/young"));
	assert_false(is_withheld(lab.a, "ns/old"));
	assert_int_equal(plan_store_conflicts(lab.store)[CONFLICT_DESTINATION], 1);
	assert_int_equal(lab.n_conflicts, 1);
	assert_string_equal(out->changes[1].key, "ns/young");
	assert_null(out->changes[1].wanted->withheld); /* what was handed out is never changed */
	plan_reader_commit(lab.b);
	model_remove_service(lab.world.model, "ns/old");
	update(&lab);
	expect(lab.a, "-ns/old ~ns/young ");
	assert_false(is_withheld(lab.a, "ns/young"));
	expect(lab.b, "(ns/young) "); /* it had and has it */
	assert_int_equal(plan_store_conflicts(lab.store)[CONFLICT_DESTINATION], 0);
	lab_done(&lab);
}

/* A new label makes a new object, which asks for the same and is no change. */
static void who_gets_an_address_may_have_been_replaced_by_an_equal_one(void **state attr_unused)
{
	struct lab lab;

	lab_init(&lab);
	serve(&lab, "ns/old", "10.96.0.1", "198.51.100.1", 100);
	serve(&lab, "ns/young", "10.96.0.2", "198.51.100.1", 200);
	update(&lab);
	expect(lab.a, "+ns/old +ns/young ");
	serve(&lab, "ns/young", "10.96.0.2", "198.51.100.1", 200);
	update(&lab);
	expect(lab.a, "");
	model_remove_service(lab.world.model, "ns/old");
	update(&lab);
	expect(lab.a, "-ns/old ~ns/young ");
	assert_false(is_withheld(lab.a, "ns/young"));
	serve(&lab, "ns/old", "10.96.0.1", "198.51.100.1", 100);
	update(&lab);
	expect(lab.a, "+ns/old ~ns/young ");
	assert_true(is_withheld(lab.a, "ns/young"));
	assert_int_equal(plan_store_conflicts(lab.store)[CONFLICT_DESTINATION], 1);
	lab_done(&lab);
}

static void one_that_has_an_address_of_this_node_is_found_when_it_moves(void **state attr_unused)
{
	struct lab lab;

	lab_init(&lab);
	set_node(&lab, "", "192.0.2.1");
	serve(&lab, "ns/web", "10.96.0.1", "192.0.2.2", 0);
	update(&lab);
	assert_int_equal(lab.n_conflicts, 0);
	set_node(&lab, "", "192.0.2.2");
	update(&lab);
	assert_int_equal(lab.n_conflicts, 1);
	assert_int_equal(plan_store_conflicts(lab.store)[CONFLICT_NODE_ADDRESS], 1);
	set_node(&lab, "", "192.0.2.3");
	update(&lab);
	assert_int_equal(plan_store_conflicts(lab.store)[CONFLICT_NODE_ADDRESS], 0);
	lab_done(&lab);
}

static void serve_locally(struct lab *lab, const char *key, const char *ip, bool internal)
{
	struct service *service = build_service(key, ip);

	build_port(service, "", PROTOCOL_TCP, 80, 30080);
	service->internal_local = internal;
	service->external_local = true;
	model_set_service(lab->world.model, service);
}

static void expect_no_local(const struct lab *lab, size_t internal, size_t external)
{
	size_t found_internal, found_external;

	plan_store_count_no_local(lab->store, &found_internal, &found_external);
	assert_int_equal(found_internal, internal);
	assert_int_equal(found_external, external);
}

static void ports_without_local_endpoints_are_counted(void **state attr_unused)
{
	struct lab lab;

	lab_init(&lab);
	serve_locally(&lab, "ns/web", "10.96.0.1", true);
	update(&lab);
	expect_no_local(&lab, 0, 0); /* no endpoints at all */
	endpoints(&lab, "web", "10.1.1.1");
	update(&lab);
	expect_no_local(&lab, 1, 1);
	serve_locally(&lab, "ns/web", "10.96.0.1", false);
	update(&lab);
	expect_no_local(&lab, 0, 1);
	model_remove_service(lab.world.model, "ns/web");
	update(&lab);
	expect_no_local(&lab, 0, 0);
	lab_done(&lab);
}

static void who_looks_once_has_everything(void **state attr_unused)
{
	struct world world = world_new();
	struct service *service = build_service("ns/web", "10.96.0.1");
	struct plan_once once;

	build_port(service, "", PROTOCOL_TCP, 80, 0);
	model_set_service(world.model, service);
	for (int i = 0; i < 2; i++) { /* the second time nothing is pending */
		plan_once_take(&once, &world.settings, world.model);
		assert_true(once.delta->full);
		assert_int_equal(once.delta->n_changes, 1);
		assert_string_equal(once.delta->changes[0].key, "ns/web");
		plan_once_done(&once);
	}
	world_done(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(readers_have_each_their_pace),
		cmocka_unit_test(a_failure_leaves_the_delta),
		cmocka_unit_test(what_was_taken_back_is_no_change),
		cmocka_unit_test(what_changes_while_a_delta_is_out_is_in_the_next),
		cmocka_unit_test(a_full_delta_has_every_service),
		cmocka_unit_test(a_service_is_planned_once_for_all_readers),
		cmocka_unit_test(nothing_is_planned_while_nobody_reads),
		cmocka_unit_test(another_zone_plans_everything_anew),
		cmocka_unit_test(who_loses_an_address_has_changed),
		cmocka_unit_test(who_gets_an_address_may_have_been_replaced_by_an_equal_one),
		cmocka_unit_test(one_that_has_an_address_of_this_node_is_found_when_it_moves),
		cmocka_unit_test(ports_without_local_endpoints_are_counted),
		cmocka_unit_test(who_looks_once_has_everything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

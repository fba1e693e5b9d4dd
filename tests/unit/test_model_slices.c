/* SPDX-License-Identifier: Apache-2.0 */

/* Slices in the model, one change at a time: what counts as one, what comes out, trigger times. */

#include "model/model.h"
#include "slice_text.h"

#define IPV4 (1U << FAMILY_IPV4)
#define IPV6 (1U << FAMILY_IPV6)

#define START 1000 /* when the model began to listen */

static int set_up(void **state)
{
	*state = model_new("host1", START);
	return 0;
}

static int tear_down(void **state)
{
	model_free(*state);
	return 0;
}

static unsigned int set(struct model *model, const char *text)
{
	return build_set_slice(model, slice_from_text(text));
}

static unsigned int set_at(struct model *model, const char *text, int64_t trigger_time_ns)
{
	struct draft *slice = slice_from_text(text);

	slice->trigger_time_ns = trigger_time_ns;
	return build_set_slice(model, slice);
}

/* Returns the number of services that changed. */
static size_t take_all(struct model *model)
{
	struct model_changes changes;
	size_t n;

	model_take_changes(model, FAMILY_IPV4, &changes);
	n = changes.n_services;
	model_changes_done(&changes);
	return n;
}

static void assert_list(const struct model *model, const char *key, const char *port,
			const char *wanted)
{
	cleanup_free char *text =
		list_to_text(model_endpoints(model, FAMILY_IPV4, key, port, PROTOCOL_TCP));

	assert_string_equal(text, wanted);
}

#define PORTS "a=80/tcp,b=443/tcp"

static void slice_update_new_slice(void **state)
{
	struct model *model = *state;

	assert_int_equal(set(model, "ns1/s1 svc1 " PORTS " 10.0.1.1@host2,10.0.1.2@host1"), IPV4);
	assert_int_equal(model_pending_slices(model, FAMILY_IPV4), 1);
	assert_list(model, "ns1/svc1", "a", ""); /* not before it is taken */
	assert_int_equal(take_all(model), 1);
	assert_int_equal(model_pending_slices(model, FAMILY_IPV4), 0);
	assert_list(model, "ns1/svc1", "a", "10.0.1.1:80 10.0.1.2:80*");
	assert_list(model, "ns1/svc1", "b", "10.0.1.1:443 10.0.1.2:443*");
}

static void slice_update_identical_slice(void **state)
{
	struct model *model = *state;

	set(model, "ns1/s1 svc1 " PORTS " 10.0.1.1");
	assert_int_equal(set(model, "ns1/s1 svc1 " PORTS " 10.0.1.1"), 0);
	assert_int_equal(model_pending_slices(model, FAMILY_IPV4), 1);
	take_all(model);
	assert_int_equal(set(model, "ns1/s1 svc1 " PORTS " 10.0.1.1"), 0);
	assert_false(model_has_changes(model, FAMILY_IPV4));
}

static void slice_update_overlapping_slice(void **state)
{
	struct model *model = *state;

	set(model, "ns1/s1 svc1 " PORTS " 10.0.1.1@host1,10.0.1.2@host2");
	set(model, "ns1/s2 svc1 " PORTS " 10.0.2.1@host1");
	take_all(model);
	assert_int_equal(set(model, "ns1/s1 svc1 " PORTS " 10.0.1.1@host1,10.0.1.2@host1,"
				    "10.0.1.3@host1"),
			 IPV4);
	take_all(model);
	assert_list(model, "ns1/svc1", "a", "10.0.1.1:80* 10.0.1.2:80* 10.0.1.3:80* 10.0.2.1:80*");
	assert_list(model, "ns1/svc1", "b",
		    "10.0.1.1:443* 10.0.1.2:443* 10.0.1.3:443* 10.0.2.1:443*");
}

static void slice_update_overlap_with_partial_ports(void **state)
{
	struct model *model = *state;

	set(model, "ns1/s1 svc1 " PORTS " 10.0.1.1,10.0.1.2");
	take_all(model);
	assert_int_equal(set(model, "ns1/s3 svc1 a=80/tcp 10.0.1.1,10.0.1.2,10.0.1.3"), IPV4);
	take_all(model);
	assert_list(model, "ns1/svc1", "a", "10.0.1.1:80 10.0.1.2:80 10.0.1.3:80");
	assert_list(model, "ns1/svc1", "b", "10.0.1.1:443 10.0.1.2:443");
}

static void slice_update_removal_of_a_known_slice(void **state)
{
	struct model *model = *state;

	set(model, "ns1/s1 svc1 " PORTS " 10.0.1.1,10.0.1.2");
	set(model, "ns1/s2 svc1 " PORTS " 10.0.2.1");
	take_all(model);
	assert_int_equal(model_remove_slice(model, "ns1/s1"), IPV4);
	assert_int_equal(take_all(model), 1);
	assert_list(model, "ns1/svc1", "a", "10.0.2.1:80");
	assert_list(model, "ns1/svc1", "b", "10.0.2.1:443");
}

static void slice_update_removal_of_an_unknown_slice(void **state)
{
	struct model *model = *state;

	set(model, "ns1/s1 svc1 " PORTS " 10.0.1.1");
	take_all(model);
	assert_int_equal(model_remove_slice(model, "ns1/s3"), 0);
	assert_int_equal(model_remove_slice(model, "ns2/s1"), 0);
	assert_false(model_has_changes(model, FAMILY_IPV4));
	assert_list(model, "ns1/svc1", "a", "10.0.1.1:80");
}

static void slice_update_transitions_of_readiness(void **state)
{
	static const char *const steps[][2] = {
		{"10.0.1.1,10.0.1.2", "10.0.1.1:80 10.0.1.2:80"},
		{"10.0.1.1!u,10.0.1.2!u", "10.0.1.1:80!u 10.0.1.2:80!u"},
		{"10.0.1.1,10.0.1.2", "10.0.1.1:80 10.0.1.2:80"},
		{"10.0.1.1,10.0.1.2!u", "10.0.1.1:80 10.0.1.2:80!u"},
		{"10.0.1.1!s,10.0.1.2!t", "10.0.1.1:80!s 10.0.1.2:80!t"},
	};
	struct model *model = *state;

	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		cleanup_free char *text = xasprintf("ns1/s1 svc1 a=80/tcp %s", steps[i][0]);

		assert_int_equal(set(model, text), IPV4);
		assert_int_equal(take_all(model), 1);
		assert_list(model, "ns1/svc1", "a", steps[i][1]);
	}
}

static void checkout_changes_nothing(void **state)
{
	assert_int_equal(take_all(*state), 0);
}

static void checkout_changes_removed_port(void **state)
{
	struct model *model = *state;

	set(model, "ns1/s1 svc1 " PORTS " 10.0.1.1,10.0.1.2!u");
	assert_int_equal(take_all(model), 1);
	assert_list(model, "ns1/svc1", "b", "10.0.1.1:443 10.0.1.2:443!u");
	set(model, "ns1/s1 svc1 a=80/tcp 10.0.1.1,10.0.1.2!u");
	assert_int_equal(take_all(model), 1);
	assert_list(model, "ns1/svc1", "a", "10.0.1.1:80 10.0.1.2:80!u");
	assert_list(model, "ns1/svc1", "b", "");
}

static void map_from_esc_same_name_replaces_earlier_content(void **state)
{
	struct model *model = *state;

	set(model, "ns1/s1 svc1 a=80/tcp 10.0.1.1,10.0.1.2,10.0.1.3");
	set(model, "ns1/s1 svc1 a=80/tcp 10.0.1.1!u,10.0.1.2!s");
	take_all(model);
	assert_list(model, "ns1/svc1", "a", "10.0.1.1:80!u 10.0.1.2:80!s");
}

static void map_from_esc_other_services_do_not_leak_in(void **state)
{
	struct model *model = *state;

	set(model, "ns1/s1 svc1 a=80/tcp 10.0.1.1");
	set(model, "ns1/s2 svc2 a=80/tcp 10.0.2.1");
	set(model, "ns2/s1 svc1 a=80/tcp 10.0.3.1");
	assert_int_equal(take_all(model), 3);
	assert_list(model, "ns1/svc1", "a", "10.0.1.1:80");
	assert_list(model, "ns1/svc2", "a", "10.0.2.1:80");
	assert_list(model, "ns2/svc1", "a", "10.0.3.1:80");
}

static void cache_cleared_with_the_last_slice_not_before(void **state)
{
	struct model *model = *state;

	set(model, "ns1/s1 svc1 a=80/tcp 10.0.1.1");
	set(model, "ns1/s2 svc1 a=80/tcp 10.0.2.1");
	set(model, "ns2/s1 svc1 a=80/tcp 10.0.3.1");
	take_all(model);
	model_remove_slice(model, "ns1/s1");
	take_all(model);
	assert_list(model, "ns1/svc1", "a", "10.0.2.1:80");
	model_remove_slice(model, "ns1/s2");
	assert_list(model, "ns1/svc1", "a", "10.0.2.1:80"); /* until it is taken */
	take_all(model);
	assert_null(model_endpoints(model, FAMILY_IPV4, "ns1/svc1", "a", PROTOCOL_TCP));
	assert_list(model, "ns2/svc1", "a", "10.0.3.1:80");
	assert_int_equal(model_remove_slice(model, "ns1/s2"), 0);
}

static void slice_added_and_removed_before_a_take_is_one_look(void **state)
{
	struct model *model = *state;

	set(model, "ns1/s1 svc1 a=80/tcp 10.0.1.1");
	model_remove_slice(model, "ns1/s1");
	assert_int_equal(model_pending_slices(model, FAMILY_IPV4), 2);
	assert_int_equal(take_all(model), 1);
	assert_null(model_endpoints(model, FAMILY_IPV4, "ns1/svc1", "a", PROTOCOL_TCP));
}

static void slice_that_names_another_service_leaves_the_old_one(void **state)
{
	struct model *model = *state;

	set_at(model, "ns1/s1 old a=80/tcp 10.0.1.1", START + 1);
	take_all(model);
	assert_int_equal(set(model, "ns1/s1 new a=80/tcp 10.0.1.1"), IPV4);
	assert_int_equal(take_all(model), 2);
	assert_null(model_endpoints(model, FAMILY_IPV4, "ns1/old", "a", PROTOCOL_TCP));
	assert_list(model, "ns1/new", "a", "10.0.1.1:80");
}

static void slice_that_changes_family_leaves_the_old_one(void **state)
{
	struct model *model = *state;

	set(model, "ns1/s1 svc1 a=80/tcp 10.0.1.1");
	take_all(model);
	assert_int_equal(set(model, "ns1/s1 svc1 a=80/tcp fd00::1"), IPV4 | IPV6);
	assert_int_equal(take_all(model), 1);
	assert_list(model, "ns1/svc1", "a", "");
	assert_true(model_has_changes(model, FAMILY_IPV6));
}

static void families_have_lists_of_their_own(void **state)
{
	struct model *model = *state;
	struct model_changes changes;
	cleanup_free char *text = NULL;

	assert_int_equal(set(model, "ns1/s4 svc1 a=80/tcp 10.0.1.1"), IPV4);
	assert_int_equal(set(model, "ns1/s6 svc1 a=80/tcp fd00::1@host1"), IPV6);
	take_all(model);
	assert_null(model_endpoints(model, FAMILY_IPV6, "ns1/svc1", "a", PROTOCOL_TCP));
	model_take_changes(model, FAMILY_IPV6, &changes);
	model_changes_done(&changes);
	text = list_to_text(model_endpoints(model, FAMILY_IPV6, "ns1/svc1", "a", PROTOCOL_TCP));
	assert_string_equal(text, "[fd00::1]:80*");
	assert_list(model, "ns1/svc1", "a", "10.0.1.1:80");
}

static void cached_objects_are_never_modified(void **state)
{
	const char *text = "ns1/s1 svc1 a=80/tcp 10.0.1.2!s,10.0.1.1@host1,10.0.1.2";
	struct slice *held = build_finish(slice_from_text(text), "host1");
	struct slice *fresh = build_finish(slice_from_text(text), "host1");

	model_set_slice(*state, slice_ref(held));
	take_all(*state);
	model_remove_slice(*state, "ns1/s1");
	take_all(*state);
	assert_true(slice_equal(held, fresh));
	slice_unref(held);
	slice_unref(fresh);
}

/* A list that someone holds stays as it was while the model moves on. */
static void lists_in_use_outlive_changes(void **state)
{
	struct model *model = *state;
	struct endpoints *held;
	cleanup_free char *text = NULL;

	set(model, "ns1/s1 svc1 a=80/tcp 10.0.1.1");
	take_all(model);
	held = endpoints_ref(model_endpoints(model, FAMILY_IPV4, "ns1/svc1", "a", PROTOCOL_TCP));
	model_remove_slice(model, "ns1/s1");
	take_all(model);
	text = list_to_text(held);
	assert_string_equal(text, "10.0.1.1:80");
	endpoints_unref(held);
}

/* Compares "service@time" pairs, with spaces between; times count from START. */
static void assert_triggers(struct model *model, const char *wanted)
{
	cleanup_free char *got = xstrdup("");
	struct model_changes changes;

	model_take_changes(model, FAMILY_IPV4, &changes);
	for (size_t i = 0; i < changes.n_triggers; i++) {
		char *before = got;

		got = xasprintf("%s%s%s@%lld", before, i ? " " : "", changes.triggers[i].service,
				(long long)changes.triggers[i].time_ns - START);
		free(before);
	}
	assert_string_equal(got, wanted);
	model_changes_done(&changes);
}

static void trigger_time_single_add(void **state)
{
	set_at(*state, "ns/ep1-1 ep1 a=80/tcp 1.1.1.1", START + 1);
	assert_triggers(*state, "ns/ep1@1");
	assert_triggers(*state, ""); /* handed over once */
}

static void trigger_time_add_then_update(void **state)
{
	set_at(*state, "ns/ep1-1 ep1 a=80/tcp 1.1.1.1", START + 1);
	set_at(*state, "ns/ep1-1 ep1 a=80/tcp 1.1.1.1,1.1.1.2", START + 2);
	assert_triggers(*state, "ns/ep1@1 ns/ep1@2");
}

static void trigger_time_add_two_then_modify_one(void **state)
{
	set_at(*state, "ns/ep1-1 ep1 a=80/tcp 1.1.1.1", START + 1);
	set_at(*state, "ns/ep2-1 ep2 a=80/tcp 1.1.1.2", START + 2);
	set_at(*state, "ns/ep1-1 ep1 a=81/tcp 1.1.1.1", START + 3);
	assert_triggers(*state, "ns/ep1@1 ns/ep1@3 ns/ep2@2");
}

static void trigger_time_without_annotation(void **state)
{
	set_at(*state, "ns/ep1-1 ep1 a=80/tcp 1.1.1.1", 0);
	assert_triggers(*state, "");
}

static void trigger_time_from_before_start(void **state)
{
	set_at(*state, "ns/ep1-1 ep1 a=80/tcp 1.1.1.1", START - 1);
	set_at(*state, "ns/ep2-1 ep2 a=80/tcp 1.1.1.1", START);
	assert_triggers(*state, "");
}

static void trigger_time_add_then_delete(void **state)
{
	set_at(*state, "ns/ep1-1 ep1 a=80/tcp 1.1.1.1", START + 1);
	set_at(*state, "ns/ep2-1 ep2 a=80/tcp 1.1.1.1", START + 2);
	model_remove_slice(*state, "ns/ep1-1");
	assert_triggers(*state, "ns/ep2@2"); /* others keep theirs */
}

static void trigger_time_add_delete_add_keeps_the_new_one(void **state)
{
	set_at(*state, "ns/ep1-1 ep1 a=80/tcp 1.1.1.1", START + 1);
	model_remove_slice(*state, "ns/ep1-1");
	set_at(*state, "ns/ep1-1 ep1 a=80/tcp 1.1.1.1", START + 2);
	assert_triggers(*state, "ns/ep1@2");
}

static void trigger_time_delete_of_unknown(void **state)
{
	model_remove_slice(*state, "ns/ep1-1");
	assert_triggers(*state, "");
}

static void trigger_time_of_identical_slice_is_not_recorded(void **state)
{
	set_at(*state, "ns/ep1-1 ep1 a=80/tcp 1.1.1.1", START + 1);
	set_at(*state, "ns/ep1-1 ep1 a=80/tcp 1.1.1.1", START + 2);
	assert_triggers(*state, "ns/ep1@1");
}

/* It has what the model has now, taken or not, and the model does not notice. */
static void excerpt_has_single_services_and_their_endpoints(void **state)
{
	static const char *const keys[] = {"ns1/svc1", "ns1/unknown"};
	struct model *model = *state;
	struct service_cidr *cidr = service_cidr_new("all");
	struct service *service = build_service("ns1/svc1", "10.96.0.1");
	struct model *excerpt;
	size_t n, at = 0;

	cidr->cidrs[cidr->n_cidrs++] = build_prefix("10.96.0.0/12");
	model_set_service_cidr(model, cidr);
	model_ignore_family(model, FAMILY_IPV6);
	build_port(service, "a", PROTOCOL_TCP, 80, 0);
	model_set_service(model, service);
	model_set_service(model, build_service("ns1/other", "10.96.0.2"));
	set(model, "ns1/s1 svc1 " PORTS " 10.0.1.1@host2,10.0.1.2@host1");
	take_all(model);
	set(model, "ns1/s2 svc1 " PORTS " 10.0.1.3@host1");
	excerpt = model_excerpt(model, keys, ARRAY_SIZE(keys));
	assert_int_equal(model_pending_slices(model, FAMILY_IPV4), 1);
	assert_string_equal(model_next_service(excerpt, &at)->key, "ns1/svc1");
	assert_null(model_next_service(excerpt, &at));
	assert_true(model_ignores_family(excerpt, FAMILY_IPV6));
	model_service_cidrs(excerpt, FAMILY_IPV4, &n);
	assert_int_equal(n, 1);
	assert_int_equal(take_all(excerpt), 1);
	assert_list(excerpt, "ns1/svc1", "a", "10.0.1.1:80 10.0.1.2:80* 10.0.1.3:80*");
	assert_list(model, "ns1/svc1", "a", "10.0.1.1:80 10.0.1.2:80*");
	model_free(excerpt);
}

static void services_that_would_lose_all_endpoints_are_counted(void **state)
{
	static const char *const lost[] = {"ns1/s1", "ns1/s2", "ns1/s3", "ns1/s5", "ns1/unknown"};
	static const char *const added[] = {"ns1/s2", "ns1/s4", "ns1/s7"};
	const struct model_slice_change none = {0};
	const struct model_slice_change change = {.lost = lost,
						  .n_lost = ARRAY_SIZE(lost),
						  .added = added,
						  .n_added = ARRAY_SIZE(added)};
	struct model *model = *state;
	size_t known, stranded;

	model_set_service(model, build_service("ns1/all", "10.96.0.1"));   /* loses both slices */
	model_set_service(model, build_service("ns1/part", "10.96.0.2"));  /* keeps one */
	model_set_service(model, build_service("ns1/empty", "10.96.0.3")); /* never had any */
	model_set_service(model, build_service("ns1/new", "10.96.0.4"));   /* had none before */
	set(model, "ns1/s1 all " PORTS " 10.0.1.1@host2");
	set(model, "ns1/s2 all " PORTS " fd00::1@host2");
	set(model, "ns1/s3 part " PORTS " 10.0.1.2@host2");
	set(model, "ns1/s4 part " PORTS " 10.0.1.3@host2");
	set(model, "ns1/s5 empty " PORTS " -");
	set(model, "ns1/s6 nobody " PORTS " 10.0.1.4@host2"); /* whose Service is not there */
	set(model, "ns1/s7 new " PORTS " 10.0.1.5@host2");
	model_count_stranded(model, &change, &known, &stranded);
	assert_int_equal(known, 2);
	assert_int_equal(stranded, 1);
	model_count_stranded(model, &none, &known, &stranded);
	assert_int_equal(known, 3);
	assert_int_equal(stranded, 0);
}

#define MODEL_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		MODEL_TEST(services_that_would_lose_all_endpoints_are_counted),
		MODEL_TEST(slice_update_new_slice),
		MODEL_TEST(slice_update_identical_slice),
		MODEL_TEST(slice_update_overlapping_slice),
		MODEL_TEST(slice_update_overlap_with_partial_ports),
		MODEL_TEST(slice_update_removal_of_a_known_slice),
		MODEL_TEST(slice_update_removal_of_an_unknown_slice),
		MODEL_TEST(slice_update_transitions_of_readiness),
		MODEL_TEST(checkout_changes_nothing),
		MODEL_TEST(checkout_changes_removed_port),
		MODEL_TEST(map_from_esc_same_name_replaces_earlier_content),
		MODEL_TEST(map_from_esc_other_services_do_not_leak_in),
		MODEL_TEST(cache_cleared_with_the_last_slice_not_before),
		MODEL_TEST(slice_added_and_removed_before_a_take_is_one_look),
		MODEL_TEST(slice_that_names_another_service_leaves_the_old_one),
		MODEL_TEST(slice_that_changes_family_leaves_the_old_one),
		MODEL_TEST(families_have_lists_of_their_own),
		MODEL_TEST(cached_objects_are_never_modified),
		MODEL_TEST(lists_in_use_outlive_changes),
		MODEL_TEST(trigger_time_single_add),
		MODEL_TEST(trigger_time_add_then_update),
		MODEL_TEST(trigger_time_add_two_then_modify_one),
		MODEL_TEST(trigger_time_without_annotation),
		MODEL_TEST(trigger_time_from_before_start),
		MODEL_TEST(trigger_time_add_then_delete),
		MODEL_TEST(trigger_time_add_delete_add_keeps_the_new_one),
		MODEL_TEST(trigger_time_delete_of_unknown),
		MODEL_TEST(trigger_time_of_identical_slice_is_not_recorded),
		MODEL_TEST(excerpt_has_single_services_and_their_endpoints),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */

/* When a node is ready, as looks at the rules say. Connections are made in tests/serving. */

#include <errno.h>
#include <event2/event.h>

#include "base/clock.h"
#include "build.h"
#include "daemon/readiness.h"
#include "model/model.h"

struct fixture {
	struct event_base *loop;
	struct model *model;
	struct readiness *readiness;
	size_t n_checks, n_failures;
	int answer; /* to each look, for IPv4 */
};

static void on_check(void *arg)
{
	struct fixture *f = arg;
	struct err err;

	f->n_checks++;
	err_set(&err, -ENOENT, "a rule is gone");
	readiness_checked(f->readiness, FAMILY_IPV4, f->answer, &err);
}

static void on_failed(void *arg, const char *probe)
{
	struct fixture *f = arg;

	assert_string_equal(probe, "rules");
	f->n_failures++;
}

static void set_up(struct fixture *f, enum readiness_probe probe)
{
	*f = (struct fixture){.loop = event_base_new(), .model = model_new("node-a", 0)};
	f->readiness = readiness_new(&(struct readiness_config){
		.loop = f->loop,
		.model = f->model,
		.probe = probe,
		.target = "default/kubernetes:https",
		.interval_ns = 3600 * CLOCK_NS_PER_SECOND,
		.check = on_check,
		.failed = on_failed,
		.arg = f,
	});
	readiness_add_family(f->readiness, FAMILY_IPV4);
}

static void tear_down(struct fixture *f)
{
	readiness_free(f->readiness);
	model_free(f->model);
	event_base_free(f->loop);
}

/* What is due now happens; why: NULL when the node must be ready. */
static void expect(struct fixture *f, const char *why)
{
	cleanup_free char *found = NULL;

	event_base_loop(f->loop, EVLOOP_NONBLOCK);
	found = readiness_why_not(f->readiness);
	if (why)
		assert_string_equal(found, why);
	else
		assert_null(found);
}

static void without_a_probe_a_node_is_always_ready(void **state attr_unused)
{
	struct fixture f;

	set_up(&f, READINESS_OFF);
	expect(&f, NULL);
	readiness_damaged(f.readiness, FAMILY_IPV4);
	readiness_synced(f.readiness, FAMILY_IPV4);
	expect(&f, NULL);
	assert_int_equal(f.n_checks, 0);
	tear_down(&f);
}

static void a_node_is_ready_when_its_first_sync_has_been_looked_at(void **state attr_unused)
{
	struct fixture f;

	set_up(&f, READINESS_RULES);
	expect(&f, "IPv4: no sync has succeeded yet");
	assert_int_equal(f.n_checks, 0);
	f.answer = 1;
	readiness_synced(f.readiness, FAMILY_IPV4); /* the look does not wait for its hour */
	expect(&f, NULL);
	assert_int_equal(f.n_checks, 1);
	readiness_synced(f.readiness, FAMILY_IPV4);
	expect(&f, NULL);
	assert_int_equal(f.n_checks, 1); /* all is well, nothing is hurried */
	tear_down(&f);
}

static void damage_counts_at_once_and_until_the_repair_is_seen(void **state attr_unused)
{
	struct fixture f;

	set_up(&f, READINESS_RULES);
	f.answer = 1;
	readiness_synced(f.readiness, FAMILY_IPV4);
	expect(&f, NULL);
	readiness_damaged(f.readiness, FAMILY_IPV4);
	expect(&f, "IPv4: rules that another program changed are not repaired yet");
	f.answer = 0;
	readiness_synced(f.readiness, FAMILY_IPV4);
	expect(&f, "IPv4: a rule is gone");
	assert_int_equal(f.n_failures, 1);
	f.answer = -EBUSY; /* nobody knows: it stays as it was */
	readiness_synced(f.readiness, FAMILY_IPV4);
	expect(&f, "IPv4: a rule is gone");
	f.answer = 1;
	readiness_synced(f.readiness, FAMILY_IPV4);
	expect(&f, NULL);
	tear_down(&f);
}

static void without_a_service_no_connection_is_tried(void **state attr_unused)
{
	struct fixture f;

	set_up(&f, READINESS_CONNECT);
	f.answer = 1;
	readiness_synced(f.readiness, FAMILY_IPV4);
	expect(&f, NULL);
	tear_down(&f);
}

static void targets_are_a_namespace_a_name_and_perhaps_a_port(void **state attr_unused)
{
	static const char *const good[] = {"default/kubernetes", "a/b:443", "a/b:https"};
	static const char *const bad[] = {"",      "web",     "a/", "/b",     "a/b:",      "a:b",
					  "a/b/c", "a/b:1:2", ":1", "a/:443", "a/b:80/tcp"};

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_true(readiness_target_is_good(good[i]));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(readiness_target_is_good(bad[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_probe_a_node_is_always_ready),
		cmocka_unit_test(a_node_is_ready_when_its_first_sync_has_been_looked_at),
		cmocka_unit_test(damage_counts_at_once_and_until_the_repair_is_seen),
		cmocka_unit_test(without_a_service_no_connection_is_tried),
		cmocka_unit_test(targets_are_a_namespace_a_name_and_perhaps_a_port),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

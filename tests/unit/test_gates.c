/* SPDX-License-Identifier: Apache-2.0 */

/* What kube-proxy of 1.35, 1.36 or 1.37 starts with is taken; what all of them refuse is refused. */

#include "build.h"
#include "config/gates.h"
#include "config/problems.h"

struct fixture {
	struct gates gates;
	struct problems problems;
	struct problems warnings;
};

static int set_up(void **state)
{
	struct fixture *f = xcalloc(1, sizeof(*f));

	gates_init(&f->gates);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	problems_done(&f->problems);
	problems_done(&f->warnings);
	free(f);
	return 0;
}

static void add_problem(void *arg, const char *text)
{
	problems_add(&((struct fixture *)arg)->problems, "%s", text);
}

static void add_warning(void *arg, const char *text)
{
	problems_add(&((struct fixture *)arg)->warnings, "%s", text);
}

static struct gates_report report_to(struct fixture *f)
{
	return (struct gates_report){add_problem, add_warning, f};
}

static void set(struct fixture *f, const char *name, bool on)
{
	const struct gates_report report = report_to(f);

	gates_set(&f->gates, name, on, &report);
}

static void check(struct fixture *f)
{
	const struct gates_report report = report_to(f);

	gates_check(&f->gates, &report);
}

static void assert_only(const struct problems *lines, const char *text)
{
	assert_int_equal(lines->n, 1);
	assert_string_equal(lines->v[0], text);
}

static bool knows(const char *name)
{
	for (size_t i = 0; i < gates_n; i++)
		if (streq(gates_table[i].name, name))
			return !gates_table[i].dropped;
	return false;
}

static void table_is_sorted_and_complete(void **state)
{
	size_t dropped[64] = {0};

	(void)state;
	for (size_t i = 0; i < gates_n; i++) {
		assert_true(i == 0 || strcmp(gates_table[i - 1].name, gates_table[i].name) < 0);
		dropped[gates_table[i].dropped]++;
	}
	assert_int_equal(dropped[0], 254);
	assert_int_equal(dropped[36], 9);
	assert_int_equal(dropped[37], 25);
	assert_int_equal(gates_n, 254 + 9 + 25);
	assert_int_equal(gates_n_needs, 72);
	for (size_t i = 0; i < gates_n_needs; i++)
		assert_true(knows(gates_needs[i].name) && knows(gates_needs[i].needs));
}

static void defaults_are_without_a_doubt(void **state)
{
	struct fixture *f = *state;

	check(f);
	assert_int_equal(f->problems.n + f->warnings.n, 0);
	assert_true(gates_on(&f->gates, "AllowServiceExternalIPs"));
	assert_true(gates_on(&f->gates, "KubeProxyIPVS"));
	assert_true(gates_on(&f->gates, "NFTablesNetlink"));
	assert_true(gates_on(&f->gates, "NativeHistograms"));
	assert_false(gates_on(&f->gates, "KubeProxyNFTablesLocalhostNodePorts"));
	assert_false(gates_on(&f->gates, "DRAFractionalCapacityRange"));
}

static void gates_of_a_stage_move_together_but_for_those_named(void **state)
{
	struct fixture *f = *state;

	set(f, "ComponentFlagz", true);
	set(f, "AllBeta", false);
	assert_true(gates_on(&f->gates, "ComponentFlagz"));
	assert_false(gates_on(&f->gates, "ComponentStatusz"));
	assert_true(gates_on(&f->gates, "AllowServiceExternalIPs"));
	assert_true(gates_on(&f->gates, "PreventStaticPodAPIReferences")); /* beta once, dropped */
	assert_int_equal(f->problems.n + f->warnings.n, 0);
}

static void dropped_gate_is_a_warning_that_names_the_version(void **state)
{
	struct fixture *f = *state;

	set(f, "SidecarContainers", true);
	assert_only(&f->warnings,
		    "SidecarContainers has no effect: Kubernetes 1.37 dropped this feature gate");
	problems_done(&f->warnings);
	set(f, "TopologyAwareHints", true);
	assert_only(&f->warnings,
		    "TopologyAwareHints has no effect: Kubernetes 1.36 dropped this feature gate");
	check(f);
	assert_int_equal(f->problems.n, 0);
}

/* In 1.36 the first needed the second, and the second GenericWorkload, which is off. */
static void dropped_gate_needs_nothing_any_more(void **state)
{
	struct fixture *f = *state;

	set(f, "WorkloadAwarePreemption", true);
	set(f, "GangScheduling", true);
	check(f);
	assert_int_equal(f->warnings.n, 2);
	assert_int_equal(f->problems.n, 0);
}

static void gate_that_was_always_locked_is_refused(void **state)
{
	struct fixture *f = *state;

	set(f, "MultiCIDRServiceAllocator", false);
	assert_only(&f->problems, "cannot set feature gate MultiCIDRServiceAllocator to false, "
				  "feature is locked to true");
	problems_done(&f->problems);
	set(f, "SidecarContainers", false);
	assert_only(&f->problems, "cannot set feature gate SidecarContainers to false, feature is "
				  "locked to true");
	set(f, "MultiCIDRServiceAllocator", true);
	assert_int_equal(f->problems.n, 1);
	assert_int_equal(f->warnings.n, 0);
}

static void gate_that_was_locked_later_keeps_its_value(void **state)
{
	struct fixture *f = *state;

	set(f, "HostnameOverride", false);
	assert_only(&f->warnings, "HostnameOverride=false has no effect: Kubernetes 1.37 locked "
				  "this feature gate to true");
	problems_done(&f->warnings);
	set(f, "GitRepoVolumeDriver", true);
	assert_only(&f->warnings, "GitRepoVolumeDriver=true has no effect: Kubernetes 1.36 locked "
				  "this feature gate to false");
	assert_true(gates_on(&f->gates, "HostnameOverride"));
	assert_false(gates_on(&f->gates, "GitRepoVolumeDriver"));
	assert_int_equal(f->problems.n, 0);
}

static void named_gate_without_its_need_is_refused(void **state)
{
	struct fixture *f = *state;

	set(f, "WorkloadWithJob", true);
	check(f);
	assert_only(
		&f->problems,
		"WorkloadWithJob is enabled, but depends on GenericWorkload, which is disabled");
	assert_int_equal(f->warnings.n, 0);
}

/* In 1.35 no gate needed AtomicFIFO, and six do since, all of which are on by default. */
static void gate_that_nobody_named_gives_way_to_its_need(void **state)
{
	struct fixture *f = *state;

	set(f, "AtomicFIFO", false);
	check(f);
	assert_int_equal(f->problems.n, 0);
	assert_int_equal(f->warnings.n, 6);
	assert_string_equal(f->warnings.v[0],
			    "feature gate NodeControllerLeaseCircuitBreaker is off, because it "
			    "depends on AtomicFIFO, which is disabled");
	assert_false(gates_on(&f->gates, "NodeControllerLeaseCircuitBreaker"));
}

/* CompositePodGroup needs TopologyAwareWorkloadScheduling, which needs GenericWorkload. */
static void giving_way_goes_on_to_those_that_needed_it(void **state)
{
	struct fixture *f = *state;

	set(f, "AllAlpha", true);
	check(f);
	assert_int_equal(f->problems.n, 0);
	assert_false(gates_on(&f->gates, "TopologyAwareWorkloadScheduling"));
	assert_false(gates_on(&f->gates, "CompositePodGroup"));
	assert_true(gates_on(&f->gates, "KubeProxyNFTablesLocalhostNodePorts"));
	set(f, "CompositePodGroup", true);
	check(f);
	assert_int_equal(f->problems.n, 2);
}

static void unknown_gate_is_refused_with_a_guess(void **state)
{
	struct fixture *f = *state;

	set(f, "Nothing", true);
	assert_only(&f->problems, "unrecognized feature gate: Nothing");
	problems_done(&f->problems);
	set(f, "KubeProxyIPVs", true);
	assert_only(&f->problems,
		    "unrecognized feature gate: KubeProxyIPVs; did you mean KubeProxyIPVS?");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(table_is_sorted_and_complete),
		TEST(defaults_are_without_a_doubt),
		TEST(gates_of_a_stage_move_together_but_for_those_named),
		TEST(dropped_gate_is_a_warning_that_names_the_version),
		TEST(dropped_gate_needs_nothing_any_more),
		TEST(gate_that_was_always_locked_is_refused),
		TEST(gate_that_was_locked_later_keeps_its_value),
		TEST(named_gate_without_its_need_is_refused),
		TEST(gate_that_nobody_named_gives_way_to_its_need),
		TEST(giving_way_goes_on_to_those_that_needed_it),
		TEST(unknown_gate_is_refused_with_a_guess),
	};

	return cmocka_run_group_tests_name("gates", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */

/* Programs are fakes, but for the real ones that put kubelet's chains into a namespace. */

#include "base/err.h"
#include "fake_tools.h"
#include "kernel/iptables_programs.h"
#include "kernel/iptables_variant.h"

#define NFT    "iptables v1.8.9 (nf_tables)\n"
#define LEGACY "iptables v1.8.9 (legacy)\n"

struct context {
	struct fake fake;
	struct iptables_programs programs;
	struct iptables_variant_found found;
	struct err err;
};

static int set_up(void **state)
{
	struct context *context = xcalloc(1, sizeof(*context));

	fake_start(&context->fake);
	*state = context;
	return 0;
}

/* A network namespace without any rule, for each test. */
static int set_up_network(void **state)
{
	set_up(state);
	if (unshare(CLONE_NEWNET) < 0) {
		print_message("no private network namespace: %s\n", strerror(errno));
		skip();
	}
	return 0;
}

static int tear_down(void **state)
{
	struct context *context = *state;

	iptables_programs_done(&context->programs);
	fake_stop(&context->fake);
	free(context);
	return 0;
}

/* Programs with the variant in their names, which say to be of this version. */
static void add_programs(struct context *context, const char *variant, const char *version)
{
	static const char *const kinds[] = {"", "-save", "-restore"};
	cleanup_free char *script = xasprintf("#!/bin/sh\nprintf '%s'\n", version);

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		cleanup_free char *name = xasprintf("bin/iptables-%s%s", variant, kinds[i]);

		fake_write(&context->fake, name, script);
	}
}

/* From here on only the fakes are found. */
static void hide_real_programs(struct context *context)
{
	cleanup_free char *path = xasprintf("%s/bin:/usr/bin:/bin", context->fake.folder);

	setenv("PATH", path, 1);
}

static int find_programs(struct context *context, enum iptables_variant wanted)
{
	iptables_programs_done(&context->programs);
	return iptables_programs_find(FAMILY_IPV4, wanted, &context->programs, &context->err);
}

static const char *restore_name(const struct context *context)
{
	return context->programs.names[IPTABLES_PROGRAM_RESTORE];
}

static void names_of_variants_read_back(void **state attr_unused)
{
	enum iptables_variant variant;

	for (enum iptables_variant i = 0; i < IPTABLES_VARIANT_COUNT; i++) {
		assert_true(iptables_variant_parse(iptables_variant_name(i), &variant));
		assert_int_equal(variant, i);
	}
	assert_false(iptables_variant_parse("", &variant));
	assert_false(iptables_variant_parse("nf_tables", &variant));
}

static void plain_programs_of_the_wanted_kind_come_first(void **state)
{
	struct context *context = *state;

	add_programs(context, "nft", NFT);
	fake_write(&context->fake, "version", NFT);
	assert_int_equal(find_programs(context, IPTABLES_VARIANT_NFT), 0);
	assert_string_equal(restore_name(context), "iptables-restore");
	assert_int_equal(context->programs.variant, IPTABLES_VARIANT_NFT);
	fake_write(&context->fake, "version", "iptables v1.6.1\n"); /* before there were two */
	assert_int_equal(find_programs(context, IPTABLES_VARIANT_LEGACY), 0);
	assert_string_equal(restore_name(context), "iptables-restore");
	assert_int_equal(context->programs.variant, IPTABLES_VARIANT_LEGACY);
}

static void plain_programs_of_the_other_kind_are_passed_over(void **state)
{
	struct context *context = *state;

	hide_real_programs(context);
	fake_write(&context->fake, "version", LEGACY);
	assert_int_equal(find_programs(context, IPTABLES_VARIANT_NFT), -ENOENT);
	assert_string_equal(context->err.text, "the programs of iptables variant nft: program "
					       "'iptables-nft' not found in PATH");
	add_programs(context, "nft", NFT);
	assert_int_equal(find_programs(context, IPTABLES_VARIANT_NFT), 0);
	assert_string_equal(restore_name(context), "iptables-nft-restore");
	assert_int_equal(find_programs(context, IPTABLES_VARIANT_AUTO), 0);
	assert_string_equal(restore_name(context), "iptables-restore");
	assert_int_equal(context->programs.variant, IPTABLES_VARIANT_LEGACY);
}

static void named_programs_serve_where_plain_ones_are_missing(void **state)
{
	struct context *context = *state;

	hide_real_programs(context);
	add_programs(context, "legacy", LEGACY);
	fake_remove(&context->fake, "bin/iptables-save");
	assert_int_equal(find_programs(context, IPTABLES_VARIANT_AUTO), -ENOENT);
	assert_int_equal(find_programs(context, IPTABLES_VARIANT_LEGACY), 0);
	assert_string_equal(restore_name(context), "iptables-legacy-restore");
}

static void plain_programs_that_do_not_answer_are_taken_as_they_are(void **state)
{
	struct context *context = *state;

	fake_answer(&context->fake, "*--version*", 1, false, "broken");
	assert_int_equal(find_programs(context, IPTABLES_VARIANT_LEGACY), 0);
	assert_string_equal(restore_name(context), "iptables-restore");
	assert_int_equal(context->programs.variant, IPTABLES_VARIANT_AUTO);
}

/* -- the node's variant */

static void assert_found(struct context *context, enum iptables_variant variant, bool doubtful,
			 const char *reason)
{
	iptables_variant_find(&context->found);
	assert_string_equal(context->found.reason, reason);
	assert_int_equal(context->found.variant, variant);
	assert_int_equal(context->found.doubtful, doubtful);
}

/* Runs a real program as kubelet would. */
static void run(const char *command)
{
	cleanup_free char *line = xasprintf("PATH=/usr/sbin:/sbin:/usr/bin:/bin %s", command);

	assert_int_equal(system(line), 0);
}

/* In a namespace of its own: asking makes the table. */
static void need_legacy(void)
{
	if (system("PATH=/usr/sbin:/sbin:/usr/bin:/bin unshare --net "
		   "iptables-legacy -t mangle -S >/dev/null 2>&1") == 0)
		return;
	print_message("no legacy iptables here\n");
	skip();
}

static bool has_output(const char *command)
{
	cleanup_free char *line =
		xasprintf("PATH=/usr/sbin:/sbin:/usr/bin:/bin; test -n \"$(%s)\"", command);

	return system(line) == 0;
}

static void without_a_hint_the_program_decides(void **state)
{
	struct context *context = *state;

	fake_write(&context->fake, "version", NFT);
	assert_found(context, IPTABLES_VARIANT_NFT, false, "the program iptables is of this kind");
	fake_write(&context->fake, "version", LEGACY);
	assert_found(context, IPTABLES_VARIANT_LEGACY, false,
		     "the program iptables is of this kind");
}

static void without_any_program_named_ones_decide(void **state)
{
	struct context *context = *state;

	hide_real_programs(context);
	fake_remove(&context->fake, "bin/iptables");
	assert_found(context, IPTABLES_VARIANT_NFT, false,
		     "there is no program iptables, or it does not tell its version");
	add_programs(context, "legacy", LEGACY);
	assert_found(context, IPTABLES_VARIANT_LEGACY, false,
		     "there is no program iptables, or it does not tell its version");
}

static void hint_in_nft_decides_against_the_program(void **state)
{
	struct context *context = *state;

	fake_write(&context->fake, "version", LEGACY);
	add_programs(context, "nft", NFT);
	run("iptables-nft -t mangle -N KUBE-OTHER");
	assert_found(context, IPTABLES_VARIANT_LEGACY, false,
		     "the program iptables is of this kind");
	run("ip6tables-nft -t mangle -N KUBE-KUBELET-CANARY");
	assert_found(context, IPTABLES_VARIANT_NFT, false,
		     "chain KUBE-KUBELET-CANARY of IPv6 is in table mangle");
	run("iptables-nft -t mangle -N KUBE-IPTABLES-HINT");
	assert_found(context, IPTABLES_VARIANT_NFT, false,
		     "chain KUBE-IPTABLES-HINT of IPv4 is in table mangle");
}

static void hint_in_another_table_is_none(void **state)
{
	struct context *context = *state;

	fake_write(&context->fake, "version", LEGACY);
	run("iptables-nft -t nat -N KUBE-IPTABLES-HINT");
	assert_found(context, IPTABLES_VARIANT_LEGACY, false,
		     "the program iptables is of this kind");
}

static void hint_in_legacy_decides_against_the_program(void **state)
{
	struct context *context = *state;

	need_legacy();
	fake_write(&context->fake, "version", NFT);
	run("ip6tables-legacy -t mangle -N KUBE-IPTABLES-HINT");
	assert_found(context, IPTABLES_VARIANT_LEGACY, false,
		     "chain KUBE-IPTABLES-HINT of IPv6 is in table mangle");
	run("iptables-nft -t mangle -N KUBE-KUBELET-CANARY");
	assert_found(context, IPTABLES_VARIANT_NFT, false,
		     "chain KUBE-KUBELET-CANARY of IPv4 is in table mangle");
}

static void hint_without_programs_for_it_is_doubtful(void **state)
{
	struct context *context = *state;

	hide_real_programs(context);
	fake_write(&context->fake, "version", LEGACY);
	run("iptables-nft -t mangle -N KUBE-IPTABLES-HINT");
	assert_found(context, IPTABLES_VARIANT_LEGACY, true,
		     "kubelet uses nft (chain KUBE-IPTABLES-HINT of IPv4), but there are no such "
		     "programs here");
}

static void looking_makes_no_table(void **state)
{
	struct context *context = *state;

	need_legacy();
	iptables_variant_find(&context->found);
	assert_false(has_output("nft list tables"));
	assert_false(has_output("cat /proc/net/ip_tables_names /proc/net/ip6_tables_names"));
	run("iptables-nft -t mangle -N KUBE-OTHER; iptables-legacy -t mangle -N KUBE-OTHER");
	assert_true(has_output("nft list tables")); /* so would it have shown */
	assert_true(has_output("cat /proc/net/ip_tables_names"));
}

int main(void)
{
#define TEST(name)    cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define NETWORK(name) cmocka_unit_test_setup_teardown(name, set_up_network, tear_down)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_variants_read_back),
		TEST(plain_programs_of_the_wanted_kind_come_first),
		TEST(plain_programs_of_the_other_kind_are_passed_over),
		TEST(named_programs_serve_where_plain_ones_are_missing),
		TEST(plain_programs_that_do_not_answer_are_taken_as_they_are),
		NETWORK(without_a_hint_the_program_decides),
		NETWORK(without_any_program_named_ones_decide),
		NETWORK(hint_in_nft_decides_against_the_program),
		NETWORK(hint_in_another_table_is_none),
		NETWORK(hint_in_legacy_decides_against_the_program),
		NETWORK(hint_without_programs_for_it_is_doubtful),
		NETWORK(looking_makes_no_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

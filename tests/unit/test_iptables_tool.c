/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"
#include "fake_tools.h"
#include "kernel/iptables_save.h"
#include "kernel/iptables_tool.h"
#include "kernel/process.h"
#include "kernel/restore_error.h"

static const char *const rule[] = {"-m", "comment",       "--comment", "two words",
				   "-j", "KUBE-SERVICES", NULL};

static struct iptables_command command(enum iptables_op op, const char *table, const char *chain)
{
	return (struct iptables_command){
		.op = op,
		.table = table,
		.chain = chain,
		.words = op == IPTABLES_CHECK || op == IPTABLES_PREPEND || op == IPTABLES_DELETE
				 ? rule
				 : NULL,
	};
}

struct context {
	struct fake fake;
	struct iptables_tool *tool;
	struct err err;
};

static int set_up(void **state)
{
	struct context *context = xcalloc(1, sizeof(*context));

	fake_start(&context->fake);
	*state = context;
	return 0;
}

static int tear_down(void **state)
{
	struct context *context = *state;

	iptables_tool_close(context->tool);
	fake_stop(&context->fake);
	free(context);
	return 0;
}

/* A tool with a loop of its own. */
static struct iptables_tool *open_tool(struct context *context, enum family family)
{
	iptables_tool_close(context->tool);
	assert_int_equal(iptables_tool_open(NULL, family, IPTABLES_VARIANT_AUTO, &context->tool,
					    &context->err),
			 0);
	free(fake_log(&context->fake));
	return context->tool;
}

static int call(struct context *context, enum iptables_op op, const char *table, const char *chain)
{
	const struct iptables_command it = command(op, table, chain);

	return iptables_tool_call(context->tool, &it, &context->err);
}

/* The answer of a save or restore. */
struct answer {
	int r;
	struct err err;
	struct text lines;
};

static void on_done(void *arg, int r, struct err *err)
{
	struct answer *answer = arg;

	answer->r = r;
	if (r < 0)
		answer->err = *err;
}

static void on_line(void *arg, const char *line, size_t length attr_unused)
{
	struct answer *answer = arg;
	size_t n = iptables_save_chain(line);

	if (n > 0)
		text_printf(&answer->lines, "%.*s ", (int)n, line + 1);
}

static int restore(struct context *context, const char *table, const char *text,
		   struct answer *answer)
{
	cleanup_text struct text input = {0};

	text_str(&input, text);
	iptables_tool_restore(context->tool, table, &input, on_done, answer);
	iptables_tool_finish(context->tool);
	return answer->r;
}

/* -- versions */

static void test_new_no_iptables(void **state)
{
	struct context *context = *state;

	setenv("PATH", "/nonexistent", 1);
	assert_int_equal(iptables_tool_open(NULL, FAMILY_IPV4, IPTABLES_VARIANT_AUTO,
					    &context->tool, &context->err),
			 -ENOENT);
	assert_string_equal(context->err.text, "program 'iptables' not found in PATH");
	assert_null(context->tool);
}

static void what_a_tool_says_of_its_version_changes_nothing(void **state)
{
	static const char *const versions[] = {"iptables v1.8.11 (nf_tables)\n", "no number\n", ""};
	struct context *context = *state;

	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		struct answer answer = {0};

		fake_write(&context->fake, "version", versions[i]);
		open_tool(context, FAMILY_IPV4);
		call(context, IPTABLES_CHECK, "nat", "OUTPUT");
		restore(context, NULL, "x", &answer);
		fake_expect_log(&context->fake, "iptables -w 5 -C OUTPUT -t nat -m comment "
						"--comment two words -j KUBE-SERVICES\n"
						"iptables-restore -w 5 --noflush --counters\n");
	}
}

static void a_tool_that_is_too_old_is_an_error_in_its_words(void **state)
{
	struct context *context = *state;
	struct answer answer = {0};

	open_tool(context, FAMILY_IPV4);
	fake_answer(&context->fake, "*-w 5*", 2, false,
		    "iptables-restore: unrecognized option '-w'");
	assert_int_equal(restore(context, NULL, "x", &answer), -EIO);
	assert_string_equal(answer.err.text,
			    "iptables-restore -w 5 --noflush --counters failed with status 2: "
			    "iptables-restore: unrecognized option '-w'");
}

/* -- commands and what their exit status means */

static void test_commands_exact_words_ipv4_and_ipv6(void **state)
{
	struct context *context = *state;

	open_tool(context, FAMILY_IPV4);
	call(context, IPTABLES_NEW_CHAIN, "nat", "KUBE-SERVICES");
	call(context, IPTABLES_CHECK, "nat", "OUTPUT");
	call(context, IPTABLES_PREPEND, "nat", "OUTPUT");
	call(context, IPTABLES_DELETE, "nat", "OUTPUT");
	call(context, IPTABLES_LIST, "nat", "POSTROUTING");
	call(context, IPTABLES_DELETE_CHAIN, "mangle", "KUBE-PROXY-CANARY");
	fake_expect_log(
		&context->fake,
		"iptables -w 5 -N KUBE-SERVICES -t nat\n"
		"iptables -w 5 -C OUTPUT -t nat -m comment --comment two words -j KUBE-SERVICES\n"
		"iptables -w 5 -I OUTPUT -t nat -m comment --comment two words -j KUBE-SERVICES\n"
		"iptables -w 5 -D OUTPUT -t nat -m comment --comment two words -j KUBE-SERVICES\n"
		"iptables -w 5 -S POSTROUTING -t nat\n"
		"iptables -w 5 -X KUBE-PROXY-CANARY -t mangle\n");
	open_tool(context, FAMILY_IPV6);
	call(context, IPTABLES_NEW_CHAIN, "filter", "KUBE-SERVICES");
	fake_expect_log(&context->fake, "ip6tables -w 5 -N KUBE-SERVICES -t filter\n");
}

static void test_ensure_chain_exit_1_means_exists(void **state)
{
	struct context *context = *state;

	for (int family = 0; family < FAMILY_COUNT; family++) {
		open_tool(context, (enum family)family);
		assert_int_equal(call(context, IPTABLES_NEW_CHAIN, "nat", "FOOBAR"), 1);
		assert_int_equal(call(context, IPTABLES_NEW_CHAIN, "nat", "FOOBAR"), 0);
		fake_answer(&context->fake, "*-N FOOBAR*", 2, true,
			    "Bad option\nTry `iptables -h' for more.");
		assert_int_equal(call(context, IPTABLES_NEW_CHAIN, "nat", "FOOBAR"), -EIO);
	}
	assert_string_equal(context->err.text,
			    "ip6tables -w 5 -N FOOBAR -t nat failed with status 2: Bad option");
}

static void test_check_rule_exit_semantics(void **state)
{
	struct context *context = *state;

	open_tool(context, FAMILY_IPV4);
	assert_int_equal(call(context, IPTABLES_CHECK, "nat", "OUTPUT"), 0);
	assert_int_equal(call(context, IPTABLES_PREPEND, "nat", "OUTPUT"), 1);
	assert_int_equal(call(context, IPTABLES_CHECK, "nat", "OUTPUT"), 1);
	fake_answer(&context->fake, "*-C OUTPUT*", 2, true, "");
	assert_int_equal(call(context, IPTABLES_CHECK, "nat", "OUTPUT"), -EIO);
	fake_answer(&context->fake, "*-C OUTPUT*", 4, true,
		    "Another app is currently holding the xtables lock.");
	assert_int_equal(call(context, IPTABLES_CHECK, "nat", "OUTPUT"), -EAGAIN);
	assert_non_null(strstr(context->err.text, "holding the xtables lock"));
}

static void test_delete_chain_and_rule_errors(void **state)
{
	struct context *context = *state;

	open_tool(context, FAMILY_IPV4);
	assert_int_equal(call(context, IPTABLES_DELETE_CHAIN, "nat", "FOOBAR"), -EIO);
	call(context, IPTABLES_NEW_CHAIN, "nat", "FOOBAR");
	assert_int_equal(call(context, IPTABLES_DELETE_CHAIN, "nat", "FOOBAR"), 1);
	fake_answer(&context->fake, "*-D*", 1, true, "gone");
	assert_int_equal(call(context, IPTABLES_DELETE, "nat", "OUTPUT"), -EIO);
	fake_answer(&context->fake, "*-I*", 1, true, "gone");
	assert_int_equal(call(context, IPTABLES_PREPEND, "nat", "OUTPUT"), -EIO);
}

static void test_a_tool_that_vanished_is_an_error(void **state)
{
	struct context *context = *state;

	open_tool(context, FAMILY_IPV4);
	fake_remove(&context->fake, "bin/iptables");
	assert_int_equal(call(context, IPTABLES_LIST, "nat", "POSTROUTING"), -ENOENT);
	assert_non_null(strstr(context->err.text, "starting iptables"));
	fake_write(&context->fake, "bin/iptables", fake_script);
	assert_int_equal(call(context, IPTABLES_LIST, "nat", "POSTROUTING"), 1);
}

/* -- save */

static void test_save_into_chain_names(void **state)
{
	struct context *context = *state;

	for (int family = 0; family < FAMILY_COUNT; family++) {
		struct answer answer = {0};
		cleanup_free char *names = NULL;

		open_tool(context, (enum family)family);
		fake_write(&context->fake, "save.nat",
			   "# Generated by iptables-save\n*nat\n:PREROUTING ACCEPT [1:2]\n"
			   ":KUBE-SVC-XPGD46QRK7WJZT7O - [0:0]\n-A PREROUTING -j "
			   "X\n:broken\nCOMMIT\n");
		iptables_tool_save(context->tool, "nat", on_line, on_done, &answer);
		iptables_tool_finish(context->tool);
		assert_int_equal(answer.r, 1);
		names = text_dup(&answer.lines);
		assert_string_equal(names, "PREROUTING KUBE-SVC-XPGD46QRK7WJZT7O ");
		text_done(&answer.lines);
		fake_expect_log(&context->fake, family == FAMILY_IPV4 ? "iptables-save -t nat\n"
								      : "ip6tables-save -t nat\n");
	}
}

static void test_save_into_failure(void **state)
{
	struct context *context = *state;
	struct answer answer = {0};

	open_tool(context, FAMILY_IPV4);
	fake_answer(&context->fake, "iptables-save*", 1, true, "cannot");
	iptables_tool_save(context->tool, "nat", on_line, on_done, &answer);
	iptables_tool_finish(context->tool);
	assert_int_equal(answer.r, -EIO);
	assert_string_equal(answer.err.text, "iptables-save -t nat failed with status 1: cannot");
}

/* -- restore */

static void test_restore_words_and_input(void **state)
{
	struct context *context = *state;
	struct answer answer = {0};
	cleanup_free char *input = NULL;

	open_tool(context, FAMILY_IPV4);
	assert_int_equal(restore(context, NULL, "*nat\nCOMMIT\n", &answer), 1);
	fake_expect_log(&context->fake, "iptables-restore -w 5 --noflush --counters\n");
	input = fake_read(&context->fake, "input");
	assert_string_equal(input, "*nat\nCOMMIT\n");
	assert_int_equal(restore(context, "nat", "*nat\nCOMMIT\n", &answer), 1);
	fake_expect_log(&context->fake, "iptables-restore -w 5 -T nat --noflush --counters\n");
	open_tool(context, FAMILY_IPV6);
	assert_int_equal(restore(context, "filter", "*filter\nCOMMIT\n", &answer), 1);
	fake_expect_log(&context->fake, "ip6tables-restore -w 5 -T filter --noflush --counters\n");
}

struct pieces {
	struct answer answer; /* first: on_done() gets the same argument */
	int given;
};

static bool on_more(void *arg, struct text *input)
{
	static const char *const pieces[] = {"*filter\nCOM", "MIT\n", "*nat\nCOMMIT\n"};
	struct pieces *all = arg;

	if (all->given == (int)ARRAY_SIZE(pieces))
		return false;
	text_str(input, pieces[all->given++]);
	return true;
}

static void test_restore_in_pieces(void **state)
{
	struct context *context = *state;
	struct pieces pieces = {0};
	cleanup_free char *input = NULL;

	open_tool(context, FAMILY_IPV4);
	iptables_tool_restore_pieces(context->tool, "nat", on_more, on_done, &pieces);
	iptables_tool_finish(context->tool);
	assert_int_equal(pieces.answer.r, 1);
	fake_expect_log(&context->fake, "iptables-restore -w 5 -T nat --noflush --counters\n");
	input = fake_read(&context->fake, "input");
	assert_string_equal(input, "*filter\nCOMMIT\n*nat\nCOMMIT\n");
}

static void test_restore_of_nothing_runs_nothing(void **state)
{
	struct context *context = *state;
	struct answer answer = {0};

	open_tool(context, FAMILY_IPV4);
	assert_int_equal(restore(context, NULL, "", &answer), 1);
	fake_expect_log(&context->fake, "");
}

static void test_restore_error_names_the_line(void **state)
{
	static const char *const input =
		"*filter\n:FOO - [0:0]\n-A FOO -m nosuch -j DROP\nCOMMIT\n";
	struct context *context = *state;
	struct answer answer = {0};

	open_tool(context, FAMILY_IPV4);
	fake_answer(&context->fake, "*restore*", 2, true,
		    "iptables-restore v1.8.9 (nf_tables): Couldn't load match `nosuch':No such "
		    "file or directory\n\n"
		    "Error occurred at line: 3\n"
		    "Try `iptables-restore -h' or 'iptables-restore --help' for more information.");
	assert_int_equal(restore(context, NULL, input, &answer), -EIO);
	assert_string_equal(answer.err.text, "iptables-restore -w 5 --noflush --counters, line 3 "
					     "'-A FOO -m nosuch -j DROP', failed "
					     "with status 2: iptables-restore v1.8.9 (nf_tables): "
					     "Couldn't load match `nosuch':No such "
					     "file or directory; Error occurred at line: 3");
	fake_answer(&context->fake, "*restore*", 1, true, "iptables-restore: line 2 failed");
	assert_int_equal(restore(context, NULL, input, &answer), -EIO);
	assert_non_null(strstr(answer.err.text, "line 2 ':FOO - [0:0]'"));
	fake_answer(&context->fake, "*restore*", 1, true, "COMMIT expected at line 9");
	assert_int_equal(restore(context, NULL, input, &answer), -EIO);
	assert_string_equal(answer.err.text,
			    "iptables-restore -w 5 --noflush --counters failed with status 1: "
			    "COMMIT expected at line 9");
}

static void test_restore_error_line_forms(void **state attr_unused)
{
	assert_int_equal(restore_error_line("iptables-restore: line 51 failed"), 51);
	assert_int_equal(restore_error_line("Error occurred at line: 3\n"), 3);
	assert_int_equal(
		restore_error_line("x (nf_tables): \nline 7: RULE_APPEND failed (No such file)"),
		7);
	assert_int_equal(restore_error_line("online users: line noise"), 0);
	assert_int_equal(restore_error_line(""), 0);
}

static void test_extract_lines_around_an_error(void **state attr_unused)
{
	struct restore_tail tail = {0};

	restore_tail_add(&tail, "Line1: 1\nLine2: 2\nLine", 22);
	restore_tail_add(&tail, "3: 3\n", 5);
	for (size_t i = 1; i <= 3; i++) {
		cleanup_free char *line = restore_tail_line(&tail, i);
		cleanup_free char *expected = xasprintf("Line%zu: %zu", i, i);

		assert_string_equal(line, expected);
	}
	assert_null(restore_tail_line(&tail, 0));
	assert_null(restore_tail_line(&tail, 4));
	restore_tail_done(&tail);
}

/* Of a very large input only the end is kept, and lines keep their numbers. */
static void test_extract_lines_of_a_large_input(void **state attr_unused)
{
	const size_t count = 400000;
	struct restore_tail tail = {0};
	cleanup_free char *last = NULL;
	char line[64];

	for (size_t i = 1; i <= count; i++) {
		int n = snprintf(line, sizeof(line), "-A KUBE-SERVICES number %zu\n", i);

		restore_tail_add(&tail, line, (size_t)n);
	}
	assert_true(tail.text.size <= RESTORE_TAIL_MAX);
	assert_null(restore_tail_line(&tail, 1));
	assert_null(restore_tail_line(&tail, tail.lines_dropped + tail.cut));
	last = restore_tail_line(&tail, count);
	assert_string_equal(last, "-A KUBE-SERVICES number 400000");
	for (size_t i = count - 9; i <= count; i += 3) {
		cleanup_free char *found = restore_tail_line(&tail, i);

		snprintf(line, sizeof(line), "-A KUBE-SERVICES number %zu", i);
		assert_string_equal(found, line);
	}
	restore_tail_done(&tail);
}

/* -- order and cancelling */

static void commands_of_a_tool_run_one_after_another(void **state)
{
	struct context *context = *state;
	struct answer answers[3] = {{0}};
	const struct iptables_command create = command(IPTABLES_NEW_CHAIN, "nat", "A");
	const struct iptables_command list = command(IPTABLES_LIST, "nat", "A");
	const struct iptables_command remove = command(IPTABLES_DELETE_CHAIN, "nat", "A");

	open_tool(context, FAMILY_IPV4);
	iptables_tool_start(context->tool, &create, on_done, &answers[0]);
	iptables_tool_start(context->tool, &list, on_done, &answers[1]);
	iptables_tool_start(context->tool, &remove, on_done, &answers[2]);
	assert_int_equal(answers[0].r, 0); /* nothing happens before the loop turns */
	iptables_tool_finish(context->tool);
	for (size_t i = 0; i < ARRAY_SIZE(answers); i++)
		assert_int_equal(answers[i].r, 1);
	fake_expect_log(&context->fake, "iptables -w 5 -N A -t nat\n"
					"iptables -w 5 -S A -t nat\n"
					"iptables -w 5 -X A -t nat\n");
}

static void a_cancelled_job_is_skipped(void **state)
{
	struct context *context = *state;
	struct answer answers[3] = {{0}};
	const struct iptables_command create = command(IPTABLES_NEW_CHAIN, "nat", "A");
	struct iptables_job *jobs[3];

	open_tool(context, FAMILY_IPV4);
	for (size_t i = 0; i < ARRAY_SIZE(jobs); i++)
		jobs[i] = iptables_tool_start(context->tool, &create, on_done, &answers[i]);
	iptables_tool_cancel(context->tool, jobs[0]);
	iptables_tool_cancel(context->tool, jobs[2]);
	iptables_tool_finish(context->tool);
	assert_int_equal(answers[1].r, 1);
	fake_expect_log(&context->fake, "iptables -w 5 -N A -t nat\n");
}

static void closing_with_jobs_makes_no_callbacks(void **state)
{
	struct context *context = *state;
	struct answer answer = {.r = 77};
	const struct iptables_command create = command(IPTABLES_NEW_CHAIN, "nat", "A");

	open_tool(context, FAMILY_IPV4);
	iptables_tool_start(context->tool, &create, on_done, &answer);
	iptables_tool_start(context->tool, &create, on_done, &answer);
	context->tool = iptables_tool_close(context->tool);
	assert_int_equal(answer.r, 77);
}

#define tool_test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		tool_test(test_new_no_iptables),
		tool_test(what_a_tool_says_of_its_version_changes_nothing),
		tool_test(a_tool_that_is_too_old_is_an_error_in_its_words),
		tool_test(test_commands_exact_words_ipv4_and_ipv6),
		tool_test(test_ensure_chain_exit_1_means_exists),
		tool_test(test_check_rule_exit_semantics),
		tool_test(test_delete_chain_and_rule_errors),
		tool_test(test_a_tool_that_vanished_is_an_error),
		tool_test(test_save_into_chain_names),
		tool_test(test_save_into_failure),
		tool_test(test_restore_words_and_input),
		tool_test(test_restore_in_pieces),
		tool_test(test_restore_of_nothing_runs_nothing),
		tool_test(test_restore_error_names_the_line),
		cmocka_unit_test(test_restore_error_line_forms),
		cmocka_unit_test(test_extract_lines_around_an_error),
		cmocka_unit_test(test_extract_lines_of_a_large_input),
		tool_test(commands_of_a_tool_run_one_after_another),
		tool_test(a_cancelled_job_is_skipped),
		tool_test(closing_with_jobs_makes_no_callbacks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/iptables/restore/rules_check.h"

#include <errno.h>
#include <stdlib.h>

#include "backends/iptables/fixed_rules.h"
#include "backends/iptables/ruleset.h"
#include "base/arena.h"
#include "xtables/restore_writer.h"

struct rules_check {
	struct iptables_tool *tool;
	const struct settings *settings;
	rules_check_fn *done;
	void *arg;
	struct iptables_job *job; /* NULL: none runs */
	size_t at;                /* of the rule in hand: jumps, then samples */
};

static bool rule_at(const struct rules_check *check, struct rule *ret)
{
	if (check->at >= RULESET_JUMPS)
		return fixed_rules_sample(check->settings, check->at - RULESET_JUMPS, ret);
	ruleset_jump(check->at, ret);
	return true;
}

static void on_checked(void *arg, int r, struct err *err);

static void check_rule(struct rules_check *check, const struct rule *rule)
{
	cleanup_arena struct arena *arena = arena_new(1024);
	size_t unused;
	const struct iptables_command command = {
		.op = IPTABLES_CHECK,
		.table = table_name(rule->table),
		.chain = rule->chain,
		.words = (const char *const *)restore_rule_argv(rule, arena, &unused),
	};

	check->job = iptables_tool_start(check->tool, &command, on_checked, check);
}

static void on_checked(void *arg, int r, struct err *err)
{
	struct rules_check *check = arg;
	struct rule rule;
	struct err why;

	check->job = NULL;
	if (r < 0) {
		check->done(check->arg, r, err);
		return;
	}
	if (r == 0) {
		rule_at(check, &rule);
		err_set(&why, -ENOENT, "chain %s of table %s has lost a rule of ours", rule.chain,
			table_name(rule.table));
		check->done(check->arg, 0, &why);
		return;
	}
	check->at++;
	if (rule_at(check, &rule))
		check_rule(check, &rule);
	else
		check->done(check->arg, 1, NULL);
}

void rules_check_start(struct rules_check *check)
{
	struct rule rule;

	if (check->job)
		return;
	check->at = 0;
	rule_at(check, &rule);
	check_rule(check, &rule);
}

struct rules_check *rules_check_new(struct iptables_tool *tool, const struct settings *settings,
				    rules_check_fn *done, void *arg)
{
	struct rules_check *check = xcalloc(1, sizeof(*check));

	*check = (struct rules_check){.tool = tool, .settings = settings, .done = done, .arg = arg};
	return check;
}

struct rules_check *rules_check_free(struct rules_check *check)
{
	if (!check)
		return NULL;
	if (check->job)
		iptables_tool_cancel(check->tool, check->job);
	free(check);
	return NULL;
}

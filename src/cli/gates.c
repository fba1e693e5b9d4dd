/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/gates.h"

#include <assert.h>
#include <ctype.h>

#include "cli/nearest.h"

enum stage {
	STAGE_ALPHA = 0,
	STAGE_BETA,
	STAGE_GA,
	STAGE_COUNT,
};

static const struct {
	const char *name;
	enum stage stage;
	bool on;
	bool locked;
} table[] = {
	[GATE_ALLOW_SERVICE_EXTERNAL_IPS] = {"AllowServiceExternalIPs", STAGE_GA, true, false},
	[GATE_PREFER_SAME_TRAFFIC_DISTRIBUTION] = {"PreferSameTrafficDistribution", STAGE_GA, true,
						   true},
	[GATE_MULTI_CIDR_SERVICE_ALLOCATOR] = {"MultiCIDRServiceAllocator", STAGE_GA, true, true},
	[GATE_COMPONENT_FLAGZ] = {"ComponentFlagz", STAGE_BETA, true, false},
	[GATE_COMPONENT_STATUSZ] = {"ComponentStatusz", STAGE_BETA, true, false},
	[GATE_NATIVE_HISTOGRAMS] = {"NativeHistograms", STAGE_ALPHA, false, false},
	[GATE_CONTEXTUAL_LOGGING] = {"ContextualLogging", STAGE_BETA, true, false},
	[GATE_LOGGING_ALPHA_OPTIONS] = {"LoggingAlphaOptions", STAGE_ALPHA, false, false},
	[GATE_LOGGING_BETA_OPTIONS] = {"LoggingBetaOptions", STAGE_BETA, true, false},
};

static_assert(ARRAY_SIZE(table) == GATE_COUNT, "each gate has a row");

/* A gate that is named itself is not moved by AllAlpha and AllBeta, in whatever order they come. */
struct parse {
	struct gates *gates;
	bool named[GATE_COUNT];
	bool has_all[STAGE_COUNT];
	bool all[STAGE_COUNT];
	struct problems *problems;
};

static char *trimmed(const char *s, size_t n)
{
	while (n > 0 && isspace((unsigned char)s[0])) {
		s++;
		n--;
	}
	while (n > 0 && isspace((unsigned char)s[n - 1]))
		n--;
	return xasprintf("%.*s", (int)n, s);
}

static void unknown_gate(const char *name, struct problems *problems)
{
	struct nearest nearest;

	nearest_init(&nearest, name);
	for (size_t i = 0; i < GATE_COUNT; i++)
		nearest_offer(&nearest, table[i].name);
	if (nearest.best)
		problems_add(problems, "--feature-gates: unknown gate %s; did you mean %s?", name,
			     nearest.best);
	else
		problems_add(problems, "--feature-gates: unknown gate %s", name);
}

static void set_gate(struct parse *parse, const char *name, bool on)
{
	if (streq(name, "AllAlpha") || streq(name, "AllBeta")) {
		enum stage stage = streq(name, "AllBeta") ? STAGE_BETA : STAGE_ALPHA;

		parse->has_all[stage] = true;
		parse->all[stage] = on;
		return;
	}
	for (size_t i = 0; i < GATE_COUNT; i++) {
		if (!streq(name, table[i].name))
			continue;
		if (table[i].locked && on != table[i].on)
			problems_add(parse->problems,
				     "--feature-gates: %s is always %s and cannot be changed", name,
				     table[i].on ? "true" : "false");
		parse->gates->on[i] = on;
		parse->named[i] = true;
		return;
	}
	unknown_gate(name, parse->problems);
}

static void parse_pair(struct parse *parse, const char *pair)
{
	size_t n = strcspn(pair, "=");
	cleanup_free char *name = trimmed(pair, n);
	cleanup_free char *value = NULL;
	bool on;

	if (pair[n] == '\0' && name[0] == '\0')
		return;
	if (pair[n] == '\0') {
		problems_add(parse->problems, "--feature-gates: \"%s\" lacks =true or =false",
			     name);
		return;
	}
	value = trimmed(pair + n + 1, strlen(pair + n + 1));
	if (flag_bool_parse(value, &on) < 0)
		problems_add(parse->problems, "--feature-gates: %s=%s is not true or false", name,
			     value);
	else
		set_gate(parse, name, on);
}

void gates_parse(const struct flag_list *given, struct gates *ret, struct problems *problems)
{
	struct parse parse = {.gates = ret, .problems = problems};

	for (size_t i = 0; i < GATE_COUNT; i++)
		ret->on[i] = table[i].on;
	for (size_t i = 0; i < given->n; i++)
		parse_pair(&parse, given->v[i]);
	for (size_t i = 0; i < GATE_COUNT; i++)
		if (parse.has_all[table[i].stage] && !parse.named[i])
			ret->on[i] = parse.all[table[i].stage];
}

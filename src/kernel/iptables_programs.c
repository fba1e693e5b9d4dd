/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/iptables_programs.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "kernel/process.h"

#define VERSION_TIMEOUT (30 * CLOCK_NS_PER_SECOND)
#define VERSION_OUTPUT  ((size_t)64 * 1024)

#define NAMES(program, variant)                                                      \
	{                                                                            \
		program variant, program variant "-save", program variant "-restore" \
	}

static const char *const names[FAMILY_COUNT][IPTABLES_VARIANT_COUNT][IPTABLES_PROGRAM_COUNT] = {
	[FAMILY_IPV4] = {NAMES("iptables", ""), NAMES("iptables", "-nft"),
			 NAMES("iptables", "-legacy")},
	[FAMILY_IPV6] = {NAMES("ip6tables", ""), NAMES("ip6tables", "-nft"),
			 NAMES("ip6tables", "-legacy")},
};

static void version_done(void *arg, const struct process_result *result)
{
	char **answer = arg;

	if (result->error == 0 && result->exit_code == 0)
		*answer = xasprintf("%s\n%s", result->output, result->errors);
}

/* The programs say what they are since 1.8; before that there was only one kind. */
static int ask_variant(const struct iptables_programs *programs, enum iptables_variant *ret,
		       struct err *err)
{
	const char *argv[] = {programs->names[IPTABLES_PROGRAM_COMMAND], "--version", NULL};
	cleanup_free char *answer = NULL;
	const struct process_spec spec = {
		.path = programs->paths[IPTABLES_PROGRAM_COMMAND],
		.argv = argv,
		.output_max = VERSION_OUTPUT,
		.timeout_ns = VERSION_TIMEOUT,
		.done = version_done,
		.arg = &answer,
	};
	int r = process_run(&spec, err);

	if (r < 0 || !answer)
		return r;
	*ret = strstr(answer, "(nf_tables)") ? IPTABLES_VARIANT_NFT : IPTABLES_VARIANT_LEGACY;
	return 0;
}

static int find_named(enum family family, enum iptables_variant variant,
		      struct iptables_programs *ret, struct err *err)
{
	int r = 0;

	*ret = (struct iptables_programs){0};
	for (size_t i = 0; i < IPTABLES_PROGRAM_COUNT && r >= 0; i++) {
		ret->names[i] = names[family][variant][i];
		r = process_find(ret->names[i], &ret->paths[i], err);
	}
	if (r >= 0)
		r = ask_variant(ret, &ret->variant, err);
	return r;
}

int iptables_programs_find(enum family family, enum iptables_variant wanted,
			   struct iptables_programs *ret, struct err *err)
{
	int plain = find_named(family, IPTABLES_VARIANT_AUTO, ret, err);
	struct err named;
	int r;

	if (wanted == IPTABLES_VARIANT_AUTO)
		return plain;
	if (plain >= 0 && (ret->variant == wanted || ret->variant == IPTABLES_VARIANT_AUTO))
		return plain;
	iptables_programs_done(ret);
	r = find_named(family, wanted, ret, &named);
	if (r >= 0)
		return r;
	if (plain < 0)
		return plain; /* there are none at all: the plain name is what to look for */
	*err = named;
	return err_wrap(err, r, "the programs of iptables variant %s",
			iptables_variant_name(wanted));
}

static void use_if_there(const char *name, void (*use)(void *arg, const char *path), void *arg)
{
	cleanup_free char *path = NULL;
	struct err ignored;

	if (process_find(name, &path, &ignored) >= 0)
		use(arg, path);
}

void iptables_programs_each(void (*use)(void *arg, const char *path), void *arg)
{
	for (enum family family = 0; family < FAMILY_COUNT; family++)
		for (size_t variant = 0; variant < ARRAY_SIZE(names[family]); variant++)
			for (size_t i = 0; i < IPTABLES_PROGRAM_COUNT; i++)
				use_if_there(names[family][variant][i], use, arg);
}

void iptables_programs_done(struct iptables_programs *programs)
{
	for (size_t i = 0; i < IPTABLES_PROGRAM_COUNT; i++)
		free(programs->paths[i]);
	*programs = (struct iptables_programs){0};
}

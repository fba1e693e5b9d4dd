/* SPDX-License-Identifier: Apache-2.0 */

#include <stdio.h>

#include "backends/backend.h"
#include "cli/options.h"
#include "cli/proxying.h"

/* 1: cleaned, 0: the family is not usable on this host (reason in *err), negative: failed. */
static int clean_family(enum family family, enum iptables_variant variant, struct err *err)
{
	int r = backend_nftables.cleanup(family, variant, err);

	if (r < 0)
		return r;
	r = backend_iptables.usable(family, variant, err);
	if (r <= 0)
		return r;
	r = backend_iptables.cleanup(family, variant, err);
	return r < 0 ? r : 1;
}

/* A family that the host does not have is said and no failure, for it can hold no rules that work;
 * but one of them it must have. */
int cmd_cleanup_all(const char *who, const struct config *config)
{
	enum iptables_variant variant = proxying_find_variant(config, 2);
	int exit_code = EXIT_DONE;
	size_t n_usable = 0;
	bool usable[FAMILY_COUNT];
	struct err errors[FAMILY_COUNT];

	for (enum family family = 0; family < FAMILY_COUNT; family++) {
		int r = clean_family(family, variant, &errors[family]);

		usable[family] = r != 0;
		n_usable += r != 0;
		if (r < 0) {
			fprintf(stderr, "%s: removing the %s rules: %s\n", who, family_name(family),
				errors[family].text);
			exit_code = EXIT_FAILED;
		}
	}
	if (n_usable == 0) {
		fprintf(stderr, "%s: no rules can be read on this host: %s\n", who,
			errors[FAMILY_IPV4].text);
		exit_code = EXIT_FAILED;
	}
	for (enum family family = 0; n_usable > 0 && family < FAMILY_COUNT; family++)
		if (!usable[family])
			fprintf(stderr, "%s: no %s rules can be read on this host: %s\n", who,
				family_name(family), errors[family].text);
	return exit_code;
}

int cmd_cleanup(int argc, char **argv)
{
	cleanup_options struct options options = {0};
	cleanup_problems struct problems problems = {0};
	cleanup_config struct config config = {0};
	int r = command_parse(COMMAND_CLEANUP, argc, argv, &options);

	if (r != EXIT_DONE)
		return r == COMMAND_ANSWERED ? EXIT_DONE : r;
	if (options_config(&options, &config, &problems) < 0) {
		problems_print(&problems, "portolan cleanup");
		return EXIT_USAGE;
	}
	log_setup(config.log_format, config.verbosity);
	return cmd_cleanup_all("portolan cleanup", &config);
}

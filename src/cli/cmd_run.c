/* SPDX-License-Identifier: Apache-2.0 */

#include <stdio.h>

#include "cli/daemon.h"
#include "cli/options.h"

static bool given(const char *text)
{
	return text && *text;
}

/* kube-proxy's exit code is 1 for every error, so wrong usage is no exception here. */
int cmd_run(int argc, char **argv)
{
	cleanup_options struct options options = {0};
	cleanup_problems struct problems problems = {0};
	cleanup_config struct config config = {0};
	int r = command_parse(COMMAND_RUN, argc, argv, &options);

	if (r != EXIT_DONE)
		return r == COMMAND_ANSWERED ? EXIT_DONE : r;
	options_config(&options, &config, &problems);
	if (given(options.manifests) && (given(options.kubeconfig) || given(options.master)))
		problems_add(&problems,
			     "--manifests cannot be combined with --kubeconfig or --master");
	if (problems.n > 0) {
		problems_print(&problems, "portolan run");
		return EXIT_FAILED;
	}
	log_setup(config.log_format, config.verbosity);
	if (options.cleanup)
		return cmd_cleanup_all("portolan run");
	return daemon_run(&(struct daemon_input){
		.config = &config,
		.manifests = options.manifests,
		.kubeconfig = options.kubeconfig,
		.master = options.master,
		.init_only = options.init_only,
	});
}

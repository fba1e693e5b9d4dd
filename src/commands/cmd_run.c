/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <stdio.h>

#include "commands/command.h"
#include "config/kubeproxy_config.h"
#include "daemon/daemon.h"

static void log_doubts(const struct config *config)
{
	cleanup_problems struct problems idle = {0};
	cleanup_text struct text names = {0};
	cleanup_free char *list = NULL;

	for (size_t i = 0; i < config->warnings.n; i++)
		log_warning("The configuration has a part without effect",
			    KV("reason", LOG_STR(config->warnings.v[i])));
	kubeproxy_config_idle_fields(config->effective, &idle);
	for (size_t i = 0; i < idle.n; i++)
		text_printf(&names, "%s%s", i > 0 ? "," : "", idle.v[i]);
	list = text_dup(&names);
	if (idle.n > 0)
		log_info("Accepted settings that change nothing here", KV("fields", LOG_STR(list)));
}

static int write_config(const char *path, const struct config *config)
{
	cleanup_text struct text text = {0};
	cleanup_free char *content = NULL;
	FILE *file = fopen(path, "we");
	bool good;

	kubeproxy_config_print(config->effective, &text);
	content = text_dup(&text);
	good = file && fputs(content, file) >= 0;
	if (file && fclose(file) != 0)
		good = false;
	if (!good) {
		fprintf(stderr, "portolan run: --write-config-to: %s: %s\n", path, strerror(errno));
		return EXIT_FAILED;
	}
	log_info("Wrote configuration", KV("file", LOG_STR(path)));
	return EXIT_DONE;
}

static const char *kubeconfig(const struct config *config)
{
	return config->effective ? config->effective->message->clientconnection->kubeconfig : NULL;
}

/* kube-proxy's exit code is 1 for every error, so wrong usage is no exception here. */
int cmd_run(struct call *call)
{
	const struct options *options = &call->options;
	const struct config *config = &call->config;
	int r;

	if (is_given(options->manifests) &&
	    (is_given(options->master) ||
	     (!is_given(options->config) && is_given(kubeconfig(config)))))
		problems_add(&call->problems,
			     "--manifests cannot be combined with --kubeconfig or --master");
	if (call_is_wrong(call))
		return EXIT_FAILED;
	if (!is_given(options->write_config_to) && !options->cleanup)
		log_begin();
	log_doubts(config);
	if (is_given(options->write_config_to))
		return write_config(options->write_config_to, config);
	if (options->cleanup)
		return cmd_cleanup_all(call);
	r = daemon_run(&(struct daemon_input){
		.options = options,
		.config = config,
		.manifests = options->manifests,
		.kubeconfig = kubeconfig(config),
		.master = options->master,
		.init_only = options->init_only,
		.sandbox = config->sandbox,
	});
	log_end();
	return r;
}

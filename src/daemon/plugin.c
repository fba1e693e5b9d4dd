/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/plugin.h"

#include <stdlib.h>

#include "base/clock.h"
#include "kernel/process.h"

#define PLUGIN_TIMEOUT_S  60
#define PLUGIN_OUTPUT_MAX (1u << 20)

static void on_done(void *arg, const struct process_result *result)
{
	struct plugin *plugin = arg;
	cleanup_free char *name = take(plugin->name);
	struct err err = {0};
	int r = process_check(name, result, &err);

	plugin->process = NULL;
	plugin->done(plugin->done_arg, r, result->output, result->n_output, err.text);
}

void plugin_done(struct plugin *plugin)
{
	free(take(plugin->path));
	plugin->argv = util_free_words(plugin->argv);
	plugin->env = util_free_words(plugin->env);
}

static void remember(struct plugin *plugin, const char *path, const char *const *argv,
		     const char *const *env)
{
	plugin_done(plugin);
	plugin->path = xstrdup(path);
	plugin->argv = util_copy_words(argv);
	plugin->env = util_copy_words(env);
}

/* One that was found is not looked for again: it may be hidden from the user of the sandbox. */
static int find(const struct plugin *plugin, const char *name, char **ret, struct err *err)
{
	if (!plugin->path || !streq(plugin->argv[0], name))
		return process_find(name, ret, err);
	*ret = xstrdup(plugin->path);
	return 0;
}

static int run(void *arg, const char *const *argv, const char *const *env,
	       credentials_output_fn *done, void *done_arg, struct err *err)
{
	struct plugin *plugin = arg;
	cleanup_free char *path = NULL;
	cleanup_free char *name = xstrdup(argv[0]);
	int r = find(plugin, argv[0], &path, err);

	if (r < 0)
		return r;
	r = process_start(plugin->loop,
			  &(struct process_spec){
				  .path = path,
				  .argv = argv,
				  .env = env,
				  .output_max = PLUGIN_OUTPUT_MAX,
				  .timeout_ns = PLUGIN_TIMEOUT_S * CLOCK_NS_PER_SECOND,
				  .done = on_done,
				  .arg = plugin,
			  },
			  &plugin->process, err);
	if (r < 0)
		return r;
	remember(plugin, path, argv, env);
	plugin->name = take(name);
	plugin->done = done;
	plugin->done_arg = done_arg;
	return 0;
}

static void cancel(void *arg)
{
	struct plugin *plugin = arg;

	process_cancel(take(plugin->process));
	free(take(plugin->name));
}

struct credentials_runner plugin_runner(struct plugin *plugin, struct event_base *loop)
{
	plugin->loop = loop;
	return (struct credentials_runner){.run = run, .cancel = cancel, .arg = plugin};
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "config/reload.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/text.h"
#include "config/config_watch.h"

struct reload {
	const struct options *options;
	const struct config *config; /* in force */
	struct config *owned;        /* the same, when it is not the one of the start */
	char *problem;               /* with the file as it is now; NULL: none */
	struct config_watch *watch;
	const struct reload_ops *ops;
	void *arg;
};

static void free_config(struct config *config)
{
	if (config)
		config_done(config);
	free(config);
}

static void refuse(struct reload *reload, const char *reason)
{
	if (reload->problem && streq(reload->problem, reason))
		return;
	free(reload->problem);
	reload->problem = xstrdup(reason);
	log_error("The changed configuration file cannot be used, keeping the old configuration",
		  KV("err", LOG_STR(reason)));
}

static char *join(const struct problems *problems, const char *separator)
{
	cleanup_text struct text text = {0};

	for (size_t i = 0; i < problems->n; i++)
		text_printf(&text, "%s%s", i > 0 ? separator : "", problems->v[i]);
	return text_dup(&text);
}

static void change(struct reload *reload, struct config *config, const char *fields, bool live)
{
	struct err err;

	if (!live || !reload->ops->can_change(reload->arg, config)) {
		log_error("The configuration file changed, a new start is needed",
			  KV("fields", LOG_STR(fields)));
		reload->ops->end(reload->arg);
	} else if (reload->ops->change(reload->arg, config, &err) < 0) {
		refuse(reload, err.text);
	} else {
		free_config(reload->owned);
		reload->config = reload->owned = config;
		log_info("The configuration file changed, applying it",
			 KV("fields", LOG_STR(fields)));
	}
}

static void on_changed(void *arg)
{
	struct reload *reload = arg;
	struct config *config = xcalloc(1, sizeof(*config));
	cleanup_problems struct problems problems = {0};
	cleanup_problems struct problems fields = {0};
	cleanup_free char *list = NULL;
	bool live;

	if (options_config(reload->options, config, &problems) < 0) {
		list = join(&problems, "; ");
		refuse(reload, list);
	} else {
		live = config_compare(reload->config, config, &fields);
		if (fields.n == 0 && reload->problem)
			log_info("The configuration file can be used again, nothing in it changed");
		free(take(reload->problem));
		list = join(&fields, ",");
		if (fields.n > 0)
			change(reload, config, list, live);
	}
	if (reload->owned != config)
		free_config(config);
}

int reload_new(struct event_base *loop, const struct options *options, const struct config *config,
	       const struct reload_ops *ops, void *arg, struct reload **ret, struct err *err)
{
	struct reload *reload = xcalloc(1, sizeof(*reload));
	int r;

	reload->options = options;
	reload->config = config;
	reload->ops = ops;
	reload->arg = arg;
	r = config_watch_new(loop, options->config, on_changed, reload, &reload->watch, err);
	if (r < 0) {
		reload_free(reload);
		return r;
	}
	*ret = reload;
	return 0;
}

struct reload *reload_free(struct reload *reload)
{
	if (!reload)
		return NULL;
	config_watch_free(reload->watch);
	free_config(reload->owned);
	free(reload->problem);
	free(reload);
	return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/saved_rules.h"

#include <stdlib.h>

#include "base/map.h"
#include "kernel/iptables_tool.h"

struct saved_rules {
	struct map chains; /* by key */
	char table[32];    /* whose lines are being read */
};

struct saved_rules *saved_rules_new(void)
{
	return xcalloc(1, sizeof(struct saved_rules));
}

struct saved_rules *saved_rules_free(struct saved_rules *saved)
{
	struct saved_chain *chain;
	size_t at = 0;

	if (!saved)
		return NULL;
	while ((chain = map_next(&saved->chains, &at))) {
		for (size_t i = 0; i < chain->n; i++) {
			free(chain->lines[i].plain);
			free(chain->lines[i].text);
		}
		free(chain->lines);
		free(chain->key);
		free(chain);
	}
	map_done(&saved->chains);
	free(saved);
	return NULL;
}

void saved_rules_cleanup(struct saved_rules **saved)
{
	saved_rules_free(*saved);
}

const struct saved_chain *saved_rules_chain(const struct saved_rules *saved, const char *table,
					    const char *name)
{
	cleanup_free char *key = xasprintf("%s %s", table, name);

	return map_get(&saved->chains, key);
}

const struct saved_chain *saved_rules_next(const struct saved_rules *saved, size_t *at)
{
	return map_next(&saved->chains, at);
}

static struct saved_chain *open_chain(struct saved_rules *saved, const char *name, size_t n)
{
	char *key = xasprintf("%s %.*s", saved->table, (int)n, name);
	struct saved_chain *chain = map_get(&saved->chains, key);

	if (chain) {
		free(key);
		return chain;
	}
	chain = xcalloc(1, sizeof(*chain));
	chain->key = key;
	chain->name = key + strlen(saved->table) + 1;
	map_set(&saved->chains, chain->key, chain);
	return chain;
}

/* Cuts a piece out of a line, once. */
static void cut(char *line, const char *from, size_t n)
{
	char *at = strstr(line, from);

	if (at)
		memmove(at, at + n, strlen(at + n) + 1);
}

char *saved_rules_plain(const char *line)
{
	static const char counter[] = " -m nfacct --nfacct-name ";
	char *copy = xstrdup(line);
	const char *at = strstr(copy, counter);

	cut(copy, " --random-fully", strlen(" --random-fully"));
	if (at) {
		size_t n = strlen(counter);

		n += strspn(at + n, " ");
		n += strcspn(at + n, " ");
		cut(copy, counter, n);
	}
	return copy;
}

void saved_rules_line(struct saved_rules *saved, const char *line)
{
	struct saved_chain *chain;

	if (line[0] == '*') {
		size_t n = strcspn(line + 1, " \n");

		if (n >= sizeof(saved->table))
			n = sizeof(saved->table) - 1;
		memcpy(saved->table, line + 1, n);
		saved->table[n] = '\0';
	} else if (line[0] == ':') {
		open_chain(saved, line + 1, strcspn(line + 1, " "));
	} else if (has_prefix(line, "-A ")) {
		chain = open_chain(saved, line + 3, strcspn(line + 3, " "));
		array_grow(&chain->lines, &chain->capacity, chain->n, sizeof(*chain->lines));
		chain->lines[chain->n++] =
			(struct saved_line){xstrdup(line), saved_rules_plain(line)};
	}
}

/* -- reading */

struct reading {
	struct saved_rules *saved;
	int r;
	struct err err;
};

static void on_line(void *arg, const char *line, size_t length attr_unused)
{
	saved_rules_line(((struct reading *)arg)->saved, line);
}

static void on_done(void *arg, int r, struct err *err)
{
	struct reading *reading = arg;

	if (r >= 0 || reading->r < 0)
		return;
	reading->r = r;
	reading->err = *err;
}

int saved_rules_read(enum family family, enum iptables_variant variant, struct saved_rules **ret,
		     struct err *err)
{
	cleanup_saved_rules struct saved_rules *saved = saved_rules_new();
	struct reading reading = {.saved = saved};
	struct iptables_tool *tool = NULL;
	int r = iptables_tool_open(NULL, family, variant, &tool, err);

	if (r < 0)
		return r;
	iptables_tool_save(tool, "nat", on_line, on_done, &reading);
	iptables_tool_save(tool, "filter", on_line, on_done, &reading);
	iptables_tool_finish(tool);
	iptables_tool_close(tool);
	if (reading.r < 0) {
		*err = reading.err;
		return reading.r;
	}
	*ret = take(saved);
	return 0;
}

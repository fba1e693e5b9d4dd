/* SPDX-License-Identifier: Apache-2.0 */

#include "commands/completion.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>

#include "config/flags.h"
#include "config/options.h"
#include "inspect/overview.h"

/* A command line up to the cursor. */
struct line {
	enum command_id command;
	char **words; /* behind the command's name, without the one that is being typed */
	int n_known;  /* how many of them are complete flags and arguments */
	int n_arguments;
	bool ended;              /* "--" was seen */
	const struct flag *flag; /* whose value is being typed; NULL: none's */
	const char *typed;       /* the last word */
	size_t n_head;           /* how much of it stands before the value: "--name=" */
};

struct search {
	const struct line *line;
	completion_load *load;
	void *load_arg;
	struct model *model; /* NULL: not loaded, or unknown */
	bool loaded;
	struct completion *found;
};

const char *completion_how_name(enum completion_how how)
{
	static const char *const names[] = {"words", "parts", "files", "folders"};

	static_assert(ARRAY_SIZE(names) == COMPLETION_HOW_COUNT, "one name for each");
	return names[how];
}

void completion_done(struct completion *completion)
{
	for (size_t i = 0; i < completion->n; i++) {
		free(completion->items[i].word);
		free(completion->items[i].about);
	}
	free(completion->items);
	*completion = (struct completion){0};
}

/* -- what is offered */

/* A word that goes on as the typed one does; takes over `word`. */
static void offer(struct search *search, char *word, const char *about)
{
	struct completion *found = search->found;

	if (!has_prefix(word, search->line->typed)) {
		free(word);
		return;
	}
	array_grow(&found->items, &found->capacity, found->n, sizeof(*found->items));
	found->items[found->n++] = (struct completion_item){word, xstrdup(about)};
}

/* Behind "--name=", if that is how the value is being typed. */
static void offer_value(struct search *search, const char *value, size_t n, const char *about)
{
	const struct line *line = search->line;

	offer(search, xasprintf("%.*s%.*s", (int)line->n_head, line->typed, (int)n, value), about);
}

static const char *typed_value(const struct search *search)
{
	return search->line->typed + search->line->n_head;
}

/* The names of the cluster, by namespace and name; freed by the caller. */
static struct service **services(struct search *search, size_t *ret_n)
{
	const struct line *line = search->line;

	if (!search->loaded)
		search->model =
			search->load(search->load_arg, line->command, line->n_known, line->words);
	search->loaded = true;
	*ret_n = 0;
	return search->model ? overview_services(search->model, NULL, ret_n) : NULL;
}

static char *describe(const struct service *service)
{
	enum family family = service->has_cluster_ip[FAMILY_IPV4] ? FAMILY_IPV4 : FAMILY_IPV6;
	char address[ADDR_TEXT_MAX] = "";

	if (service->has_cluster_ip[family])
		addr_print(&service->cluster_ip[family], address);
	return xasprintf("%s %s", service_type_name(service_type_of(service)), address);
}

static void offer_namespaces(struct search *search)
{
	size_t n;
	cleanup_free struct service **all = services(search, &n);

	for (size_t i = 0; i < n; i++)
		if (i == 0 || !streq(all[i]->ns, all[i - 1]->ns))
			offer_value(search, all[i]->ns, strlen(all[i]->ns), "namespace");
}

static void offer_services(struct search *search)
{
	size_t n;
	cleanup_free struct service **all = services(search, &n);

	for (size_t i = 0; i < n; i++) {
		cleanup_free char *about = describe(all[i]);

		offer_value(search, all[i]->key, strlen(all[i]->key), about);
	}
}

/* A Service's port as inspect/packet_destination.h reads it, in the form that was begun; NULL: it has none of it. */
static char *destination(const char *typed, const struct service *service,
			 const struct service_port *port)
{
	const char *before = has_prefix(typed, "svc/") ? "svc" : "service";
	enum family family = typed[0] == '[' ? FAMILY_IPV6 : FAMILY_IPV4;
	char address[ADDR_PORT_TEXT_MAX];

	if (typed[0] == ':')
		return port->node_port ? xasprintf(":%u", port->node_port) : NULL;
	if (typed[0] == '[' || isdigit((unsigned char)typed[0])) {
		if (!service->has_cluster_ip[family])
			return NULL;
		addr_port_print(&service->cluster_ip[family], port->port, address);
		return xstrdup(address);
	}
	if (port->name[0])
		return xasprintf("%s/%s:%s", before, service->key, port->name);
	return xasprintf("%s/%s:%u", before, service->key, port->port);
}

static void offer_port(struct search *search, const struct service *service,
		       const struct service_port *port)
{
	const char *typed = typed_value(search);
	cleanup_free char *word = destination(typed, service, port);
	cleanup_free char *about = describe(service);
	bool by_name = !typed[0] || isalpha((unsigned char)typed[0]);

	if (word)
		offer_value(search, word, strlen(word), by_name ? about : service->key);
}

static void offer_destinations(struct search *search)
{
	size_t n;
	cleanup_free struct service **all = services(search, &n);

	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < all[i]->n_ports; j++)
			offer_port(search, all[i], &all[i]->ports[j]);
}

static void offer_commands(struct search *search)
{
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		offer_value(search, commands[i].name, strlen(commands[i].name),
			    commands[i].summary);
}

static void offer_files(struct search *search)
{
	search->found->how = COMPLETION_FILES;
}

static void offer_folders(struct search *search)
{
	search->found->how = COMPLETION_FOLDERS;
}

static void offer_nothing(struct search *search)
{
	(void)search;
}

/* What the tables write for a value that is no word of its own. */
static const struct placeholder {
	const char *name;
	void (*offer)(struct search *search);
} placeholders[] = {
	{"COMMAND", offer_commands},
	{"DEST", offer_destinations},
	{"NAMESPACE/NAME", offer_services},
	{"SERVICE", offer_services},
	{"cidrs", offer_nothing},
	{"dir", offer_folders},
	{"file", offer_files},
	{"files", offer_files},
	{"ip", offer_nothing},
	{"namespace", offer_namespaces},
	{"namespace/name[:port]", offer_services},
};

static const struct placeholder *find_placeholder(const char *name, size_t n)
{
	for (size_t i = 0; i < ARRAY_SIZE(placeholders); i++)
		if (strlen(placeholders[i].name) == n && memcmp(placeholders[i].name, name, n) == 0)
			return &placeholders[i];
	return NULL;
}

/* "a|b|c" as words, but for placeholders among them; a single name only if it is one. */
static void offer_values(struct search *search, const char *values, size_t n, bool single)
{
	bool several = memchr(values, '|', n) != NULL;
	const char *end = values + n;

	while (values <= end) {
		const char *bar = memchr(values, '|', (size_t)(end - values));
		size_t length = (size_t)((bar ? bar : end) - values);
		const struct placeholder *placeholder = find_placeholder(values, length);

		if (placeholder)
			placeholder->offer(search);
		else if (length > 0 && (several || single))
			offer_value(search, values, length, "");
		values += length + 1;
	}
}

static void offer_flag_value(struct search *search)
{
	const struct flag *flag = search->line->flag;
	const char *values = flag->value;

	if (flag->kind == FLAG_BOOL)
		values = "true|false";
	if (values)
		offer_values(search, values, strlen(values), flag->kind == FLAG_WORD);
}

static void offer_flags(struct search *search)
{
	for (size_t i = 0; i < options_n_flags; i++) {
		const struct flag *flag = &options_flags[i];
		const char *dot = strstr(flag->help, ". ");
		cleanup_free char *about = xasprintf(
			"%.*s", (int)(dot ? (size_t)(dot - flag->help) : strcspn(flag->help, ".")),
			flag->help);

		if (flag->commands & 1u << search->line->command && flag->name[0])
			offer(search, xasprintf("--%s", flag->name), about);
	}
}

/* By the first word of the usage line, if it is for an argument; false: no more are taken. */
static bool offer_argument(struct search *search)
{
	const char *usage = commands[search->line->command].arguments;
	size_t n = strcspn(usage, " ");
	bool repeated;

	if (n > 1 && usage[0] == '[' && usage[n - 1] == ']') {
		usage++;
		n -= 2;
	}
	repeated = n > 3 && memcmp(usage + n - 3, "...", 3) == 0;
	if (repeated)
		n -= 3;
	if (n == 0 || usage[0] == '-' || strncmp(usage, "flags", n) == 0)
		return false;
	if (search->line->n_arguments > 0 && !repeated)
		return false;
	offer_values(search, usage, n, false);
	return true;
}

/* -- what was typed */

static const struct flag *find_flag(const struct line *line, const char *name, size_t n)
{
	return flags_find(options_flags, options_n_flags, 1u << line->command, name, n);
}

/* The flag of a word of letters that wants the next word for its value; NULL: none does. */
static const struct flag *pending_letter(const struct line *line, const char *word)
{
	for (const char *at = word + 1; *at; at++) {
		const struct flag *flag =
			flags_find_letter(options_flags, options_n_flags, 1u << line->command, *at);

		if (!flag || flag_needs_value(flag))
			return flag && !at[1] ? flag : NULL;
	}
	return NULL;
}

static const struct flag *pending_long(const struct line *line, const char *word)
{
	size_t n = strcspn(word + 2, "=");
	const struct flag *flag = find_flag(line, word + 2, n);

	return flag && !word[2 + n] && flag_needs_value(flag) ? flag : NULL;
}

/* One word before the one that is being typed. */
static void pass_word(struct line *line, const char *word)
{
	if (line->flag)
		line->flag = NULL;
	else if (!line->ended && streq(word, "--"))
		line->ended = true;
	else if (!line->ended && has_prefix(word, "--"))
		line->flag = pending_long(line, word);
	else if (!line->ended && word[0] == '-' && word[1])
		line->flag = pending_letter(line, word);
	else
		line->n_arguments++;
}

static void read_line(struct line *line, int argc, char **argv)
{
	for (int i = 0; i < argc - 1; i++) {
		pass_word(line, argv[i]);
		if (!line->flag)
			line->n_known = i + 1;
	}
	line->words = argv;
	line->typed = argv[argc - 1];
	if (!line->flag && !line->ended && has_prefix(line->typed, "--") &&
	    strchr(line->typed, '=')) {
		size_t n = strcspn(line->typed, "=");

		line->flag = find_flag(line, line->typed + 2, n - 2);
		line->n_head = n + 1;
	}
}

/* -- both */

static void find_in_line(struct search *search)
{
	const struct line *line = search->line;

	if (line->flag) {
		offer_flag_value(search);
		return;
	}
	if ((line->ended || line->typed[0] != '-') && (offer_argument(search) || line->typed[0]))
		return;
	if (!line->ended)
		offer_flags(search);
}

/* Only the part up to the next "/" of each, once. Equal parts stand beside each other. */
static void fold(struct completion *found, size_t n_typed)
{
	size_t kept = 0;

	for (size_t i = 0; i < found->n; i++) {
		struct completion_item item = found->items[i];
		char *slash = strchr(item.word + n_typed, '/');

		if (slash) {
			slash[1] = '\0';
			item.about[0] = '\0';
			found->how = COMPLETION_PARTS;
		}
		if (kept > 0 && streq(found->items[kept - 1].word, item.word)) {
			free(item.word);
			free(item.about);
		} else {
			found->items[kept++] = item;
		}
	}
	found->n = kept;
}

void completion_find(int argc, char **argv, completion_load *load, void *arg,
		     struct completion *ret)
{
	struct line line = {.typed = argc > 0 ? argv[0] : ""};
	struct search search = {.line = &line, .load = load, .load_arg = arg, .found = ret};
	const struct command *command = argc > 1 ? command_find(argv[0]) : NULL;

	*ret = (struct completion){0};
	if (argc <= 1) {
		offer_commands(&search);
	} else if (command) {
		line.command = (enum command_id)(command - commands);
		read_line(&line, argc - 1, argv + 1);
		find_in_line(&search);
	}
	if (ret->n > COMPLETION_MOST)
		fold(ret, strlen(line.typed));
}

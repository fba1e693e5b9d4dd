/* SPDX-License-Identifier: Apache-2.0 */

#include "config/kubeproxy_config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "config/kubeproxy_fields.h"
#include "config/kubeproxy_file.h"
#include "sources/printable.h"

/* Portolan does nothing with these, and what begins with them: some have no meaning here, others
 * have none yet. */
static const char *const idle[] = {
	"clientConnection.acceptContentTypes",
	"clientConnection.burst",
	"clientConnection.contentType",
	"clientConnection.qps",
	"configSyncPeriod",
	"ipvs",
	"logging.flushFrequency",
	"logging.options",
	"logging.vmodule",
	"showHiddenMetricsForVersion",
	"windowsRunAsService",
	"winkernel",
};

static bool is_logging(const char *path)
{
	return has_prefix(path, "logging.");
}

/* Patterns of flags come before those of a file. */
static void apply_logging(const struct kubeproxy_config *config, const struct flag_settings *flags)
{
	Kubeproxy__Logging *logging = config->message->logging;
	Kubeproxy__VModule **given = logging->vmodule;
	size_t n = logging->n_vmodule;
	struct message_field field = kubeproxy_field(config, "logging.vmodule");

	logging->vmodule = NULL;
	logging->n_vmodule = 0;
	/* kube-proxy forgets what a file says here, and so does Portolan */
	logging->options->text->splitstream = false;
	logging->options->json->splitstream = false;
	for (size_t i = 0; i < flags->n; i++)
		if (is_logging(flags->v[i].flag->path))
			kubeproxy_fields_set(config, flags->v[i].flag->path, flags->v[i].text);
	for (size_t i = 0; i < n; i++)
		message_append(&field, given[i], config->arena);
}

/* One section of the three says how often to sync; the others lose theirs, as in kube-proxy. */
static void settle_mode(struct kubeproxy_config *config)
{
	Kubeproxy__Configuration *message = config->message;
	bool nftables = message->mode && streq(message->mode, "nftables");
	bool ipvs = message->mode && streq(message->mode, "ipvs");
	static char zero[] = "0s";

	if (!ipvs)
		message->ipvs->syncperiod = message->ipvs->minsyncperiod = zero;
	if (!nftables) {
		message->nftables->syncperiod = message->nftables->minsyncperiod = zero;
		message->nftables->masqueradeall = false;
	}
	if (nftables || ipvs)
		message->iptables->syncperiod = message->iptables->minsyncperiod = zero;
	if (nftables)
		message->iptables->masqueradeall = false;
	message->portrange = (char *)""; /* read, and of no meaning since long ago */
	config->mode_defaulted = !message->mode || !*message->mode;
	if (config->mode_defaulted)
		message->mode = (char *)"iptables";
	if (nftables && message->n_nodeportaddresses == 0)
		kubeproxy_fields_set(config, "nodePortAddresses", "primary");
	if (!message->detectlocalmode || !*message->detectlocalmode)
		message->detectlocalmode = (char *)"ClusterCIDR";
}

static int apply_hostname(const struct kubeproxy_config *config, const char *name, struct err *err)
{
	cleanup_free char *tidy = NULL;

	if (!name || !*name)
		return 0;
	tidy = util_lower(util_trimmed(name, strlen(name)));
	if (!*tidy)
		return err_set(err, -EINVAL, "--hostname-override: the name is empty");
	config->message->hostnameoverride = arena_strdup(config->arena, tidy);
	return 0;
}

static struct kubeproxy_config *config_new(const struct kubeproxy_flags *flags)
{
	struct kubeproxy_config *config = xcalloc(1, sizeof(*config));

	config->arena = arena_new(16 * 1024);
	config->flags = flags->fields;
	return config;
}

struct kubeproxy_config *kubeproxy_config_free(struct kubeproxy_config *config)
{
	if (config)
		arena_free(config->arena);
	free(config);
	return NULL;
}

static void set_type(const struct kubeproxy_config *config)
{
	config->message->apiversion = (char *)KUBEPROXY_API_VERSION;
	config->message->kind = (char *)KUBEPROXY_KIND;
}

/* The mode decides whether --ipvs-* or --iptables-* periods count, so it is looked for first. */
static bool counts_in_mode(const char *path, const char *mode)
{
	bool ipvs = mode && streq(mode, "ipvs");

	if (has_suffix(path, "yncPeriod") && !streq(path, "configSyncPeriod"))
		return has_prefix(path, "ipvs.") == ipvs;
	return true;
}

/* In mode nftables the flags named after iptables are about it. */
static const char *path_in_mode(const char *path, const char *mode)
{
	if (!mode || !streq(mode, "nftables"))
		return path;
	if (streq(path, "iptables.syncPeriod"))
		return "nftables.syncPeriod";
	if (streq(path, "iptables.minSyncPeriod"))
		return "nftables.minSyncPeriod";
	return streq(path, "iptables.masqueradeAll") ? "nftables.masqueradeAll" : path;
}

static const char *given_mode(const struct flag_settings *flags)
{
	const char *mode = NULL;

	for (size_t i = 0; i < flags->n; i++)
		if (streq(flags->v[i].flag->path, "mode"))
			mode = flags->v[i].text;
	return mode;
}

static bool flags_name(const struct flag_settings *flags, const char *path)
{
	for (size_t i = 0; i < flags->n; i++)
		if (streq(flags->v[i].flag->path, path))
			return true;
	return false;
}

/* To kube-proxy zero in a file is as good as nothing: either way its default is in force. */
static bool file_names_min_sync(const Kubeproxy__Configuration *message)
{
	return kubeproxy_duration(kubeproxy_section(message).min_sync_period) != 0;
}

static void apply_ports(const struct kubeproxy_config *config, const struct kubeproxy_flags *flags)
{
	Kubeproxy__Configuration *message = config->message;

	if (flags->keep_ports)
		return;
	message->healthzbindaddress =
		flags->healthz_port == 0
			? (char *)""
			: kubeproxy_append_port(config->arena, message->healthzbindaddress,
						flags->healthz_port);
	message->metricsbindaddress =
		flags->metrics_port == 0
			? (char *)""
			: kubeproxy_append_port(config->arena, message->metricsbindaddress,
						flags->metrics_port);
}

int kubeproxy_config_from_flags(const struct kubeproxy_flags *flags, struct kubeproxy_config **ret,
				struct err *err)
{
	cleanup_kubeproxy_config struct kubeproxy_config *config = config_new(flags);
	const char *mode = given_mode(flags->fields);
	int r;

	config->message = arena_alloc(config->arena, sizeof(*config->message));
	kubeproxy__configuration__init(config->message);
	message_fill(&config->message->base, config->arena);
	set_type(config);
	kubeproxy_fields_set_defaults(config);
	kubeproxy_fields_set(config, "ipvs.minSyncPeriod",
			     "1s"); /* the default of the flag, not of the file */
	kubeproxy_fields_set_addresses(config);
	for (size_t i = 0; i < flags->fields->n; i++) {
		const struct flag_setting *setting = &flags->fields->v[i];

		if (counts_in_mode(setting->flag->path, mode))
			kubeproxy_fields_set(config, path_in_mode(setting->flag->path, mode),
					     setting->text);
	}
	config->min_sync_explicit = flags_name(flags->fields, "iptables.minSyncPeriod");
	apply_ports(config, flags);
	settle_mode(config);
	r = apply_hostname(config, flags->hostname_override, err);
	if (r < 0)
		return r;
	*ret = take(config);
	return 0;
}

int kubeproxy_config_from_text(const char *file, const char *text, size_t n,
			       const struct kubeproxy_flags *flags, struct problems *warnings,
			       struct kubeproxy_config **ret, struct err *err)
{
	cleanup_kubeproxy_config struct kubeproxy_config *config = config_new(flags);
	int r;

	config->file = arena_strdup(config->arena, file);
	r = kubeproxy_file_parse(config, text, n, warnings, err);
	if (r < 0)
		return r;
	config->min_sync_explicit = file_names_min_sync(config->message);
	set_type(config);
	kubeproxy_fields_set_defaults(config);
	kubeproxy_fields_set_addresses(config);
	apply_logging(config, flags->fields);
	settle_mode(config);
	r = apply_hostname(config, flags->hostname_override, err);
	if (r < 0)
		return r;
	*ret = take(config);
	return 0;
}

int kubeproxy_config_from_file(const char *file, const struct kubeproxy_flags *flags,
			       struct problems *warnings, struct kubeproxy_config **ret,
			       struct err *err)
{
	cleanup_text struct text text = {0};
	cleanup_free char *content = NULL;
	int r = kubeproxy_file_read(file, &text, err);

	if (r < 0)
		return r;
	content = text_dup(&text);
	return kubeproxy_config_from_text(file, content, text.size, flags, warnings, ret, err);
}

/* In which flag, or where in the file, a field has its value from. */
static void print_subject(const struct kubeproxy_config *config, const char *path, char *out,
			  size_t size)
{
	const struct yaml_node *node =
		config->root ? kubeproxy_file_node(config->root, path) : NULL;

	for (size_t i = config->flags->n; i-- > 0;) {
		const struct flag *flag = config->flags->v[i].flag;
		const char *mode = config->message->mode;

		if (config->file && !is_logging(flag->path))
			continue;
		if (streq(config->file ? flag->path : path_in_mode(flag->path, mode), path)) {
			snprintf(out, size, "--%s", flag->name);
			return;
		}
	}
	if (node)
		snprintf(out, size, "%s:%u:%u: %s", config->file, node->line, node->column, path);
	else if (config->file)
		snprintf(out, size, "%s: %s", config->file, path);
	else
		snprintf(out, size, "%s", path);
}

void kubeproxy_config_problem(const struct kubeproxy_config *config, struct problems *problems,
			      const char *path, const char *fmt, ...)
{
	char subject[512];
	char text[512];
	char line[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	print_subject(config, path, subject, sizeof(subject));
	problems_add(problems, "%s: %s", subject, printable(text, line, sizeof(line)));
}

/* kube-proxy leaves these out when they are empty; all other fields are always written. */
static bool omits(const ProtobufCFieldDescriptor *field)
{
	static const char *const names[] = {"featureGates", "splitStream", "vmodule",
					    "windowsRunAsService"};

	return word_among(field->name, names);
}

void kubeproxy_config_print(const struct kubeproxy_config *config, struct text *out)
{
	message_print_yaml(&config->message->base, omits, out);
}

void kubeproxy_config_configz(const struct kubeproxy_config *config, struct text *out)
{
	text_str(out, "{\"kubeproxy.config.k8s.io\":");
	message_print_json(&config->message->base, omits, out);
	text_str(out, "}");
}

static void add_idle(void *arg, const char *path)
{
	for (size_t i = 0; i < ARRAY_SIZE(idle); i++) {
		size_t n = strlen(idle[i]);

		if (has_prefix(path, idle[i]) && (path[n] == '\0' || path[n] == '.'))
			problems_add(arg, "%s", path);
	}
}

void kubeproxy_config_idle_fields(const struct kubeproxy_config *config, struct problems *names)
{
	static const struct flag_settings none = {0};
	const struct kubeproxy_flags flags = {.fields = &none, .keep_ports = true};
	cleanup_kubeproxy_config struct kubeproxy_config *initial = NULL;
	struct err err;

	if (kubeproxy_config_from_flags(&flags, &initial, &err) < 0)
		return; /* cannot be: nothing was given */
	message_compare(&config->message->base, &initial->message->base, add_idle, names);
}

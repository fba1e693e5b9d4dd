/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Everything here is done by field paths and tables. A default is text and takes the same way into
 * the message as a flag's value; durations are rewritten as Go prints them, so that equal ones are
 * equal as text.
 */

#include "cli/kubeproxy_config.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/addr.h"
#include "cli/duration.h"
#include "cli/message.h"
#include "sources/printable.h"
#include "sources/yaml_message.h"

#define API_VERSION "kubeproxy.config.k8s.io/v1alpha1"
#define KIND        "KubeProxyConfiguration"
#define FILE_MAX    (1u << 20)

enum field_kind {
	FIELD_PLAIN = 0,
	FIELD_DURATION,
	FIELD_COUNT,
};

/* When a default takes the place of what was given: never but when nothing was, or for zero too. */
enum field_when {
	WHEN_ABSENT = 0,
	WHEN_ZERO,
	WHEN_COUNT,
};

/* All that have a default other than zero, and all durations. */
static const struct field_default {
	const char *path;
	enum field_kind kind;
	enum field_when when;
	const char *value;
} defaults[] = {
	{"bindAddress", FIELD_PLAIN, WHEN_ZERO, "0.0.0.0"},
	{"clientConnection.burst", FIELD_PLAIN, WHEN_ZERO, "10"},
	{"clientConnection.contentType", FIELD_PLAIN, WHEN_ZERO,
	 "application/vnd.kubernetes.protobuf"},
	{"clientConnection.qps", FIELD_PLAIN, WHEN_ZERO, "5"},
	{"configSyncPeriod", FIELD_DURATION, WHEN_ZERO, "15m"},
	{"conntrack.maxPerCore", FIELD_PLAIN, WHEN_ABSENT, "32768"},
	{"conntrack.min", FIELD_PLAIN, WHEN_ABSENT, "131072"},
	{"conntrack.tcpCloseWaitTimeout", FIELD_DURATION, WHEN_ABSENT, "1h"},
	{"conntrack.tcpEstablishedTimeout", FIELD_DURATION, WHEN_ABSENT, "24h"},
	{"conntrack.udpStreamTimeout", FIELD_DURATION, WHEN_ZERO, "0s"},
	{"conntrack.udpTimeout", FIELD_DURATION, WHEN_ZERO, "0s"},
	{"iptables.localhostNodePorts", FIELD_PLAIN, WHEN_ABSENT, "true"},
	{"iptables.masqueradeBit", FIELD_PLAIN, WHEN_ABSENT, "14"},
	{"iptables.minSyncPeriod", FIELD_DURATION, WHEN_ZERO, "1s"},
	{"iptables.syncPeriod", FIELD_DURATION, WHEN_ZERO, "30s"},
	{"ipvs.minSyncPeriod", FIELD_DURATION, WHEN_ZERO, "0s"},
	{"ipvs.syncPeriod", FIELD_DURATION, WHEN_ZERO, "30s"},
	{"ipvs.tcpFinTimeout", FIELD_DURATION, WHEN_ZERO, "0s"},
	{"ipvs.tcpTimeout", FIELD_DURATION, WHEN_ZERO, "0s"},
	{"ipvs.udpTimeout", FIELD_DURATION, WHEN_ZERO, "0s"},
	{"logging.flushFrequency", FIELD_DURATION, WHEN_ZERO, "5s"},
	{"logging.format", FIELD_PLAIN, WHEN_ZERO, "text"},
	{"logging.options.json.infoBufferSize", FIELD_PLAIN, WHEN_ZERO, "0"},
	{"logging.options.text.infoBufferSize", FIELD_PLAIN, WHEN_ZERO, "0"},
	{"nftables.masqueradeBit", FIELD_PLAIN, WHEN_ABSENT, "14"},
	{"nftables.minSyncPeriod", FIELD_DURATION, WHEN_ZERO, "1s"},
	{"nftables.syncPeriod", FIELD_DURATION, WHEN_ZERO, "30s"},
	{"oomScoreAdj", FIELD_PLAIN, WHEN_ABSENT, "-999"},
};

/* What may also be written as a number, and is text all the same. */
static const char *const number_or_text[] = {
	"logging.flushFrequency",
	"logging.options.json.infoBufferSize",
	"logging.options.text.infoBufferSize",
};

/* Portolan does nothing with these, and what begins with them: some have no meaning here, others
 * have none yet. */
static const char *const idle[] = {
	"bindAddressHardFail",
	"clientConnection.acceptContentTypes",
	"clientConnection.burst",
	"clientConnection.contentType",
	"clientConnection.qps",
	"configSyncPeriod",
	"conntrack",
	"enableProfiling",
	"healthzBindAddress",
	"ipvs",
	"logging.flushFrequency",
	"logging.options",
	"logging.vmodule",
	"metricsBindAddress",
	"nftables",
	"oomScoreAdj",
	"showHiddenMetricsForVersion",
	"windowsRunAsService",
	"winkernel",
};

int64_t kubeproxy_duration(const char *text)
{
	int64_t ns = 0;

	if (text && *text && text[strspn(text, "0123456789")] == '\0')
		return strtoll(text, NULL, 10);
	if (text && duration_parse(text, &ns) < 0)
		assert(!"durations are checked when they are read");
	return ns;
}

static struct message_field find(const struct kubeproxy_config *config, const char *path)
{
	struct message_field field;
	bool found = message_find(&config->message->base, path, &field);

	assert(found);
	(void)found;
	return field;
}

/* Digits alone are nanoseconds, where that is allowed, and stay as they are. */
static int tidy_duration(struct arena *arena, const char *text, char **ret)
{
	char out[DURATION_TEXT_MAX];
	int64_t ns;

	if (duration_parse(text, &ns) < 0)
		return -EINVAL;
	duration_print(ns, out);
	*ret = arena_strdup(arena, out);
	return 0;
}

static bool is_duration(const char *path)
{
	for (size_t i = 0; i < ARRAY_SIZE(defaults); i++)
		if (defaults[i].kind == FIELD_DURATION && streq(defaults[i].path, path))
			return true;
	return false;
}

static void set_list(const struct kubeproxy_config *config, const struct message_field *field,
		     const char *text)
{
	while (*text) {
		size_t n = strcspn(text, ",");

		message_append(field, arena_printf(config->arena, "%.*s", (int)n, text),
			       config->arena);
		text += n + (text[n] != '\0');
		if (text[-1] == ',' && !*text)
			message_append(field, arena_strdup(config->arena, ""), config->arena);
	}
}

static void set_gate(void *arg, const char *name, bool on)
{
	const struct kubeproxy_config *config = arg;
	struct message_field field = find(config, "featureGates");
	Kubeproxy__Gate *gate;

	for (size_t i = 0; i < config->message->n_featuregates; i++) {
		if (streq(config->message->featuregates[i]->key, name)) {
			config->message->featuregates[i]->value = on;
			return;
		}
	}
	gate = arena_alloc(config->arena, sizeof(*gate));
	kubeproxy__gate__init(gate);
	gate->key = arena_strdup(config->arena, name);
	gate->has_value = true;
	gate->value = on;
	message_append(&field, gate, config->arena);
}

static void set_vmodule(void *arg, const char *pattern, int32_t level)
{
	const struct kubeproxy_config *config = arg;
	struct message_field field = find(config, "logging.vmodule");
	Kubeproxy__VModule *item = arena_alloc(config->arena, sizeof(*item));

	kubeproxy__vmodule__init(item);
	item->filepattern = arena_strdup(config->arena, pattern);
	item->has_verbosity = true;
	item->verbosity = level;
	message_append(&field, item, config->arena);
}

/* A field from text that its flag's kind has accepted. */
static void set_field(const struct kubeproxy_config *config, const char *path, const char *text)
{
	struct message_field field = find(config, path);
	bool on = false;

	message_mark_set(&field);
	if (field.field->label == PROTOBUF_C_LABEL_REPEATED) {
		if (field.field->type == PROTOBUF_C_TYPE_STRING)
			set_list(config, &field, text);
		else if (streq(path, "featureGates"))
			flag_gates_parse(text, set_gate, (void *)config);
		else
			flag_vmodule_parse(text, set_vmodule, (void *)config);
		return;
	}
	switch (field.field->type) {
	case PROTOBUF_C_TYPE_STRING:
		if (!is_duration(path) ||
		    tidy_duration(config->arena, text, message_value(&field)) < 0)
			*(char **)message_value(&field) = arena_strdup(config->arena, text);
		break;
	case PROTOBUF_C_TYPE_BOOL:
		flag_bool_parse(text, &on);
		*(protobuf_c_boolean *)message_value(&field) = on;
		break;
	case PROTOBUF_C_TYPE_FLOAT:
		*(float *)message_value(&field) = strtof(text, NULL);
		break;
	case PROTOBUF_C_TYPE_INT32:
		flag_int_parse(text, message_value(&field));
		break;
	default:
		*(int64_t *)message_value(&field) = strtol(text, NULL, 10);
	}
}

static bool is_zero(const struct message_field *field, enum field_kind kind)
{
	if (!message_is_set(field))
		return true;
	if (kind == FIELD_DURATION)
		return kubeproxy_duration(*(char **)message_value(field)) == 0;
	switch (field->field->type) {
	case PROTOBUF_C_TYPE_INT32:
		return *(int32_t *)message_value(field) == 0;
	case PROTOBUF_C_TYPE_FLOAT:
		return *(float *)message_value(field) == 0;
	default:
		return false;
	}
}

static void set_defaults(const struct kubeproxy_config *config)
{
	for (size_t i = 0; i < ARRAY_SIZE(defaults); i++) {
		struct message_field field = find(config, defaults[i].path);

		if (defaults[i].when == WHEN_ZERO ? is_zero(&field, defaults[i].kind)
						  : !message_is_set(&field))
			set_field(config, defaults[i].path, defaults[i].value);
	}
}

char *kubeproxy_append_port(struct arena *arena, const char *address, int port)
{
	struct addr addr;

	if (addr_parse(address, &addr) < 0)
		return arena_strdup(arena, address);
	return arena_printf(arena, addr.family == FAMILY_IPV4 ? "%s:%d" : "[%s]:%d", address, port);
}

/* The servers' addresses follow the family of bindAddress. */
static void set_addresses(const struct kubeproxy_config *config)
{
	Kubeproxy__Configuration *message = config->message;
	struct addr addr;
	bool ipv4 = addr_parse(message->bindaddress, &addr) == 0 && addr.family == FAMILY_IPV4;

	if (!message->healthzbindaddress || !*message->healthzbindaddress)
		message->healthzbindaddress = (char *)(ipv4 ? "0.0.0.0" : "::");
	if (!message->metricsbindaddress || !*message->metricsbindaddress)
		message->metricsbindaddress = (char *)(ipv4 ? "127.0.0.1" : "::1");
	message->healthzbindaddress =
		kubeproxy_append_port(config->arena, message->healthzbindaddress, 10256);
	message->metricsbindaddress =
		kubeproxy_append_port(config->arena, message->metricsbindaddress, 10249);
}

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
	struct message_field field = find(config, "logging.vmodule");

	logging->vmodule = NULL;
	logging->n_vmodule = 0;
	/* kube-proxy forgets what a file says here, and so does Portolan */
	logging->options->text->splitstream = false;
	logging->options->json->splitstream = false;
	for (size_t i = 0; i < flags->n; i++)
		if (is_logging(flags->v[i].flag->path))
			set_field(config, flags->v[i].flag->path, flags->v[i].text);
	for (size_t i = 0; i < n; i++)
		message_append(&field, given[i], config->arena);
}

/* One section of the three says how often to sync; the others lose theirs, as in kube-proxy. */
static void settle_mode(const struct kubeproxy_config *config)
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
	if (!message->mode || !*message->mode)
		message->mode = (char *)"iptables";
	if (nftables && message->n_nodeportaddresses == 0)
		set_field(config, "nodePortAddresses", "primary");
	if (!message->detectlocalmode || !*message->detectlocalmode)
		message->detectlocalmode = (char *)"ClusterCIDR";
}

static int apply_hostname(const struct kubeproxy_config *config, const char *name, struct err *err)
{
	const char *end;
	char *tidy;

	if (!name || !*name)
		return 0;
	while (isspace((unsigned char)*name))
		name++;
	for (end = name + strlen(name); end > name && isspace((unsigned char)end[-1]);)
		end--;
	if (end == name)
		return err_set(err, -EINVAL, "--hostname-override: the name is empty");
	tidy = arena_printf(config->arena, "%.*s", (int)(end - name), name);
	for (char *c = tidy; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	config->message->hostnameoverride = tidy;
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

void kubeproxy_config_cleanup(struct kubeproxy_config **config)
{
	kubeproxy_config_free(*config);
}

static void set_type(const struct kubeproxy_config *config)
{
	config->message->apiversion = (char *)API_VERSION;
	config->message->kind = (char *)KIND;
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
	set_defaults(config);
	set_field(config, "ipvs.minSyncPeriod",
		  "1s"); /* the default of the flag, not of the file */
	set_addresses(config);
	for (size_t i = 0; i < flags->fields->n; i++) {
		const struct flag_setting *setting = &flags->fields->v[i];

		if (counts_in_mode(setting->flag->path, mode))
			set_field(config, path_in_mode(setting->flag->path, mode), setting->text);
	}
	apply_ports(config, flags);
	settle_mode(config);
	r = apply_hostname(config, flags->hostname_override, err);
	if (r < 0)
		return r;
	*ret = take(config);
	return 0;
}

/* Of a key that is given twice the last one counts. */
static const struct yaml_node *node_of_key(const struct yaml_node *node, const char *key)
{
	if (node->kind == YAML_KIND_MAPPING)
		for (size_t i = node->n; i-- > 0;)
			if (streq(node->pairs[2 * i]->text, key))
				return node->pairs[2 * i + 1];
	return yaml_node_get(node, key);
}

static const struct yaml_node *node_at(const struct yaml_node *root, const char *path)
{
	char name[64];
	size_t n;

	for (; root && *path; path += n + (path[n] == '.')) {
		n = strcspn(path, ".");
		snprintf(name, sizeof(name), "%.*s", (int)n, path);
		root = node_of_key(root, name);
	}
	return root;
}

static int fail_at(const char *file, const struct yaml_node *node, struct err *err,
		   const char *path, const char *expected)
{
	char found[96];

	return err_set(err, -EINVAL, "%s:%u:%u: %s: expected %s, found %s", file, node->line,
		       node->column, path, expected,
		       yaml_node_describe(node, found, sizeof(found)));
}

static int check_word(const char *file, const struct yaml_node *root, const char *field,
		      const char *wanted, struct err *err)
{
	const struct yaml_node *node = yaml_node_get(root, field);

	if (yaml_node_is_null(node))
		return err_set(err, -EINVAL, "%s:%u:%u: %s is missing: it must be %s", file,
			       root->line, root->column, field, wanted);
	if (node->kind != YAML_KIND_SCALAR || !streq(node->text, wanted))
		return fail_at(file, node, err, field, wanted);
	return 0;
}

/* A NULL or an error is impossible later: every duration is checked here, with its place. */
static int check_durations(const struct kubeproxy_config *config, struct err *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(defaults); i++) {
		struct message_field field = find(config, defaults[i].path);
		const struct yaml_node *node = node_at(config->root, defaults[i].path);
		char **text = message_value(&field);

		if (defaults[i].kind != FIELD_DURATION || !message_is_set(&field))
			continue;
		if (streq(defaults[i].path, "logging.flushFrequency") &&
		    (*text)[strspn(*text, "0123456789")] == '\0' && strlen(*text) < 19)
			continue;
		if (tidy_duration(config->arena, *text, text) < 0)
			return fail_at(config->file, node ? node : config->root, err,
				       defaults[i].path, "a duration such as 30s, 100ms or 1m30s");
	}
	return 0;
}

static void warn(void *arg, const char *text)
{
	problems_add(arg, "%s", text);
}

static int read_root(struct kubeproxy_config *config, const char *text, size_t n, struct err *err)
{
	cleanup_yaml_reader struct yaml_reader *reader = NULL;
	struct yaml_node *root;
	int r = yaml_reader_new(config->file, text, n, &reader, err);

	if (r < 0)
		return r;
	r = yaml_reader_next(reader, config->arena, &root, err);
	if (r < 0)
		return r;
	if (r == 0 || yaml_node_is_null(root))
		return err_set(err, -EINVAL,
			       "%s:1:1: apiVersion and kind are missing: the file is empty",
			       config->file);
	config->root = root;
	r = check_word(config->file, root, "kind", KIND, err);
	if (r < 0)
		return r;
	return check_word(config->file, root, "apiVersion", API_VERSION, err);
}

static void numbers_to_text(const struct yaml_node *root)
{
	for (size_t i = 0; i < ARRAY_SIZE(number_or_text); i++) {
		struct yaml_node *node =
			(struct yaml_node *)node_at(root, number_or_text[i]); /* ours to change */

		if (node && node->kind == YAML_KIND_SCALAR && node->type == YAML_TYPE_INT)
			node->type = YAML_TYPE_STRING;
	}
}

static int read_message(struct kubeproxy_config *config, struct problems *warnings, struct err *err)
{
	const struct yaml_source source = {
		.file = config->file,
		.object = KIND,
		.warn = warn,
		.arg = warnings,
	};
	ProtobufCMessage *message;
	int r;

	numbers_to_text(config->root);
	r = yaml_message_read(&source, config->root, &kubeproxy__configuration__descriptor,
			      config->arena, &message, err);
	if (r < 0)
		return r;
	config->message = (Kubeproxy__Configuration *)message;
	message_fill(message, config->arena);
	return check_durations(config, err);
}

int kubeproxy_config_from_text(const char *file, const char *text, size_t n,
			       const struct kubeproxy_flags *flags, struct problems *warnings,
			       struct kubeproxy_config **ret, struct err *err)
{
	cleanup_kubeproxy_config struct kubeproxy_config *config = config_new(flags);
	int r;

	config->file = arena_strdup(config->arena, file);
	r = read_root(config, text, n, err);
	if (r < 0)
		return r;
	r = read_message(config, warnings, err);
	if (r < 0)
		return r;
	set_type(config);
	set_defaults(config);
	set_addresses(config);
	apply_logging(config, flags->fields);
	settle_mode(config);
	r = apply_hostname(config, flags->hostname_override, err);
	if (r < 0)
		return r;
	*ret = take(config);
	return 0;
}

static int read_file(const char *path, struct text *ret, struct err *err)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	char buffer[16 * 1024];
	ssize_t n;

	if (fd < 0)
		return err_sys(err, -errno, "%s", path);
	while ((n = read(fd, buffer, sizeof(buffer))) > 0) {
		text_add(ret, buffer, (size_t)n);
		if (ret->size > FILE_MAX)
			return err_set(err, -EFBIG, "%s: more than %u bytes", path, FILE_MAX);
	}
	return n < 0 ? err_sys(err, -errno, "%s", path) : 0;
}

int kubeproxy_config_from_file(const char *file, const struct kubeproxy_flags *flags,
			       struct problems *warnings, struct kubeproxy_config **ret,
			       struct err *err)
{
	cleanup_text struct text text = {0};
	cleanup_free char *content = NULL;
	int r = read_file(file, &text, err);

	if (r < 0)
		return r;
	content = text_dup(&text);
	return kubeproxy_config_from_text(file, content, text.size, flags, warnings, ret, err);
}

/* In which flag, or where in the file, a field has its value from. */
static void print_subject(const struct kubeproxy_config *config, const char *path, char *out,
			  size_t size)
{
	const struct yaml_node *node = config->root ? node_at(config->root, path) : NULL;

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

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (streq(field->name, names[i]))
			return true;
	return false;
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

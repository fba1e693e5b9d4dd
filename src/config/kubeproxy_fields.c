/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Everything here is done by field paths and tables. A default is text and takes the same way into
 * the message as a flag's value; durations are rewritten as Go prints them, so that equal ones are
 * equal as text.
 */

#include "config/kubeproxy_fields.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/addr.h"
#include "config/duration.h"

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

int64_t kubeproxy_duration(const char *text)
{
	int64_t ns = 0;

	if (text && *text && text[strspn(text, "0123456789")] == '\0')
		return strtoll(text, NULL, 10);
	if (text && duration_parse(text, &ns) < 0)
		assert(!"durations are checked when they are read");
	return ns;
}

struct message_field kubeproxy_field(const struct kubeproxy_config *config, const char *path)
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
	void ***values = message_value(field);

	if (!*values) /* given, though it may have no items */
		*values = arena_array(config->arena, 1, sizeof(**values));
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
	struct message_field field = kubeproxy_field(config, "featureGates");
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
	struct message_field field = kubeproxy_field(config, "logging.vmodule");
	Kubeproxy__VModule *item = arena_alloc(config->arena, sizeof(*item));

	kubeproxy__vmodule__init(item);
	item->filepattern = arena_strdup(config->arena, pattern);
	item->has_verbosity = true;
	item->verbosity = level;
	message_append(&field, item, config->arena);
}

void kubeproxy_fields_set(const struct kubeproxy_config *config, const char *path, const char *text)
{
	struct message_field field = kubeproxy_field(config, path);
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

void kubeproxy_fields_set_defaults(const struct kubeproxy_config *config)
{
	for (size_t i = 0; i < ARRAY_SIZE(defaults); i++) {
		struct message_field field = kubeproxy_field(config, defaults[i].path);

		if (defaults[i].when == WHEN_ZERO ? is_zero(&field, defaults[i].kind)
						  : !message_is_set(&field))
			kubeproxy_fields_set(config, defaults[i].path, defaults[i].value);
	}
}

/* Digits alone are a number of nanoseconds in one field, for the sake of old files. */
static bool is_number(const char *path, const char *text)
{
	return streq(path, "logging.flushFrequency") && text[strspn(text, "0123456789")] == '\0' &&
	       strlen(text) < 19;
}

const char *kubeproxy_fields_tidy_durations(const struct kubeproxy_config *config)
{
	for (size_t i = 0; i < ARRAY_SIZE(defaults); i++) {
		struct message_field field = kubeproxy_field(config, defaults[i].path);
		char **text = message_value(&field);

		if (defaults[i].kind != FIELD_DURATION || !message_is_set(&field) ||
		    is_number(defaults[i].path, *text))
			continue;
		if (tidy_duration(config->arena, *text, text) < 0)
			return defaults[i].path;
	}
	return NULL;
}

char *kubeproxy_append_port(struct arena *arena, const char *address, int port)
{
	struct addr addr;

	if (addr_parse(address, &addr) < 0)
		return arena_strdup(arena, address);
	return arena_printf(arena, addr.family == FAMILY_IPV4 ? "%s:%d" : "[%s]:%d", address, port);
}

void kubeproxy_fields_set_addresses(const struct kubeproxy_config *config)
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

/* ipvs mode masquerades as the section of iptables says. */
struct kubeproxy_section kubeproxy_section(const Kubeproxy__Configuration *message)
{
	const char *mode = message->mode ? message->mode : "";
	struct kubeproxy_section section = {
		.name = "iptables",
		.masquerade_all = message->iptables->masqueradeall,
		.masquerade_bit = message->iptables->masqueradebit,
		.sync_period = message->iptables->syncperiod,
		.min_sync_period = message->iptables->minsyncperiod,
	};

	if (streq(mode, "ipvs")) {
		section.name = "ipvs";
		section.sync_period = message->ipvs->syncperiod;
		section.min_sync_period = message->ipvs->minsyncperiod;
	} else if (streq(mode, "nftables")) {
		section = (struct kubeproxy_section){
			.name = "nftables",
			.masquerade_all = message->nftables->masqueradeall,
			.masquerade_bit = message->nftables->masqueradebit,
			.sync_period = message->nftables->syncperiod,
			.min_sync_period = message->nftables->minsyncperiod,
		};
	}
	return section;
}

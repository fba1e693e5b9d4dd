/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>

#include "base/map.h"
#include "sources/convert.h"
#include "sources/defaults.h"
#include "sources/printable.h"

#define AFFINITY_SECONDS_MAX 86400 /* a day */

/* A field that is one of a few words, and what another word counts as. */
struct word_field {
	const char *field;
	const char *words[4]; /* up to the first NULL */
	const char *counts_as;
};

static const struct word_field type_field = {
	"spec.type",
	{"ClusterIP", "NodePort", "LoadBalancer", "ExternalName"},
	"the other fields count"};
static const struct word_field external_policy_field = {
	"spec.externalTrafficPolicy", {"Cluster", "Local"}, "it counts as Cluster"};
static const struct word_field internal_policy_field = {
	"spec.internalTrafficPolicy", {"Cluster", "Local"}, "it counts as Cluster"};
static const struct word_field affinity_field = {
	"spec.sessionAffinity", {"None", "ClientIP"}, "it counts as None"};
static const struct word_field family_field = {
	"spec.ipFamilies", {"IPv4", "IPv6"}, "the cluster IP itself counts"};

/* Is the field one of its words, or empty? */
static bool is_word(const struct word_field *field, const char *value)
{
	if (!value || !*value)
		return true;
	return word_among(value, field->words);
}

static void note_word(const struct word_field *field, const char *value,
		      const struct convert_notes *notes)
{
	char clean[64];

	if (!is_word(field, value))
		convert_note(notes, "%s \"%s\" is not known, %s", field->field,
			     printable(value, clean, sizeof(clean)), field->counts_as);
}

static void note_words(const K8s__ServiceSpec *spec, const struct convert_notes *notes)
{
	note_word(&type_field, spec->type, notes);
	note_word(&external_policy_field, spec->externaltrafficpolicy, notes);
	note_word(&internal_policy_field, spec->internaltrafficpolicy, notes);
	note_word(&affinity_field, spec->sessionaffinity, notes);
	for (size_t i = 0; i < spec->n_ipfamilies; i++)
		note_word(&family_field, spec->ipfamilies[i], notes);
}

static enum convert_skip why_skip(const K8s__Service *message)
{
	const K8s__ServiceSpec *spec = message->spec;
	const char *cluster_ip = convert_text(spec ? spec->clusterip : NULL);

	if (convert_label(message->metadata, LABEL_PROXY_NAME))
		return CONVERT_SKIP_OTHER_PROXY;
	if (streq(cluster_ip, "None"))
		return CONVERT_SKIP_HEADLESS;
	if (spec && streq(convert_text(spec->type), "ExternalName"))
		return CONVERT_SKIP_EXTERNAL_NAME;
	if (!spec || !*cluster_ip)
		return CONVERT_SKIP_NO_CLUSTER_IP;
	return spec->n_ports ? CONVERT_SKIP_NONE : CONVERT_SKIP_NO_PORTS;
}

static bool is_of_family(const char *text, enum family family)
{
	struct addr addr;

	return addr_parse(text, &addr) == 0 && addr.family == family;
}

/* The cluster IP of a family: by ipFamilies, and by its text where they are not given or not known. */
static const char *cluster_ip_of(const K8s__ServiceSpec *spec, enum family family)
{
	struct addr addr;

	if (!spec->n_ipfamilies) {
		if (addr_parse(spec->clusterip, &addr) == 0 && addr.family != family)
			return NULL;
		return spec->clusterip;
	}
	for (size_t i = 0; i < MIN(spec->n_ipfamilies, spec->n_clusterips); i++)
		if (streq(spec->ipfamilies[i], family_name(family)) ||
		    (!is_word(&family_field, spec->ipfamilies[i]) &&
		     is_of_family(spec->clusterips[i], family)))
			return spec->clusterips[i];
	return NULL;
}

static int read_cluster_ip(const char *text, enum family family, struct addr *ret, struct err *err)
{
	struct addr addr;

	if (addr_parse(text, &addr) < 0)
		return convert_refuse("cluster IP", text, "is not an address", err);
	if (addr.family != family)
		return convert_refuse("cluster IP", text,
				      "is not of the family that ipFamilies names", err);
	*ret = addr;
	return 0;
}

/* An error if none can be used. */
static int read_cluster_ips(const K8s__ServiceSpec *spec, const struct convert_notes *notes,
			    struct service *service, struct err *err)
{
	struct err why;
	size_t n = 0;

	why.code = 0;
	for (enum family family = 0; family < FAMILY_COUNT; family++) {
		const char *text = cluster_ip_of(spec, family);

		if (!text)
			continue;
		if (read_cluster_ip(text, family, &service->cluster_ip[family], &why) < 0) {
			convert_note(notes, "%s, it is left out", why.text);
			continue;
		}
		service->has_cluster_ip[family] = true;
		n++;
	}
	if (n == 0 && why.code == 0)
		return err_set(err, -EINVAL, "spec.ipFamilies leads to no cluster IP");
	return convert_left(n, &why, err);
}

static bool is_blank(const char *s)
{
	return !s[strspn(s, " \t\r\n")];
}

static void read_external_ips(const K8s__ServiceSpec *spec, const struct convert_notes *notes,
			      struct service *service)
{
	service->external_ips =
		arena_array(service->arena, spec->n_externalips, sizeof(*service->external_ips));
	for (size_t i = 0; i < spec->n_externalips; i++) {
		const char *text = spec->externalips[i];
		char clean[64];

		if (addr_parse(text, &service->external_ips[service->n_external_ips]) == 0)
			service->n_external_ips++;
		else if (!is_blank(text))
			convert_note(notes, "spec.externalIPs: \"%s\" is not an address",
				     printable(text, clean, sizeof(clean)));
	}
}

/* Parses a range with blanks around it. */
static int parse_range(const char *text, struct prefix *ret)
{
	cleanup_free char *trimmed = util_trimmed(text, strlen(text));

	return prefix_parse(trimmed, ret);
}

/* A range of length 0 lets everyone in: its whole family is dropped from the list. */
static void drop_open_families(struct service *service)
{
	bool open[FAMILY_COUNT] = {0};
	size_t kept = 0;

	for (size_t i = 0; i < service->n_source_ranges; i++)
		if (service->source_ranges[i].length == 0)
			open[service->source_ranges[i].addr.family] = true;
	for (size_t i = 0; i < service->n_source_ranges; i++)
		if (!open[service->source_ranges[i].addr.family])
			service->source_ranges[kept++] = service->source_ranges[i];
	service->n_source_ranges = kept;
}

static void read_source_ranges(const K8s__ServiceSpec *spec, const struct convert_notes *notes,
			       struct service *service)
{
	size_t n = spec->n_loadbalancersourceranges;

	service->source_ranges = arena_array(service->arena, n, sizeof(*service->source_ranges));
	for (size_t i = 0; i < n; i++) {
		const char *text = spec->loadbalancersourceranges[i];
		char clean[64];

		if (parse_range(text, &service->source_ranges[service->n_source_ranges]) == 0)
			service->n_source_ranges++;
		else if (!is_blank(text))
			convert_note(notes, "spec.loadBalancerSourceRanges: \"%s\" is not a range",
				     printable(text, clean, sizeof(clean)));
	}
	drop_open_families(service);
}

static void read_vips(const K8s__ServiceStatus *status, const struct convert_notes *notes,
		      struct service *service)
{
	const K8s__LoadBalancerStatus *balancer = status ? status->loadbalancer : NULL;
	size_t n = balancer ? balancer->n_ingress : 0;

	service->vips = arena_array(service->arena, n, sizeof(*service->vips));
	for (size_t i = 0; i < n; i++) {
		const char *ip = convert_text(balancer->ingress[i]->ip);
		const char *mode = convert_text(balancer->ingress[i]->ipmode);
		char clean[64];

		if (!*ip || (*mode && !streq(mode, "VIP")))
			continue;
		if (addr_parse(ip, &service->vips[service->n_vips]) == 0)
			service->n_vips++;
		else
			convert_note(notes, "status.loadBalancer.ingress: \"%s\" is not an address",
				     printable(ip, clean, sizeof(clean)));
	}
}

/* What the ports so far have taken: names, and numbers for each protocol, a bit each. */
struct taken {
	struct map names;
	uint8_t ports[PROTOCOL_COUNT][65536 / 8];
	uint8_t node_ports[PROTOCOL_COUNT][65536 / 8];
};

static bool take_number(uint8_t *numbers, uint16_t number)
{
	uint8_t bit = (uint8_t)(1u << (number % 8));
	bool was_free = !(numbers[number / 8] & bit);

	numbers[number / 8] |= bit;
	return was_free;
}

static int check_unique(struct taken *taken, struct service_port *port, struct err *err)
{
	if (map_set(&taken->names, port->name, port))
		return err_set(err, -EEXIST, "two ports are named \"%s\"", port->name);
	if (!take_number(taken->ports[port->protocol], port->port))
		return err_set(err, -EEXIST, "two ports are %s %u", protocol_name(port->protocol),
			       port->port);
	if (port->node_port && !take_number(taken->node_ports[port->protocol], port->node_port))
		return err_set(err, -EEXIST, "two ports have the nodePort %u", port->node_port);
	return 0;
}

/* A node port that cannot be one is left out, and the port itself counts. */
static uint16_t read_node_port(const K8s__ServicePort *message, const struct convert_notes *notes)
{
	uint16_t number = 0;
	struct err err;

	if (message->has_nodeport && message->nodeport != 0 &&
	    convert_port_number("nodePort", message->nodeport, &number, &err) < 0)
		convert_note(notes, "%s, it is left out", err.text);
	return number;
}

static int read_port(const K8s__ServicePort *message, const struct convert_notes *notes,
		     struct service *service, struct taken *taken, struct err *err)
{
	struct service_port *port = &service->ports[service->n_ports];
	const char *name = convert_text(message->name);
	int r = convert_check_port_name("a port's name", name, err);

	if (r == 0)
		r = convert_protocol("a port's protocol", message->protocol, &port->protocol, err);
	if (r == 0)
		r = convert_port_number("port", message->has_port ? message->port : 0, &port->port,
					err);
	if (r < 0)
		return r;
	port->node_port = read_node_port(message, notes);
	port->name = arena_strdup(service->arena, name);
	r = check_unique(taken, port, err);
	if (r == 0)
		service->n_ports++;
	return r;
}

/* An error if none of them can be used. */
static int read_ports(const K8s__ServiceSpec *spec, const struct convert_notes *notes,
		      struct service *service, struct err *err)
{
	struct taken *taken cleanup_free = xcalloc(1, sizeof(*taken));
	struct err why;

	why.code = 0;
	service->ports = arena_array(service->arena, spec->n_ports, sizeof(*service->ports));
	for (size_t i = 0; i < spec->n_ports; i++) {
		int r = read_port(spec->ports[i], notes, service, taken, &why);

		if (r == 0)
			continue;
		err_wrap(&why, r, "spec.ports[%zu]", i);
		convert_note(notes, "%s, this port is left out", why.text);
	}
	map_done(&taken->names);
	return convert_left(service->n_ports, &why, err);
}

static void read_affinity(const K8s__ServiceSpec *spec, const struct convert_notes *notes,
			  struct service *service)
{
	const K8s__SessionAffinityConfig *config = spec->sessionaffinityconfig;
	int32_t given = DEFAULT_AFFINITY_SECONDS;
	int32_t seconds;

	if (!streq(convert_text(spec->sessionaffinity), "ClientIP"))
		return;
	if (config && config->clientip && config->clientip->has_timeoutseconds)
		given = config->clientip->timeoutseconds;
	seconds = given < 1 ? DEFAULT_AFFINITY_SECONDS : MIN(given, AFFINITY_SECONDS_MAX);
	if (seconds != given)
		convert_note(notes,
			     "sessionAffinityConfig.clientIP.timeoutSeconds %d is not between 1 "
			     "and %d, %d is used",
			     given, AFFINITY_SECONDS_MAX, seconds);
	service->sticky_seconds = (uint32_t)seconds;
}

static void read_health_port(const K8s__ServiceSpec *spec, const struct convert_notes *notes,
			     struct service *service)
{
	struct err err;

	if (!spec->has_healthchecknodeport || spec->healthchecknodeport == 0)
		convert_note(notes,
			     "externalTrafficPolicy is Local, but there is no healthCheckNodePort");
	else if (convert_port_number("healthCheckNodePort", spec->healthchecknodeport,
				     &service->health_check_node_port, &err) < 0)
		convert_note(notes, "%s, it is left out", err.text);
}

/* Words that are not known are as if they were not there: Cluster. */
static void read_policies(const K8s__ServiceSpec *spec, const struct convert_notes *notes,
			  struct service *service)
{
	const char *type = convert_text(spec->type);
	bool balancer = streq(type, "LoadBalancer");
	bool external = balancer || streq(type, "NodePort") ||
			((streq(type, "ClusterIP") || !*type) && spec->n_externalips);

	service->external_local =
		external && streq(convert_text(spec->externaltrafficpolicy), "Local");
	service->internal_local = streq(convert_text(spec->internaltrafficpolicy), "Local");
	if (balancer && service->external_local)
		read_health_port(spec, notes, service);
}

static void read_terminate(const K8s__ObjectMeta *metadata, const struct convert_notes *notes,
			   struct service *service)
{
	const char *text = convert_annotation(metadata, ANNOTATION_TERMINATE);
	enum terminate terminate = TERMINATE_UNSET;
	char clean[64];

	if (text && !terminate_parse(text, &terminate))
		convert_note(notes,
			     "annotation " ANNOTATION_TERMINATE
			     ": \"%s\" is not none or endpoint-removed",
			     printable(text, clean, sizeof(clean)));
	service->terminate = (uint8_t)terminate;
}

static int fill(const K8s__Service *message, const struct convert_notes *notes,
		struct service *service, struct err *err)
{
	const K8s__ServiceSpec *spec = message->spec;
	int r;

	note_words(spec, notes);
	r = read_cluster_ips(spec, notes, service, err);
	if (r == 0)
		r = read_ports(spec, notes, service, err);
	if (r < 0)
		return r;
	read_affinity(spec, notes, service);
	read_policies(spec, notes, service);
	read_external_ips(spec, notes, service);
	read_source_ranges(spec, notes, service);
	read_vips(message->status, notes, service);
	read_terminate(message->metadata, notes, service);
	return 0;
}

/* What the ports and lists will take, so that nearly every Service is one allocation. */
static size_t room_for(const K8s__Service *message)
{
	const K8s__ServiceSpec *spec = message->spec;
	const K8s__LoadBalancerStatus *balancer =
		message->status ? message->status->loadbalancer : NULL;
	size_t size = 0, addresses;

	if (!spec)
		return 0;
	for (size_t i = 0; i < spec->n_ports; i++)
		size += sizeof(struct service_port) + strlen(convert_text(spec->ports[i]->name)) +
			1;
	addresses = spec->n_externalips + (balancer ? balancer->n_ingress : 0);
	if (addresses + spec->n_loadbalancersourceranges > 0)
		size += addresses * sizeof(struct addr) +
			spec->n_loadbalancersourceranges * sizeof(struct prefix) +
			24; /* alignment */
	return size;
}

int convert_service(const K8s__Service *message, const struct convert_notes *notes,
		    struct service **ret, enum convert_skip *ret_skip, struct err *err)
{
	struct service *service;
	enum convert_skip skip;
	struct convert_gathered gathered = {0};
	const struct convert_notes own = convert_gather(&gathered);
	int r = convert_check_names(message->metadata, true, err);

	if (r < 0)
		return r;
	skip = why_skip(message);
	if (skip != CONVERT_SKIP_NONE) {
		*ret_skip = skip;
		return 0;
	}
	service = service_new(message->metadata->namespace_, message->metadata->name,
			      room_for(message));
	if (message->metadata->creationtimestamp)
		service->created_s = (uint32_t)message->metadata->creationtimestamp->seconds;
	r = fill(message, &own, service, err);
	convert_tell(&gathered, r < 0 ? NULL : notes);
	if (r < 0) {
		service_unref(service);
		return r;
	}
	*ret = service;
	return 1;
}

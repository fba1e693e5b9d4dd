/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "sources/convert.h"
#include "sources/k8s_name.h"
#include "sources/rfc3339.h"

#define ANNOTATION_TRIGGER_TIME "endpoints.kubernetes.io/last-change-trigger-time"
#define SECONDS_MAX             (INT64_MAX / 1000000000 - 1)

/* Ports with a null name, or without a number, are for others than proxies. */
static int read_port(const K8s__SlicePort *message, struct slice_writer *writer, struct err *err)
{
	if (!message->name || !message->has_port || message->port == 0)
		return 0;
	return convert_slice_port(message->name, message->protocol, message->port, writer, err);
}

/* An error if there are ports that cannot be used, and no others. */
static int read_ports(const K8s__EndpointSlice *message, const struct convert_notes *notes,
		      struct slice_writer *writer, struct err *err)
{
	struct err why;

	why.code = 0;
	for (size_t i = 0; i < message->n_ports; i++) {
		int r = read_port(message->ports[i], writer, &why);

		if (r == 0)
			continue;
		err_wrap(&why, r, "ports[%zu]", i);
		convert_note(notes, "%s, this port is left out", why.text);
	}
	return convert_left(writer->slice->n_ports, &why, err);
}

static unsigned int read_conditions(const K8s__EndpointConditions *conditions)
{
	unsigned int flags = 0;

	if (!conditions)
		return ENDPOINT_READY | ENDPOINT_SERVING;
	if (!conditions->has_ready || conditions->ready)
		flags |= ENDPOINT_READY;
	if (!conditions->has_serving || conditions->serving)
		flags |= ENDPOINT_SERVING;
	if (conditions->has_terminating && conditions->terminating)
		flags |= ENDPOINT_TERMINATING;
	return flags;
}

static void write_hinted(const struct addr *addr, unsigned int flags,
			 const K8s__EndpointHints *message, struct slice_writer *writer)
{
	size_t n_zones = message->n_forzones, n_nodes = message->n_fornodes;
	cleanup_free const char **names = xcalloc(n_zones + n_nodes, sizeof(*names));
	const struct endpoint_hints hints = {names, n_zones, names + n_zones, n_nodes};

	for (size_t i = 0; i < n_zones; i++)
		names[i] = convert_text(message->forzones[i]->name);
	for (size_t i = 0; i < n_nodes; i++)
		names[n_zones + i] = convert_text(message->fornodes[i]->name);
	slice_writer_endpoint(writer, addr, flags, &hints);
}

/* Only the first address counts, and an endpoint without any does not. */
static int read_endpoint(const K8s__SliceEndpoint *message, const char *node_name,
			 struct slice_writer *writer, struct err *err)
{
	unsigned int flags;
	struct addr addr;

	if (!message->n_addresses)
		return 0;
	if (addr_parse(message->addresses[0], &addr) < 0)
		return convert_refuse("the address", message->addresses[0], "is none", err);
	if (addr.family != writer->slice->family)
		return convert_refuse("the address", message->addresses[0],
				      "is not of the family that addressType names", err);
	flags = read_conditions(message->conditions) | convert_local(message->nodename, node_name);
	if (message->hints)
		write_hinted(&addr, flags, message->hints, writer);
	else
		slice_writer_endpoint(writer, &addr, flags, NULL);
	return 0;
}

/* An error if there are endpoints that cannot be used, and no others. */
static int read_endpoints(const K8s__EndpointSlice *message, const char *node_name,
			  const struct convert_notes *notes, struct slice_writer *writer,
			  struct err *err)
{
	struct err why;

	why.code = 0;
	for (size_t i = 0; i < message->n_endpoints; i++) {
		int r = read_endpoint(message->endpoints[i], node_name, writer, &why);

		if (r == 0)
			continue;
		err_wrap(&why, r, "endpoints[%zu]", i);
		convert_note(notes, "%s, this endpoint is left out", why.text);
	}
	return convert_left(writer->slice->n_endpoints, &why, err);
}

static int64_t trigger_time(const K8s__ObjectMeta *metadata)
{
	const char *text = convert_annotation(metadata, ANNOTATION_TRIGGER_TIME);
	int64_t seconds;
	int32_t nanos;

	if (!text || rfc3339_parse(text, &seconds, &nanos) < 0 || seconds < 0 ||
	    seconds > SECONDS_MAX)
		return 0;
	return seconds * 1000000000 + nanos;
}

static int read_family(const char *type, enum family *ret, struct err *err)
{
	for (int family = 0; family < FAMILY_COUNT; family++) {
		if (streq(type, family_name(family))) {
			*ret = family;
			return 0;
		}
	}
	return convert_refuse("addressType", type, "is none of IPv4, IPv6 and FQDN", err);
}

static enum convert_skip why_skip(const K8s__EndpointSlice *message)
{
	if (convert_label(message->metadata, LABEL_HEADLESS))
		return CONVERT_SKIP_HEADLESS;
	if (!*convert_text(convert_label(message->metadata, LABEL_SERVICE_NAME)))
		return CONVERT_SKIP_NO_SERVICE;
	if (streq(convert_text(message->addresstype), "FQDN"))
		return CONVERT_SKIP_FQDN;
	return CONVERT_SKIP_NONE;
}

static int fill(const K8s__EndpointSlice *message, const char *node_name,
		const struct convert_notes *notes, struct slice_writer *writer, struct err *err)
{
	struct convert_gathered gathered = {0};
	const struct convert_notes own = convert_gather(&gathered);
	int r = read_ports(message, &own, writer, err);

	if (r == 0)
		r = read_endpoints(message, node_name, &own, writer, err);
	convert_tell(&gathered, r < 0 ? NULL : notes);
	return r;
}

int convert_slice(const K8s__EndpointSlice *message, const char *node_name,
		  const struct convert_notes *notes, struct slice **ret,
		  enum convert_skip *ret_skip, struct err *err)
{
	const K8s__ObjectMeta *metadata = message->metadata;
	struct slice_writer writer;
	struct slice *slice;
	enum convert_skip skip;
	enum family family = FAMILY_IPV4;
	const char *service;
	int r = convert_check_names(metadata, false, err);

	if (r < 0)
		return r;
	skip = why_skip(message);
	if (skip != CONVERT_SKIP_NONE) {
		*ret_skip = skip;
		return 0;
	}
	service = convert_label(metadata, LABEL_SERVICE_NAME);
	if (!k8s_name_is_label(service))
		return convert_refuse("label " LABEL_SERVICE_NAME, service,
				      "is not a name that Kubernetes allows", err);
	r = read_family(convert_text(message->addresstype), &family, err);
	if (r < 0)
		return r;
	slice_writer_init(&writer, metadata->namespace_, metadata->name, service, family);
	r = fill(message, node_name, notes, &writer, err);
	slice = slice_writer_finish(&writer);
	if (r < 0) {
		slice_unref(slice);
		return r;
	}
	slice->trigger_time_ns = trigger_time(metadata);
	*ret = slice;
	return 1;
}

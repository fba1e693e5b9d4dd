/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/convert.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "sources/k8s_name.h"
#include "sources/printable.h"

const char *convert_skip_text(enum convert_skip skip)
{
	static const char *const texts[] = {
		[CONVERT_SKIP_NONE] = "it is used",
		[CONVERT_SKIP_OTHER_PROXY] =
			"its label " LABEL_PROXY_NAME " leaves it to another proxy",
		[CONVERT_SKIP_HEADLESS] = "it is headless",
		[CONVERT_SKIP_EXTERNAL_NAME] = "its type is ExternalName",
		[CONVERT_SKIP_NO_CLUSTER_IP] = "it has no cluster IP",
		[CONVERT_SKIP_NO_PORTS] = "it has no ports",
		[CONVERT_SKIP_NO_SERVICE] = "it has no label " LABEL_SERVICE_NAME,
		[CONVERT_SKIP_FQDN] = "its addressType is FQDN",
		[CONVERT_SKIP_NOT_MIRRORED] = "its label " LABEL_SKIP_MIRROR " asks for it",
	};

	static_assert(ARRAY_SIZE(texts) == CONVERT_SKIP_COUNT, "a text for each reason");
	return texts[skip];
}

bool convert_skip_is_mistake(enum convert_skip skip)
{
	return skip == CONVERT_SKIP_NO_CLUSTER_IP || skip == CONVERT_SKIP_NO_PORTS;
}

const char *convert_text(const char *field)
{
	return field ? field : "";
}

const char *convert_label(const K8s__ObjectMeta *metadata, const char *key)
{
	for (size_t i = 0; metadata && i < metadata->n_labels; i++)
		if (streq(convert_text(metadata->labels[i]->key), key))
			return convert_text(metadata->labels[i]->value);
	return NULL;
}

const char *convert_annotation(const K8s__ObjectMeta *metadata, const char *key)
{
	for (size_t i = 0; metadata && i < metadata->n_annotations; i++)
		if (streq(convert_text(metadata->annotations[i]->key), key))
			return convert_text(metadata->annotations[i]->value);
	return NULL;
}

void convert_note(const struct convert_notes *notes, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	if (!notes || !notes->fn)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	notes->fn(notes->arg, text);
}

static void gather(void *arg, const char *text)
{
	struct convert_gathered *gathered = arg;

	if (gathered->n < CONVERT_NOTES_MAX)
		gathered->texts[gathered->n] = xstrdup(text);
	gathered->n++;
}

struct convert_notes convert_gather(struct convert_gathered *gathered)
{
	return (struct convert_notes){.fn = gather, .arg = gathered};
}

void convert_tell(struct convert_gathered *gathered, const struct convert_notes *to)
{
	for (size_t i = 0; i < MIN(gathered->n, CONVERT_NOTES_MAX); i++) {
		convert_note(to, "%s", gathered->texts[i]);
		free(gathered->texts[i]);
	}
	if (gathered->n > CONVERT_NOTES_MAX)
		convert_note(to, "and %zu more", gathered->n - CONVERT_NOTES_MAX);
	*gathered = (struct convert_gathered){0};
}

int convert_left(size_t n_left, const struct err *why, struct err *err)
{
	if (n_left > 0 || why->code == 0)
		return 0;
	*err = *why;
	return why->code;
}

int convert_refuse(const char *field, const char *value, const char *why, struct err *err)
{
	char text[80];

	return err_set(err, -EINVAL, "%s \"%s\" %s", field, printable(value, text, sizeof(text)),
		       why);
}

int convert_check_name(const K8s__ObjectMeta *metadata, bool is_label, struct err *err)
{
	const char *name = convert_text(metadata ? metadata->name : NULL);

	if (!*name)
		return err_set(err, -EINVAL, "metadata.name is missing");
	if (!(is_label ? k8s_name_is_label(name) : k8s_name_is_subdomain(name)))
		return convert_refuse("metadata.name", name, "is not a name that Kubernetes allows",
				      err);
	return 0;
}

int convert_check_names(const K8s__ObjectMeta *metadata, bool name_is_label, struct err *err)
{
	const char *ns = convert_text(metadata ? metadata->namespace_ : NULL);
	int r = convert_check_name(metadata, name_is_label, err);

	if (r < 0)
		return r;
	if (!*ns)
		return err_set(err, -EINVAL, "metadata.namespace is missing");
	if (!k8s_name_is_label(ns))
		return convert_refuse("metadata.namespace", ns,
				      "is not a name that Kubernetes allows", err);
	return 0;
}

int convert_port_number(const char *field, int64_t number, uint16_t *ret, struct err *err)
{
	if (number < 1 || number > 65535)
		return err_set(err, -ERANGE, "%s %lld is not between 1 and 65535", field,
			       (long long)number);
	*ret = (uint16_t)number;
	return 0;
}

int convert_protocol(const char *field, const char *name, enum protocol *ret, struct err *err)
{
	*ret = PROTOCOL_TCP;
	if (!name || !*name)
		return 0;
	if (protocol_parse(name, ret) < 0)
		return convert_refuse(field, name, "is none of TCP, UDP and SCTP", err);
	return 0;
}

int convert_check_port_name(const char *field, const char *name, struct err *err)
{
	if (*name && !k8s_name_is_label(name))
		return convert_refuse(field, name, "is not a name that Kubernetes allows", err);
	return 0;
}

int convert_slice_port(const char *name, const char *protocol, int64_t number,
		       struct slice_writer *writer, struct err *err)
{
	enum protocol known = PROTOCOL_TCP;
	uint16_t port = 0;
	int r = convert_check_port_name("a port's name", name, err);

	if (r == 0)
		r = convert_protocol("a port's protocol", protocol, &known, err);
	if (r == 0)
		r = convert_port_number("port", number, &port, err);
	if (r == 0)
		slice_writer_port(writer, name, known, port);
	return r;
}

unsigned int convert_local(const char *node, const char *node_name)
{
	return *node_name && streq(convert_text(node), node_name) ? ENDPOINT_LOCAL : 0;
}

int convert_object(enum object_kind kind, const ProtobufCMessage *message, const char *node_name,
		   const struct convert_notes *notes, struct object *ret,
		   enum convert_skip *ret_skip, struct err *err)
{
	int r;

	ret->kind = kind;
	switch (kind) {
	case OBJECT_SERVICE:
		return convert_service((const K8s__Service *)message, notes, &ret->service,
				       ret_skip, err);
	case OBJECT_SLICE:
		return convert_slice((const K8s__EndpointSlice *)message, node_name, notes,
				     &ret->slice, ret_skip, err);
	case OBJECT_NODE:
		r = convert_node((const K8s__Node *)message, notes, &ret->node, err);
		break;
	default:
		r = convert_service_cidr((const K8s__ServiceCIDR *)message, &ret->cidr, err);
	}
	return r < 0 ? r : 1;
}

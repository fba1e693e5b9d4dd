/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Endpoints become slices as the mirroring controller would make them: a subset is a set of
 * addresses that all have the same ports, which is what a slice is, for one family.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "sources/convert.h"
#include "sources/k8s_name.h"

#define NAME_MAX_BYTES (K8S_LABEL_MAX + 32)

/* A slice on its way. */
struct fill {
	struct slice_writer writer;
	const char *node_name;
	const struct convert_notes *notes;
};

/* An error if there are ports that cannot be used, and no others. */
static int read_ports(const K8s__EndpointsSubset *subset, const struct convert_notes *notes,
		      struct slice_writer *writer, struct err *err)
{
	struct err why;

	why.code = 0;
	for (size_t i = 0; i < subset->n_ports; i++) {
		const K8s__EndpointsPort *port = subset->ports[i];
		int r = convert_slice_port(convert_text(port->name), port->protocol,
					   port->has_port ? port->port : 0, writer, &why);

		if (r == 0)
			continue;
		err_wrap(&why, r, "ports[%zu]", i);
		convert_note(notes, "%s, this port is left out", why.text);
	}
	return convert_left(writer->slice->n_ports, &why, err);
}

/* Adds the addresses of the slice's family. Returns how many are addresses, of either. */
static size_t read_addresses(K8s__EndpointsAddress *const *addresses, size_t n, unsigned int flags,
			     struct fill *fill, struct err *why)
{
	size_t n_good = 0;

	for (size_t i = 0; i < n; i++) {
		const char *ip = convert_text(addresses[i]->ip);
		struct addr addr;

		if (addr_parse(ip, &addr) < 0) {
			convert_refuse("the address", ip, "is none", why);
			convert_note(fill->notes, "%s, it is left out", why->text);
			continue;
		}
		n_good++;
		slice_writer_endpoint(
			&fill->writer, &addr,
			flags | convert_local(addresses[i]->nodename, fill->node_name), NULL);
	}
	return n_good;
}

static int fill_slice(const K8s__EndpointsSubset *subset, struct fill *fill, struct err *err)
{
	struct err why;
	size_t n;
	int r = read_ports(subset, fill->notes, &fill->writer, err);

	if (r < 0)
		return r;
	why.code = 0;
	n = read_addresses(subset->addresses, subset->n_addresses,
			   ENDPOINT_READY | ENDPOINT_SERVING, fill, &why);
	n += read_addresses(subset->notreadyaddresses, subset->n_notreadyaddresses,
			    ENDPOINT_SERVING, fill, &why);
	return convert_left(n, &why, err);
}

static struct slice **free_slices(struct slice **slices, size_t n)
{
	for (size_t i = 0; i < n; i++)
		slice_unref(slices[i]);
	free(slices);
	return NULL;
}

static int add_slice(const K8s__Endpoints *message, size_t subset, enum family family,
		     struct fill *fill, struct slice **slices, size_t *n, struct err *err)
{
	const K8s__ObjectMeta *metadata = message->metadata;
	char name[NAME_MAX_BYTES];
	struct slice *slice;
	int r;

	/* '~' is in no EndpointSlice's name */
	snprintf(name, sizeof(name), "%s~%zu-%s", metadata->name, subset, family_name(family));
	slice_writer_init(&fill->writer, metadata->namespace_, name, metadata->name, family);
	r = fill_slice(message->subsets[subset], fill, err);
	slice = slice_writer_finish(&fill->writer);
	if (r < 0)
		r = err_wrap(err, r, "subsets[%zu]", subset);
	if (r < 0 || !slice->n_endpoints)
		slice_unref(slice);
	else
		slices[(*n)++] = slice;
	return r;
}

int convert_endpoints(const K8s__Endpoints *message, const char *node_name,
		      const struct convert_notes *notes, struct slice ***ret, size_t *ret_n,
		      enum convert_skip *ret_skip, struct err *err)
{
	struct convert_gathered gathered = {0};
	const struct convert_notes own = convert_gather(&gathered);
	const K8s__ObjectMeta *metadata = message->metadata;
	struct slice **slices;
	size_t n = 0;
	int r = convert_check_names(metadata, true, err);

	if (r < 0)
		return r;
	if (convert_label(metadata, LABEL_HEADLESS)) {
		*ret_skip = CONVERT_SKIP_HEADLESS;
		return 0;
	}
	if (streq(convert_text(convert_label(metadata, LABEL_SKIP_MIRROR)), "true")) {
		*ret_skip = CONVERT_SKIP_NOT_MIRRORED;
		return 0;
	}
	slices = xcalloc(message->n_subsets * FAMILY_COUNT, sizeof(struct slice *));
	for (size_t i = 0; i < message->n_subsets * FAMILY_COUNT && r == 0; i++) {
		enum family family = i % FAMILY_COUNT;
		/* what is left out is so for both families, and told once */
		struct fill fill = {.node_name = node_name,
				    .notes = family == FAMILY_IPV4 ? &own : NULL};

		r = add_slice(message, i / FAMILY_COUNT, family, &fill, slices, &n, err);
	}
	convert_tell(&gathered, r < 0 ? NULL : notes);
	if (r < 0) {
		free_slices(slices, n);
		return r;
	}
	*ret = slices;
	*ret_n = n;
	return 1;
}

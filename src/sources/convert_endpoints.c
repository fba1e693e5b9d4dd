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

static int read_port(const K8s__EndpointsPort *message, struct slice *slice, struct err *err)
{
	struct slice_port *port = &slice->ports[slice->n_ports];
	int r = convert_check_port_name("a port's name", convert_text(message->name), err);

	if (r == 0)
		r = convert_protocol("a port's protocol", message->protocol, &port->protocol, err);
	if (r == 0)
		r = convert_port_number("port", message->has_port ? message->port : 0, &port->port,
					err);
	if (r < 0)
		return r;
	port->name = arena_strdup(slice->arena, convert_text(message->name));
	slice->n_ports++;
	return 0;
}

/* An error if there are ports that cannot be used, and no others. */
static int read_ports(const K8s__EndpointsSubset *subset, const struct convert_notes *notes,
		      struct slice *slice, struct err *err)
{
	struct err why;

	why.code = 0;
	slice->ports = arena_array(slice->arena, subset->n_ports, sizeof(*slice->ports));
	for (size_t i = 0; i < subset->n_ports; i++) {
		int r = read_port(subset->ports[i], slice, &why);

		if (r == 0)
			continue;
		err_wrap(&why, r, "ports[%zu]", i);
		convert_note(notes, "%s, this port is left out", why.text);
	}
	return convert_left(slice->n_ports, &why, err);
}

/* Adds the addresses of the slice's family. Returns how many are addresses, of either. */
static size_t read_addresses(K8s__EndpointsAddress *const *addresses, size_t n, uint8_t flags,
			     const struct convert_notes *notes, struct slice *slice,
			     struct err *why)
{
	size_t n_good = 0;

	for (size_t i = 0; i < n; i++) {
		struct slice_endpoint *endpoint = &slice->endpoints[slice->n_endpoints];
		const char *node = convert_text(addresses[i]->nodename);
		const char *ip = convert_text(addresses[i]->ip);
		struct addr addr;

		if (addr_parse(ip, &addr) < 0) {
			convert_refuse("the address", ip, "is none", why);
			convert_note(notes, "%s, it is left out", why->text);
			continue;
		}
		n_good++;
		if (addr.family != slice->family)
			continue;
		endpoint->addr = addr;
		endpoint->flags = flags;
		endpoint->node = *node ? arena_strdup(slice->arena, node) : NULL;
		slice->n_endpoints++;
	}
	return n_good;
}

static int fill(const K8s__EndpointsSubset *subset, const struct convert_notes *notes,
		struct slice *slice, struct err *err)
{
	struct err why;
	size_t n;
	int r = read_ports(subset, notes, slice, err);

	if (r < 0)
		return r;
	why.code = 0;
	slice->endpoints =
		arena_array(slice->arena, subset->n_addresses + subset->n_notreadyaddresses,
			    sizeof(*slice->endpoints));
	n = read_addresses(subset->addresses, subset->n_addresses,
			   ENDPOINT_READY | ENDPOINT_SERVING, notes, slice, &why);
	n += read_addresses(subset->notreadyaddresses, subset->n_notreadyaddresses,
			    ENDPOINT_SERVING, notes, slice, &why);
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
		     const struct convert_notes *notes, struct slice **slices, size_t *n,
		     struct err *err)
{
	const K8s__ObjectMeta *metadata = message->metadata;
	char name[NAME_MAX_BYTES];
	struct slice *slice;
	int r;

	/* '~' is in no EndpointSlice's name */
	snprintf(name, sizeof(name), "%s~%zu-%s", metadata->name, subset, family_name(family));
	slice = slice_new(metadata->namespace_, name, metadata->name, family);
	/* what is left out is so for both families, and told once */
	r = fill(message->subsets[subset], family == FAMILY_IPV4 ? notes : NULL, slice, err);
	if (r < 0)
		r = err_wrap(err, r, "subsets[%zu]", subset);
	if (r < 0 || !slice->n_endpoints)
		slice_unref(slice);
	else
		slices[(*n)++] = slice;
	return r;
}

int convert_endpoints(const K8s__Endpoints *message, const struct convert_notes *notes,
		      struct slice ***ret, size_t *ret_n, enum convert_skip *ret_skip,
		      struct err *err)
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
	for (size_t i = 0; i < message->n_subsets * FAMILY_COUNT && r == 0; i++)
		r = add_slice(message, i / FAMILY_COUNT, i % FAMILY_COUNT, &own, slices, &n, err);
	convert_tell(&gathered, r < 0 ? NULL : notes);
	if (r < 0) {
		free_slices(slices, n);
		return r;
	}
	*ret = slices;
	*ret_n = n;
	return 1;
}

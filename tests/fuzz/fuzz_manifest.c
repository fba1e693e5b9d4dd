/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bytes as a manifest: text to tree, tree to message, defaults, conversion; once as YAML and once
 * as JSON. The second reading keeps what the first one gave, as a file that is saved twice does.
 *
 *	meson setup -Dfuzz=true build-fuzz && ninja -C build-fuzz fuzz_manifest
 *	build-fuzz/tests/fuzz/fuzz_manifest -dict=tests/fuzz/manifest.dict
 * tests/fuzz/corpus/manifest
 *
 * What it finds goes to regressions/manifest, which the unit tests replay.
 */

#include <assert.h>

#include "sources/k8s_name.h"
#include "sources/manifest_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What nothing behind the conversion checks again. */
static void check_service(const struct service *service)
{
	assert(k8s_name_is_label(service->ns) && k8s_name_is_label(service->name));
	assert(service->has_cluster_ip[FAMILY_IPV4] || service->has_cluster_ip[FAMILY_IPV6]);
	assert(service->n_ports > 0);
	for (size_t i = 0; i < service->n_ports; i++) {
		assert(!*service->ports[i].name || k8s_name_is_label(service->ports[i].name));
		assert(service->ports[i].port);
		assert(service->ports[i].protocol < PROTOCOL_COUNT);
	}
}

static void check_slice(const struct slice *slice)
{
	const char *at = slice_read(slice);

	for (size_t i = 0; i < slice->n_ports; i++) {
		struct slice_port port = slice_next_port(&at);

		assert(port.port && port.protocol < PROTOCOL_COUNT);
	}
	for (size_t i = 0; i < slice->n_endpoints; i++)
		slice_next_endpoint(slice, &at);
	assert(at == slice->data + slice->size);
}

static void check_cidr(const struct service_cidr *cidr)
{
	assert(k8s_name_is_subdomain(cidr->name));
	assert(cidr->n_cidrs == 1 ||
	       (cidr->n_cidrs == 2 && cidr->cidrs[0].addr.family != cidr->cidrs[1].addr.family));
}

/* Each message to a person is one line. */
static void check_line(const char *text)
{
	assert(*text && !strpbrk(text, "\r\n\t\x1b"));
}

static void check_object(struct object object)
{
	if (object.kind == OBJECT_SERVICE)
		check_service(object.service);
	else if (object.kind == OBJECT_SLICE)
		check_slice(object.slice);
	else if (object.kind == OBJECT_SERVICE_CIDR)
		check_cidr(object.cidr);
}

static void check(const struct manifest_file *file)
{
	for (size_t i = 0; i < file->n_objects; i++) {
		for (size_t j = 0; j < file->objects[i].n; j++)
			check_object(file->objects[i].v[j]);
	}
	for (size_t i = 0; i < file->n_notices; i++)
		check_line(file->notices[i].text);
}

static void read_as(const char *name, const char *text, size_t n)
{
	struct manifest_file *file = manifest_file_new("dir", name);
	struct err err;

	for (int i = 0; i < 2; i++)
		if (manifest_file_parse(file, text, n, "node-a", &err) < 0)
			check_line(err.text);
	check(file);
	manifest_file_free(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	read_as("f.yaml", (const char *)data, size);
	read_as("f.json", (const char *)data, size);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "sources/convert.h"
#include "sources/printable.h"

#define TAINT_AUTOSCALER "ToBeDeletedByClusterAutoscaler"

static void read_addresses(const K8s__NodeStatus *status, const char *type,
			   const struct convert_notes *notes, struct node *node)
{
	for (size_t i = 0; i < status->n_addresses; i++) {
		const char *text = convert_text(status->addresses[i]->address);
		char clean[64];

		if (!streq(convert_text(status->addresses[i]->type), type))
			continue;
		if (addr_parse(text, &node->addresses[node->n_addresses]) == 0)
			node->n_addresses++;
		else
			convert_note(notes, "status.addresses: %s \"%s\" is not an address", type,
				     printable(text, clean, sizeof(clean)));
	}
}

static void read_status(const K8s__NodeStatus *status, const struct convert_notes *notes,
			struct node *node)
{
	if (!status)
		return;
	node->addresses = arena_array(node->arena, status->n_addresses, sizeof(*node->addresses));
	read_addresses(status, "InternalIP", notes, node);
	read_addresses(status, "ExternalIP", notes, node);
}

static int read_pod_cidrs(const K8s__NodeSpec *spec, struct node *node, struct err *err)
{
	bool single = !spec->n_podcidrs && *convert_text(spec->podcidr);
	size_t n = single ? 1 : spec->n_podcidrs;

	node->pod_cidrs = arena_array(node->arena, n, sizeof(*node->pod_cidrs));
	for (size_t i = 0; i < n; i++) {
		const char *text = single ? spec->podcidr : spec->podcidrs[i];

		if (prefix_parse(text, &node->pod_cidrs[i]) < 0)
			return convert_refuse("spec.podCIDRs", text, "is not a range", err);
	}
	node->n_pod_cidrs = n;
	return 0;
}

static int fill(const K8s__Node *message, const struct convert_notes *notes, struct node *node,
		struct err *err)
{
	const K8s__ObjectMeta *metadata = message->metadata;
	const char *zone = convert_label(metadata, LABEL_ZONE);
	const K8s__NodeSpec *spec = message->spec;

	node->zone = arena_strdup(node->arena, convert_text(zone));
	node->being_deleted = metadata && metadata->deletiontimestamp != NULL;
	read_status(message->status, notes, node);
	if (!spec)
		return 0;
	for (size_t i = 0; i < spec->n_taints; i++)
		if (streq(convert_text(spec->taints[i]->key), TAINT_AUTOSCALER))
			node->autoscaler_taint = true;
	return read_pod_cidrs(spec, node, err);
}

int convert_node(const K8s__Node *message, const struct convert_notes *notes, struct node **ret,
		 struct err *err)
{
	struct node *node;
	int r = convert_check_name(message->metadata, false, err);

	if (r < 0)
		return r;
	node = node_new(message->metadata->name);
	r = fill(message, notes, node, err);
	if (r < 0) {
		node_unref(node);
		return r;
	}
	*ret = node;
	return 0;
}

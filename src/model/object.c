/* SPDX-License-Identifier: Apache-2.0 */
#include "model/object.h"

const char *object_key(struct object object)
{
	switch (object.kind) {
	case OBJECT_SERVICE:
		return object.service->key;
	case OBJECT_SLICE:
		return slice_key(object.slice);
	case OBJECT_NODE:
		return object.node->name;
	default:
		return object.cidr->name;
	}
}

struct object object_ref(struct object object)
{
	switch (object.kind) {
	case OBJECT_SERVICE:
		service_ref(object.service);
		break;
	case OBJECT_SLICE:
		slice_ref(object.slice);
		break;
	case OBJECT_NODE:
		node_ref(object.node);
		break;
	default:
		service_cidr_ref(object.cidr);
	}
	return object;
}

void object_unref(struct object object)
{
	switch (object.kind) {
	case OBJECT_SERVICE:
		service_unref(object.service);
		break;
	case OBJECT_SLICE:
		slice_unref(object.slice);
		break;
	case OBJECT_NODE:
		node_unref(object.node);
		break;
	default:
		service_cidr_unref(object.cidr);
	}
}

bool object_equal(struct object a, struct object b)
{
	if (a.service == b.service)
		return true; /* the same one, of whichever kind */
	switch (a.kind) {
	case OBJECT_SERVICE:
		return service_equal(a.service, b.service, FAMILY_IPV4) &&
		       service_equal(a.service, b.service, FAMILY_IPV6);
	case OBJECT_SLICE:
		return slice_equal(a.slice, b.slice);
	case OBJECT_NODE:
		return node_equal(a.node, b.node);
	default:
		return service_cidr_equal(a.cidr, b.cidr);
	}
}

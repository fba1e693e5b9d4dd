/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Any of the objects that a source reads and the model keeps, with a reference to it. */

#include "model/node.h"
#include "model/service_cidr.h"
#include "model/slice.h"

enum object_kind {
	OBJECT_SERVICE = 0,
	OBJECT_SLICE,
	OBJECT_NODE,
	OBJECT_SERVICE_CIDR,
	OBJECT_KIND_COUNT,
};

struct object {
	enum object_kind kind;
	union {
		struct service *service;
		struct slice *slice;
		struct node *node;
		struct service_cidr *cidr;
	};
};

const char *object_key(struct object object); /* "namespace/name", or its name; borrowed */
struct object object_ref(struct object object);
void object_unref(struct object object);
/* Of the same kind: do they ask for the same here? */
bool object_equal(struct object a, struct object b);

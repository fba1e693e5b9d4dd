/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/api_object.h"

#include <errno.h>
#include <stddef.h>

#include "sources/convert.h"

/* Every kind has its metadata where a K8s__Object has it. */
#define HAS_METADATA(kind)                                                          \
	_Static_assert(offsetof(kind, metadata) == offsetof(K8s__Object, metadata), \
		       "metadata comes first")
HAS_METADATA(K8s__Service);
HAS_METADATA(K8s__EndpointSlice);
HAS_METADATA(K8s__Node);
HAS_METADATA(K8s__ServiceCIDR);

/* Each piece of memory has its size in front: a string's length on the wire, where it may have a NUL
 * inside. */
static void *take_counted(void *arena, size_t size)
{
	size_t *memory = arena_alloc(arena, sizeof(*memory) + size);

	*memory = size;
	return memory + 1;
}

static void drop_nothing(void *arena attr_unused, void *memory attr_unused)
{
}

void *api_unpack(const ProtobufCMessageDescriptor *type, struct api_bytes bytes,
		 struct arena *arena)
{
	ProtobufCAllocator allocator = {take_counted, drop_nothing, arena};

	return protobuf_c_message_unpack(type, &allocator, bytes.n, bytes.data);
}

/* Of a string that api_unpack() has read; NULL has none. */
static bool has_nul(const char *text)
{
	size_t size;

	if (!text)
		return false;
	memcpy(&size, text - sizeof(size), sizeof(size));
	return strlen(text) + 1 != size;
}

int api_object_read(const ProtobufCMessageDescriptor *type, struct api_bytes bytes,
		    struct arena *arena, struct api_object *ret, struct err *err)
{
	static const K8s__ObjectMeta none = K8S__OBJECT_META__INIT;
	struct api_object object = {.message = api_unpack(type, bytes, arena)};
	const K8s__Object *any = (const K8s__Object *)object.message;

	if (!any)
		any = api_unpack(&k8s__object__descriptor, bytes, arena);
	if (!any)
		return err_set(err, -EBADMSG, "an object that cannot be read");
	object.metadata = any->metadata ? any->metadata : &none;
	object.nul = has_nul(object.metadata->name) || has_nul(object.metadata->namespace_);
	*ret = object;
	return 0;
}

char *api_object_key(const struct api_object *object)
{
	const char *name = convert_text(object->metadata->name);
	const char *ns = convert_text(object->metadata->namespace_);

	return *ns ? xasprintf("%s/%s", ns, name) : xstrdup(name);
}

int api_status_read(struct api_bytes bytes, struct arena *arena, struct api_status *ret,
		    struct err *err)
{
	const K8s__Status *status = api_unpack(&k8s__status__descriptor, bytes, arena);

	if (!status)
		return err_set(err, -EBADMSG, "a Status that cannot be read");
	*ret = (struct api_status){
		.code = MAX(status->code, 0),
		.retry_after_s = status->details ? MAX(status->details->retryafterseconds, 0) : 0,
		.message = convert_text(status->message),
	};
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "model/slice.h"

#include <assert.h>
#include <stdlib.h>

#include "model/packed.h"

struct slice *slice_new(const char *ns, const char *name, const char *service_name,
			enum family family)
{
	struct arena *arena = arena_new(sizeof(struct slice) + 512);
	struct slice *slice = arena_alloc(arena, sizeof(*slice));

	slice->refs = 1;
	slice->arena = arena;
	slice->key = arena_printf(arena, "%s/%s", ns, name);
	slice->service_key = arena_printf(arena, "%s/%s", ns, service_name);
	slice->family = family;
	return slice;
}

struct slice *slice_ref(struct slice *slice)
{
	slice->refs++;
	return slice;
}

struct slice *slice_unref(struct slice *slice)
{
	if (!slice)
		return NULL;
	assert(slice->refs > 0);
	if (--slice->refs == 0)
		arena_free(slice->arena);
	return NULL;
}

bool slice_equal(const struct slice *a, const struct slice *b)
{
	cleanup_free struct packed *x = NULL;
	cleanup_free struct packed *y = NULL;

	if (a == b)
		return true; /* as nearly all of a folder are when one file has changed */
	x = packed_new(a);
	y = packed_new(b);
	return packed_equal(x, y);
}

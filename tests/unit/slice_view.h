/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What stands in a slice, all at once, for tests; of a small one. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/slice.h"

#define SLICE_VIEW_MAX 16

struct slice_view {
	struct slice_port ports[SLICE_VIEW_MAX];
	struct slice_endpoint endpoints[SLICE_VIEW_MAX];
	const struct endpoint_hints *hints[SLICE_VIEW_MAX]; /* of each endpoint; NULL: none */
};

/* Borrows strings from the slice; hints live in the arena. */
attr_unused static struct slice_view slice_view(const struct slice *slice, struct arena *arena)
{
	const char *at = slice_read(slice);
	struct slice_view view = {0};

	assert_true(slice->n_ports <= SLICE_VIEW_MAX && slice->n_endpoints <= SLICE_VIEW_MAX);
	for (size_t i = 0; i < slice->n_ports; i++)
		view.ports[i] = slice_next_port(&at);
	for (size_t i = 0; i < slice->n_endpoints; i++) {
		view.endpoints[i] = slice_next_endpoint(slice, &at);
		if (view.endpoints[i].hints)
			view.hints[i] = slice_hints_open(view.endpoints[i].hints, arena);
	}
	assert_ptr_equal(at, slice->data + slice->size);
	return view;
}

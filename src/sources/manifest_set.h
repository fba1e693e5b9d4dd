/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * All files of a folder together: which object counts where two claim a name, and what of that the
 * sink does not know yet.
 */

#include "base/map.h"
#include "sources/manifest_file.h"
#include "sources/manifests.h"

/* Objects of one kind. */
struct manifest_items {
	struct object *v; /* by key */
	size_t n, capacity;
};

struct manifest_set {
	struct manifest_file **files; /* by name; owned */
	size_t n_files, files_capacity;

	/* what the sink was told */
	struct manifest_items items[OBJECT_KIND_COUNT];
	struct map notices; /* those said and still true; keys are owned, values are the keys */
};

void manifest_set_done(struct manifest_set *set);
struct manifest_file *manifest_set_find(const struct manifest_set *set, const char *name);
/* Takes over the file; there must be none of its name. */
void manifest_set_add(struct manifest_set *set, struct manifest_file *file);
/* Removes and frees. */
void manifest_set_remove(struct manifest_set *set, size_t index);
/* Brings the sink to what the files say, and says what has not been said. */
void manifest_set_apply(struct manifest_set *set, const struct source_sink *sink,
			manifests_report_fn *report, void *report_arg);
size_t manifest_set_problems(const struct manifest_set *set); /* broken files and refused objects */

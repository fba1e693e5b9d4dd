/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * All files of a folder together: which object counts where two claim a name, and what of that the
 * sink does not know yet. A change costs what the changed files hold, however large the folder is.
 */

#include "base/map.h"
#include "sources/manifest_file.h"
#include "sources/manifests.h"

struct manifest_set {
	struct manifest_file **files; /* by name; owned */
	size_t n_files, files_capacity;
	struct map names;               /* id -> struct manifest_name */
	struct manifest_name **changed; /* names to look at in manifest_set_apply() */
	size_t n_changed, changed_capacity;
	size_t n_services; /* that the sink was told */
};

void manifest_set_done(struct manifest_set *set);
struct manifest_file *manifest_set_find(const struct manifest_set *set, const char *name);
/* Takes over the file, which has not been read; there must be none of its name. */
void manifest_set_add(struct manifest_set *set, struct manifest_file *file);
/* manifest_file_read() of one of the files. */
int manifest_set_read(struct manifest_set *set, struct manifest_file *file, int dir_fd,
		      const char *node_name, struct err *err);
/* Removes and frees. */
void manifest_set_remove(struct manifest_set *set, size_t index);
/* Brings the sink to what the files say, and tells which objects do not count, unless that was told
 * before. */
void manifest_set_apply(struct manifest_set *set, const struct source_sink *sink,
			manifests_report_fn *report, void *report_arg);
size_t manifest_set_problems(const struct manifest_set *set); /* broken files and refused objects */

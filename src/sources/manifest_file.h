/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One manifest file: the objects in it that concern a proxy, and what there is to say about the
 * rest.
 */

#include <sys/stat.h>

#include "base/err.h"
#include "base/log.h"
#include "model/object.h"

/* An object that is known but not used (a headless Service) has no content: it still takes its
 * name. */
struct manifest_object {
	char *id; /* "Service default/web" */
	unsigned int line;
	struct object *v; /* several slices of Endpoints, else one at most */
	size_t n;

	/* for manifest_set.c: the objects that claim this name */
	const struct manifest_file *file;
	struct manifest_object *next, **link;
};

struct manifest_notice {
	enum log_severity severity;
	bool known; /* the version before had it, too */
	char *text;
};

/* What tells one version of a file from another. */
struct manifest_signature {
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec mtime, ctime;
};

struct manifest_file {
	char *path;
	const char *name; /* in the folder: the end of path */
	struct manifest_signature signature;
	bool broken;  /* the newest version is; these are the objects of an older one */
	bool seen;    /* by the scan at hand */
	bool missing; /* was not there when last looked for */
	struct manifest_object *objects;
	size_t n_objects;
	struct manifest_notice *notices;
	size_t n_notices;
	size_t n_problems; /* objects that are not in force for a mistake in them */
};

struct manifest_signature manifest_signature(const struct stat *st);
bool manifest_signature_equal(const struct manifest_signature *a,
			      const struct manifest_signature *b);

/* A file of which nothing is known yet. */
struct manifest_file *manifest_file_new(const char *dir, const char *name);
struct manifest_file *
manifest_file_free(struct manifest_file *file); /* accepts NULL, returns NULL */

/*
 * Replaces a file's objects by those in the text: all of them or, with an error, none. An object
 * that is refused keeps its older version. Of Nodes only node_name's own counts.
 */
int manifest_file_parse(struct manifest_file *file, const char *text, size_t n,
			const char *node_name, struct err *err);
/*
 * Reads it from the folder and parses it. The signature is that of what was read, also when that is
 * broken. Returns 1; 0 when there is no such file (or it is none); or a negative error.
 */
int manifest_file_read(struct manifest_file *file, int dir_fd, const char *node_name,
		       struct err *err);

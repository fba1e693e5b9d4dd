/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The one reader of manifests: a YAML node becomes a protobuf-c message by following the message's
 * own descriptor, so there is one schema for files and for an API server.
 *
 *   - Types are checked as an API server would: a number in a string field is an error, and so is
 * "80" (quoted) where a number belongs. null means absent.
 *   - Fields that the schema does not have are ignored: it holds only what is used. One that looks
 *     like a mistake (see field_guess.h) is told.
 *   - A field given twice is an error; "<<" merges what is not given.
 *   - k8s.Time is RFC 3339 text; repeated messages of a `key` and a `value` are a mapping.
 *   - With `warn`, a field that the schema does not have, or that is given twice (the last one
 * counts), is reported and no error.
 *
 * Errors and warnings read FILE:LINE:COLUMN: OBJECT: FIELD: what is wrong.
 */

#include <protobuf-c/protobuf-c.h>

#include "sources/yaml_tree.h"

/* Who is being read, for errors. */
struct yaml_source {
	const char *file;
	const char *object; /* "Service default/web"; may be NULL */
	/* A key that is no field, and the field that may have been meant. May be NULL. */
	void (*unknown)(void *arg, const struct yaml_node *key, const char *meant);
	void (*warn)(void *arg, const char *text); /* may be NULL */
	void *arg;
};

/* The message and all it holds lie in the arena; its strings may be those of the node's. */
int yaml_message_read(const struct yaml_source *source, const struct yaml_node *node,
		      const ProtobufCMessageDescriptor *type, struct arena *arena,
		      ProtobufCMessage **ret, struct err *err);

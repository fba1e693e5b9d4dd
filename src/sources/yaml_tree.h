/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * YAML and JSON text as a tree of nodes that know where they stood.
 *
 * Input is foreign, so it has ceilings from the first byte on: the size of the text, the depth, the
 * number of documents, and the number of nodes, in which each use of an alias counts as much as
 * what it stands for (so a few lines cannot become a billion nodes; an alias inside its own anchor
 * is refused). A reader of the tree may therefore follow it without checks of its own.
 *
 * Errors read FILE:LINE:COLUMN: what is wrong. Lines and columns count from 1.
 */

#include "base/arena.h"
#include "base/err.h"
#include "sources/yaml_scalar.h"

#define YAML_MAX_BYTES     (64u << 20)
#define YAML_MAX_NODES     (8u << 20) /* in all documents of a file; 40 bytes each */
#define YAML_MAX_DEPTH     256u
#define YAML_MAX_DOCUMENTS 100000u

enum yaml_kind {
	YAML_KIND_SCALAR = 0,
	YAML_KIND_SEQUENCE,
	YAML_KIND_MAPPING,
	YAML_KIND_COUNT,
};

struct yaml_node {
	uint8_t kind;    /* enum yaml_kind */
	uint8_t type;    /* enum yaml_type of a scalar */
	uint16_t height; /* levels below and including this one */
	uint32_t line, column;
	uint32_t weight; /* nodes in it, aliases resolved */
	uint32_t n;      /* items, or pairs of a mapping, or bytes of a scalar's text */
	union {
		const char *text; /* with a NUL behind; may hold others */
		struct yaml_node **items;
		struct yaml_node **pairs; /* key, value, key, value, ...; keys are scalars */
	};
};

struct yaml_reader;

/* Text is borrowed until yaml_reader_free(). name is the file's, for errors; .json means JSON. */
int yaml_reader_new(const char *name, const char *text, size_t n, struct yaml_reader **ret,
		    struct err *err);
struct yaml_reader *yaml_reader_free(struct yaml_reader *reader); /* accepts NULL, returns NULL */
/* The next document, in the caller's arena: 1, or 0 at the end. After an error there is no next
 * one. */
int yaml_reader_next(struct yaml_reader *reader, struct arena *arena, struct yaml_node **ret,
		     struct err *err);

/* The value of a mapping's key, also one merged in with "<<"; NULL: none, or not a mapping. */
const struct yaml_node *yaml_node_get(const struct yaml_node *node, const char *key);
bool yaml_node_is_null(const struct yaml_node *node); /* NULL is null, too */
/* What it is, for an error: "a mapping", "the string \"80\"", "the integer 80". */
const char *yaml_node_describe(const struct yaml_node *node, char *out, size_t size);

DEFINE_CLEANUP(yaml_reader)
#define cleanup_yaml_reader attr_cleanup(yaml_reader_cleanup)

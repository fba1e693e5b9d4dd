/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Messages from a few lines of YAML or JSON, for the tests of the sources; brings cmocka along. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sources/defaults.h"
#include "sources/yaml_message.h"

/* Reads the first document, as if it stood in a file of this name; the result of the first step
 * that fails. */
attr_unused static int read_named(struct arena *arena, const char *file, const char *text, size_t n,
				  const ProtobufCMessageDescriptor *type, void *ret,
				  struct err *err)
{
	struct yaml_source source = {.file = file};
	struct yaml_reader *reader cleanup_yaml_reader = NULL;
	struct yaml_node *root = NULL;
	int r = yaml_reader_new(file, text, n, &reader, err);

	if (r == 0)
		r = yaml_reader_next(reader, arena, &root, err);
	if (r > 0)
		r = yaml_message_read(&source, root, type, arena, ret, err);
	return r;
}

attr_unused static int try_read(struct arena *arena, const char *text,
				const ProtobufCMessageDescriptor *type, void *ret, struct err *err)
{
	return read_named(arena, "f.yaml", text, strlen(text), type, ret, err);
}

attr_unused static void *must_read(struct arena *arena, const char *text,
				   const ProtobufCMessageDescriptor *type)
{
	struct err err = {0};
	void *message = NULL;

	if (try_read(arena, text, type, &message, &err) < 0)
		fail_msg("%s", err.text);
	return message;
}

#define assert_read_fails(yaml, type, expected)                                      \
	do {                                                                         \
		struct arena *arena_ = arena_new(1024);                              \
		struct err err_ = {0};                                               \
		void *message_;                                                      \
		assert_true(try_read(arena_, (yaml), (type), &message_, &err_) < 0); \
		assert_string_equal(err_.text, (expected));                          \
		arena_free(arena_);                                                  \
	} while (0)

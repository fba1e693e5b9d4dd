/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a plain (unquoted) YAML scalar means, by the rules that kubectl reads manifests with:
 * YAML 1.1's words for true and false, octal numbers with a leading 0, no dates and no
 * sexagesimals.
 */

#include "base/util.h"

enum yaml_type {
	YAML_TYPE_NULL = 0,
	YAML_TYPE_BOOL,
	YAML_TYPE_INT, /* fits into 64 bits with a sign */
	YAML_TYPE_FLOAT,
	YAML_TYPE_STRING,
	YAML_TYPE_COUNT,
};

const char *yaml_type_name(enum yaml_type type); /* with an article: "an integer" */
enum yaml_type yaml_scalar_type(const char *text);
/* Only for text of that type. */
bool yaml_scalar_bool(const char *text);
int64_t yaml_scalar_int(const char *text);
/*
 * A whole number, of a scalar of any type: an integer, or a fraction without a fractional part (4.0,
 * 1e2), which JSON writes the same way. False: it is none, or does not fit.
 */
bool yaml_scalar_whole(enum yaml_type type, const char *text, int64_t *ret);

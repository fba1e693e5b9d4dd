/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a YAML reader needs to read JSON: YAML has no surrogate pairs and wants a mark between two
 * documents.
 */

#include "base/util.h"

/*
 * A copy in which each escaped surrogate pair (\ud83d\ude00) is written as YAML would (\U0001f600)
 * and a lone surrogate is \ufffd, as Go's decoder has it. Columns behind a pair move by two.
 */
char *json_text_without_surrogates(const char *text, size_t n, size_t *ret_n);
/* Bytes up to and including the end of the object or array that starts at text; n when it has no
 * end. */
size_t json_text_value_size(const char *text, size_t n);

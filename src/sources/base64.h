/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* RFC 4648's base64, with padding. Blanks and line ends within are ignored when reading. */

#include "base/util.h"

/* 0 or -EINVAL. The result has a NUL behind, which does not count. */
int base64_decode(const char *text, char **ret, size_t *ret_n);
char *base64_encode(const char *data, size_t n);

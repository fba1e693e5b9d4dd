/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Foreign text in our messages: one line, harmless to a terminal, not too long. */

#include "base/util.h"

/* Bytes that are not plain ASCII become '?', text that does not fit ends in "...". Returns out. */
const char *printable(const char *text, char *out, size_t size);

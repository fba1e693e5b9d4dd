/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* An explanation in a sentence or two that a person can act on. */

#include "inspect/explain.h"

/* For the caller to free. All but the summary itself must be there. */
char *summary_make(const struct explanation *explanation);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Moving from one mode to another: once a family has had its first good sync, what a proxy of
 * another mode left there is removed. Until then both are there, and whichever sees a connection
 * first serves it, so nobody is without service for a moment.
 */

#include "backends/backend.h"

void other_modes_clean(const struct backend_ops *mine, enum family family);

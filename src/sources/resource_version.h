/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The version of a list or an object. Kubernetes promises since 1.35 that it is a decimal number
 * that grows; whatever else a server calls so cannot be compared, and is never older.
 */

#include "base/util.h"

/* Are both numbers, and is a the smaller? Of any length; NULL and "" are none. */
bool resource_version_is_older(const char *a, const char *b);

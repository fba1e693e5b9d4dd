/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The destinations that a Service asks for and does not get, because they are another one's
 * (address_owners.h). Nearly every Service has none, which is NULL.
 */

#include "base/map.h"
#include "plan/destination.h"

struct map *withheld_free(struct map *withheld); /* accepts NULL, returns NULL */
struct map *withheld_copy(const struct map *withheld);
bool withheld_equal(const struct map *a, const struct map *b);
bool withheld_has(const struct map *withheld, const struct destination *destination);
/* Makes it one of them, or no longer so. */
void withheld_set(struct map **withheld, const struct destination *destination, bool is);

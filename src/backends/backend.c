/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/backend.h"

const struct backend_ops *backend_find(const char *name)
{
	for (size_t i = 0; backend_modes[i]; i++)
		if (streq(backend_modes[i]->name, name))
			return backend_modes[i];
	return NULL;
}

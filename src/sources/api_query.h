/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The path and query of a request, with values escaped as URLs want them. */

#include "base/util.h"

struct api_query {
	char *text; /* owned */
};

/* selectors: the first part of the query, escaped already; may be "". */
void api_query_start(struct api_query *query, const char *path, const char *selectors);
void api_query_text(struct api_query *query, const char *name, const char *value);
void api_query_number(struct api_query *query, const char *name, unsigned int value);
void api_query_done(struct api_query *query);

char *api_query_escape(const char *value); /* owned by the caller */

#define cleanup_api_query attr_cleanup(api_query_done)

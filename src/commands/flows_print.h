/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What `portolan conntrack` found, as tables for people or as a document. */

#include "base/text.h"
#include "conntrack/service_flows.h"

struct doc;

/* Backends, and with `each` every flow; the sums are the last row of the first table. */
void flows_print_human(const struct service_flows *flows, bool each, struct text *ret);
/* Members "backends", "flows" if each is wanted, and "total" of a map that is open. */
void flows_print_doc(const struct service_flows *flows, bool each, struct doc *doc);
/* How many flows lead to an endpoint that the Service does not have. */
size_t flows_print_strays(const struct service_flows *flows);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* All Services, or all endpoints, as this node sees them: rows for lists and tables. */

#include "model/model.h"

struct doc;
struct text;

enum service_type {
	SERVICE_CLUSTER_IP = 0,
	SERVICE_NODE_PORT,
	SERVICE_LOAD_BALANCER,
	SERVICE_TYPE_COUNT,
};

const char *service_type_name(enum service_type type); /* "ClusterIP", ... */
/* As far as rules go: a load balancer without an address is a NodePort. */
enum service_type service_type_of(const struct service *service);

/* How many endpoints a service port has, and how many of them are ready, or on this node. */
struct endpoint_count {
	size_t total, ready, local;
};

/* Sorted by key; an array for the caller to free. name_space NULL or "": all. */
struct service **overview_services(const struct model *model, const char *name_space,
				   size_t *ret_n);

/* As a table, or as one map with the list "services" or "endpoints". */
void overview_services_human(const struct model *model, const char *name_space, struct text *ret);
void overview_services_doc(const struct model *model, const char *name_space, struct doc *doc);
void overview_endpoints_human(const struct model *model, const char *name_space, struct text *ret);
void overview_endpoints_doc(const struct model *model, const char *name_space, struct doc *doc);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * From Kubernetes' messages to the model's plain data, for every source alike.
 *
 * Each converter returns 1 and an object, 0 and the reason when a proxy has nothing to do with it,
 * or a negative error for an object of which nothing can be made: this is where names, addresses
 * and numbers from outside are checked, and nothing behind it checks them again.
 *
 * What can be served is served. A word that is not known, a newer API server's perhaps, counts as
 * the default; a port or an address that cannot be used is left out alone. Such details are told as
 * notes, CONVERT_NOTES_MAX of an object at most, and only of one that is used. It is an error when
 * names are wrong, and when ports, addresses or endpoints are given and none of them can be used.
 *
 * Absent and "" mean the same, so that objects from an API server need no defaulting.
 */

#include "base/err.h"
#include "model/object.h"
#include "sources/k8s.pb-c.h"

#define LABEL_PROXY_NAME   "service.kubernetes.io/service-proxy-name"
#define LABEL_HEADLESS     "service.kubernetes.io/headless"
#define LABEL_SERVICE_NAME "kubernetes.io/service-name"
#define LABEL_SKIP_MIRROR  "endpointslice.kubernetes.io/skip-mirror"
#define LABEL_ZONE         "topology.kubernetes.io/zone"

#define ANNOTATION_TERMINATE "portolan.io/terminate-connections"

enum convert_skip {
	CONVERT_SKIP_NONE = 0,
	CONVERT_SKIP_OTHER_PROXY,   /* the label names another proxy */
	CONVERT_SKIP_HEADLESS,      /* a Service without, or a slice of one */
	CONVERT_SKIP_EXTERNAL_NAME, /* a name only */
	CONVERT_SKIP_NO_CLUSTER_IP, /* an API server would have allotted one */
	CONVERT_SKIP_NO_PORTS,
	CONVERT_SKIP_NO_SERVICE, /* a slice that names no Service */
	CONVERT_SKIP_FQDN,
	CONVERT_SKIP_NOT_MIRRORED, /* Endpoints that ask not to become slices */
	CONVERT_SKIP_COUNT,
};

const char *convert_skip_text(enum convert_skip skip); /* "it is headless" */
/*
 * The object does not ask to be left out, it only lacks what it takes to be served. No API server that
 * we know has such a Service: a newer one may have put it elsewhere.
 */
bool convert_skip_is_mistake(enum convert_skip skip);

/* Called for each detail that is dropped; fn may be NULL. */
struct convert_notes {
	void (*fn)(void *arg, const char *text);
	void *arg;
};

#define CONVERT_NOTES_MAX 8

int convert_service(const K8s__Service *message, const struct convert_notes *notes,
		    struct service **ret, enum convert_skip *ret_skip, struct err *err);
/* node_name: whose endpoints are local; "": none. */
int convert_slice(const K8s__EndpointSlice *message, const char *node_name,
		  const struct convert_notes *notes, struct slice **ret,
		  enum convert_skip *ret_skip, struct err *err);
/*
 * One slice for each subset and family, with names that no EndpointSlice can have. The array and a
 * reference to each slice are the caller's. Returns 1 also when there are none.
 */
int convert_endpoints(const K8s__Endpoints *message, const char *node_name,
		      const struct convert_notes *notes, struct slice ***ret, size_t *ret_n,
		      enum convert_skip *ret_skip, struct err *err);
/* Returns 0 or a negative error: a Node always counts. Its ranges count all or none: rules stand on
 * them. */
int convert_node(const K8s__Node *message, const struct convert_notes *notes, struct node **ret,
		 struct err *err);
/* Likewise. */
int convert_service_cidr(const K8s__ServiceCIDR *message, struct service_cidr **ret,
			 struct err *err);

/* Any of these but Endpoints, by the kind of object that it becomes. */
int convert_object(enum object_kind kind, const ProtobufCMessage *message, const char *node_name,
		   const struct convert_notes *notes, struct object *ret,
		   enum convert_skip *ret_skip, struct err *err);

/* For the converters. */
const char *convert_text(const char *field);                                 /* "" for NULL */
const char *convert_label(const K8s__ObjectMeta *metadata, const char *key); /* NULL: none */
const char *convert_annotation(const K8s__ObjectMeta *metadata, const char *key);
void convert_note(const struct convert_notes *notes, const char *fmt, ...) attr_printf(2, 3);
/* Notes that are kept until it is known whether the object is used. Zeroed is empty. */
struct convert_gathered {
	char *texts[CONVERT_NOTES_MAX];
	size_t n; /* told; those beyond the maximum are only counted */
};

struct convert_notes convert_gather(struct convert_gathered *gathered);
/* Tells them and leaves it empty. to: NULL drops them. */
void convert_tell(struct convert_gathered *gathered, const struct convert_notes *to);
/*
 * What to return when details were left out, the last of them for this reason (code 0: none was):
 * 0 while anything is left to serve, else the reason.
 */
int convert_left(size_t n_left, const struct err *why, struct err *err);
/* Name, or name and namespace, of an object; only the names of Services are labels. */
int convert_check_name(const K8s__ObjectMeta *metadata, bool is_label, struct err *err);
int convert_check_names(const K8s__ObjectMeta *metadata, bool name_is_label, struct err *err);
/* "FIELD "VALUE" WHY", the value made fit to print. */
int convert_refuse(const char *field, const char *value, const char *why, struct err *err);
int convert_port_number(const char *field, int64_t number, uint16_t *ret, struct err *err);
int convert_protocol(const char *field, const char *name, enum protocol *ret, struct err *err);
/* A port's name: "" or a label. */
int convert_check_port_name(const char *field, const char *name, struct err *err);
/* A port of a slice, if its fields are good. */
int convert_slice_port(const char *name, const char *protocol, int64_t number,
		       struct slice_writer *writer, struct err *err);
/* ENDPOINT_LOCAL for an endpoint that names this node, else 0. */
unsigned int convert_local(const char *node, const char *node_name);

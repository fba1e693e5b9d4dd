/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which names Kubernetes allows. Names end up in the comments of rules, so nothing else may pass:
 * no quotes, blanks or line ends, and no more bytes than a label has.
 */

#include "base/util.h"

#define K8S_LABEL_MAX     63
#define K8S_SUBDOMAIN_MAX 253

/* Lower case letters, digits and '-', which is neither first nor last. "" is none. */
bool k8s_name_is_label(const char *name);
/* Labels with dots between, as the names of Nodes and EndpointSlices may have. */
bool k8s_name_is_subdomain(const char *name);

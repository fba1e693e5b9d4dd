/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The file of a KubeProxyConfiguration: from bytes to the message, with only those fields that the
 * file gives. Errors and warnings name file, line and column.
 */

#include "config/kubeproxy_config.h"

#define KUBEPROXY_API_VERSION "kubeproxy.config.k8s.io/v1alpha1"
#define KUBEPROXY_KIND        "KubeProxyConfiguration"

/* Adds the content of a file, up to a ceiling. */
int kubeproxy_file_read(const char *path, struct text *ret, struct err *err);
/* Sets root and message of a configuration that has a file's name; `text` is its content. */
int kubeproxy_file_parse(struct kubeproxy_config *config, const char *text, size_t n,
			 struct problems *warnings, struct err *err);
/* Where a field is in the file; of a key that is given twice the last one. NULL: it is not. */
const struct yaml_node *kubeproxy_file_node(const struct yaml_node *root, const char *path);

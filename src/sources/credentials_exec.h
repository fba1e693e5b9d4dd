/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What is said to a credential plugin, and what it answers (client.authentication.k8s.io). */

#include "base/err.h"
#include "sources/api_access.h"
#include "sources/kubeconfig.h"

/* What a plugin gave. */
struct exec_credential {
	char *token; /* NULL: none */
	struct api_blob certificate, key;
	int64_t expires_s; /* since the epoch; INT64_MAX: not until it is doubted */
};

/* The value of KUBERNETES_EXEC_INFO; owned by the caller. */
char *credentials_exec_info(const struct kubeconfig_exec *exec, const struct api_access *cluster);
/* Errors name the plugin. */
int credentials_exec_parse(const struct kubeconfig_exec *exec, const char *text, size_t n,
			   struct exec_credential *ret, struct err *err);
void exec_credential_done(struct exec_credential *credential); /* leaves it zeroed */

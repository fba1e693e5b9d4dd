/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A kubeconfig: the cluster and the user that its current context names. Only this text is read;
 * files that it names are the caller's to read, and to read again.
 *
 *   - data counts before a file of the same purpose, tokenFile before token;
 *   - relative paths, also that of a plugin with a slash in it, start in the kubeconfig's folder;
 *   - of two entries with one name the first counts.
 *
 * Errors read FILE:LINE:COLUMN: FIELD: what is wrong.
 */

#include "base/arena.h"
#include "base/err.h"

#define KUBECONFIG_MAX (8u << 20) /* bytes */

/* One of the two, or neither. */
struct kubeconfig_secret {
	const char *file;
	const char *data; /* decoded, with a NUL behind */
	size_t n;
};

struct kubeconfig_exec {
	const char *api_version;
	const char *command;
	const char *const *args;  /* NULL-terminated, without the command */
	const char *const *env;   /* NULL-terminated: NAME=value */
	const char *install_hint; /* "" when there is none */
	bool cluster_info;        /* it wants to know the cluster */
};

struct kubeconfig {
	struct arena *arena; /* holds everything */
	const char *context, *cluster, *user;
	const char *server; /* "": not given */
	const char *tls_server_name, *proxy_url;
	bool insecure;
	struct kubeconfig_secret ca, certificate, key, token;
	const char *username, *password;
	const struct kubeconfig_exec *exec; /* NULL: none */
};

/* path: of the file, for errors and relative paths. Strings that are not given are NULL. */
int kubeconfig_parse(const char *path, const char *text, size_t n, struct kubeconfig **ret,
		     struct err *err);
struct kubeconfig *kubeconfig_free(struct kubeconfig *config); /* accepts NULL, returns NULL */
DEFINE_CLEANUP(kubeconfig)

#define cleanup_kubeconfig attr_cleanup(kubeconfig_cleanup)

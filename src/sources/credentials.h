/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How to reach and convince an API server, always as the files say now.
 *
 * They come from a kubeconfig (its current context), or from the service account of the pod that we
 * run in, or are none at all (only a server's address). Every file that took part (the kubeconfig,
 * certificates, tokens) is looked at before each use, and all are read again when one has changed,
 * or when the server doubts them. Files that cannot be read then leave what was known in force.
 *
 * A credential plugin is run when there is no credential of it, when that has expired, or when the
 * server doubts it. It is run by the caller's runner, so nothing here waits.
 */

#include "base/err.h"
#include "base/log.h"
#include "sources/api_access.h"

#define CREDENTIALS_SERVICE_ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount"

struct credentials;

/* r: 0, or a negative error that text explains; else output is what the program wrote. */
typedef void credentials_output_fn(void *arg, int r, const char *output, size_t n,
				   const char *text);

struct credentials_runner {
	/*
	 * Starts argv[0] (looked up in PATH if it has no slash) with env ("NAME=value") added to
	 * our environment. done is called once, from the loop.
	 */
	int (*run)(void *arg, const char *const *argv, const char *const *env,
		   credentials_output_fn *done, void *done_arg, struct err *err);
	void (*cancel)(void *arg); /* done is not called any more */
	void *arg;
};

struct credentials_config {
	const char *kubeconfig;          /* path; NULL or "": none */
	const char *master;              /* server; NULL or "": that of the kubeconfig */
	const char *service_account_dir; /* NULL: CREDENTIALS_SERVICE_ACCOUNT */
	const char *(*getenv)(const char *name);
	int64_t (*now_s)(void); /* since the epoch */
	struct credentials_runner runner;
	/* what a person should know, one line each */
	void (*report)(void *report_arg, enum log_severity severity, const char *text);
	void *report_arg;
	/* the plugin has ended: r as of credentials_get() */
	void (*ready)(void *arg, int r, const char *text);
	void *arg;
};

/* Reads the files for the first time. config is copied, its strings too. */
int credentials_new(const struct credentials_config *config, struct credentials **ret,
		    struct err *err);
struct credentials *credentials_free(struct credentials *credentials); /* accepts NULL */

/* 1: *ret is good until the next call. 0: a plugin is running, ready() will be called. */
int credentials_get(struct credentials *credentials, const struct api_access **ret,
		    struct err *err);
/* As it is, without looking at files or expiry: for ready(). */
const struct api_access *credentials_access(const struct credentials *credentials);
/* Calls use() with each file that took part when they were last read. */
void credentials_each_file(const struct credentials *credentials,
			   void (*use)(void *arg, const char *path), void *arg);
/* The server did not accept them (401). */
void credentials_doubt(struct credentials *credentials);

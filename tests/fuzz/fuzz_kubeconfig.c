/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bytes as a kubeconfig, and as the answer of a credential plugin.
 *
 *	meson setup -Dfuzz=true build-fuzz && ninja -C build-fuzz fuzz_kubeconfig
 *	build-fuzz/tests/fuzz/fuzz_kubeconfig tests/fuzz/corpus/kubeconfig
 */

#include <assert.h>

#include "sources/credentials_exec.h"
#include "sources/kubeconfig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Each message to a person is one line. */
static void check_line(const char *text)
{
	assert(*text && !strpbrk(text, "\r\n\t\x1b"));
}

static void check(const struct kubeconfig *config)
{
	bool certificate = config->certificate.file || config->certificate.data;
	bool key = config->key.file || config->key.data;

	assert(config->server && config->context && config->cluster);
	assert(certificate == key);
	assert(!(config->insecure && (config->ca.file || config->ca.data)));
	assert(!config->exec || (*config->exec->command && config->exec->args));
	for (size_t i = 0; config->exec && config->exec->env[i]; i++)
		assert(strchr(config->exec->env[i], '=') > config->exec->env[i]);
}

static void read_config(const char *path, const char *text, size_t n)
{
	struct kubeconfig *config cleanup_kubeconfig = NULL;
	struct err err;

	if (kubeconfig_parse(path, text, n, &config, &err) < 0)
		check_line(err.text);
	else
		check(config);
}

static void read_answer(const char *text, size_t n)
{
	static const struct kubeconfig_exec exec = {
		.api_version = "client.authentication.k8s.io/v1",
		.command = "plugin",
	};
	struct exec_credential credential = {0};
	struct err err;

	if (credentials_exec_parse(&exec, text, n, &credential, &err) < 0)
		check_line(err.text);
	else
		assert(credential.token || (credential.certificate.data && credential.key.data));
	exec_credential_done(&credential);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	read_config("/etc/config", (const char *)data, size);
	read_config("config", (const char *)data, size);
	read_answer((const char *)data, size);
	return 0;
}

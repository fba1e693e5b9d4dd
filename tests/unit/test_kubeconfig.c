/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sources/base64.h"
#include "sources/kubeconfig.h"

#define PATH "/etc/kube/config"

static struct kubeconfig *parse(const char *text)
{
	struct kubeconfig *config = NULL;
	struct err err;

	if (kubeconfig_parse(PATH, text, strlen(text), &config, &err) < 0)
		fail_msg("%s", err.text);
	return config;
}

static void assert_refused(const char *text, const char *expected)
{
	struct kubeconfig *config = NULL;
	struct err err;

	assert_int_equal(kubeconfig_parse(PATH, text, strlen(text), &config, &err), -EINVAL);
	assert_string_equal(err.text, expected);
	assert_null(config);
}

#define CONTEXT                   \
	"current-context: here\n" \
	"contexts:\n"             \
	"- name: here\n"          \
	"  context: {cluster: c, user: u}\n"
#define CLUSTER        \
	"clusters:\n"  \
	"- name: c\n"  \
	"  cluster:\n" \
	"    server: https://10.0.0.1:6443\n"
#define USER          \
	"users:\n"    \
	"- name: u\n" \
	"  user:\n"

static void the_current_context_is_taken_of_many(void **state attr_unused)
{
	struct kubeconfig *config cleanup_kubeconfig =
		parse("apiVersion: v1\nkind: Config\npreferences: {}\n"
		      "current-context: second\n"
		      "contexts:\n"
		      "- {name: first, context: {cluster: a, user: x}}\n"
		      "- {name: second, context: {cluster: b, user: z, namespace: ignored}}\n"
		      "clusters:\n"
		      "- {name: a, cluster: {server: https://a}}\n"
		      "- {name: b, cluster: {server: https://b, tls-server-name: name,\n"
		      "   insecure-skip-tls-verify: true, proxy-url: http://proxy:3128}}\n"
		      "users:\n"
		      "- {name: x, user: {token: wrong}}\n"
		      "- {name: z, user: {username: me, password: secret}}\n");

	assert_string_equal(config->server, "https://b");
	assert_string_equal(config->tls_server_name, "name");
	assert_string_equal(config->proxy_url, "http://proxy:3128");
	assert_true(config->insecure);
	assert_string_equal(config->username, "me");
	assert_string_equal(config->password, "secret");
	assert_null(config->token.data);
	assert_string_equal(config->context, "second");
}

static void json_is_read_too(void **state attr_unused)
{
	struct kubeconfig *config cleanup_kubeconfig =
		parse("{\"current-context\":\"c\",\"contexts\":[{\"name\":\"c\",\"context\":"
		      "{\"cluster\":\"k\",\"user\":\"u\"}}],\"clusters\":[{\"name\":\"k\","
		      "\"cluster\":{\"server\":\"https://k\"}}],\"users\":[{\"name\":\"u\","
		      "\"user\":{\"token\":\"t\"}}]}");

	assert_string_equal(config->server, "https://k");
	assert_string_equal(config->token.data, "t");
}

static void paths_start_in_the_folder_of_the_file(void **state attr_unused)
{
	struct kubeconfig *config cleanup_kubeconfig =
		parse(CONTEXT CLUSTER "    certificate-authority: pki/ca.crt\n" USER
				      "    client-certificate: ../me.crt\n"
				      "    client-key: /keys/me.key\n"
				      "    tokenFile: token\n");

	assert_string_equal(config->ca.file, "/etc/kube/pki/ca.crt");
	assert_string_equal(config->certificate.file, "/etc/kube/../me.crt");
	assert_string_equal(config->key.file, "/keys/me.key");
	assert_string_equal(config->token.file, "/etc/kube/token");
}

static void data_counts_before_files_and_a_token_file_before_a_token(void **state attr_unused)
{
	struct kubeconfig *config cleanup_kubeconfig =
		parse(CONTEXT CLUSTER "    certificate-authority: ca.crt\n"
				      "    certificate-authority-data: Y2E=\n" USER
				      "    client-certificate: me.crt\n"
				      "    client-certificate-data: Y2VydA==\n"
				      "    client-key-data: |\n"
				      "      a2\n"
				      "      V5\n"
				      "    token: written\n"
				      "    tokenFile: file\n");

	assert_null(config->ca.file);
	assert_string_equal(config->ca.data, "ca");
	assert_string_equal(config->certificate.data, "cert");
	assert_string_equal(config->key.data, "key");
	assert_string_equal(config->token.file, "/etc/kube/file");
	assert_null(config->token.data);
}

static void a_plugin_is_read(void **state attr_unused)
{
	struct kubeconfig *config cleanup_kubeconfig =
		parse(CONTEXT CLUSTER USER "    exec:\n"
					   "      apiVersion: client.authentication.k8s.io/v1\n"
					   "      command: bin/plugin\n"
					   "      args: [get-token, \"--x\"]\n"
					   "      env:\n"
					   "      - {name: A, value: b}\n"
					   "      - {name: EMPTY}\n"
					   "      installHint: install it\n"
					   "      provideClusterInfo: true\n"
					   "      interactiveMode: Never\n");
	const struct kubeconfig_exec *exec = config->exec;

	assert_string_equal(exec->command, "/etc/kube/bin/plugin");
	assert_string_equal(exec->args[0], "get-token");
	assert_string_equal(exec->args[1], "--x");
	assert_null(exec->args[2]);
	assert_string_equal(exec->env[0], "A=b");
	assert_string_equal(exec->env[1], "EMPTY=");
	assert_null(exec->env[2]);
	assert_string_equal(exec->install_hint, "install it");
	assert_true(exec->cluster_info);
}

static void a_plugin_without_a_slash_is_left_to_the_path(void **state attr_unused)
{
	struct kubeconfig *config cleanup_kubeconfig = parse(
		CONTEXT CLUSTER USER "    exec:\n"
				     "      apiVersion: client.authentication.k8s.io/v1beta1\n"
				     "      command: plugin\n");

	assert_string_equal(config->exec->command, "plugin");
	assert_null(config->exec->args[0]);
}

static void a_context_without_a_user_has_no_credentials(void **state attr_unused)
{
	struct kubeconfig *config cleanup_kubeconfig =
		parse("current-context: here\n"
		      "contexts: [{name: here, context: {cluster: c}}]\n" CLUSTER);

	assert_string_equal(config->server, "https://10.0.0.1:6443");
	assert_null(config->user);
}

static void the_server_may_be_given_elsewhere(void **state attr_unused)
{
	struct kubeconfig *config cleanup_kubeconfig =
		parse(CONTEXT "clusters: [{name: c, cluster: {}}]\nusers: [{name: u, user: {}}]\n");

	assert_string_equal(config->server, "");
}

static void errors_name_file_line_and_field(void **state attr_unused)
{
	assert_refused("", PATH ": is empty");
	assert_refused("clusters: []\n", PATH ":1:1: current-context: is not set");
	assert_refused("current-context: other\n",
		       PATH ":1:18: current-context: there is no context \"other\"");
	assert_refused("current-context: x\ncontexts:\n- name: x\n  context: {user: u}\n",
		       PATH ":4:12: contexts[0].context: names no cluster");
	assert_refused(CONTEXT,
		       PATH ":4:22: contexts[0].context.cluster: there is no cluster \"c\"");
	assert_refused(CONTEXT CLUSTER,
		       PATH ":4:31: contexts[0].context.user: there is no user \"u\"");
	assert_refused(CONTEXT CLUSTER "    certificate-authority-data: '!'\n",
		       PATH ":9:33: clusters[0].cluster.certificate-authority-data: is not base64");
	assert_refused(CONTEXT CLUSTER "    insecure-skip-tls-verify: true\n"
				       "    certificate-authority: ca.crt\n",
		       PATH ":9:31: clusters[0].cluster.insecure-skip-tls-verify: cannot be "
			    "combined with a certificate authority");
	assert_refused(CONTEXT CLUSTER USER "    client-key: k\n", PATH
		       ":12:5: users[0].user: client-key needs a client-certificate beside it");
	assert_refused(CONTEXT CLUSTER USER "    token: a\n    username: b\n",
		       PATH ":12:5: users[0].user: has a username and a token, of which only one "
			    "can be used");
	assert_refused(CONTEXT CLUSTER USER "    auth-provider: {name: gcp}\n", PATH
		       ":12:20: users[0].user.auth-provider: is not supported, use exec instead");
	assert_refused(CONTEXT CLUSTER USER "    exec: {command: x}\n",
		       PATH ":12:11: users[0].user.exec: apiVersion must be "
			    "client.authentication.k8s.io/v1 or .../v1beta1");
	assert_refused("current-context: [a]\n",
		       PATH ":1:18: current-context: expected a string, found a list");
	assert_refused(CONTEXT CLUSTER "    insecure-skip-tls-verify: 1\n",
		       PATH ":9:31: clusters[0].cluster.insecure-skip-tls-verify: expected a "
			    "boolean, found the integer 1");
}

static void an_underscore_is_not_a_dash(void **state attr_unused)
{
	assert_refused("current_context: here\n", PATH ":1:1: current-context: is not set");
}

static void base64_of_every_length(void **state attr_unused)
{
	static const char *const pairs[][2] = {
		{"", ""},
		{"f", "Zg=="},
		{"fo", "Zm8="},
		{"foo", "Zm9v"},
		{"foob", "Zm9vYg=="},
		{"fooba", "Zm9vYmE="},
		{"foobar", "Zm9vYmFy"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		char *encoded cleanup_free = base64_encode(pairs[i][0], strlen(pairs[i][0]));
		char *decoded cleanup_free = NULL;
		size_t n;

		assert_string_equal(encoded, pairs[i][1]);
		assert_int_equal(base64_decode(encoded, &decoded, &n), 0);
		assert_int_equal(n, strlen(pairs[i][0]));
		assert_string_equal(decoded, pairs[i][0]);
	}
}

static void base64_that_is_none_is_refused(void **state attr_unused)
{
	static const char *const wrong[] = {
		"Z", "Zg", "Zg=", "Z===", "====", "Zg==Zg==", "Zg=a", "Z!==", "Zm9-"};
	char *decoded = NULL;
	size_t n;

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_int_equal(base64_decode(wrong[i], &decoded, &n), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_current_context_is_taken_of_many),
		cmocka_unit_test(json_is_read_too),
		cmocka_unit_test(paths_start_in_the_folder_of_the_file),
		cmocka_unit_test(data_counts_before_files_and_a_token_file_before_a_token),
		cmocka_unit_test(a_plugin_is_read),
		cmocka_unit_test(a_plugin_without_a_slash_is_left_to_the_path),
		cmocka_unit_test(a_context_without_a_user_has_no_credentials),
		cmocka_unit_test(the_server_may_be_given_elsewhere),
		cmocka_unit_test(errors_name_file_line_and_field),
		cmocka_unit_test(an_underscore_is_not_a_dash),
		cmocka_unit_test(base64_of_every_length),
		cmocka_unit_test(base64_that_is_none_is_refused),
	};

	return cmocka_run_group_tests_name("kubeconfig", tests, NULL, NULL);
}

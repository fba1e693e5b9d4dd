/* SPDX-License-Identifier: Apache-2.0 */

/* Credentials from files in a folder of the test's own, and from a plugin that only notes how it
 * was called. */

#include <errno.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "sources/credentials.h"

#define PEM_CA   "-----BEGIN CERTIFICATE-----\nca\n"
#define PEM_CERT "-----BEGIN CERTIFICATE-----\nme\n"
#define PEM_KEY  "-----BEGIN PRIVATE KEY-----\nkey\n"

static struct world {
	char dir[64];
	char config[80];
	struct credentials *credentials;
	int64_t now_s;
	const char *host, *port;
	char reports[1024];

	/* the plugin */
	int runs, cancels;
	int run_fails;
	char argv[256], env[2048];
	credentials_output_fn *done;
	void *done_arg;
	int ready; /* -1: not called, else as of credentials_get() */
	char ready_text[512];
} world;

static const char *on_getenv(const char *name)
{
	return streq(name, "KUBERNETES_SERVICE_HOST")   ? world.host
	       : streq(name, "KUBERNETES_SERVICE_PORT") ? world.port
							: NULL;
}

static int64_t on_now(void)
{
	return world.now_s;
}

static void on_report(void *arg attr_unused, enum log_severity severity attr_unused,
		      const char *text)
{
	size_t used = strlen(world.reports);

	snprintf(world.reports + used, sizeof(world.reports) - used, "%s\n", text);
}

static void on_ready(void *arg attr_unused, int r, const char *text)
{
	world.ready = r;
	snprintf(world.ready_text, sizeof(world.ready_text), "%s", text);
}

static void join(char *out, size_t size, const char *const *words)
{
	size_t used = 0;

	for (*out = '\0'; *words && used < size; words++)
		used += (size_t)snprintf(out + used, size - used, "%s%s", used ? " " : "", *words);
}

static int on_run(void *arg attr_unused, const char *const *argv, const char *const *env,
		  credentials_output_fn *done, void *done_arg, struct err *err)
{
	world.runs++;
	if (world.run_fails)
		return err_set(err, -ENOENT, "plugin: not found");
	join(world.argv, sizeof(world.argv), argv);
	join(world.env, sizeof(world.env), env);
	world.done = done;
	world.done_arg = done_arg;
	world.ready = -1;
	return 0;
}

static void on_cancel(void *arg attr_unused)
{
	world.cancels++;
}

static void write_file(const char *name, const char *text)
{
	char path[128], temporary[160];
	FILE *file;

	/* by rename, as what rotates files does: it never has the same inode as what is there */
	snprintf(path, sizeof(path), "%s/%s", world.dir, name);
	snprintf(temporary, sizeof(temporary), "%s.new", path);
	file = fopen(temporary, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	assert_int_equal(rename(temporary, path), 0);
}

static void write_config(const char *cluster, const char *user)
{
	char *text cleanup_free =
		xasprintf("current-context: x\n"
			  "contexts: [{name: x, context: {cluster: c, user: u}}]\n"
			  "clusters: [{name: c, cluster: {%s}}]\n"
			  "users: [{name: u, user: {%s}}]\n",
			  cluster, user);

	write_file("config", text);
}

static int open_with(const char *kubeconfig, const char *master, struct err *err)
{
	const struct credentials_config config = {
		.kubeconfig = kubeconfig,
		.master = master,
		.service_account_dir = world.dir,
		.getenv = on_getenv,
		.now_s = on_now,
		.runner = {on_run, on_cancel, NULL},
		.report = on_report,
		.ready = on_ready,
	};

	return credentials_new(&config, &world.credentials, err);
}

static void open_config(void)
{
	struct err err;

	if (open_with(world.config, NULL, &err) < 0)
		fail_msg("%s", err.text);
}

static const struct api_access *get(void)
{
	const struct api_access *access = NULL;
	struct err err;

	if (credentials_get(world.credentials, &access, &err) != 1)
		fail_msg("credentials are not ready");
	return access;
}

static void assert_refused(const char *kubeconfig, const char *master, const char *expected)
{
	struct err err;

	assert_true(open_with(kubeconfig, master, &err) < 0);
	if (!strstr(err.text, expected))
		fail_msg("\"%s\" is not in \"%s\"", expected, err.text);
}

static int setup(void **state attr_unused)
{
	world = (struct world){.ready = -1, .now_s = 1000};
	strcpy(world.dir, "/tmp/portolan-credentials-XXXXXX");
	assert_non_null(mkdtemp(world.dir));
	snprintf(world.config, sizeof(world.config), "%s/config", world.dir);
	return 0;
}

static int remove_one(const char *path, const struct stat *st attr_unused, int type attr_unused,
		      struct FTW *at attr_unused)
{
	return remove(path);
}

static int teardown(void **state attr_unused)
{
	world.credentials = credentials_free(world.credentials);
	return nftw(world.dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* -- files -- */

static void files_and_data_become_access(void **state attr_unused)
{
	const struct api_access *access;

	write_file("ca.pem", PEM_CA);
	write_file("me.pem", PEM_CERT);
	write_file("key.pem", PEM_KEY);
	write_config("server: 'https://k/prefix/', certificate-authority: ca.pem, "
		     "tls-server-name: name, proxy-url: 'http://proxy'",
		     "client-certificate: me.pem, client-key: key.pem, token: ' abc '");
	open_config();
	access = get();
	assert_string_equal(access->server, "https://k/prefix");
	assert_string_equal(access->ca.data, PEM_CA);
	assert_string_equal(access->certificate.data, PEM_CERT);
	assert_string_equal(access->key.data, PEM_KEY);
	assert_string_equal(access->authorization, "Bearer abc");
	assert_string_equal(access->tls_server_name, "name");
	assert_string_equal(access->proxy_url, "http://proxy");
	assert_false(access->insecure);
}

static void a_user_name_becomes_basic_authentication(void **state attr_unused)
{
	write_config("server: 'https://k'", "username: Aladdin, password: open sesame");
	open_config();
	assert_string_equal(get()->authorization, "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
}

/* As in Go: by them only where nothing else says who we are; and the URL is told without them. */
static void a_user_in_the_url_is_the_last_to_be_asked(void **state attr_unused)
{
	struct err err;

	write_config("server: 'https://Aladdin:open%20sesame@k:1/x/'", "token: t");
	open_config();
	assert_string_equal(get()->server, "https://k:1/x");
	assert_string_equal(get()->authorization, "Bearer t");
	credentials_free(take(world.credentials));
	assert_int_equal(open_with("", "Aladdin:open%20sesame@127.0.0.1:8080", &err), 0);
	assert_string_equal(get()->server, "http://127.0.0.1:8080");
	assert_string_equal(get()->authorization, "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
}

static void the_master_counts_before_the_kubeconfig(void **state attr_unused)
{
	struct err err;

	write_config("server: 'https://k'", "token: t");
	assert_int_equal(open_with(world.config, "https://other:1", &err), 0);
	assert_string_equal(get()->server, "https://other:1");
	assert_string_equal(get()->authorization, "Bearer t");
}

static void a_master_alone_needs_no_credentials(void **state attr_unused)
{
	struct err err;

	assert_int_equal(open_with("", "127.0.0.1:8080", &err), 0);
	assert_string_equal(get()->server, "http://127.0.0.1:8080");
	assert_null(get()->authorization);
}

static void a_server_without_a_scheme_is_secure_when_it_can_be(void **state attr_unused)
{
	write_config("server: 'k:6443', insecure-skip-tls-verify: true", "token: t");
	open_config();
	assert_string_equal(get()->server, "https://k:6443");
}

static void a_service_account_is_found(void **state attr_unused)
{
	struct err err;

	world.host = "10.96.0.1";
	world.port = "443";
	write_file("token", "pod-token\n");
	write_file("ca.crt", PEM_CA);
	assert_int_equal(open_with(NULL, NULL, &err), 0);
	assert_string_equal(get()->server, "https://10.96.0.1:443");
	assert_string_equal(get()->authorization, "Bearer pod-token");
	assert_string_equal(get()->ca.data, PEM_CA);
}

static void a_service_account_on_ipv6_has_brackets(void **state attr_unused)
{
	struct err err;

	world.host = "fd00::1";
	world.port = "6443";
	write_file("token", "t");
	assert_int_equal(open_with(NULL, NULL, &err), 0);
	assert_string_equal(get()->server, "https://[fd00::1]:6443");
	assert_null(get()->ca.data);
}

static void errors_name_file_and_field(void **state attr_unused)
{
	assert_refused(NULL, NULL, "KUBERNETES_SERVICE_HOST");
	world.host = "10.96.0.1";
	world.port = "443";
	assert_refused(NULL, NULL, "/token: No such file or directory");
	assert_refused("/nowhere/config", NULL, "/nowhere/config: No such file or directory");
	write_config("server: 'https://k', certificate-authority: none.pem", "token: t");
	assert_refused(world.config, NULL, "/config: certificate-authority: ");
	assert_refused(world.config, NULL, "/none.pem: No such file or directory");
	write_file("ca.pem", "nothing");
	write_config("server: 'https://k', certificate-authority: ca.pem", "token: t");
	assert_refused(world.config, NULL, "/ca.pem: holds no PEM block");
	write_config("server: 'https://k'", "tokenFile: empty");
	write_file("empty", " \n");
	assert_refused(world.config, NULL, "/empty: is empty");
	write_file("empty", "a\nX-Header: b");
	assert_refused(world.config, NULL, "/empty: is not a token");
	write_config("server: ''", "token: t");
	assert_refused(world.config, NULL, "/config: no server is named");
	write_config("server: 'ftp://k'", "token: t");
	assert_refused(world.config, NULL, "neither https:// nor http://");
	write_config("server: 'https://k', certificate-authority: .", "token: t");
	assert_refused(world.config, NULL, "is not a file");
}

/* -- rotation -- */

static void a_token_that_rotates_is_used_at_once(void **state attr_unused)
{
	write_file("token", "one");
	write_config("server: 'https://k'", "tokenFile: token");
	open_config();
	assert_string_equal(get()->authorization, "Bearer one");
	write_file("token", "two");
	assert_string_equal(get()->authorization, "Bearer two");
	assert_string_equal(world.reports, "");
}

static void certificates_that_rotate_are_used_at_once(void **state attr_unused)
{
	write_file("me.pem", PEM_CERT);
	write_file("key.pem", PEM_KEY);
	write_config("server: 'https://k'", "client-certificate: me.pem, client-key: key.pem");
	open_config();
	write_file("me.pem", PEM_CERT "new");
	write_file("key.pem", PEM_KEY "new");
	assert_string_equal(get()->certificate.data, PEM_CERT "new");
	assert_string_equal(get()->key.data, PEM_KEY "new");
}

static void a_kubeconfig_that_changes_is_read_again(void **state attr_unused)
{
	write_config("server: 'https://k'", "token: t");
	open_config();
	write_config("server: 'https://other'", "token: u");
	assert_string_equal(get()->server, "https://other");
	assert_string_equal(get()->authorization, "Bearer u");
}

static void what_cannot_be_read_again_leaves_the_old_in_force(void **state attr_unused)
{
	write_file("token", "one");
	write_config("server: 'https://k'", "tokenFile: token");
	open_config();
	write_file("token", "");
	assert_string_equal(get()->authorization, "Bearer one");
	assert_string_equal(get()->authorization, "Bearer one");
	assert_non_null(
		strstr(world.reports, "/token: is empty, keeping the credentials last read\n"));
	assert_ptr_equal(strchr(world.reports, '\n') + 1,
			 world.reports + strlen(world.reports)); /* said once */
	write_file("token", "two");
	assert_string_equal(get()->authorization, "Bearer two");
}

/* -- plugins -- */

#define EXEC                                                                               \
	"exec: {apiVersion: client.authentication.k8s.io/v1, command: plugin, args: [a], " \
	"env: [{name: NAME, value: v}], installHint: get it, provideClusterInfo: true}"
#define ANSWER(status)                                                                     \
	"{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\"," \
	"\"status\":" status "}"

static void open_plugin(void)
{
	const struct api_access *access = NULL;
	struct err err;

	write_config("server: 'https://k'", EXEC);
	open_config();
	assert_int_equal(credentials_get(world.credentials, &access, &err), 0);
	assert_int_equal(world.runs, 1);
}

static void plugin_answers(const char *text)
{
	world.done(world.done_arg, 0, text, strlen(text), "");
}

static void a_plugin_is_called_as_asked(void **state attr_unused)
{
	open_plugin();
	assert_string_equal(world.argv, "plugin a");
	assert_string_equal(world.env, "NAME=v KUBERNETES_EXEC_INFO={\"kind\":\"ExecCredential\","
				       "\"apiVersion\":\"client.authentication.k8s.io/"
				       "v1\",\"spec\":{\"interactive\":false,"
				       "\"cluster\":{\"server\":\"https://k\"}}}");
}

static void a_plugin_gives_a_token(void **state attr_unused)
{
	open_plugin();
	plugin_answers(ANSWER("{\"token\":\"abc\"}"));
	assert_int_equal(world.ready, 1);
	assert_string_equal(credentials_access(world.credentials)->authorization, "Bearer abc");
	world.now_s += 1000000;
	assert_string_equal(get()->authorization, "Bearer abc"); /* it named no end */
	assert_int_equal(world.runs, 1);
}

static void a_plugin_gives_a_certificate(void **state attr_unused)
{
	open_plugin();
	plugin_answers(
		ANSWER("{\"clientCertificateData\":\"-----BEGIN\\n\",\"clientKeyData\":\"k\"}"));
	assert_int_equal(world.ready, 1);
	assert_string_equal(get()->certificate.data, "-----BEGIN\n");
	assert_string_equal(get()->key.data, "k");
	assert_null(get()->authorization);
}

static void a_plugin_is_run_again_before_its_credential_expires(void **state attr_unused)
{
	const struct api_access *access = NULL;
	struct err err;

	open_plugin();
	plugin_answers(ANSWER(
		"{\"token\":\"abc\",\"expirationTimestamp\":\"1970-01-01T00:30:00Z\"}")); /* 1800 */
	world.now_s = 1789;
	assert_string_equal(get()->authorization, "Bearer abc");
	world.now_s = 1790;
	assert_int_equal(credentials_get(world.credentials, &access, &err), 0);
	assert_int_equal(world.runs, 2);
	assert_int_equal(credentials_get(world.credentials, &access, &err), 0); /* it runs */
	assert_int_equal(world.runs, 2);
	plugin_answers(ANSWER("{\"token\":\"def\"}"));
	assert_string_equal(get()->authorization, "Bearer def");
}

static void doubt_runs_a_plugin_again(void **state attr_unused)
{
	const struct api_access *access = NULL;
	struct err err;

	open_plugin();
	plugin_answers(ANSWER("{\"token\":\"abc\"}"));
	credentials_doubt(world.credentials);
	assert_int_equal(credentials_get(world.credentials, &access, &err), 0);
	assert_int_equal(world.runs, 2);
	plugin_answers(ANSWER("{\"token\":\"abc\"}"));
	assert_string_equal(get()->authorization, "Bearer abc");
	assert_int_equal(world.runs, 2);
}

static void a_plugin_that_fails_is_an_error_with_its_hint(void **state attr_unused)
{
	const struct api_access *access = NULL;
	struct err err;

	open_plugin();
	world.done(world.done_arg, -EIO, "", 0, "plugin ended with exit status 1");
	assert_int_equal(world.ready, -EIO);
	assert_string_equal(world.ready_text,
			    "get it: credential plugin: plugin ended with exit status 1");
	world.run_fails = true;
	assert_int_equal(credentials_get(world.credentials, &access, &err), -ENOENT);
	assert_string_equal(err.text, "get it: credential plugin: plugin: not found");
}

static void a_plugin_that_talks_nonsense_is_an_error(void **state attr_unused)
{
	static const char *const rows[][2] = {
		{"", "gave no answer"},
		{"not json", "expected a mapping"},
		{"{\"kind\":\"ExecCredential\"}", "did not answer with an ExecCredential"},
		{ANSWER("null"), "status is missing"},
		{ANSWER("{}"), "neither a token nor a certificate"},
		{ANSWER("{\"token\":5}"), "status.token: expected a string"},
		{ANSWER("{\"clientCertificateData\":\"x\"}"), "without the other"},
		{ANSWER("{\"token\":\"a\",\"expirationTimestamp\":\"soon\"}"), "is not a time"},
		{ANSWER("{\"token\":\"a\\nb\"}"), "is not a token"},
	};
	const struct api_access *access = NULL;
	struct err err;

	open_plugin();
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		plugin_answers(rows[i][0]);
		assert_true(world.ready < 0);
		if (!strstr(world.ready_text, rows[i][1]))
			fail_msg("\"%s\" is not in \"%s\"", rows[i][1], world.ready_text);
		assert_int_equal(credentials_get(world.credentials, &access, &err), 0);
	}
}

static void a_plugin_that_runs_at_the_end_is_cancelled(void **state attr_unused)
{
	open_plugin();
	world.credentials = credentials_free(world.credentials);
	assert_int_equal(world.cancels, 1);
}

#define CREDENTIALS_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CREDENTIALS_TEST(files_and_data_become_access),
		CREDENTIALS_TEST(a_user_name_becomes_basic_authentication),
		CREDENTIALS_TEST(a_user_in_the_url_is_the_last_to_be_asked),
		CREDENTIALS_TEST(the_master_counts_before_the_kubeconfig),
		CREDENTIALS_TEST(a_master_alone_needs_no_credentials),
		CREDENTIALS_TEST(a_server_without_a_scheme_is_secure_when_it_can_be),
		CREDENTIALS_TEST(a_service_account_is_found),
		CREDENTIALS_TEST(a_service_account_on_ipv6_has_brackets),
		CREDENTIALS_TEST(errors_name_file_and_field),
		CREDENTIALS_TEST(a_token_that_rotates_is_used_at_once),
		CREDENTIALS_TEST(certificates_that_rotate_are_used_at_once),
		CREDENTIALS_TEST(a_kubeconfig_that_changes_is_read_again),
		CREDENTIALS_TEST(what_cannot_be_read_again_leaves_the_old_in_force),
		CREDENTIALS_TEST(a_plugin_is_called_as_asked),
		CREDENTIALS_TEST(a_plugin_gives_a_token),
		CREDENTIALS_TEST(a_plugin_gives_a_certificate),
		CREDENTIALS_TEST(a_plugin_is_run_again_before_its_credential_expires),
		CREDENTIALS_TEST(doubt_runs_a_plugin_again),
		CREDENTIALS_TEST(a_plugin_that_fails_is_an_error_with_its_hint),
		CREDENTIALS_TEST(a_plugin_that_talks_nonsense_is_an_error),
		CREDENTIALS_TEST(a_plugin_that_runs_at_the_end_is_cancelled),
	};

	return cmocka_run_group_tests_name("credentials", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reading makes a whole new set (kubeconfig, files, access) beside the old one, and takes its place
 * only when it is complete: a rotation that is half done is seen as an error, kept away from
 * requests, and looked at again the next time.
 */

#include "sources/credentials.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sources/api_url.h"
#include "sources/base64.h"
#include "sources/credentials_exec.h"
#include "sources/kubeconfig.h"
#include "sources/manifest_file.h"

#define FILES_MAX      5u /* the kubeconfig, its CA, certificate, key and token */
#define SECRET_MAX     (1u << 20)
#define EXPIRY_EARLY_S 10 /* a credential must live for as long as a request takes */

struct file {
	char *path;
	struct manifest_signature signature;
};

/* What was read, all at one time. */
struct set {
	struct kubeconfig *config;
	struct file files[FILES_MAX];
	size_t n_files;
	struct api_access access; /* without what a plugin gives */
	char *url_authorization;  /* by the user in the server's URL, if nothing else is known */
};

struct credentials {
	struct credentials_config config;
	char *kubeconfig, *master, *service_account_dir;
	struct set set;
	bool doubted;
	char *said; /* the last report, not to be repeated */

	bool plugin_running;
	struct exec_credential plugin; /* what it gave */
	struct api_access access;      /* what requests use */
};

/* -- files -- */

static int read_all(int fd, size_t max, struct api_blob *ret)
{
	char *data cleanup_free = xmalloc(max + 1);
	size_t n = 0;
	ssize_t got;

	while (n < max + 1 && (got = read(fd, data + n, max + 1 - n)) != 0) {
		if (got < 0 && errno != EINTR)
			return -errno;
		n += got > 0 ? (size_t)got : 0;
	}
	if (n > max)
		return -EFBIG;
	api_blob_set(ret, data, n);
	explicit_bzero(data, n);
	return 0;
}

/* Reads a file and remembers what it looked like. what: for errors, which field it is for. */
static int read_file(struct set *set, const char *path, const char *what, size_t max,
		     struct api_blob *ret, struct err *err)
{
	int fd cleanup_fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(err, -errno, "%s%s", what, path);
	if (!S_ISREG(st.st_mode))
		return err_set(err, -EINVAL, "%s%s: is not a file", what, path);
	r = read_all(fd, max, ret);
	if (r < 0)
		return err_sys(err, r, "%s%s", what, path);
	set->files[set->n_files++] = (struct file){
		.path = xstrdup(path),
		.signature = manifest_signature(&st),
	};
	return 0;
}

static bool has_changed(const struct set *set)
{
	for (size_t i = 0; i < set->n_files; i++) {
		struct manifest_signature signature;
		struct stat st;

		if (stat(set->files[i].path, &st) < 0)
			return true;
		signature = manifest_signature(&st);
		if (!manifest_signature_equal(&signature, &set->files[i].signature))
			return true;
	}
	return false;
}

static void set_done(struct set *set)
{
	kubeconfig_free(set->config);
	for (size_t i = 0; i < set->n_files; i++)
		free(set->files[i].path);
	api_access_done(&set->access);
	if (set->url_authorization)
		explicit_bzero(set->url_authorization, strlen(set->url_authorization));
	free(set->url_authorization);
	*set = (struct set){0};
}

/* -- from a kubeconfig to access -- */

static int read_secret(struct set *set, const struct kubeconfig_secret *secret, const char *what,
		       const char *mark, struct api_blob *ret, struct err *err)
{
	int r;

	if (secret->data) {
		api_blob_set(ret, secret->data, secret->n);
	} else if (secret->file) {
		r = read_file(set, secret->file, what, SECRET_MAX, ret, err);
		if (r < 0)
			return r;
	} else {
		return 0;
	}
	if (mark && !strstr(ret->data, mark))
		return err_set(err, -EINVAL, "%s%s: holds no PEM block \"%s\"", what,
			       secret->file ? secret->file : "the data", mark);
	return 0;
}

static void trim(struct api_blob *blob)
{
	size_t start = 0;

	while (blob->n > 0 && isspace((unsigned char)blob->data[blob->n - 1]))
		blob->data[--blob->n] = '\0';
	while (start < blob->n && isspace((unsigned char)blob->data[start]))
		start++;
	memmove(blob->data, blob->data + start, blob->n - start + 1);
	blob->n -= start;
}

static int read_token(struct set *set, struct err *err)
{
	const struct kubeconfig_secret *secret = &set->config->token;
	struct api_blob token = {0};
	struct kubeconfig_secret text = *secret;
	int r;

	if (text.data)
		text.n = strlen(text.data);
	r = read_secret(set, &text, "tokenFile: ", NULL, &token, err);
	if (r < 0 || !token.data)
		return r;
	trim(&token);
	if (token.n == 0 || strlen(token.data) != token.n || !api_access_is_header_text(token.data))
		r = err_set(err, -EINVAL, "%s%s%s", secret->file ? "tokenFile: " : "token",
			    secret->file ? secret->file : "",
			    token.n ? ": is not a token" : ": is empty");
	else
		set->access.authorization = xasprintf("Bearer %s", token.data);
	api_blob_set(&token, NULL, 0);
	return r;
}

static void set_basic(struct set *set)
{
	const struct kubeconfig *config = set->config;
	char *plain cleanup_free = NULL, *encoded cleanup_free = NULL;

	if (!config->username)
		return;
	plain = xasprintf("%s:%s", config->username, config->password ? config->password : "");
	encoded = base64_encode(plain, strlen(plain));
	set->access.authorization = xasprintf("Basic %s", encoded);
}

/* The user in it goes where secrets are; the URL is told to everyone who reads the log. */
static int set_server(struct set *set, const char *server, struct err *err)
{
	struct api_access *access = &set->access;
	bool tls = access->ca.data || access->certificate.data || access->insecure;
	char *hidden cleanup_free = api_url_hide(server);
	char *whole cleanup_free = NULL;
	struct api_url url cleanup_api_url = {0};
	const char *scheme = "";
	int r;

	if (!*server)
		return err_set(err, -EINVAL, "no server is named");
	if (!strstr(server, "://"))
		scheme = tls ? "https://" : "http://";
	else if (!has_prefix(server, "https://") && !has_prefix(server, "http://"))
		return err_set(err, -EINVAL, "the server %s is neither https:// nor http://",
			       hidden);
	whole = xasprintf("%s%s", scheme, server);
	r = api_url_parse(whole, &url, err);
	explicit_bzero(whole, strlen(whole));
	if (r < 0)
		return err_wrap(err, r, "server");
	access->server = api_url_text(&url);
	set->url_authorization = api_url_basic(&url);
	return 0;
}

static int read_access(struct set *set, const char *server, struct err *err)
{
	const struct kubeconfig *config = set->config;
	struct api_access *access = &set->access;
	int r;

	access->tls_server_name = xstrdup_or_null(config->tls_server_name);
	access->proxy_url = xstrdup_or_null(config->proxy_url);
	access->insecure = config->insecure;
	r = read_secret(set, &config->ca, "certificate-authority: ", "-----BEGIN CERTIFICATE",
			&access->ca, err);
	if (r == 0)
		r = read_secret(set, &config->certificate,
				"client-certificate: ", "-----BEGIN CERTIFICATE",
				&access->certificate, err);
	if (r == 0)
		r = read_secret(set, &config->key, "client-key: ", "PRIVATE KEY-----", &access->key,
				err);
	if (r == 0)
		r = read_token(set, err);
	if (r == 0 && !access->authorization)
		set_basic(set);
	return r < 0 ? r : set_server(set, server, err);
}

/* -- where they come from -- */

static int read_kubeconfig(const struct credentials *credentials, struct set *set, struct err *err)
{
	struct api_blob text = {0};
	const char *server;
	int r = read_file(set, credentials->kubeconfig, "", KUBECONFIG_MAX, &text, err);

	if (r < 0)
		return r;
	r = kubeconfig_parse(credentials->kubeconfig, text.data, text.n, &set->config, err);
	api_blob_set(&text, NULL, 0);
	if (r < 0)
		return r;
	server = credentials->master ? credentials->master : set->config->server;
	r = read_access(set, server, err);
	return r < 0 ? err_wrap(err, r, "%s", credentials->kubeconfig) : 0;
}

static struct kubeconfig *empty_config(void)
{
	struct arena *arena = arena_new(1024);
	struct kubeconfig *config = arena_alloc(arena, sizeof(*config));

	config->arena = arena;
	config->server = "";
	return config;
}

static int read_service_account(const struct credentials *credentials, struct set *set,
				struct err *err)
{
	const char *dir = credentials->service_account_dir;
	const char *host = credentials->config.getenv("KUBERNETES_SERVICE_HOST");
	const char *port = credentials->config.getenv("KUBERNETES_SERVICE_PORT");
	struct kubeconfig *config = set->config = empty_config();
	bool v6 = host && strchr(host, ':');
	const char *server;

	if (!host || !*host || !port || !*port)
		return err_set(err, -ENOENT,
			       "not in a pod (KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT "
			       "are not set), and no kubeconfig is given");
	server = arena_printf(config->arena, "https://%s%s%s:%s", v6 ? "[" : "", host,
			      v6 ? "]" : "", port);
	config->token.file = arena_printf(config->arena, "%s/token", dir);
	config->ca.file = arena_printf(config->arena, "%s/ca.crt", dir);
	if (access(config->ca.file, F_OK) < 0)
		config->ca.file = NULL; /* then it is one that the system trusts */
	return read_access(set, server, err);
}

static int read_set(const struct credentials *credentials, struct set *set, struct err *err)
{
	if (credentials->kubeconfig)
		return read_kubeconfig(credentials, set, err);
	if (!credentials->master)
		return read_service_account(credentials, set, err);
	set->config = empty_config();
	return read_access(set, credentials->master, err);
}

/* -- what requests use -- */

static void copy_blob(struct api_blob *to, const struct api_blob *from)
{
	api_blob_set(to, from->data, from->n);
}

static void join(struct credentials *credentials)
{
	const struct api_access *base = &credentials->set.access;
	const struct exec_credential *plugin = &credentials->plugin;
	struct api_access *access = &credentials->access;
	bool own = plugin->certificate.data != NULL;

	api_access_done(access);
	access->server = xstrdup_or_null(base->server);
	access->tls_server_name = xstrdup_or_null(base->tls_server_name);
	access->proxy_url = xstrdup_or_null(base->proxy_url);
	access->insecure = base->insecure;
	copy_blob(&access->ca, &base->ca);
	copy_blob(&access->certificate, own ? &plugin->certificate : &base->certificate);
	copy_blob(&access->key, own ? &plugin->key : &base->key);
	access->authorization = xstrdup_or_null(base->authorization);
	if (!access->authorization && plugin->token)
		access->authorization = xasprintf("Bearer %s", plugin->token);
	if (!access->authorization)
		access->authorization = xstrdup_or_null(credentials->set.url_authorization);
}

/* Once, until something else is to be said. */
static void say(struct credentials *credentials, enum log_severity severity, char *text)
{
	if (!credentials->said || !streq(credentials->said, text))
		credentials->config.report(credentials->config.report_arg, severity, text);
	free(credentials->said);
	credentials->said = text;
}

static int reread(struct credentials *credentials, struct err *err)
{
	struct set set = {0};
	int r = read_set(credentials, &set, err);

	if (r < 0) {
		set_done(&set);
		return r;
	}
	set_done(&credentials->set);
	credentials->set = set;
	free(take(credentials->said));
	join(credentials);
	return 0;
}

int credentials_new(const struct credentials_config *config, struct credentials **ret,
		    struct err *err)
{
	struct credentials *credentials = xcalloc(1, sizeof(*credentials));
	int r;

	credentials->config = *config;
	if (config->kubeconfig && *config->kubeconfig)
		credentials->kubeconfig = xstrdup(config->kubeconfig);
	if (config->master && *config->master)
		credentials->master = xstrdup(config->master);
	credentials->service_account_dir =
		xstrdup(config->service_account_dir ? config->service_account_dir
						    : CREDENTIALS_SERVICE_ACCOUNT);
	r = reread(credentials, err);
	if (r < 0) {
		credentials_free(credentials);
		return r;
	}
	*ret = credentials;
	return 0;
}

struct credentials *credentials_free(struct credentials *credentials)
{
	if (!credentials)
		return NULL;
	if (credentials->plugin_running)
		credentials->config.runner.cancel(credentials->config.runner.arg);
	set_done(&credentials->set);
	exec_credential_done(&credentials->plugin);
	api_access_done(&credentials->access);
	free(credentials->said);
	free(credentials->kubeconfig);
	free(credentials->master);
	free(credentials->service_account_dir);
	free(credentials);
	return NULL;
}

/* -- plugins -- */

static void on_output(void *arg, int r, const char *output, size_t n, const char *text)
{
	struct credentials *credentials = arg;
	const struct kubeconfig_exec *exec = credentials->set.config->exec;
	struct exec_credential given = {0};
	struct err err;

	credentials->plugin_running = false;
	if (r < 0)
		err_set(&err, r, "%s", text);
	else if (!exec) /* the kubeconfig has changed since */
		r = err_set(&err, -EAGAIN, "the kubeconfig has changed");
	else
		r = credentials_exec_parse(exec, output, n, &given, &err);
	if (r < 0) {
		exec_credential_done(&given);
		err_wrap(&err, r, "credential plugin");
		if (exec && *exec->install_hint)
			err_wrap(&err, r, "%s", exec->install_hint);
		credentials->config.ready(credentials->config.arg, r, err.text);
		return;
	}
	exec_credential_done(&credentials->plugin);
	credentials->plugin = given;
	join(credentials);
	credentials->config.ready(credentials->config.arg, 1, "");
}

static int start_plugin(struct credentials *credentials, struct err *err)
{
	const struct kubeconfig_exec *exec = credentials->set.config->exec;
	const struct credentials_runner *runner = &credentials->config.runner;
	struct arena *arena cleanup_arena = arena_new(4096);
	char *info cleanup_free = credentials_exec_info(exec, &credentials->set.access);
	const char **argv, **env;
	size_t n_args = util_count_words(exec->args), n_env = util_count_words(exec->env);
	int r;

	argv = arena_array(arena, n_args + 2, sizeof(*argv));
	argv[0] = exec->command;
	memcpy(argv + 1, exec->args, n_args * sizeof(*argv));
	env = arena_array(arena, n_env + 2, sizeof(*env));
	memcpy(env, exec->env, n_env * sizeof(*env));
	env[n_env] = arena_printf(arena, "KUBERNETES_EXEC_INFO=%s", info);
	r = runner->run(runner->arg, argv, env, on_output, credentials, err);
	if (r < 0)
		return err_wrap(err, r, "%s%scredential plugin", exec->install_hint,
				*exec->install_hint ? ": " : "");
	credentials->plugin_running = true;
	return 0;
}

static bool needs_plugin(const struct credentials *credentials)
{
	const struct exec_credential *plugin = &credentials->plugin;

	if (!credentials->set.config->exec || credentials->set.access.authorization)
		return false;
	return credentials->doubted || (!plugin->token && !plugin->certificate.data) ||
	       plugin->expires_s - EXPIRY_EARLY_S <= credentials->config.now_s();
}

int credentials_get(struct credentials *credentials, const struct api_access **ret, struct err *err)
{
	int r;

	if (credentials->plugin_running)
		return 0;
	if (credentials->doubted || has_changed(&credentials->set)) {
		struct err problem;

		if (reread(credentials, &problem) < 0)
			say(credentials, LOG_SEVERITY_WARNING,
			    xasprintf("%s, keeping the credentials last read", problem.text));
	}
	if (needs_plugin(credentials)) {
		r = start_plugin(credentials, err);
		credentials->doubted = false;
		return r;
	}
	credentials->doubted = false;
	*ret = &credentials->access;
	return 1;
}

const struct api_access *credentials_access(const struct credentials *credentials)
{
	return &credentials->access;
}

void credentials_doubt(struct credentials *credentials)
{
	credentials->doubted = true;
}

void credentials_each_file(const struct credentials *credentials,
			   void (*use)(void *arg, const char *path), void *arg)
{
	for (size_t i = 0; i < credentials->set.n_files; i++)
		use(arg, credentials->set.files[i].path);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/kubeconfig.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "sources/base64.h"
#include "sources/kubeconfig.pb-c.h"
#include "sources/printable.h"
#include "sources/yaml_message.h"

/* A kubeconfig on its way from text to what counts of it. */
struct parse {
	const char *path;
	struct yaml_node *root;
	struct arena *arena;
	struct kubeconfig *config;
	struct err *err;
};

/* Where a field stands: "users[2].user.client-key". */
struct place {
	const char *section; /* "users" */
	size_t index;
	const char *inner; /* "user" */
	const char *field; /* NULL: the whole entry */
};

static const struct yaml_node *find(const struct parse *parse, const struct place *place)
{
	const struct yaml_node *best = parse->root, *node;

	if (!place->section)
		return place->field && (node = yaml_node_get(best, place->field)) ? node : best;
	node = yaml_node_get(best, place->section);
	if (!node || node->kind != YAML_KIND_SEQUENCE || place->index >= node->n)
		return best;
	best = node->items[place->index];
	node = yaml_node_get(best, place->inner);
	if (node)
		best = node;
	node = place->field ? yaml_node_get(best, place->field) : NULL;
	return node ? node : best;
}

static int fail(const struct parse *parse, const struct place *place, const char *what)
{
	const struct yaml_node *node = find(parse, place);
	char where[96] = "";

	if (place->section)
		snprintf(where, sizeof(where), "%s[%zu].%s%s", place->section, place->index,
			 place->inner, place->field ? "." : "");
	return err_set(parse->err, -EINVAL, "%s:%u:%u: %s%s: %s", parse->path, node->line,
		       node->column, where, place->field ? place->field : "", what);
}

static const char *given(const char *text)
{
	return text && *text ? text : NULL;
}

/* A copy in the arena; NULL for what is empty. */
static const char *keep(const struct parse *parse, const char *text)
{
	return given(text) ? arena_strdup(parse->arena, text) : NULL;
}

static const char *keep_path(const struct parse *parse, const char *path)
{
	const char *slash = strrchr(parse->path, '/');

	if (!given(path))
		return NULL;
	if (path[0] == '/' || !slash)
		return arena_strdup(parse->arena, path);
	return arena_printf(parse->arena, "%.*s/%s", (int)(slash - parse->path), parse->path, path);
}

/* data: in base64. */
static int keep_secret(const struct parse *parse, struct place place, const char *data,
		       const char *file, struct kubeconfig_secret *ret)
{
	char *decoded cleanup_free = NULL;
	char *kept;
	size_t n;

	ret->file = NULL;
	if (!given(data)) {
		ret->file = keep_path(parse, file);
		return 0;
	}
	place.field = arena_printf(parse->arena, "%s-data", place.field);
	if (base64_decode(data, &decoded, &n) < 0)
		return fail(parse, &place, "is not base64");
	kept = arena_alloc(parse->arena, n + 1);
	memcpy(kept, decoded, n);
	ret->data = kept;
	ret->n = n;
	return 0;
}

static int read_cluster(const struct parse *parse, const Kubeconfig__Cluster *cluster, size_t index)
{
	struct kubeconfig *config = parse->config;
	struct place place = {"clusters", index, "cluster", "certificate-authority"};
	int r;

	config->server = keep(parse, cluster->server);
	config->tls_server_name = keep(parse, cluster->tls_server_name);
	config->proxy_url = keep(parse, cluster->proxy_url);
	config->insecure = cluster->insecure_skip_tls_verify;
	r = keep_secret(parse, place, cluster->certificate_authority_data,
			cluster->certificate_authority, &config->ca);
	if (r < 0)
		return r;
	place.field = "insecure-skip-tls-verify";
	if (config->insecure && (config->ca.data || config->ca.file))
		return fail(parse, &place, "cannot be combined with a certificate authority");
	return 0;
}

static int check_exec(const struct parse *parse, const Kubeconfig__Exec *exec, struct place place)
{
	static const char *const versions[] = {"client.authentication.k8s.io/v1",
					       "client.authentication.k8s.io/v1beta1"};

	place.field = "exec";
	if (!given(exec->command))
		return fail(parse, &place, "command is missing");
	if (exec->apiversion && word_among(exec->apiversion, versions))
		return 0;
	return fail(parse, &place,
		    "apiVersion must be client.authentication.k8s.io/v1 or .../v1beta1");
}

static int read_exec(const struct parse *parse, const Kubeconfig__Exec *exec, struct place place)
{
	struct kubeconfig_exec *ret = arena_alloc(parse->arena, sizeof(*ret));
	const char **args = arena_array(parse->arena, exec->n_args + 1, sizeof(*args));
	const char **env = arena_array(parse->arena, exec->n_env + 1, sizeof(*env));
	int r = check_exec(parse, exec, place);

	if (r < 0)
		return r;
	for (size_t i = 0; i < exec->n_args; i++)
		args[i] = arena_strdup(parse->arena, exec->args[i] ? exec->args[i] : "");
	place.field = "exec";
	for (size_t i = 0; i < exec->n_env; i++) {
		const Kubeconfig__ExecVariable *variable = exec->env[i];

		if (!variable || !given(variable->name) || strchr(variable->name, '='))
			return fail(parse, &place, "env: a variable without a usable name");
		env[i] = arena_printf(parse->arena, "%s=%s", variable->name,
				      variable->value ? variable->value : "");
	}
	ret->api_version = keep(parse, exec->apiversion);
	ret->command = strchr(exec->command, '/') ? keep_path(parse, exec->command)
						  : keep(parse, exec->command);
	ret->args = args;
	ret->env = env;
	ret->install_hint = arena_strdup(parse->arena, exec->installhint ? exec->installhint : "");
	ret->cluster_info = exec->provideclusterinfo;
	parse->config->exec = ret;
	return 0;
}

static int read_certificate(const struct parse *parse, const Kubeconfig__User *user,
			    struct place place)
{
	struct kubeconfig *config = parse->config;
	bool certificate, key;
	int r;

	place.field = "client-certificate";
	r = keep_secret(parse, place, user->client_certificate_data, user->client_certificate,
			&config->certificate);
	if (r < 0)
		return r;
	place.field = "client-key";
	r = keep_secret(parse, place, user->client_key_data, user->client_key, &config->key);
	if (r < 0)
		return r;
	certificate = config->certificate.data || config->certificate.file;
	key = config->key.data || config->key.file;
	place.field = NULL;
	if (certificate != key)
		return fail(parse, &place,
			    key ? "client-key needs a client-certificate beside it"
				: "client-certificate needs a client-key beside it");
	return 0;
}

static int read_user(const struct parse *parse, const Kubeconfig__User *user, size_t index)
{
	struct kubeconfig *config = parse->config;
	struct place place = {"users", index, "user", NULL};
	int r = read_certificate(parse, user, place);

	if (r < 0)
		return r;
	config->token.file = keep_path(parse, user->tokenfile);
	config->token.data = config->token.file ? NULL : keep(parse, user->token);
	config->username = keep(parse, user->username);
	config->password = keep(parse, user->password);
	if (config->username && (config->token.file || config->token.data))
		return fail(parse, &place,
			    "has a username and a token, of which only one can be used");
	place.field = "auth-provider";
	if (user->auth_provider)
		return fail(parse, &place, "is not supported, use exec instead");
	return user->exec ? read_exec(parse, user->exec, place) : 0;
}

/* The index of the entry with that name. */
#define FIND_NAMED(list, n, wanted)                                                               \
	({                                                                                        \
		size_t at_ = 0;                                                                   \
		while (at_ < (n) &&                                                               \
		       !((list)[at_] && (list)[at_]->name && streq((list)[at_]->name, (wanted)))) \
			at_++;                                                                    \
		at_;                                                                              \
	})

static int missing(const struct parse *parse, const struct place *place, const char *kind,
		   const char *name)
{
	char clean[96], what[160];

	snprintf(what, sizeof(what), "there is no %s \"%s\"", kind,
		 printable(name, clean, sizeof(clean)));
	return fail(parse, place, what);
}

static int select_context(const struct parse *parse, const Kubeconfig__File *file)
{
	const struct place current = {.field = "current-context"};
	struct place place = {"contexts", 0, "context", NULL};
	const Kubeconfig__Context *context;
	size_t cluster, user;
	int r;

	if (!given(file->current_context))
		return fail(parse, &current, "is not set");
	place.index = FIND_NAMED(file->contexts, file->n_contexts, file->current_context);
	if (place.index == file->n_contexts)
		return missing(parse, &current, "context", file->current_context);
	context = file->contexts[place.index]->context;
	if (!context || !given(context->cluster))
		return fail(parse, &place, "names no cluster");
	place.field = "cluster";
	cluster = FIND_NAMED(file->clusters, file->n_clusters, context->cluster);
	if (cluster == file->n_clusters || !file->clusters[cluster]->cluster)
		return missing(parse, &place, "cluster", context->cluster);
	parse->config->context = keep(parse, file->current_context);
	parse->config->cluster = keep(parse, context->cluster);
	parse->config->user = keep(parse, context->user);
	r = read_cluster(parse, file->clusters[cluster]->cluster, cluster);
	if (r < 0 || !given(context->user))
		return r;
	place.field = "user";
	user = FIND_NAMED(file->users, file->n_users, context->user);
	if (user == file->n_users)
		return missing(parse, &place, "user", context->user);
	return file->users[user]->user ? read_user(parse, file->users[user]->user, user) : 0;
}

static int parse_text(struct parse *parse, const char *text, size_t n, struct arena *scratch)
{
	const struct yaml_source source = {.file = parse->path};
	struct yaml_reader *reader cleanup_yaml_reader = NULL;
	Kubeconfig__File *file;
	int r = yaml_reader_new(parse->path, text, n, &reader, parse->err);

	if (r < 0)
		return r;
	r = yaml_reader_next(reader, scratch, &parse->root, parse->err);
	if (r == 0 || (r > 0 && yaml_node_is_null(parse->root)))
		return err_set(parse->err, -EINVAL, "%s: is empty", parse->path);
	if (r > 0)
		r = yaml_message_read(&source, parse->root, &kubeconfig__file__descriptor, scratch,
				      (ProtobufCMessage **)&file, parse->err);
	return r < 0 ? r : select_context(parse, file);
}

int kubeconfig_parse(const char *path, const char *text, size_t n, struct kubeconfig **ret,
		     struct err *err)
{
	struct arena *scratch cleanup_arena = arena_new(4096);
	struct arena *arena = arena_new(4096);
	struct kubeconfig *config = arena_alloc(arena, sizeof(*config));
	struct parse parse = {.path = path, .arena = arena, .config = config, .err = err};
	int r;

	config->arena = arena;
	r = parse_text(&parse, text, n, scratch);
	if (r < 0) {
		kubeconfig_free(config);
		return r;
	}
	if (!config->server)
		config->server = "";
	*ret = config;
	return 0;
}

struct kubeconfig *kubeconfig_free(struct kubeconfig *config)
{
	if (config)
		arena_free(config->arena);
	return NULL;
}

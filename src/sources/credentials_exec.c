/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/credentials_exec.h"

#include <errno.h>
#include <stdlib.h>

#include "base/doc.h"
#include "sources/base64.h"
#include "sources/kubeconfig.pb-c.h"
#include "sources/rfc3339.h"
#include "sources/yaml_message.h"

static void add_cluster(struct doc *doc, const struct api_access *cluster)
{
	char *ca cleanup_free = NULL;

	if (cluster->ca.data)
		ca = base64_encode(cluster->ca.data, cluster->ca.n);
	doc_open_map(doc, "cluster");
	doc_string(doc, "server", cluster->server);
	doc_optional(doc, "tls-server-name", cluster->tls_server_name);
	doc_optional(doc, "proxy-url", cluster->proxy_url);
	doc_optional(doc, "certificate-authority-data", ca);
	if (cluster->insecure)
		doc_bool(doc, "insecure-skip-tls-verify", true);
	doc_close(doc);
}

char *credentials_exec_info(const struct kubeconfig_exec *exec, const struct api_access *cluster)
{
	cleanup_text struct text text = {0};
	struct doc doc;

	doc_init(&doc, &text, DOC_LINE);
	doc_open_map(&doc, NULL);
	doc_string(&doc, "kind", "ExecCredential");
	doc_optional(&doc, "apiVersion", exec->api_version);
	doc_open_map(&doc, "spec");
	doc_bool(&doc, "interactive", false);
	if (exec->cluster_info)
		add_cluster(&doc, cluster);
	doc_close(&doc);
	doc_close(&doc);
	return text_dup(&text);
}

static const char *given(const char *text)
{
	return text && *text ? text : NULL;
}

static int take_status(const struct kubeconfig_exec *exec,
		       const Kubeconfig__ExecCredentialStatus *status, struct exec_credential *ret,
		       struct err *err)
{
	const char *certificate = given(status->clientcertificatedata);
	const char *key = given(status->clientkeydata);
	int32_t nanos;

	if (!given(status->token) && !certificate)
		return err_set(err, -EINVAL, "%s: gave neither a token nor a certificate",
			       exec->command);
	if (!certificate != !key)
		return err_set(err, -EINVAL, "%s: gave a certificate or a key without the other",
			       exec->command);
	if (given(status->token) && !api_access_is_header_text(status->token))
		return err_set(err, -EINVAL, "%s: status.token is not a token", exec->command);
	ret->expires_s = INT64_MAX;
	if (given(status->expirationtimestamp) &&
	    rfc3339_parse(status->expirationtimestamp, &ret->expires_s, &nanos) < 0)
		return err_set(err, -EINVAL, "%s: status.expirationTimestamp is not a time",
			       exec->command);
	if (given(status->token))
		ret->token = xstrdup(status->token);
	if (certificate) {
		api_blob_set(&ret->certificate, certificate, strlen(certificate));
		api_blob_set(&ret->key, key, strlen(key));
	}
	return 0;
}

int credentials_exec_parse(const struct kubeconfig_exec *exec, const char *text, size_t n,
			   struct exec_credential *ret, struct err *err)
{
	const struct yaml_source source = {.file = exec->command};
	struct arena *arena cleanup_arena = arena_new(4096);
	struct yaml_reader *reader cleanup_yaml_reader = NULL;
	Kubeconfig__ExecCredential *message;
	struct yaml_node *root;
	int r = yaml_reader_new(exec->command, text, n, &reader, err);

	if (r >= 0)
		r = yaml_reader_next(reader, arena, &root, err);
	if (r == 0)
		return err_set(err, -EINVAL, "%s: gave no answer", exec->command);
	if (r > 0)
		r = yaml_message_read(&source, root, &kubeconfig__exec_credential__descriptor,
				      arena, (ProtobufCMessage **)&message, err);
	if (r < 0)
		return r;
	if (!message->kind || !streq(message->kind, "ExecCredential") || !message->apiversion ||
	    !streq(message->apiversion, exec->api_version))
		return err_set(err, -EINVAL, "%s: did not answer with an ExecCredential of %s",
			       exec->command, exec->api_version);
	if (!message->status)
		return err_set(err, -EINVAL, "%s: status is missing", exec->command);
	return take_status(exec, message->status, ret, err);
}

void exec_credential_done(struct exec_credential *credential)
{
	if (credential->token)
		explicit_bzero(credential->token, strlen(credential->token));
	free(credential->token);
	api_blob_set(&credential->certificate, NULL, 0);
	api_blob_set(&credential->key, NULL, 0);
	*credential = (struct exec_credential){0};
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/api_route.h"

#include <assert.h>
#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>

#include "sources/env_proxy.h"

static const char *get_environment(const char *name)
{
	return getenv(name);
}

/* As the kubeconfig says, else the environment; *ret stays NULL if there is none. */
static int find_proxy(const struct api_access *access, const struct api_url *server, char **ret,
		      struct err *err)
{
	char port[8];
	const struct env_proxy_target target = {server->scheme == API_SCHEME_HTTPS, server->host,
						port};

	snprintf(port, sizeof(port), "%u", server->port);
	if (access->proxy_url && *access->proxy_url) {
		*ret = xstrdup(access->proxy_url);
		return 0;
	}
	return env_proxy_find(&target, get_environment, ret, err);
}

static int set_proxy(struct api_route *route, const struct api_access *access, char **ret_text,
		     struct err *err)
{
	char *text = NULL;
	int r = find_proxy(access, &route->server, &text, err);

	if (r == 0 && text)
		r = api_url_parse(text, &route->proxy, err);
	*ret_text = text;
	return r < 0 ? err_wrap(err, r, "proxy") : 0;
}

/* The length before each part, so that what one lacks is not taken for what the next has more. */
static void digest_part(EVP_MD_CTX *md, const char *data, size_t n)
{
	uint64_t length = data ? n + 1 : 0;

	EVP_DigestUpdate(md, &length, sizeof(length));
	if (data)
		EVP_DigestUpdate(md, data, n);
}

static void digest_text(EVP_MD_CTX *md, const char *text)
{
	digest_part(md, text, text ? strlen(text) : 0);
}

static void set_id(struct api_route *route, const struct api_access *access, const char *proxy)
{
	EVP_MD_CTX *md = EVP_MD_CTX_new();

	EVP_DigestInit_ex(md, EVP_sha256(), NULL);
	digest_part(md, access->insecure ? "1" : "0", 1);
	digest_text(md, access->server);
	digest_text(md, access->tls_server_name);
	digest_text(md, proxy);
	digest_part(md, access->ca.data, access->ca.n);
	digest_part(md, access->certificate.data, access->certificate.n);
	digest_part(md, access->key.data, access->key.n);
	EVP_DigestFinal_ex(md, route->id, NULL);
	EVP_MD_CTX_free(md);
}

/* A certificate has no dot at the end of a name, which only tells a resolver that it is whole. */
static char *peer_of(const struct api_access *access, const struct api_route *route)
{
	bool other = access->tls_server_name && *access->tls_server_name;
	const char *name = other ? access->tls_server_name : route->server.host;

	return xasprintf("%.*s", (int)(strlen(name) - has_suffix(name, ".")), name);
}

int api_route_new(const struct api_access *access, struct api_route **ret, struct err *err)
{
	struct api_route *route = xcalloc(1, sizeof(*route));
	char *proxy = NULL;
	int r = api_url_parse(access->server, &route->server, err);

	route->refs = 1;
	if (r == 0 && route->server.scheme == API_SCHEME_SOCKS5)
		r = err_set(err, -EINVAL, "a server is reached by https:// or http://");
	if (r == 0)
		r = set_proxy(route, access, &proxy, err);
	if (r == 0) {
		route->peer = peer_of(access, route);
		set_id(route, access, proxy);
		*ret = route;
	} else {
		api_route_unref(route);
	}
	if (proxy)
		explicit_bzero(proxy, strlen(proxy));
	free(proxy);
	return r;
}

int api_route_add_tls(struct api_route *route, const struct api_access *access, struct err *err)
{
	const struct api_tls_config config = {
		.ca = &access->ca,
		.certificate = &access->certificate,
		.key = &access->key,
		.insecure = access->insecure,
	};
	/* A proxy may be the cluster's own or one of the world's, and has no business with our key. */
	const struct api_tls_config proxy_config = {.ca = &access->ca, .system_too = true};
	int r = 0;

	if (route->server.scheme == API_SCHEME_HTTPS)
		r = api_tls_new(&config, &route->tls, err);
	if (r == 0 && route->proxy.host && route->proxy.scheme == API_SCHEME_HTTPS)
		r = api_tls_new(&proxy_config, &route->proxy_tls, err);
	return r;
}

static void destroy(struct api_route *route)
{
	api_url_done(&route->server);
	api_url_done(&route->proxy);
	free(route->peer);
	SSL_CTX_free(route->tls);
	SSL_CTX_free(route->proxy_tls);
	free(route);
}

DEFINE_REFS(api_route, destroy)

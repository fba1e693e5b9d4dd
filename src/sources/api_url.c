/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/api_url.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <strings.h>

#include "base/addr.h"
#include "sources/base64.h"

#define HOST_MAX 253u /* of a name in DNS */

static const struct scheme {
	const char *prefix;
	enum api_scheme scheme;
	uint16_t port;
} schemes[] = {
	{"https://", API_SCHEME_HTTPS, 443},
	{"http://", API_SCHEME_HTTP, 80},
	{"socks5://", API_SCHEME_SOCKS5, 1080},
	{"socks5h://", API_SCHEME_SOCKS5, 1080},
};

static const struct scheme *find_scheme(const char *text)
{
	for (size_t i = 0; i < ARRAY_SIZE(schemes); i++)
		if (strncasecmp(text, schemes[i].prefix, strlen(schemes[i].prefix)) == 0)
			return &schemes[i];
	return NULL;
}

static void wipe(char *text)
{
	if (text)
		explicit_bzero(text, strlen(text));
	free(text);
}

void api_url_done(struct api_url *url)
{
	wipe(url->user);
	free(url->host);
	free(url->authority);
	free(url->path);
	*url = (struct api_url){0};
}

/*
 * Whatever stands before the last '@' may be a secret, wherever it is: a password may hold '/' or
 * "://". Only a scheme, which is letters and digits, is kept of it.
 */
char *api_url_hide(const char *text)
{
	const char *at = strrchr(text, '@');
	const char *end = text;

	if (!at)
		return xstrdup(text);
	while (isalnum((unsigned char)*end))
		end++;
	return xasprintf("%.*s%s", has_prefix(end, "://") ? (int)(end - text) + 3 : 0, text,
			 at + 1);
}

static bool is_name(const char *host)
{
	size_t n = strlen(host);

	return n > 0 && n <= HOST_MAX &&
	       strspn(host, "abcdefghijklmnopqrstuvwxyz"
			    "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
			    "0123456789-._") == n;
}

static int read_port(const char *text, uint16_t *ret)
{
	size_t n = strspn(text, "0123456789");
	unsigned long port;

	if (n == 0 || n > 5 || text[n])
		return -EINVAL;
	port = strtoul(text, NULL, 10);
	if (port == 0 || port > UINT16_MAX)
		return -EINVAL;
	*ret = (uint16_t)port;
	return 0;
}

/* "host", "host:port", "[address]" or "[address]:port". */
static int read_authority(const char *text, size_t n, struct api_url *url)
{
	bool brackets = n > 0 && text[0] == '[';
	const char *end;
	struct addr addr;

	url->authority = xasprintf("%.*s", (int)n, text);
	end = strchr(url->authority, brackets ? ']' : ':');
	if (!end && brackets)
		return -EINVAL;
	if (!end)
		end = url->authority + strlen(url->authority);
	url->host = xasprintf("%.*s", (int)(end - url->authority - brackets),
			      url->authority + brackets);
	if (brackets ? addr_parse(url->host, &addr) < 0 || !strchr(url->host, ':')
		     : !is_name(url->host))
		return -EINVAL;
	end += brackets;
	if (!*end)
		return 0;
	return *end == ':' ? read_port(end + 1, &url->port) : -EINVAL;
}

static int read_path(const char *text, struct api_url *url)
{
	size_t n = strlen(text);

	for (const char *c = text; *c; c++)
		if ((unsigned char)*c <= ' ' || (unsigned char)*c >= 0x7f || strchr("?#", *c))
			return -EINVAL;
	while (n > 0 && text[n - 1] == '/')
		n--;
	url->path = xasprintf("%.*s", (int)n, text);
	return 0;
}

static int parse(const char *text, struct api_url *url)
{
	const struct scheme *scheme = find_scheme(text);
	const char *start, *at;
	size_t n;
	int r;

	if (!scheme)
		return -EINVAL;
	url->scheme = scheme->scheme;
	url->port = scheme->port;
	start = text + strlen(scheme->prefix);
	n = strcspn(start, "/?#");
	at = memrchr(start, '@', n);
	if (at) {
		url->user = util_percent_decode(start, (size_t)(at - start), false);
		if (!url->user)
			return -EINVAL;
		n -= (size_t)(at + 1 - start);
		start = at + 1;
	}
	r = read_authority(start, n, url);
	return r < 0 ? r : read_path(start + n, url);
}

int api_url_parse(const char *text, struct api_url *ret, struct err *err)
{
	cleanup_free char *hidden = NULL;
	struct api_url url = {0};
	int r = parse(text, &url);

	if (r < 0) {
		api_url_done(&url);
		hidden = api_url_hide(text);
		return err_set(err, r, "%s is not a URL that can be used", hidden);
	}
	*ret = url;
	return 0;
}

char *api_url_basic(const struct api_url *url)
{
	char *plain, *encoded, *value;

	if (!url->user)
		return NULL;
	plain = xasprintf("%s%s", url->user, strchr(url->user, ':') ? "" : ":");
	encoded = base64_encode(plain, strlen(plain));
	value = xasprintf("Basic %s", encoded);
	wipe(plain);
	wipe(encoded);
	return value;
}

char *api_url_host_port(const struct api_url *url)
{
	bool brackets = strchr(url->host, ':') != NULL;

	return xasprintf("%s%s%s:%u", brackets ? "[" : "", url->host, brackets ? "]" : "",
			 url->port);
}

char *api_url_text(const struct api_url *url)
{
	static const char *const prefixes[] = {
		[API_SCHEME_HTTP] = "http://",
		[API_SCHEME_HTTPS] = "https://",
		[API_SCHEME_SOCKS5] = "socks5://",
	};
	_Static_assert(ARRAY_SIZE(prefixes) == API_SCHEME_COUNT, "a prefix for each scheme");

	return xasprintf("%s%s%s", prefixes[url->scheme], url->authority, url->path);
}

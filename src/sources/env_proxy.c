/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/env_proxy.h"

#include <errno.h>
#include <strings.h>

#include "base/addr.h"

static const char *get_any(env_proxy_get *get, const char *capitals, const char *small)
{
	const char *value = get(capitals);

	if (!value || !*value)
		value = get(small);
	return value && *value ? value : NULL;
}

/* One word of NO_PROXY, and the target. */
struct match {
	char *word; /* the host's part of it, in small letters */
	const char *port;
	const struct env_proxy_target *target;
	const char *host;        /* the target's, in small letters */
	const struct addr *addr; /* NULL: it is a name */
};

/* Cuts "host:port" and "[host]:port"; what has more colons, or none, stays whole. */
static void split_port(struct match *match)
{
	char *word = match->word;
	char *colon = strrchr(word, ':');

	if (!colon)
		return;
	if (word[0] == '[' && colon > word && colon[-1] == ']') {
		match->port = colon + 1;
		colon[-1] = '\0';
		match->word = word + 1;
	} else if (strchr(word, ':') == colon && !strpbrk(word, "[]")) {
		match->port = colon + 1;
		*colon = '\0';
	}
}

static bool matches_name(const struct match *match)
{
	const char *name = match->word;
	bool subdomains_only;

	if (has_prefix(name, "*."))
		name++;
	subdomains_only = name[0] == '.';
	if (subdomains_only)
		return has_suffix(match->host, name);
	if (streq(match->host, name))
		return true;
	return has_suffix(match->host, name) && strlen(match->host) > strlen(name) &&
	       match->host[strlen(match->host) - strlen(name) - 1] == '.';
}

static bool matches(struct match *match)
{
	struct prefix prefix;
	struct addr addr;

	if (strchr(match->word, '/') && prefix_parse(match->word, &prefix) == 0)
		return match->addr && prefix_contains(&prefix, match->addr);
	split_port(match);
	if (!match->word[0])
		return false;
	if (match->port && *match->port && !streq(match->port, match->target->port))
		return false;
	if (addr_parse(match->word, &addr) == 0)
		return match->addr && addr_equal(&addr, match->addr);
	return !match->addr && matches_name(match);
}

static bool is_excepted(const struct env_proxy_target *target, const struct addr *addr,
			const char *list)
{
	cleanup_free char *host = util_lower(util_trimmed(target->host, strlen(target->host)));

	while (list && *list) {
		size_t n = strcspn(list, ",");
		cleanup_free char *word = util_lower(util_trimmed(list, n));
		struct match match = {.word = word, .target = target, .host = host, .addr = addr};

		if (streq(word, "*") || (*word && matches(&match)))
			return true;
		list += n + (list[n] == ',');
	}
	return false;
}

/* Go's SOCKS leaves names to the proxy, which elsewhere is a scheme of its own. */
static char *proxy_url(const char *proxy)
{
	static const char socks[] = "socks5://";

	if (strncasecmp(proxy, socks, sizeof(socks) - 1) == 0)
		return xasprintf("socks5h://%s", proxy + sizeof(socks) - 1);
	return strstr(proxy, "://") ? xstrdup(proxy) : xasprintf("http://%s", proxy);
}

int env_proxy_find(const struct env_proxy_target *target, env_proxy_get *get, char **ret,
		   struct err *err)
{
	const char *proxy = target->https ? get_any(get, "HTTPS_PROXY", "https_proxy")
					  : get_any(get, "HTTP_PROXY", "http_proxy");
	const char *method = get("REQUEST_METHOD");
	struct addr addr;
	bool is_addr = addr_parse(target->host, &addr) == 0;

	*ret = NULL;
	if (!proxy)
		return 0;
	if (!target->https && method && *method)
		return err_set(err, -EPERM, "HTTP_PROXY is not trusted beside REQUEST_METHOD");
	if (streq(target->host, "localhost") || (is_addr && addr_is_loopback(&addr)) ||
	    is_excepted(target, is_addr ? &addr : NULL, get_any(get, "NO_PROXY", "no_proxy")))
		return 0;
	*ret = proxy_url(proxy);
	return 0;
}

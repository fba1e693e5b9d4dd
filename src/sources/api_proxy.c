/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/api_proxy.h"

#include <errno.h>
#include <stdlib.h>

#include "base/addr.h"

#define SOCKS_FIELD_MAX 255u /* a name, a user, a password: their length is a byte */
#define SOCKS_REPLY_MAX (4 + 1 + SOCKS_FIELD_MAX + 2)

enum socks_state {
	SOCKS_METHOD = 0, /* how it wants to know us */
	SOCKS_USER,       /* whether it does */
	SOCKS_REPLY,      /* whether there is a tunnel */
	SOCKS_STATE_COUNT,
};

struct api_proxy {
	const struct api_url *url, *server;
	struct api_h1 *h1; /* NULL: it speaks SOCKS */
	int status;
	enum socks_state state;
	size_t n_in;
	uint8_t in[SOCKS_REPLY_MAX];
};

/* -- CONNECT -- */

static void on_head(void *arg, const struct api_answer *answer)
{
	struct api_proxy *proxy = arg;

	proxy->status = answer->status;
}

static void on_data(void *arg attr_unused, struct api_bytes data attr_unused)
{
}

static const struct api_exchange_handler handler = {on_head, on_data, NULL};

static void connect_begin(const struct api_proxy *proxy, struct text *out)
{
	cleanup_free char *to = api_url_host_port(proxy->server);
	char *basic = api_url_basic(proxy->url);
	const struct api_header headers[] = {
		{"user-agent", "portolan/" PORTOLAN_VERSION},
		{"proxy-authorization", basic},
	};
	const struct api_exchange exchange = {
		.method = "CONNECT",
		.authority = to,
		.target = to,
		.headers = headers,
		.n_headers = basic ? 2 : 1,
	};

	api_h1_request(&exchange, out);
	if (basic)
		explicit_bzero(basic, strlen(basic));
	free(basic);
}

static int connect_feed(struct api_proxy *proxy, struct api_bytes data, struct err *err)
{
	ssize_t n = api_h1_feed(proxy->h1, data, err);

	if (n < 0)
		return (int)n;
	if (proxy->status == 0)
		return 0;
	if (proxy->status == 407)
		return err_set(err, -ECONNREFUSED,
			       "it wants a user and a password (HTTP status 407), which its URL "
			       "%s",
			       proxy->url->user ? "has wrong" : "does not have");
	if (proxy->status / 100 != 2)
		return err_set(err, -ECONNREFUSED, "it answers with HTTP status %d", proxy->status);
	return (size_t)n < data.n ? err_set(err, -EBADMSG, "it sends more than its answer") : 1;
}

/* -- SOCKS 5 -- */

static void put(struct text *out, const uint8_t *bytes, size_t n)
{
	text_add(out, (const char *)bytes, n);
}

/* One byte of length, then as many of text. */
static void put_field(struct text *out, const char *field, size_t n)
{
	uint8_t length = (uint8_t)n;

	put(out, &length, 1);
	text_add(out, field, n);
}

static void socks_begin(const struct api_proxy *proxy, struct text *out)
{
	if (proxy->url->user)
		put(out, (const uint8_t[]){5, 2, 0, 2}, 4);
	else
		put(out, (const uint8_t[]){5, 1, 0}, 3);
}

static void ask_for_tunnel(struct api_proxy *proxy, struct text *out)
{
	const struct api_url *server = proxy->server;
	struct addr addr;
	bool is_addr = addr_parse(server->host, &addr) == 0;
	uint8_t kind = is_addr ? addr.family == FAMILY_IPV4 ? 1 : 4 : 3;

	put(out, (const uint8_t[]){5, 1, 0, kind}, 4);
	if (is_addr)
		put(out, addr.bytes, addr_bytes(addr.family));
	else
		put_field(out, server->host, strlen(server->host)); /* 253 at most */
	put(out, (const uint8_t[]){(uint8_t)(server->port >> 8), (uint8_t)server->port}, 2);
	proxy->state = SOCKS_REPLY;
}

static int send_user(struct api_proxy *proxy, struct text *out, struct err *err)
{
	const char *user = proxy->url->user;
	size_t n = strcspn(user, ":");
	const char *password = user + n + (user[n] == ':');

	if (n == 0 || n > SOCKS_FIELD_MAX || strlen(password) > SOCKS_FIELD_MAX)
		return err_set(err, -EINVAL, "the user or the password in its URL is too long");
	put(out, (const uint8_t[]){1}, 1);
	put_field(out, user, n);
	put_field(out, password, strlen(password));
	proxy->state = SOCKS_USER;
	return 0;
}

static int no_socks(struct err *err)
{
	return err_set(err, -EBADMSG, "its answer is not SOCKS 5");
}

static int on_method(struct api_proxy *proxy, struct text *out, struct err *err)
{
	if (proxy->in[0] != 5)
		return no_socks(err);
	if (proxy->in[1] == 0) {
		ask_for_tunnel(proxy, out);
		return 0;
	}
	if (proxy->in[1] == 2 && proxy->url->user)
		return send_user(proxy, out, err);
	return err_set(err, -ECONNREFUSED, "it wants to be convinced otherwise than by %s",
		       proxy->url->user ? "a password" : "nothing: its URL has no user");
}

static int on_user(struct api_proxy *proxy, struct text *out, struct err *err)
{
	if (proxy->in[0] != 1)
		return no_socks(err);
	if (proxy->in[1] != 0)
		return err_set(err, -ECONNREFUSED, "it does not accept the password in its URL");
	ask_for_tunnel(proxy, out);
	return 0;
}

static const char *const refusals[] = {
	[1] = "a general failure",
	[2] = "it is not allowed",
	[3] = "the network cannot be reached",
	[4] = "the host cannot be reached",
	[5] = "the connection is refused",
	[6] = "the time to live is over",
	[7] = "it knows no CONNECT",
	[8] = "it knows no such address",
};

static int on_reply(struct api_proxy *proxy, struct text *out attr_unused, struct err *err)
{
	uint8_t code = proxy->in[1];

	if (proxy->in[0] != 5)
		return no_socks(err);
	if (code)
		return err_set(err, -ECONNREFUSED, "it opens no tunnel: %s",
			       code < ARRAY_SIZE(refusals) ? refusals[code] : "no reason is given");
	return 1;
}

/* Bytes of the answer that is awaited, as far as that can be told already; 0: it is none. */
static size_t reply_size(const struct api_proxy *proxy)
{
	const uint8_t *in = proxy->in;

	if (proxy->state != SOCKS_REPLY || (proxy->n_in >= 2 && (in[0] != 5 || in[1] != 0)))
		return 2; /* a refusal is known from its code */
	if (proxy->n_in < 5)
		return 5;
	switch (in[3]) {
	case 1:
		return 4 + 4 + 2;
	case 3:
		return 4 + 1 + (size_t)in[4] + 2;
	case 4:
		return 4 + 16 + 2;
	default:
		return 0;
	}
}

static int socks_feed(struct api_proxy *proxy, struct api_bytes data, struct text *out,
		      struct err *err)
{
	static int (*const steps[])(struct api_proxy *, struct text *, struct err *) = {
		[SOCKS_METHOD] = on_method,
		[SOCKS_USER] = on_user,
		[SOCKS_REPLY] = on_reply,
	};
	_Static_assert(ARRAY_SIZE(steps) == SOCKS_STATE_COUNT, "a step for each state");

	for (size_t i = 0; i < data.n; i++) {
		size_t wanted;
		int r;

		proxy->in[proxy->n_in++] = data.data[i];
		wanted = reply_size(proxy);
		if (wanted == 0)
			return no_socks(err);
		if (proxy->n_in < wanted)
			continue;
		r = steps[proxy->state](proxy, out, err);
		proxy->n_in = 0;
		if (r > 0 && i + 1 < data.n)
			r = err_set(err, -EBADMSG, "it sends more than its answer");
		if (r != 0)
			return r;
	}
	return 0;
}

/* -- both -- */

struct api_proxy *api_proxy_new(const struct api_url *url, const struct api_url *server)
{
	struct api_proxy *proxy = xcalloc(1, sizeof(*proxy));

	proxy->url = url;
	proxy->server = server;
	if (url->scheme != API_SCHEME_SOCKS5) {
		proxy->h1 = xmalloc(sizeof(*proxy->h1));
		api_h1_init(proxy->h1, &handler, proxy);
		proxy->h1->tunnel = true;
	}
	return proxy;
}

struct api_proxy *api_proxy_free(struct api_proxy *proxy)
{
	if (proxy)
		free(proxy->h1);
	free(proxy);
	return NULL;
}

void api_proxy_begin(struct api_proxy *proxy, struct text *out)
{
	if (proxy->h1)
		connect_begin(proxy, out);
	else
		socks_begin(proxy, out);
}

int api_proxy_feed(struct api_proxy *proxy, struct api_bytes data, struct text *out,
		   struct err *err)
{
	return proxy->h1 ? connect_feed(proxy, data, err) : socks_feed(proxy, data, out, err);
}

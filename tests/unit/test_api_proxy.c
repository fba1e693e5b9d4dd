/* SPDX-License-Identifier: Apache-2.0 */

/* What a proxy is asked, and what its answers mean, byte by byte and in one piece. */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sources/api_proxy.h"

static struct {
	struct api_url url, server;
	struct api_proxy *proxy;
	struct text out;
	struct err err;
} world;

static void begin(const char *url, const char *server)
{
	struct err err;

	assert_int_equal(api_url_parse(url, &world.url, &err), 0);
	assert_int_equal(api_url_parse(server, &world.server, &err), 0);
	text_init(&world.out);
	world.proxy = api_proxy_new(&world.url, &world.server);
	api_proxy_begin(world.proxy, &world.out);
}

static void finish(void)
{
	world.proxy = api_proxy_free(world.proxy);
	text_done(&world.out);
	api_url_done(&world.url);
	api_url_done(&world.server);
}

/* Literals may hold zeros. */
#define SENT(literal) assert_sent(literal, sizeof(literal) - 1)
#define FEED(literal) feed(literal, sizeof(literal) - 1)

static void assert_sent(const char *bytes, size_t n)
{
	cleanup_free char *sent = text_dup(&world.out);

	assert_int_equal(world.out.size, n);
	assert_memory_equal(sent, bytes, n);
	text_consume(&world.out, n);
}

static int feed(const char *bytes, size_t n)
{
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++)
		r = api_proxy_feed(world.proxy, (struct api_bytes){(const uint8_t *)bytes + i, 1},
				   &world.out, &world.err);
	return r;
}

static void connect_names_the_server_and_shows_the_user(void **state attr_unused)
{
	begin("http://Aladdin:open%20sesame@p", "https://k");
	SENT("CONNECT k:443 HTTP/1.1\r\nHost: k:443\r\nuser-agent: portolan/" PORTOLAN_VERSION
	     "\r\nproxy-authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n\r\n");
	assert_int_equal(FEED("HTTP/1.1 200 Connection established\r\nVia: x\r\n\r\n"), 1);
	finish();
	begin("http://p", "https://[fd00::1]:6443");
	SENT("CONNECT [fd00::1]:6443 HTTP/1.1\r\nHost: [fd00::1]:6443\r\nuser-agent: "
	     "portolan/" PORTOLAN_VERSION "\r\n\r\n");
	assert_int_equal(FEED("HTTP/1.1 407 x\r\nContent-Length: 3\r\n\r\n"), -ECONNREFUSED);
	assert_non_null(strstr(world.err.text, "407"));
	finish();
}

static void connect_that_is_refused_or_nonsense(void **state attr_unused)
{
	begin("http://user:geheim@p", "https://k");
	assert_int_equal(FEED("HTTP/1.1 407 x\r\n\r\n"), -ECONNREFUSED);
	assert_null(strstr(world.err.text, "geheim"));
	finish();
	begin("http://p", "https://k");
	assert_int_equal(FEED("HTTP/1.1 502 Bad Gateway\r\n\r\n"), -ECONNREFUSED);
	assert_string_equal(world.err.text, "it answers with HTTP status 502");
	finish();
	begin("http://p", "https://k");
	assert_int_equal(FEED("SSH-2.0-x\r\n"), -EBADMSG);
	finish();
	begin("http://p", "https://k");
	assert_int_equal(api_proxy_feed(world.proxy,
					(struct api_bytes){
						(const uint8_t *)"HTTP/1.1 200 x\r\n\r\nmore", 22},
					&world.out, &world.err),
			 -EBADMSG);
	finish();
}

static void socks_leaves_a_name_to_the_proxy(void **state attr_unused)
{
	begin("socks5://p", "https://k.example:6443");
	SENT("\5\1\0");
	assert_int_equal(FEED("\5\0"), 0);
	SENT("\5\1\0\3\11k.example\x19\x2b");
	assert_int_equal(FEED("\5\0\0\1\x7f\0\0\1\0"), 0);
	assert_int_equal(FEED("\1"), 1);
	finish();
}

static void socks_takes_addresses_of_both_families(void **state attr_unused)
{
	begin("socks5://p", "https://10.0.0.1");
	SENT("\5\1\0");
	assert_int_equal(FEED("\5\0"), 0);
	SENT("\5\1\0\1\x0a\0\0\1\1\xbb");
	assert_int_equal(FEED("\5\0\0\3\4name\0\1"), 1);
	finish();
	begin("socks5h://p", "http://[fd00::1]");
	SENT("\5\1\0");
	assert_int_equal(FEED("\5\0"), 0);
	SENT("\5\1\0\4\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\x50");
	assert_int_equal(FEED("\5\0\0\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1"), 1);
	finish();
}

static void socks_shows_the_user(void **state attr_unused)
{
	begin("socks5://me:secret@p", "https://k");
	SENT("\5\2\0\2");
	assert_int_equal(FEED("\5\2"), 0);
	SENT("\1\2me\6secret");
	assert_int_equal(FEED("\1\0"), 0);
	SENT("\5\1\0\3\1k\1\xbb");
	assert_int_equal(FEED("\5\5"), -ECONNREFUSED);
	assert_string_equal(world.err.text, "it opens no tunnel: the connection is refused");
	finish();
	begin("socks5://me:secret@p", "https://k");
	assert_int_equal(FEED("\5\2"), 0);
	assert_int_equal(FEED("\1\1"), -ECONNREFUSED);
	assert_null(strstr(world.err.text, "secret"));
	finish();
}

static void socks_that_is_none(void **state attr_unused)
{
	begin("socks5://p", "https://k");
	assert_int_equal(FEED("HT"), -EBADMSG);
	finish();
	begin("socks5://p", "https://k");
	assert_int_equal(FEED("\5\xff"), -ECONNREFUSED);
	finish();
	begin("socks5://p", "https://k");
	assert_int_equal(FEED("\5\2"), -ECONNREFUSED); /* a password, which there is none of */
	finish();
	begin("socks5://p", "https://k");
	assert_int_equal(FEED("\5\0\5\0\0\7\0"), -EBADMSG);
	finish();
	begin("socks5://p", "https://k");
	assert_int_equal(FEED("\5\0\5\xee"), -ECONNREFUSED);
	finish();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connect_names_the_server_and_shows_the_user),
		cmocka_unit_test(connect_that_is_refused_or_nonsense),
		cmocka_unit_test(socks_leaves_a_name_to_the_proxy),
		cmocka_unit_test(socks_takes_addresses_of_both_families),
		cmocka_unit_test(socks_shows_the_user),
		cmocka_unit_test(socks_that_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */

/* What the environment says about proxies, and whether requests go where it says. */

#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "sources/api_http.h"
#include "sources/env_proxy.h"

static const char *const variables[] = {"HTTP_PROXY",  "http_proxy", "HTTPS_PROXY",
					"https_proxy", "ALL_PROXY",  "all_proxy",
					"NO_PROXY",    "no_proxy",   "REQUEST_METHOD"};

static const char *get(const char *name)
{
	return getenv(name);
}

static int set_up(void **state attr_unused)
{
	for (size_t i = 0; i < ARRAY_SIZE(variables); i++)
		unsetenv(variables[i]);
	return 0;
}

/* The proxy for a target "http://host port"; "" for none. */
static void assert_proxy(bool https, const char *host, const char *port, const char *expected)
{
	const struct env_proxy_target target = {.https = https, .host = host, .port = port};
	cleanup_free char *proxy = NULL;
	struct err err;

	assert_int_equal(env_proxy_find(&target, get, &proxy, &err), 0);
	assert_string_equal(proxy ? proxy : "", expected);
}

static void without_variables_there_is_no_proxy(void **state attr_unused)
{
	assert_proxy(true, "a.example", "443", "");
	setenv("ALL_PROXY", "http://p:1", 1); /* Go does not know it */
	assert_proxy(true, "a.example", "443", "");
}

static void scheme_decides_and_capitals_win(void **state attr_unused)
{
	setenv("http_proxy", "http://small:1", 1);
	setenv("https_proxy", "https://secure:2", 1);
	assert_proxy(false, "a.example", "80", "http://small:1");
	assert_proxy(true, "a.example", "443", "https://secure:2");
	setenv("HTTP_PROXY", "http://capital:1", 1);
	assert_proxy(false, "a.example", "80", "http://capital:1");
	setenv("HTTP_PROXY", "", 1); /* as if it were not there */
	assert_proxy(false, "a.example", "80", "http://small:1");
}

static void forms_of_a_proxy(void **state attr_unused)
{
	setenv("HTTPS_PROXY", "proxy.example:3128", 1);
	assert_proxy(true, "a.example", "443", "http://proxy.example:3128");
	setenv("HTTPS_PROXY", "socks5://10.0.0.1:1080", 1);
	assert_proxy(true, "a.example", "443", "socks5h://10.0.0.1:1080");
}

static void loopback_is_reached_directly(void **state attr_unused)
{
	setenv("HTTPS_PROXY", "http://p:1", 1);
	assert_proxy(true, "localhost", "6443", "");
	assert_proxy(true, "127.0.0.2", "6443", "");
	assert_proxy(true, "::1", "6443", "");
	assert_proxy(true, "localhost.example", "6443", "http://p:1");
	assert_proxy(true, "10.0.0.1", "6443", "http://p:1");
}

static void no_proxy_takes_out_what_it_names(void **state attr_unused)
{
	static const struct {
		const char *no_proxy, *host, *port;
		bool direct;
	} cases[] = {
		{"a.example", "a.example", "443", true},
		{"a.example", "A.Example", "443", true},
		{"a.example", "b.a.example", "443", true},
		{"a.example", "ba.example", "443", false},
		{"a.example", "example", "443", false},
		{".a.example", "a.example", "443", false},
		{".a.example", "b.a.example", "443", true},
		{"*.a.example", "b.a.example", "443", true},
		{"*.a.example", "a.example", "443", false},
		{"x, a.example ,y", "a.example", "443", true},
		{"a.example:6443", "a.example", "6443", true},
		{"a.example:6443", "a.example", "443", false},
		{"a.example:", "a.example", "443", true},
		{":443", "a.example", "443", false},
		{",,", "a.example", "443", false},
		{"*", "a.example", "443", true},
		{"*", "10.0.0.1", "443", true},
		{"x,*", "10.0.0.1", "443", true},
		{"10.0.0.1", "10.0.0.1", "443", true},
		{"10.0.0.1", "10.0.0.10", "443", false},
		{"10.0.0.1:443", "10.0.0.1", "443", true},
		{"10.0.0.1:443", "10.0.0.1", "6443", false},
		{"10.0.0.0/8", "10.9.9.9", "6443", true},
		{"10.0.0.0/8", "11.9.9.9", "6443", false},
		{"10.0.0.0/8", "a.example", "6443", false},
		{"fd00::/8", "fd00::1", "6443", true},
		{"fd00::1", "fd00::1", "6443", true},
		{"[fd00::1]:6443", "fd00::1", "6443", true},
		{"[fd00::1]:6443", "fd00::1", "443", false},
		{"[fd00::1]", "fd00::1", "443", false}, /* as Go has it */
		{"0.0.1", "10.0.0.1", "443", false},
		{"1", "10.0.0.1", "443", false},
	};

	setenv("HTTPS_PROXY", "http://p:1", 1);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		setenv("NO_PROXY", cases[i].no_proxy, 1);
		assert_proxy(true, cases[i].host, cases[i].port,
			     cases[i].direct ? "" : "http://p:1");
	}
	unsetenv("NO_PROXY");
	setenv("no_proxy", "a.example", 1);
	assert_proxy(true, "a.example", "443", "");
}

static void cgi_makes_the_proxy_of_http_untrusted(void **state attr_unused)
{
	const struct env_proxy_target target = {.host = "a.example", .port = "80"};
	char *proxy = NULL;
	struct err err;

	setenv("REQUEST_METHOD", "GET", 1);
	assert_proxy(false, "a.example", "80", "");
	setenv("HTTPS_PROXY", "http://p:1", 1);
	assert_proxy(true, "a.example", "443", "http://p:1");
	setenv("HTTP_PROXY", "http://p:1", 1);
	assert_int_equal(env_proxy_find(&target, get, &proxy, &err), -EPERM);
	assert_null(proxy);
}

/* -- requests */

struct request {
	struct event_base *loop;
	int listener, connection;
	struct event *readable;
	char port[8];
	char first_line[128]; /* of what arrives at the listener */
};

static void on_readable(evutil_socket_t fd, short what attr_unused, void *arg)
{
	struct request *request = arg;
	ssize_t n = recv(fd, request->first_line, sizeof(request->first_line) - 1, 0);

	request->first_line[n > 0 ? n : 0] = '\0';
	request->first_line[strcspn(request->first_line, "\r")] = '\0';
	event_base_loopbreak(request->loop);
}

static void on_connection(evutil_socket_t fd, short what attr_unused, void *arg)
{
	struct request *request = arg;

	request->connection = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
	assert_true(request->connection >= 0);
	request->readable =
		event_new(request->loop, request->connection, EV_READ, on_readable, request);
	event_add(request->readable, NULL);
}

static void on_status(void *arg attr_unused, int status attr_unused, int retry attr_unused)
{
}

static void on_data(void *arg attr_unused, struct api_bytes data attr_unused)
{
}

static void on_done(void *arg, enum api_failure failure attr_unused, const char *text attr_unused)
{
	struct request *request = arg;

	event_base_loopbreak(request->loop);
}

static void listen_on_loopback(struct request *request)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t size = sizeof(address);

	request->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(request->listener, (struct sockaddr *)&address, size), 0);
	assert_int_equal(listen(request->listener, 8), 0);
	assert_int_equal(getsockname(request->listener, (struct sockaddr *)&address, &size), 0);
	snprintf(request->port, sizeof(request->port), "%u", ntohs(address.sin_port));
}

static void on_ask(void *arg attr_unused)
{
}

/* Asks a server, with %s standing for the listener's port, for /version; what arrives there? */
static void ask(struct request *request, const char *server, const char *proxy_url,
		const char *variable, const char *value)
{
	const struct api_http_request asked = {.target = "/version", .timeout_ms = 10000};
	const struct api_http_handler handler = {on_status, on_data, on_done, request};
	struct event *event;
	struct api_access access = {0};
	struct api_http *http;

	*request = (struct request){.loop = event_base_new()};
	listen_on_loopback(request);
	access.server = xasprintf("%s%s", server, has_suffix(server, ":") ? request->port : "");
	access.proxy_url = proxy_url ? xasprintf("%s%s", proxy_url, request->port) : NULL;
	if (variable) {
		cleanup_free char *text = xasprintf("%s%s", value, request->port);

		setenv(variable, text, 1);
	}
	event = event_new(request->loop, request->listener, EV_READ, on_connection, request);
	event_add(event, NULL);
	http = api_http_new(request->loop, on_ask, NULL);
	api_http_start(http, &asked, &handler);
	api_http_grant(http, &access);
	event_base_dispatch(request->loop);
	api_http_free(http);
	api_access_done(&access);
	event_free(event);
	if (request->readable) {
		event_free(request->readable);
		close(request->connection);
	}
	close(request->listener);
	event_base_free(request->loop);
}

static void requests_go_through_the_proxy_of_the_environment(void **state attr_unused)
{
	struct request request;

	ask(&request, "http://192.0.2.1:1", NULL, "HTTP_PROXY", "127.0.0.1:");
	assert_string_equal(request.first_line, "GET http://192.0.2.1:1/version HTTP/1.1");
	ask(&request, "https://192.0.2.1:1", NULL, "HTTPS_PROXY", "http://127.0.0.1:");
	assert_string_equal(request.first_line, "CONNECT 192.0.2.1:1 HTTP/1.1");
}

static void requests_to_loopback_go_there_whatever_the_environment_says(void **state attr_unused)
{
	struct request request;

	setenv("HTTP_PROXY", "http://192.0.2.1:1", 1);
	setenv("ALL_PROXY", "http://192.0.2.1:1", 1);
	ask(&request, "http://127.0.0.1:", NULL, NULL, NULL);
	assert_string_equal(request.first_line, "GET /version HTTP/1.1");
}

static void proxy_url_of_the_kubeconfig_heeds_no_variable(void **state attr_unused)
{
	struct request request;

	setenv("HTTP_PROXY", "http://192.0.2.9:1", 1);
	setenv("NO_PROXY", "*", 1);
	ask(&request, "http://192.0.2.1:1", "http://127.0.0.1:", NULL, NULL);
	assert_string_equal(request.first_line, "GET http://192.0.2.1:1/version HTTP/1.1");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, set_up)
	const struct CMUnitTest tests[] = {
		TEST(without_variables_there_is_no_proxy),
		TEST(scheme_decides_and_capitals_win),
		TEST(forms_of_a_proxy),
		TEST(loopback_is_reached_directly),
		TEST(no_proxy_takes_out_what_it_names),
		TEST(cgi_makes_the_proxy_of_http_untrusted),
		TEST(requests_go_through_the_proxy_of_the_environment),
		TEST(requests_to_loopback_go_there_whatever_the_environment_says),
		TEST(proxy_url_of_the_kubeconfig_heeds_no_variable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

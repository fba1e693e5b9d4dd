/* SPDX-License-Identifier: Apache-2.0 */

/* The page itself, its answers and what it refuses. */

#include <openssl/evp.h>

#include "http_client.h"
#include "page/page_asset.h"
#include "page/status_json.h"
#include "page/status_page.h"
#include "status_world.h"

/* Both clocks of the program, which a test may put forward (meson.build). */
static int64_t ahead_ns; /* of the steady one */
static int64_t look_ns;  /* that each look at the other one costs */
int64_t __real_clock_now_ns(void);
int64_t __wrap_clock_now_ns(void);
int64_t __wrap_clock_cpu_ns(void);

int64_t __wrap_clock_now_ns(void)
{
	return __real_clock_now_ns() + ahead_ns;
}

int64_t __wrap_clock_cpu_ns(void)
{
	static int64_t now;

	return now += look_ns;
}

struct lab {
	struct status_world *world;
	struct event_base *loop;
	struct http_server *server;
	struct status_page *page;
};

static void handle(void *arg, struct http_exchange *exchange, const struct http_request *request)
{
	const struct lab *lab = arg;

	if (!status_page_answer(lab->page, exchange, request))
		http_reply_text(exchange, 404, "somebody else's\n");
}

static int setup(void **state)
{
	struct lab *lab = xcalloc(1, sizeof(*lab));

	lab->world = status_world_new(&backend_iptables);
	status_add(lab->world, "default/web", "10.96.0.1", 2);
	status_settle(lab->world);
	lab->loop = event_base_new();
	lab->page = status_page_new(lab->loop, &lab->world->source);
	lab->server = client_server(lab->loop, &http_limits_default, handle, lab);
	*state = lab;
	return 0;
}

static int teardown(void **state)
{
	struct lab *lab = *state;

	http_server_close(lab->server);
	status_page_free(lab->page);
	event_base_free(lab->loop);
	status_world_free(lab->world);
	free(lab);
	ahead_ns = look_ns = 0;
	return 0;
}

/* head: "GET /path". For the caller to free. */
static char *ask(struct lab *lab, const char *head)
{
	cleanup_free char *request =
		xasprintf("%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", head);
	int fd = client_connect(lab->server, 0);
	char *answer;

	send_text(fd, request);
	answer = client_read(lab->loop, fd, NULL);
	close(fd);
	return answer;
}

static void assert_answer(struct lab *lab, const char *head, const char *status, const char *words)
{
	cleanup_free char *answer = ask(lab, head);
	cleanup_free char *begin = xasprintf("HTTP/1.1 %s", status);

	if (!has_prefix(answer, begin) || !strstr(answer, words))
		fail_msg("%s: %s", head, answer);
	if (!strstr(answer, "X-Content-Type-Options: nosniff\r\n"))
		fail_msg("%s: no nosniff", head);
}

/* 'sha256-...' of what stands between two tags; for the caller to free. */
static char *hash_between(const char *text, const char *open, const char *close)
{
	const char *from = strstr(text, open);
	const char *to = from ? strstr(from, close) : NULL;
	unsigned char digest[32];
	unsigned char base64[64];

	assert_non_null(to);
	from += strlen(open);
	assert_int_equal(EVP_Digest(from, (size_t)(to - from), digest, NULL, EVP_sha256(), NULL),
			 1);
	EVP_EncodeBlock(base64, digest, sizeof(digest));
	return xasprintf("'sha256-%s'", base64);
}

static void the_policy_allows_this_script_and_this_style_alone(void **state attr_unused)
{
	cleanup_free char *script = hash_between(page_asset_html, "<script>", "</script>");
	cleanup_free char *style = hash_between(page_asset_html, "<style>", "</style>");
	cleanup_free char *expected = xasprintf(
		"default-src 'none'; script-src %s; style-src %s; connect-src 'self'; img-src "
		"'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
		script, style);

	assert_string_equal(page_asset_policy, expected);
	assert_int_equal(strlen(page_asset_html), page_asset_html_size);
}

/* What the policy would refuse, or what would reach out of the machine, is not in the page. */
static void the_page_needs_nothing_from_outside(void **state attr_unused)
{
	static const char *const words[] = {
		"https:", "//cdn",     " style=\"",          " onclick=\"",
		"eval(",  "innerHTML", "insertAdjacentHTML", "document.write"};
	const char *at = page_asset_html;

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		assert_null(strstr(page_asset_html, words[i]));
	while ((at = strstr(at, "http:"))) {
		assert_true(has_prefix(at, "http://www.w3.org/2000/svg'"));
		at++;
	}
	assert_null(strstr(page_asset_html, "/*page."));
}

static void the_page_is_served_with_its_policy(void **state)
{
	struct lab *lab = *state;
	cleanup_free char *answer = ask(lab, "GET /");
	cleanup_free char *policy = xasprintf("Content-Security-Policy: %s\r\n", page_asset_policy);

	assert_true(has_prefix(answer, "HTTP/1.1 200 OK\r\n"));
	assert_non_null(strstr(answer, policy));
	assert_non_null(strstr(answer, "Content-Type: text/html; charset=utf-8\r\n"));
	assert_non_null(strstr(answer, "Referrer-Policy: no-referrer\r\n"));
	assert_non_null(strstr(answer, "Cache-Control: no-store\r\n"));
	assert_string_equal(strstr(answer, "\r\n\r\n") + 4, page_asset_html);
}

static void answers_and_refusals_are_clear(void **state)
{
	struct lab *lab = *state;

	assert_answer(lab, "GET /status/icon.svg", "200 OK", "image/svg+xml");
	assert_answer(lab, "GET /status/explain?dest=10.96.0.1%3A80&from=pod", "200 OK",
		      "one of 2 backends");
	assert_answer(lab, "GET /status/explain", "400 Bad Request", "{\"error\":\"dest: give");
	assert_answer(lab, "GET /status/explain?dest=%zz", "400 Bad Request", "{\"error\":");
	assert_answer(lab, "GET /status/explain?dest=service/default/none", "404 Not Found",
		      "{\"error\":\"there is no service");
	assert_answer(lab, "GET /status/chart.svg", "200 OK", "node-a: 1 service");
	assert_answer(lab, "GET /status/chart.svg?service=default/web:http", "200 OK",
		      "data-service=\"default/web:http  80/TCP\"");
	assert_answer(lab, "GET /status/chart.svg?service=web", "400 Bad Request",
		      "NAMESPACE/NAME");
	assert_answer(lab, "GET /status/chart.svg?other=1", "400 Bad Request", "NAMESPACE/NAME");
	assert_answer(lab, "GET /status/chart.svg?service=default/none", "404 Not Found",
		      "no such Service");
	assert_answer(lab, "GET /status/other", "404 Not Found", "somebody else's");
	assert_answer(lab, "GET /metrics", "404 Not Found", "somebody else's");
}

static void nothing_can_be_changed(void **state)
{
	static const char *const methods[] = {"POST", "PUT", "DELETE", "PATCH", "OPTIONS"};
	static const char *const paths[] = {"/", "/status/events", "/status/explain",
					    "/status/chart.svg", "/status/icon.svg"};

	for (size_t i = 0; i < ARRAY_SIZE(methods); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(paths); j++) {
			cleanup_free char *head = xasprintf("%s %s", methods[i], paths[j]);

			assert_answer(*state, head, "405 Method Not Allowed",
				      "Allow: GET, HEAD\r\n");
		}
	}
}

static void a_head_has_no_body_and_opens_no_stream(void **state)
{
	struct lab *lab = *state;
	cleanup_free char *page = ask(lab, "HEAD /");
	cleanup_free char *events = ask(lab, "HEAD /status/events");

	assert_true(has_prefix(page, "HTTP/1.1 200 OK\r\n"));
	assert_string_equal(strstr(page, "\r\n\r\n"), "\r\n\r\n");
	assert_non_null(strstr(events, "text/event-stream"));
	assert_int_equal(status_feed_readers(status_page_feed(lab->page)), 0);
}

static void a_picture_is_allowed_its_own_style(void **state)
{
	struct lab *lab = *state;
	cleanup_free char *answer = ask(lab, "GET /status/chart.svg?service=default/web");
	cleanup_free char *style = hash_between(answer, "<style>", "</style>");
	cleanup_free char *policy =
		xasprintf("Content-Security-Policy: default-src 'none'; style-src %s; ", style);

	assert_non_null(strstr(answer, policy));
}

static void a_large_cluster_is_not_drawn_in_the_daemon(void **state)
{
	struct lab *lab = *state;

	for (int i = 0; i < 200; i++) {
		cleanup_free char *key = xasprintf("default/service-%d", i);
		cleanup_free char *ip = xasprintf("10.97.0.%d", i + 1);

		status_add(lab->world, key, ip, 1);
	}
	status_settle(lab->world);
	assert_answer(lab, "GET /status/chart.svg", "422 Unprocessable Content", "portolan chart");
	assert_answer(lab, "GET /status/chart.svg?service=default/service-7", "200 OK", "<svg ");
}

static void a_service_of_many_ports_is_not_drawn_in_the_daemon(void **state)
{
	struct lab *lab = *state;
	struct service *service = build_service("default/many", "10.97.0.1");

	for (uint16_t i = 0; i <= STATUS_PORTS_MAX; i++) {
		cleanup_free char *name = xasprintf("p%u", i);

		build_port(service, name, PROTOCOL_TCP, (uint16_t)(1000 + i), 0);
	}
	model_set_service(lab->world->model, service);
	status_settle(lab->world);
	assert_answer(lab, "GET /status/chart.svg?service=default/many",
		      "422 Unprocessable Content", "portolan chart");
}

/* A tenth of the time, after what was saved up. Refusals cost next to nothing and do not make it longer. */
static void questions_without_a_pause_are_bounded(void **state)
{
	struct lab *lab = *state;

	look_ns = STATUS_WORK_SAVED_NS * 3 / 4;
	assert_answer(lab, "GET /status/explain?dest=10.96.0.1:80", "200 OK", "summary");
	assert_answer(lab, "GET /status/chart.svg?service=default/web", "200 OK", "<svg ");
	for (int i = 0; i < 10; i++)
		assert_answer(lab, "GET /status/explain?dest=10.96.0.1:80",
			      "503 Service Unavailable", "too many questions");
	assert_answer(lab, "GET /", "200 OK", "<!doctype html>");
	ahead_ns = STATUS_WORK_SHARE * STATUS_WORK_SAVED_NS;
	assert_answer(lab, "GET /status/chart.svg", "200 OK", "<svg ");
	assert_answer(lab, "GET /status/chart.svg", "503 Service Unavailable",
		      "too many questions");
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_policy_allows_this_script_and_this_style_alone),
		cmocka_unit_test(the_page_needs_nothing_from_outside),
		TEST(the_page_is_served_with_its_policy),
		TEST(answers_and_refusals_are_clear),
		TEST(nothing_can_be_changed),
		TEST(a_head_has_no_body_and_opens_no_stream),
		TEST(a_picture_is_allowed_its_own_style),
		TEST(questions_without_a_pause_are_bounded),
		TEST(a_large_cluster_is_not_drawn_in_the_daemon),
		TEST(a_service_of_many_ports_is_not_drawn_in_the_daemon),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */

/* Health check ports of Services, asked over the loopback. */

#include "serving/service_health.h"

/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "own_ports.h"

#define PATIENCE_NS (20 * CLOCK_NS_PER_SECOND)

static const struct addr loopback = {.family = FAMILY_IPV4, .bytes = {127, 0, 0, 1}};

struct lab {
	struct event_base *loop;
	struct service_health *health;
	bool good;
	unsigned int failures;
	char failure[256];
};

static bool is_good(void *arg)
{
	return ((struct lab *)arg)->good;
}

static void note_failure(void *arg, const char *ns, const char *name, uint16_t port,
			 const struct err *err)
{
	struct lab *lab = arg;

	lab->failures++;
	snprintf(lab->failure, sizeof(lab->failure), "%s/%s %u %d", ns, name, port, err->code);
}

static void lab_open(struct lab *lab)
{
	const struct service_health_config config = {
		.family = FAMILY_IPV4,
		.addresses = &loopback,
		.limited = true,
		.n_addresses = 1,
		.proxy_is_good = is_good,
		.failed = note_failure,
		.arg = lab,
	};

	*lab = (struct lab){.loop = event_base_new(), .good = true};
	lab->health = service_health_new(lab->loop, &config);
}

static void lab_close(struct lab *lab)
{
	service_health_free(lab->health);
	event_base_free(lab->loop);
}

/* A socket on a port of the loopback that is free otherwise; its number in *ret. */
static int take_port(uint16_t *ret)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, length), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
	*ret = ntohs(address.sin_port);
	return fd;
}

static uint16_t free_port(void)
{
	uint16_t port;

	close(take_port(&port));
	return port;
}

/* The whole answer; NULL when nobody listens. */
static char *ask(struct lab *lab, uint16_t port)
{
	static const char request[] = "POST /any/path HTTP/1.0\r\n\r\n";
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_port = htons(port),
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int64_t limit = clock_now_ns() + PATIENCE_NS;
	cleanup_fd int fd = socket(AF_INET, SOCK_STREAM, 0);
	cleanup_text struct text text = {0};
	char buffer[4096];
	ssize_t n;

	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return NULL;
	assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL),
			 (ssize_t)strlen(request));
	while ((n = recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT)) != 0) {
		struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

		assert_true(clock_now_ns() < limit);
		if (n > 0)
			text_add(&text, buffer, (size_t)n);
		event_base_loop(lab->loop, EVLOOP_NONBLOCK);
		poll(&poll_fd, 1, 5);
	}
	return text_dup(&text);
}

static void expect(struct lab *lab, uint16_t port, const char *status, const char *weight,
		   const char *body)
{
	cleanup_free char *answer = ask(lab, port);

	assert_non_null(answer);
	assert_true(has_prefix(answer, status));
	assert_non_null(strstr(answer, weight));
	assert_non_null(strstr(answer, "\r\nContent-Type: application/json\r\n"));
	assert_non_null(strstr(answer, "\r\nX-Content-Type-Options: nosniff\r\n"));
	assert_string_equal(strstr(answer, "\r\n\r\n") + 4, body);
}

#define BODY(count, healthy)                                                                \
	"{\n\t\"service\": {\n\t\t\"namespace\": \"shop\",\n\t\t\"name\": \"cart\"\n\t},\n" \
	"\t\"localEndpoints\": " count ",\n\t\"serviceProxyHealthy\": " healthy "\n}"
#define WEIGHT "\r\nX-Load-Balancing-Endpoint-Weight: "

static void answers_by_local_endpoints_and_the_proxys_health(void **state attr_unused)
{
	uint16_t port = free_port();
	struct lab lab;

	lab_open(&lab);
	service_health_set(lab.health, "shop", "cart", port, 2);
	service_health_open(lab.health);
	expect(&lab, port, "HTTP/1.1 200 ", WEIGHT "2\r\n", BODY("2", "true"));
	service_health_set(lab.health, "shop", "cart", port, 0);
	expect(&lab, port, "HTTP/1.1 503 ", WEIGHT "0\r\n", BODY("0", "true"));
	service_health_set(lab.health, "shop", "cart", port, 1);
	lab.good = false;
	expect(&lab, port, "HTTP/1.1 503 ", WEIGHT "1\r\n", BODY("1", "false"));
	assert_int_equal(service_health_count(lab.health), 1);
	lab_close(&lab);
}

static void ports_open_and_close_with_the_service(void **state attr_unused)
{
	uint16_t first = free_port(), second = free_port();
	struct lab lab;

	lab_open(&lab);
	service_health_set(lab.health, "shop", "cart", first, 1);
	assert_null(ask(&lab, first)); /* others may have to let go of it */
	service_health_open(lab.health);
	assert_int_equal(service_health_count(lab.health), 1);
	service_health_set(lab.health, "shop", "cart", second, 1);
	service_health_open(lab.health);
	assert_null(ask(&lab, first));
	expect(&lab, second, "HTTP/1.1 200 ", WEIGHT "1\r\n", BODY("1", "true"));
	service_health_set(lab.health, "shop", "cart", 0, 1);
	assert_null(ask(&lab, second));
	assert_int_equal(service_health_count(lab.health), 0);
	service_health_set(lab.health, "shop", "unknown", 0, 0);
	lab_close(&lab);
}

static void ports_that_are_swapped_in_one_step_are_open(void **state attr_unused)
{
	uint16_t first, second;
	int holders[] = {take_port(&first), take_port(&second)};
	struct lab lab;

	close(holders[0]);
	close(holders[1]);
	lab_open(&lab);
	service_health_set(lab.health, "shop", "cart", first, 1);
	service_health_set(lab.health, "shop", "till", second, 2);
	service_health_open(lab.health);
	service_health_set(lab.health, "shop", "cart", second, 1);
	service_health_set(lab.health, "shop", "till", first, 2);
	service_health_open(lab.health);
	assert_int_equal(lab.failures, 0);
	assert_int_equal(service_health_count(lab.health), 2);
	expect(&lab, second, "HTTP/1.1 200 ", WEIGHT "1\r\n", BODY("1", "true"));
	lab_close(&lab);
}

static void a_port_in_use_is_reported_once_and_opened_later(void **state attr_unused)
{
	char wanted[64];
	struct lab lab;
	uint16_t port;
	int holder = take_port(&port);

	lab_open(&lab);
	snprintf(wanted, sizeof(wanted), "shop/cart %u %d", port, -EADDRINUSE);
	service_health_set(lab.health, "shop", "cart", port, 3);
	service_health_open(lab.health);
	assert_string_equal(lab.failure, wanted);
	service_health_open(lab.health);
	service_health_set(lab.health, "shop", "cart", port, 4);
	assert_int_equal(lab.failures, 1);
	assert_int_equal(service_health_count(lab.health), 0);
	close(holder);
	service_health_open(lab.health);
	expect(&lab, port, "HTTP/1.1 200 ", WEIGHT "4\r\n", BODY("4", "true"));
	lab_close(&lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_by_local_endpoints_and_the_proxys_health),
		cmocka_unit_test(ports_open_and_close_with_the_service),
		cmocka_unit_test(ports_that_are_swapped_in_one_step_are_open),
		cmocka_unit_test(a_port_in_use_is_reported_once_and_opened_later),
	};

	return cmocka_run_group_tests(tests, own_ports, NULL);
}

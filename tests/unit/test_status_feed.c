/* SPDX-License-Identifier: Apache-2.0 */

/* Streams of events: what readers are told, and what a slow one costs. */

#include "backends/modes.h"
#include "http_client.h"
#include "page/status_feed.h"
#include "status_world.h"

/* The clock of the program, which a test may put forward (meson.build). */
static int64_t ahead_ns;
int64_t __real_clock_now_ns(void);
int64_t __wrap_clock_now_ns(void);

int64_t __wrap_clock_now_ns(void)
{
	return __real_clock_now_ns() + ahead_ns;
}

struct lab {
	struct status_world *world;
	struct event_base *loop;
	struct http_server *server;
	struct status_feed *feed;
};

static void handle(void *arg, struct http_exchange *exchange,
		   const struct http_request *request attr_unused)
{
	const struct lab *lab = arg;

	if (!status_feed_open(lab->feed, exchange))
		http_reply_text(exchange, 503, "full");
}

static int setup(void **state)
{
	struct lab *lab = xcalloc(1, sizeof(*lab));

	lab->world = status_world_new(&backend_iptables);
	lab->loop = event_base_new();
	lab->feed = status_feed_new(lab->loop, &lab->world->source);
	lab->server = client_server(lab->loop, &http_limits_default, handle, lab);
	*state = lab;
	return 0;
}

static int teardown(void **state)
{
	struct lab *lab = *state;

	http_server_close(lab->server);
	status_feed_free(lab->feed);
	event_base_free(lab->loop);
	status_world_free(lab->world);
	free(lab);
	ahead_ns = 0;
	return 0;
}

/* A sync of what the model has pending. */
static void sync_all(struct lab *lab)
{
	struct model_changes changes = status_take(lab->world);
	const struct backend_result result = {
		.changes = &changes, .services = changes.n_services, .duration_ns = 2000000};

	status_feed_synced(lab->feed, FAMILY_IPV4, &result);
	model_changes_done(&changes);
}

static int open_reader(struct lab *lab, int receive)
{
	int fd = client_connect(lab->server, receive);

	send_text(fd, "GET /status/events HTTP/1.1\r\nHost: a\r\n\r\n");
	return fd;
}

static char *read_until(struct lab *lab, int fd, const char *until)
{
	return client_read(lab->loop, fd, until);
}

static void wait_for_readers(struct lab *lab, size_t n)
{
	int64_t limit = clock_now_ns() + PATIENCE_NS;

	while (status_feed_readers(lab->feed) != n) {
		assert_true(clock_now_ns() < limit);
		client_turn(lab->loop, -1);
	}
}

static void a_reader_is_told_all_and_then_what_changes(void **state)
{
	struct lab *lab = *state;
	cleanup_free char *all = NULL, *change = NULL, *removal = NULL;
	int fd;

	status_add(lab->world, "default/web", "10.96.0.1", 2);
	sync_all(lab);
	fd = open_reader(lab, 0);
	all = read_until(lab, fd, "event: loaded\n");
	assert_non_null(strstr(all, "Content-Type: text/event-stream\r\n"));
	assert_non_null(strstr(all, "event: hello\ndata: {\"node\":\"node-a\""));
	assert_non_null(strstr(all, "event: gauges\ndata: {\"services\":1,\"endpoints\":2,"));
	assert_non_null(strstr(all, "event: syncs\ndata: [{"));
	assert_non_null(strstr(all, "event: services\ndata: [{\"service\":\"default/web\","
				    "\"changed\":0,"));
	status_add(lab->world, "default/new", "10.96.0.2", 0);
	sync_all(lab);
	change = read_until(lab, fd, "\"service\":\"default/new\"");
	assert_null(strstr(change, "default/web"));
	model_remove_service(lab->world->model, "default/new");
	sync_all(lab);
	removal = read_until(lab, fd, "\"service\":\"default/new\",");
	close(fd);
	wait_for_readers(lab, 0);
}

static void every_event_is_one_line_of_data(void **state)
{
	struct lab *lab = *state;
	cleanup_free char *all = NULL;
	const char *at;
	int fd;

	status_add(lab->world, "default/a\nb", "10.96.0.1", 2);
	sync_all(lab);
	status_feed_trouble(lab->feed, "two\nlines");
	fd = open_reader(lab, 0);
	all = read_until(lab, fd, "event: loaded\ndata: {}\n\n");
	for (at = strstr(all, "\r\n\r\n") + 4; *at;) {
		assert_true(has_prefix(at, "event: "));
		at = strchr(at, '\n') + 1;
		assert_true(has_prefix(at, "data: "));
		at = strchr(at, '\n') + 1;
		assert_int_equal(*at++, '\n');
	}
	close(fd);
}

static void troubles_and_repairs_are_told(void **state)
{
	struct lab *lab = *state;
	struct backend_result failed = {.error = -EIO};
	cleanup_free char *all = NULL, *more = NULL;
	int fd;

	err_set(&failed.err, -EIO, "no luck");
	status_feed_synced(lab->feed, FAMILY_IPV6, &failed);
	fd = open_reader(lab, 0);
	all = read_until(lab, fd, "event: loaded\n");
	assert_non_null(strstr(all, "\"text\":\"Sync of IPv6 failed: no luck\""));
	assert_non_null(strstr(all, "\"good\":false"));
	status_feed_repaired(lab->feed, "mended");
	more = read_until(lab, fd, "\"repairs\":1,");
	assert_non_null(strstr(more, "\"text\":\"mended\""));
	close(fd);
}

static void rates_come_where_traffic_is_counted(void **state)
{
	struct lab *lab = *state;
	cleanup_free char *all = NULL;
	int fd;

	lab->world->source.metered = true;
	fd = open_reader(lab, 0);
	all = read_until(lab, fd, "\"default/web:http\":12");
	assert_non_null(strstr(all, "\"rates\":true"));
	assert_non_null(strstr(all, "event: traffic\n"));
	close(fd);
}

/* Services that changed before the page was opened have their time, those of the start have none. */
static void what_changed_before_is_known(void **state)
{
	struct lab *lab = *state;
	cleanup_free char *all = NULL;
	int fd;

	status_add(lab->world, "default/old", "10.96.0.1", 2);
	sync_all(lab);
	status_add(lab->world, "default/young", "10.96.0.2", 2);
	sync_all(lab);
	fd = open_reader(lab, 0);
	all = read_until(lab, fd, "event: loaded\n");
	assert_non_null(strstr(all, "\"default/old\",\"changed\":0,"));
	assert_null(strstr(all, "\"default/young\",\"changed\":0,"));
	close(fd);
}

#define MANY   1500
#define ROUNDS 8

/* All get addresses in 10.N.0.0/16. Their names are long, so that all of them are more than a socket takes. */
static void change_all(struct lab *lab, int n)
{
	for (size_t i = 0; i < MANY; i++) {
		cleanup_free char *key = xasprintf("default/%0200zu", i);
		cleanup_free char *ip = xasprintf("10.%d.%zu.%zu", n, i / 250, 1 + i % 250);
		struct service *service = build_service(key, ip);

		build_port(service, "http", PROTOCOL_TCP, 80, 0);
		model_set_service(lab->world->model, service);
	}
	sync_all(lab);
}

/* It is sent what it takes; the other one gets everything meanwhile, and then so does it: the newest, once. */
static void a_slow_reader_harms_nobody_and_catches_up(void **state)
{
	struct lab *lab = *state;
	cleanup_free char *loaded = NULL, *late = NULL;
	const int wide = 1 << 20;
	size_t n = 0;
	int slow, quick;

	change_all(lab, 100);
	slow = open_reader(lab, 4096);
	wait_for_readers(lab, 1);
	quick = open_reader(lab, 0);
	loaded = read_until(lab, quick, "event: loaded\n");
	for (int round = 1; round <= ROUNDS; round++) {
		cleanup_free char *last = NULL;
		cleanup_free char *until = xasprintf("[\"10.%d.5.250:80\"", 100 + round);

		change_all(lab, 100 + round);
		last = read_until(lab, quick, until);
	}
	assert_int_equal(status_feed_readers(lab->feed), 2);
	/* with a small window it would take seconds to catch up, and on a busy machine more than there are */
	assert_int_equal(setsockopt(slow, SOL_SOCKET, SO_RCVBUF, &wide, sizeof(wide)), 0);
	late = read_until(lab, slow, "[\"10.108.5.250:80\"");
	for (const char *at = late; (at = strstr(at, "{\"service\":")); at++)
		n++;
	assert_true(n < (ROUNDS - 1) * MANY); /* not each time that they changed */
	close(slow);
	close(quick);
}

/* There is always something on its way to it, which says nothing. */
static void a_reader_that_takes_what_comes_is_kept(void **state)
{
	struct lab *lab = *state;
	cleanup_free char *all = NULL, *news = NULL, *more = NULL;
	int fd = open_reader(lab, 0);

	all = read_until(lab, fd, "event: loaded\n");
	ahead_ns = STATUS_STUCK_NS;
	status_add(lab->world, "default/new", "10.96.0.2", 0);
	sync_all(lab);
	news = read_until(lab, fd, "default/new");
	more = read_until(lab, fd, "event: gauges\n");
	assert_int_equal(status_feed_readers(lab->feed), 1);
	close(fd);
}

static void a_reader_that_takes_nothing_is_let_go(void **state)
{
	struct lab *lab = *state;
	cleanup_free char *before = NULL, *after = NULL;
	int stuck, quick;

	change_all(lab, 100);
	stuck = open_reader(lab, 4096);
	quick = open_reader(lab, 0);
	for (int round = 1; round <= ROUNDS; round++) {
		cleanup_free char *last = NULL;
		cleanup_free char *until = xasprintf("[\"10.%d.5.250:80\"", 100 + round);

		change_all(lab, 100 + round);
		last = read_until(lab, quick, until);
	}
	/* what it took before it was stuck has been seen with the second of these */
	before = read_until(lab, quick, "event: gauges\n");
	after = read_until(lab, quick, "event: gauges\n");
	assert_int_equal(status_feed_readers(lab->feed), 2);
	ahead_ns = STATUS_STUCK_NS;
	wait_for_readers(lab, 1);
	close(stuck);
	close(quick);
}

static void one_reader_too_many_is_refused_and_a_place_becomes_free(void **state)
{
	struct lab *lab = *state;
	cleanup_free char *refusal = NULL, *welcome = NULL;
	int fds[STATUS_READERS];
	int extra;

	for (size_t i = 0; i < STATUS_READERS; i++) {
		fds[i] = open_reader(lab, 0);
		wait_for_readers(lab, i + 1);
	}
	extra = open_reader(lab, 0);
	refusal = read_until(lab, extra, "full");
	assert_non_null(strstr(refusal, "503 Service Unavailable"));
	close(extra);
	close(fds[3]);
	wait_for_readers(lab, STATUS_READERS - 1);
	fds[3] = open_reader(lab, 0);
	welcome = read_until(lab, fds[3], "event: hello");
	for (size_t i = 0; i < STATUS_READERS; i++)
		close(fds[i]);
	wait_for_readers(lab, 0);
}

static void nothing_is_due_while_nobody_reads(void **state)
{
	struct lab *lab = *state;
	int fd;

	change_all(lab, 100);
	assert_int_equal(event_base_get_num_events(lab->loop, EVENT_BASE_COUNT_ADDED), 1);
	fd = open_reader(lab, 0);
	wait_for_readers(lab, 1);
	close(fd);
	wait_for_readers(lab, 0);
	sync_all(lab);
	/* the listener, and the server's look at late connections while that is due */
	assert_true(event_base_get_num_events(lab->loop, EVENT_BASE_COUNT_ADDED) <= 2);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_reader_is_told_all_and_then_what_changes),
		TEST(every_event_is_one_line_of_data),
		TEST(troubles_and_repairs_are_told),
		TEST(rates_come_where_traffic_is_counted),
		TEST(what_changed_before_is_known),
		TEST(a_slow_reader_harms_nobody_and_catches_up),
		TEST(a_reader_that_takes_what_comes_is_kept),
		TEST(a_reader_that_takes_nothing_is_let_go),
		TEST(one_reader_too_many_is_refused_and_a_place_becomes_free),
		TEST(nothing_is_due_while_nobody_reads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */

/* Connections that are carried from a client to an endpoint, on real sockets: bytes, ends, breaks, limits. */

#include <signal.h>

#include "backends/nftables/localhost/relay.h"
#include "own_ports.h"
#include "relay_lab.h"

#define PORT    7000
#define DIAL_NS (200 * CLOCK_NS_PER_MS)
/* The loop's clock is the kernel's coarse one, which may be a tick behind. */
#define TICK_NS   (10 * CLOCK_NS_PER_MS)
#define FORGET_NS (3600 * CLOCK_NS_PER_SECOND)

struct lab {
	struct relays *relays;
	int door;     /* where clients come in, which the test accepts for the relays */
	int endpoint; /* where endpoints listen */
	size_t n_ended[RELAY_END_COUNT];
	int code;
	int64_t clock_ns; /* 0: the real one */
	int64_t step_ns;  /* by which it goes on when it is asked */
};

static int64_t now_ns(void *arg)
{
	struct lab *lab = arg;

	lab->clock_ns += lab->step_ns;
	return lab->clock_ns ? lab->clock_ns : clock_now_ns();
}

static void ended(void *arg, void *owner, enum relay_end end, int code)
{
	struct lab *lab = arg;

	assert_ptr_equal(owner, lab);
	lab->n_ended[end]++;
	lab->code = code;
}

static int set_up(void **state)
{
	const struct addr door = lab_address(FAMILY_IPV4, 1),
			  endpoint = lab_address(FAMILY_IPV4, 2);
	struct lab *lab = xcalloc(1, sizeof(*lab));

	lab_loop = event_base_new();
	lab->relays = relays_new(&(struct relays_config){
		.loop = lab_loop,
		.dial_ns = DIAL_NS,
		.half_closed_ns = FORGET_NS,
		.now_ns = now_ns,
		.ended = ended,
		.arg = lab,
	});
	lab->door = lab_listen(&door, PORT, 4096);
	lab->endpoint = lab_listen(&endpoint, PORT, 4096);
	*state = lab;
	return 0;
}

static int tear_down(void **state)
{
	struct lab *lab = *state;

	relays_free(lab->relays);
	close(lab->door);
	close(lab->endpoint);
	event_base_free(lab_loop);
	free(lab);
	return 0;
}

/* The client's end of a new connection that is carried to one of these. */
static int start(struct lab *lab, const struct relay_target *targets, size_t n)
{
	const struct addr door = lab_address(FAMILY_IPV4, 1);
	int client = lab_connect(&door, PORT);

	relay_start(lab->relays, lab_accept(lab->door), targets, n, lab);
	return client;
}

static struct relay_target target(uint8_t last, uint16_t port)
{
	return (struct relay_target){lab_address(FAMILY_IPV4, last), port};
}

struct pair {
	int client, endpoint;
};

static struct pair open_pair(struct lab *lab)
{
	const struct relay_target to = target(2, PORT);
	struct pair pair = {.client = start(lab, &to, 1)};

	pair.endpoint = lab_accept(lab->endpoint);
	return pair;
}

static size_t count_ended(const struct lab *lab)
{
	size_t n = 0;

	for (enum relay_end end = 0; end < RELAY_END_COUNT; end++)
		n += lab->n_ended[end];
	return n;
}

/* -- bytes */

static void every_byte_arrives_in_both_directions_at_once(void **state)
{
	const size_t total = (size_t)16 << 20;
	struct lab *lab = *state;
	struct pair pair = open_pair(lab);
	size_t up = 0, up_read = 0, down = 0, down_read = 0;

	while (up_read < total || down_read < total) {
		up += lab_pour(pair.client, 1, up, total);
		down += lab_pour(pair.endpoint, 2, down, total);
		lab_turns(1);
		if (up_read < total)
			up_read += lab_drink(pair.endpoint, 1, up_read);
		if (down_read < total)
			down_read += lab_drink(pair.client, 2, down_read);
	}
	close(pair.client);
	lab_expect_end(pair.endpoint);
	close(pair.endpoint);
	WAIT_UNTIL(count_ended(lab) == 1);
	assert_int_equal(lab->n_ended[RELAY_CLOSED], 1);
}

static void an_urgent_byte_goes_on_like_any_other(void **state)
{
	struct lab *lab = *state;
	struct pair pair = open_pair(lab);

	lab_write(pair.client, "before");
	assert_int_equal(send(pair.client, "!", 1, MSG_OOB), 1);
	lab_write(pair.client, "behind");
	shutdown(pair.client, SHUT_WR);
	lab_expect(pair.endpoint, "before!behind");
	lab_expect_end(pair.endpoint);
	close(pair.client);
	close(pair.endpoint);
}

static void what_a_client_says_before_its_endpoint_is_there_is_kept(void **state)
{
	const struct addr door = lab_address(FAMILY_IPV4, 1);
	const struct relay_target to = target(2, PORT);
	struct lab *lab = *state;
	int client = lab_connect(&door, PORT), endpoint;

	lab_write(client, "GET /");
	shutdown(client, SHUT_WR);
	relay_start(lab->relays, lab_accept(lab->door), &to, 1, lab);
	endpoint = lab_accept(lab->endpoint);
	lab_expect(endpoint, "GET /");
	lab_expect_end(endpoint);
	close(endpoint);
	lab_expect_end(client);
	close(client);
	WAIT_UNTIL(lab->n_ended[RELAY_CLOSED] == 1);
}

/* -- ends */

static void an_end_is_passed_on_and_the_answer_still_comes(void **state)
{
	const size_t total = (size_t)1 << 20;
	struct lab *lab = *state;
	struct pair pair = open_pair(lab);
	size_t written = 0, n = 0;

	lab_write(pair.client, "question");
	shutdown(pair.client, SHUT_WR);
	lab_expect(pair.endpoint, "question");
	lab_expect_end(pair.endpoint);
	while (n < total) {
		written += lab_pour(pair.endpoint, 3, written, total);
		lab_turns(1);
		n += lab_drink(pair.client, 3, n);
	}
	assert_int_equal(count_ended(lab), 0);
	close(pair.endpoint);
	lab_expect_end(pair.client);
	close(pair.client);
	WAIT_UNTIL(lab->n_ended[RELAY_CLOSED] == 1);
}

static void an_endpoint_that_ends_first_still_hears_its_client(void **state)
{
	struct lab *lab = *state;
	struct pair pair = open_pair(lab);

	lab_write(pair.endpoint, "hello");
	shutdown(pair.endpoint, SHUT_WR);
	lab_expect(pair.client, "hello");
	lab_expect_end(pair.client);
	lab_write(pair.client, "and so on");
	lab_expect(pair.endpoint, "and so on");
	close(pair.client);
	lab_expect_end(pair.endpoint);
	close(pair.endpoint);
	WAIT_UNTIL(lab->n_ended[RELAY_CLOSED] == 1);
}

/* -- breaks */

static void a_reset_of_one_side_resets_the_other_behind_its_bytes(void **state)
{
	struct lab *lab = *state;
	struct pair pair = open_pair(lab);

	lab_write(pair.endpoint, "half a word");
	lab_expect(pair.client, "half a word");
	lab_reset(pair.endpoint);
	lab_expect_reset(pair.client);
	assert_int_equal(lab->n_ended[RELAY_BROKEN], 1);
	assert_int_equal(lab->code, ECONNRESET);
	close(pair.client);

	pair = open_pair(lab);
	lab_reset(pair.client);
	lab_expect_reset(pair.endpoint);
	assert_int_equal(lab->n_ended[RELAY_BROKEN], 2);
	close(pair.endpoint);
}

/* The client says as much as all buffers on the way take. */
static void fill_buffers(const struct pair *pair)
{
	const size_t total = (size_t)64 << 20;
	size_t written = 0, more;

	do {
		more = lab_pour(pair->client, 4, written, total);
		written += more;
		lab_turns(4);
	} while (more > 0);
	assert_true(written < total);
}

/* As of a server that answers "too large" and closes without reading on. */
static void an_answer_arrives_although_the_question_is_not_read(void **state)
{
	struct lab *lab = *state;
	struct pair pair = open_pair(lab);

	fill_buffers(&pair);
	lab_write(pair.endpoint, "413 too large");
	close(pair.endpoint);
	lab_expect(pair.client, "413 too large");
	WAIT_UNTIL(count_ended(lab) == 1);
	close(pair.client);
}

/* What was on its way to an endpoint that breaks is the first to find out, and must not hide it. */
static void half_an_answer_is_no_answer_while_the_question_is_on_its_way(void **state)
{
	struct lab *lab = *state;
	struct pair pair = open_pair(lab);

	fill_buffers(&pair);
	lab_write(pair.endpoint, "half an ans");
	lab_reset(pair.endpoint);
	WAIT_UNTIL(count_ended(lab) == 1);
	assert_int_equal(lab->n_ended[RELAY_BROKEN], 1);
	assert_int_equal(lab->code, ECONNRESET);
	close(pair.client);
}

static void a_client_that_breaks_behind_its_end_is_noticed(void **state)
{
	struct lab *lab = *state;
	struct pair pair = open_pair(lab);

	shutdown(pair.client, SHUT_WR);
	lab_expect_end(pair.endpoint);
	lab_reset(pair.client);
	lab_expect_broken(pair.endpoint);
	assert_int_equal(lab->n_ended[RELAY_BROKEN], 1);
	close(pair.endpoint);
}

static void what_is_cut_is_reset_and_not_told(void **state)
{
	struct lab *lab = *state;
	struct pair pair = open_pair(lab);

	lab_turns(10);
	relays_cut(lab->relays, &pair); /* of somebody else */
	lab_write(pair.client, "still here");
	lab_expect(pair.endpoint, "still here");
	relays_cut(lab->relays, lab);
	lab_expect_reset(pair.client);
	lab_expect_reset(pair.endpoint);
	assert_int_equal(count_ended(lab), 0);
	close(pair.client);
	close(pair.endpoint);
}

/* -- pressure */

static void a_slow_reader_slows_its_writer_and_nobody_else(void **state)
{
	const size_t total = (size_t)256 << 20;
	struct lab *lab = *state;
	struct pair slow = open_pair(lab), other = open_pair(lab);
	size_t written = 0, n = 0, more, still = 0;

	while (still < 100) {
		more = lab_pour(slow.endpoint, 5, written, total);
		written += more;
		still = more > 0 ? 0 : still + 1;
		lab_turns(1);
	}
	assert_true(written < (size_t)32 << 20); /* buffers of four sockets, and a pipe */
	lab_write(other.client, "quick");
	lab_expect(other.endpoint, "quick");
	while (n < written)
		WAIT_UNTIL((more = lab_drink(slow.client, 5, n)) > 0 && (n += more));
	close(slow.endpoint);
	lab_expect_end(slow.client);
	close(slow.client);
	close(other.client);
	close(other.endpoint);
	WAIT_UNTIL(count_ended(lab) == 2);
}

static size_t count_served(const struct pair *v, size_t n)
{
	size_t served = 0;
	char byte;

	for (size_t i = 0; i < n; i++)
		served += read(v[i].endpoint, &byte, 1) == 1;
	return served;
}

/* With a clock by which one connection takes all of the time that there is. */
static void in_each_turn_of_the_loop_others_have_theirs(void **state)
{
	struct lab *lab = *state;
	struct pair v[8];
	size_t served = 0;

	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		v[i] = open_pair(lab);
		lab_write(v[i].client, "hello");
		lab_expect(v[i].endpoint, "hello");
	}
	lab_turns(10);
	for (size_t i = 0; i < ARRAY_SIZE(v); i++)
		lab_write(v[i].client, "x");
	lab->clock_ns = clock_now_ns();
	lab->step_ns = RELAY_TURN_NS;
	for (size_t turn = 0; served < ARRAY_SIZE(v); turn++) {
		size_t now;

		assert_true(turn < 1000);
		lab_turns(1);
		now = count_served(v, ARRAY_SIZE(v));
		assert_true(now <= 1);
		served += now;
	}
	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		close(v[i].client);
		close(v[i].endpoint);
	}
	WAIT_UNTIL(count_ended(lab) == ARRAY_SIZE(v));
}

static void an_idle_connection_has_two_descriptors(void **state)
{
	enum { N = 100, SPARE = 2 * 16 };
	struct lab *lab = *state;
	struct pair v[N];
	size_t before = lab_count_descriptors();

	for (size_t i = 0; i < N; i++) {
		v[i] = open_pair(lab);
		lab_write(v[i].client, "ping");
		lab_expect(v[i].endpoint, "ping");
		lab_write(v[i].endpoint, "pong");
		lab_expect(v[i].client, "pong");
	}
	lab_turns(10);
	assert_in_range(lab_count_descriptors(), before + 4 * N, before + 4 * N + SPARE);
	for (size_t i = 0; i < N; i++) {
		close(v[i].client);
		close(v[i].endpoint);
	}
	WAIT_UNTIL(count_ended(lab) == N);
	assert_in_range(lab_count_descriptors(), before, before + SPARE);
}

/* -- endpoints that are not there */

static void a_client_whose_endpoint_refuses_is_reset(void **state)
{
	const struct relay_target nobody = target(3, PORT);
	struct lab *lab = *state;
	int client = start(lab, &nobody, 1);

	lab_expect_reset(client);
	assert_int_equal(lab->n_ended[RELAY_UNREACHABLE], 1);
	assert_int_equal(lab->code, ECONNREFUSED);
	close(client);
}

static void where_one_endpoint_refuses_another_is_tried(void **state)
{
	const struct relay_target targets[] = {target(3, PORT), target(2, PORT)};
	struct lab *lab = *state;
	int client = start(lab, targets, 2), endpoint = lab_accept(lab->endpoint);

	lab_write(client, "hello");
	lab_expect(endpoint, "hello");
	close(client);
	close(endpoint);
	WAIT_UNTIL(lab->n_ended[RELAY_CLOSED] == 1);
}

/* Of a socket whose queue is full nothing is heard. */
static int make_deaf(uint8_t last, int *ret_fill)
{
	const struct addr addr = lab_address(FAMILY_IPV4, last);
	int listener = lab_listen(&addr, PORT, 0);

	*ret_fill = lab_connect(&addr, PORT);
	return listener;
}

static void an_endpoint_that_is_not_heard_of_has_its_share_of_the_time(void **state)
{
	const struct relay_target targets[] = {target(4, PORT), target(2, PORT)};
	struct lab *lab = *state;
	int64_t begun = clock_now_ns();
	int fill, deaf = make_deaf(4, &fill), client = start(lab, targets, 2), endpoint;

	endpoint = lab_accept(lab->endpoint);
	assert_true(clock_now_ns() - begun >= DIAL_NS / 2 - TICK_NS);
	lab_write(client, "hello");
	lab_expect(endpoint, "hello");
	close(client);
	close(endpoint);

	begun = clock_now_ns();
	client = start(lab, targets, 1);
	lab_expect_reset(client);
	assert_true(clock_now_ns() - begun >= DIAL_NS - TICK_NS);
	assert_int_equal(lab->n_ended[RELAY_UNREACHABLE], 1);
	assert_int_equal(lab->code, ETIMEDOUT);
	close(client);
	close(fill);
	close(deaf);
}

/* -- silence */

static void silence_ends_only_what_is_half_closed(void **state)
{
	struct lab *lab = *state;
	struct pair half = open_pair(lab), whole = open_pair(lab);

	shutdown(half.client, SHUT_WR);
	lab_expect_end(half.endpoint);
	lab_write(whole.client, "hello");
	lab_expect(whole.endpoint, "hello");
	lab->clock_ns = clock_now_ns() + FORGET_NS - CLOCK_NS_PER_SECOND;
	relays_sweep(lab->relays);
	assert_int_equal(count_ended(lab), 0);
	lab_write(half.endpoint, "not yet");
	lab_expect(half.client, "not yet");
	lab->clock_ns += CLOCK_NS_PER_SECOND * 2;
	relays_sweep(lab->relays);
	assert_int_equal(count_ended(lab), 0);
	lab->clock_ns += FORGET_NS;
	relays_sweep(lab->relays);
	assert_int_equal(lab->n_ended[RELAY_FORGOTTEN], 1);
	lab_expect_broken(half.endpoint);
	lab_write(whole.client, "again");
	lab_expect(whole.endpoint, "again");
	close(half.client);
	close(half.endpoint);
	close(whole.client);
	close(whole.endpoint);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		TEST(every_byte_arrives_in_both_directions_at_once),
		TEST(an_urgent_byte_goes_on_like_any_other),
		TEST(what_a_client_says_before_its_endpoint_is_there_is_kept),
		TEST(an_end_is_passed_on_and_the_answer_still_comes),
		TEST(an_endpoint_that_ends_first_still_hears_its_client),
		TEST(a_reset_of_one_side_resets_the_other_behind_its_bytes),
		TEST(an_answer_arrives_although_the_question_is_not_read),
		TEST(half_an_answer_is_no_answer_while_the_question_is_on_its_way),
		TEST(a_client_that_breaks_behind_its_end_is_noticed),
		TEST(what_is_cut_is_reset_and_not_told),
		TEST(a_slow_reader_slows_its_writer_and_nobody_else),
		TEST(in_each_turn_of_the_loop_others_have_theirs),
		TEST(an_idle_connection_has_two_descriptors),
		TEST(a_client_whose_endpoint_refuses_is_reset),
		TEST(where_one_endpoint_refuses_another_is_tried),
		TEST(an_endpoint_that_is_not_heard_of_has_its_share_of_the_time),
		TEST(silence_ends_only_what_is_half_closed),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, own_ports, NULL);
}

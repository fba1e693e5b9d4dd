/* SPDX-License-Identifier: Apache-2.0 */

/* Readers that do not read: nothing waits for them, and what they miss is counted and told. */

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/log_sink.h"

/* -- what can be written to: ends[0] is the reader's */

static int a_pipe(int ends[2])
{
	return pipe2(ends, O_CLOEXEC);
}

static int a_socket(int ends[2])
{
	return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends);
}

static int a_terminal(int ends[2])
{
	ends[0] = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (ends[0] < 0 || grantpt(ends[0]) < 0 || unlockpt(ends[0]) < 0)
		return -1;
	ends[1] = open(ptsname(ends[0]), O_RDWR | O_NOCTTY | O_CLOEXEC);
	return ends[1] < 0 ? -1 : 0;
}

static const struct {
	int (*make)(int ends[2]);
	enum log_way way;
} kinds[] = {
	{a_pipe, LOG_WAY_OWN},
	{a_socket, LOG_WAY_SOCKET},
	{a_terminal, LOG_WAY_OWN},
};

/* -- */

static size_t notice(unsigned long long lines, char *out, size_t size)
{
	return (size_t)snprintf(out, size, "dropped %llu\n", lines);
}

/* Lines with their numbers; returns how many were taken and not dropped. */
static unsigned long long write_lines(struct log_sink *sink, int from, int n, bool important)
{
	unsigned long long before = sink->dropped;
	char line[128];

	for (int i = from; i < from + n; i++) {
		int length = snprintf(line, sizeof(line), "line %d %090d\n", i, 0);

		log_sink_write(sink, line, (size_t)length, important);
	}
	return (unsigned long long)n - (sink->dropped - before);
}

struct reader {
	int fd;
	char rest[256];
	size_t n_rest;
	int last;                   /* line's number */
	unsigned long long missing; /* as the notices tell */
	int lines;
};

static void read_line(struct reader *reader, const char *line)
{
	unsigned long long dropped;
	int number;

	/* NOLINTNEXTLINE(cert-err34-c): our own printing */
	if (sscanf(line, "dropped %llu", &dropped) == 1) {
		reader->missing += dropped;
		return;
	}
	assert_int_equal(sscanf(line, "line %d ", &number), 1); /* NOLINT(cert-err34-c) */
	assert_true(number > reader->last);
	reader->last = number;
	reader->lines++;
}

/* All that there is now; every line must be whole. */
static void read_all(struct reader *reader)
{
	struct pollfd in = {.fd = reader->fd, .events = POLLIN};

	while (poll(&in, 1, 0) > 0 && (in.revents & POLLIN)) {
		ssize_t n = read(reader->fd, reader->rest + reader->n_rest,
				 sizeof(reader->rest) - 1 - reader->n_rest);
		char *line = reader->rest;
		char *end;

		if (n <= 0)
			return;
		reader->rest[reader->n_rest + (size_t)n] = '\0';
		for (; (end = strchr(line, '\n')); line = end + 1) {
			*end = '\0';
			read_line(reader, line);
		}
		reader->n_rest = strlen(line);
		memmove(reader->rest, line, reader->n_rest + 1);
	}
}

static void nothing_waits_and_all_is_told_later(void **state attr_unused)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct log_sink sink = {.notice = notice};
		struct event_base *loop = event_base_new();
		struct reader reader = {.last = -1};
		int ends[2];
		int taken;

		assert_int_equal(kinds[i].make(ends), 0);
		reader.fd = ends[0];
		log_sink_open(&sink, ends[1]);
		log_sink_attach(&sink, loop);
		assert_int_equal(sink.way, kinds[i].way);
		/* 10,000 lines of 100 bytes, three times what buffer and kernel hold */
		taken = (int)write_lines(&sink, 0, 10000, false);
		assert_in_range(taken, LOG_SINK_BYTES / 4 * 3 / 110, 9000);
		assert_int_equal(sink.dropped, 10000 - taken);
		/* whoever shares the descriptor must not find it changed */
		assert_int_equal(fcntl(ends[1], F_GETFL) & O_NONBLOCK, 0);
		while (reader.lines < taken || reader.missing == 0) {
			read_all(&reader);
			event_base_loop(loop, EVLOOP_NONBLOCK);
		}
		assert_int_equal(reader.lines, taken);
		assert_int_equal(reader.missing, sink.dropped);
		/* and all is as it was */
		assert_int_equal(write_lines(&sink, 10000, 1, false), 1);
		read_all(&reader);
		assert_int_equal(reader.last, 10000);
		log_sink_close(&sink, 0);
		event_base_free(loop);
		close(ends[0]);
		close(ends[1]);
	}
}

static void errors_have_room_when_a_flood_has_none(void **state attr_unused)
{
	struct log_sink sink = {.notice = notice};
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	log_sink_open(&sink, ends[1]);
	write_lines(&sink, 0, 10000, false);
	assert_int_equal(write_lines(&sink, 10000, 1, false), 0);
	assert_int_equal(write_lines(&sink, 10001, 100, true), 100);
	log_sink_close(&sink, 0);
	close(ends[0]);
	close(ends[1]);
}

/* As where there is no /proc, or the pipe is another user's. */
static void without_a_description_of_our_own_room_is_asked_for(void **state attr_unused)
{
	struct log_sink sink = {.notice = notice};
	struct reader reader = {.last = -1};
	int ends[2];
	int taken;

	assert_int_equal(pipe(ends), 0);
	reader.fd = ends[0];
	log_sink_open(&sink, ends[1]);
	close(sink.out);
	sink.out = sink.fd;
	sink.way = LOG_WAY_ROOM;
	taken = (int)write_lines(&sink, 0, 10000, false);
	assert_in_range(taken, 1000, 9000);
	while (reader.lines < taken || reader.missing == 0) {
		read_all(&reader);
		log_sink_flush(&sink, CLOCK_NS_PER_MS);
	}
	assert_int_equal(reader.lines, taken);
	assert_int_equal(reader.missing, sink.dropped);
	log_sink_close(&sink, 0);
	close(ends[0]);
	close(ends[1]);
}

static void files_are_written_as_they_are(void **state attr_unused)
{
	struct log_sink sink = {.notice = notice};
	int file = memfd_create("log", MFD_CLOEXEC);

	log_sink_open(&sink, file);
	assert_int_equal(sink.way, LOG_WAY_PLAIN);
	assert_int_equal(write_lines(&sink, 0, 10000, false), 10000);
	/* "line ", the number, a space, 90 digits, the end */
	assert_int_equal(lseek(file, 0, SEEK_END),
			 10000L * (5 + 1 + 90 + 1) + 10 + 90 * 2 + 900 * 3 + 9000 * 4);
	log_sink_close(&sink, 0);
	close(file);
}

static void dev_null_takes_all(void **state attr_unused)
{
	struct log_sink sink = {.notice = notice};
	int file = open("/dev/null", O_WRONLY | O_CLOEXEC);

	log_sink_open(&sink, file);
	assert_int_equal(write_lines(&sink, 0, 10000, false), 10000);
	log_sink_close(&sink, 0);
	close(file);
}

static void a_reader_that_is_gone_costs_lines_and_nothing_else(void **state attr_unused)
{
	struct log_sink sink = {.notice = notice};
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	log_sink_open(&sink, ends[1]);
	write_lines(&sink, 0, 10000, false);
	close(ends[0]);
	write_lines(&sink, 10000, 10, false);
	log_sink_close(&sink, CLOCK_NS_PER_SECOND);
	assert_in_range(sink.dropped, 9000, 10010); /* all that had not left before */
	close(ends[1]);
}

static void the_end_waits_as_long_as_it_is_told(void **state attr_unused)
{
	struct log_sink sink = {.notice = notice};
	int64_t begun = clock_now_ns();
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	log_sink_open(&sink, ends[1]);
	write_lines(&sink, 0, 1000, false);
	log_sink_close(&sink, 50 * CLOCK_NS_PER_MS);
	assert_in_range(clock_now_ns() - begun, 50 * CLOCK_NS_PER_MS, 10 * CLOCK_NS_PER_SECOND);
	close(ends[0]);
	close(ends[1]);
}

/* -- the whole log */

static void log_to(int fd)
{
	log_set_fd(fd);
	log_setup(LOG_FORMAT_TEXT, 2);
	log_begin();
}

static void log_ends(int ends[2])
{
	log_end();
	log_set_fd(STDERR_FILENO);
	log_setup(LOG_FORMAT_TEXT, 0);
	close(ends[0]);
	close(ends[1]);
}

static const char *text_of(int fd)
{
	static char text[65536];
	struct pollfd in = {.fd = fd, .events = POLLIN};
	size_t n = 0;

	while (poll(&in, 1, 0) > 0 && (in.revents & POLLIN) && n < sizeof(text) - 1)
		n += (size_t)read(fd, text + n, sizeof(text) - 1 - n);
	text[n] = '\0';
	return text;
}

static size_t count(const char *text, const char *part)
{
	size_t n = 0;

	for (; (text = strstr(text, part)); text++)
		n++;
	return n;
}

static void say(const char *service, const char *why, int number)
{
	log_error("Trouble", KV("service", LOG_STR(service)), KV("n", LOG_INT(number)),
		  KV("err", LOG_STR(why)));
}

static void report(const char *text)
{
	log_report(LOG_SEVERITY_WARNING, text);
}

static void the_same_about_the_same_is_written_once(void **state attr_unused)
{
	const char *text;
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	log_to(ends[1]);
	for (int i = 0; i < 100; i++) {
		cleanup_free char *why = xasprintf("reason %d", i);
		cleanup_free char *said = xasprintf("Service a/evil: field: value %d is odd", i);

		say("a/evil", why, i); /* numbers and reasons do not make it another thing */
		report(said);
		log_debug(2, "Asked for");
	}
	say("b/good", "reason", 1);
	report("Service b/good: field: odd");
	text = text_of(ends[0]);
	assert_int_equal(count(text, "\"Trouble\" service=\"a/evil\""), 1);
	assert_int_equal(count(text, "Service a/evil"), 1);
	assert_int_equal(count(text, "\"Trouble\" service=\"b/good\""), 1);
	assert_int_equal(count(text, "Service b/good"), 1);
	assert_int_equal(count(text, "Asked for"), 100); /* by --v */
	log_flush();
	text = text_of(ends[0]);
	assert_non_null(strstr(text, "service=\"a/evil\" n=99 err=\"reason 99\" leftOut=98\n"));
	assert_non_null(strstr(text, "value 99 is odd\" leftOut=98\n"));
	assert_int_equal(count(text, "\n"), 2);
	log_ends(ends);
}

static void json_counts_inside_the_object(void **state attr_unused)
{
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	log_to(ends[1]);
	log_setup(LOG_FORMAT_JSON, 0);
	for (int i = 0; i < 3; i++)
		say("a/evil", "reason", i);
	text_of(ends[0]);
	log_flush();
	assert_non_null(strstr(text_of(ends[0]), "\"err\":\"reason\",\"leftOut\":1}\n"));
	log_ends(ends);
}

/* A copy of the process has none of the original's lines, and does not wait either. */
static void a_copy_of_the_process_repeats_nothing(void **state attr_unused)
{
	unsigned long long dropped;
	const char *text;
	int standard = dup(STDERR_FILENO);
	int status = -1;
	size_t before;
	int ends[2];
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	log_to(ends[1]);
	for (int i = 0; i < 1000; i++)
		log_debug(2, "Original", KV("padding", LOG_STR("0123456789012345678901234567890")));
	assert_int_equal(log_dropped(), 0);
	dup2(ends[1], STDERR_FILENO);
	pid = fork();
	if (pid == 0) {
		alarm(20); /* for one that waits */
		close_range(STDERR_FILENO + 1, ~0U, 0);
		log_forked();
		log_debug(2, "Copy");
		log_flush();
		_exit(0);
	}
	dup2(standard, STDERR_FILENO);
	close(standard);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	text = text_of(ends[0]);
	before = count(text, "\n");
	assert_int_equal(count(text, "Copy"), 0);
	log_flush();
	assert_int_equal(before + count(text_of(ends[0]), "\n"), 1000);
	dropped = log_dropped();
	assert_int_equal(dropped, 0);
	log_ends(ends);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_waits_and_all_is_told_later),
		cmocka_unit_test(errors_have_room_when_a_flood_has_none),
		cmocka_unit_test(without_a_description_of_our_own_room_is_asked_for),
		cmocka_unit_test(files_are_written_as_they_are),
		cmocka_unit_test(dev_null_takes_all),
		cmocka_unit_test(a_reader_that_is_gone_costs_lines_and_nothing_else),
		cmocka_unit_test(the_end_waits_as_long_as_it_is_told),
		cmocka_unit_test(the_same_about_the_same_is_written_once),
		cmocka_unit_test(json_counts_inside_the_object),
		cmocka_unit_test(a_copy_of_the_process_repeats_nothing),
	};

	/* NOLINTNEXTLINE(cert-err33-c): it cannot fail for this signal */
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

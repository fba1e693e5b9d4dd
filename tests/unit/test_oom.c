/* SPDX-License-Identifier: Apache-2.0 */

/* What is left when memory runs out: one line that says what was asked for, and status 1. */

#include <errno.h>
#include <event2/event.h>
#include <linux/netfilter/nf_tables.h>
#include <openssl/crypto.h>
#include <regex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/oom.h"
#include "base/text.h"
#include "kernel/nft_batch.h"
#include "model/slice.h"

/* -- an allocator that is empty from a certain moment on */

static bool empty;
static bool no_pages;

static bool refuse(void)
{
	if (empty || no_pages)
		errno = ENOMEM;
	return empty;
}

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
	return refuse() ? NULL : __real_malloc(size);
}

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size)
{
	return refuse() ? NULL : __real_calloc(count, size);
}

void *__real_realloc(void *p, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_realloc(void *p, size_t size)
{
	return refuse() ? NULL : __real_realloc(p, size);
}

char *__real_strdup(const char *s);
char *__wrap_strdup(const char *s);
char *__wrap_strdup(const char *s)
{
	return refuse() ? NULL : __real_strdup(s);
}

int __real_vasprintf(char **ret, const char *fmt, va_list ap);
int __wrap_vasprintf(char **ret, const char *fmt, va_list ap);
int __wrap_vasprintf(char **ret, const char *fmt, va_list ap)
{
	return refuse() ? -1 : __real_vasprintf(ret, fmt, ap);
}

/* The same where the compiler puts checks in. */
int __real___vasprintf_chk(char **ret, int flag, const char *fmt, va_list ap);
int __wrap___vasprintf_chk(char **ret, int flag, const char *fmt, va_list ap);
int __wrap___vasprintf_chk(char **ret, int flag, const char *fmt, va_list ap)
{
	return refuse() ? -1 : __real___vasprintf_chk(ret, flag, fmt, ap);
}

void *__real_mmap64(void *at, size_t size, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *at, size_t size, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
	return refuse() || no_pages ? MAP_FAILED
				    : __real_mmap64(at, size, protection, flags, fd, offset);
}

/* -- a process that runs out of it */

/* What it logs; its exit status must be 1. */
static const char *logged_by(void (*work)(void))
{
	static char text[4096];
	int pipe_ends[2];
	int status = 0;
	size_t n = 0;
	ssize_t part;
	pid_t pid;

	assert_int_equal(pipe(pipe_ends), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		log_set_fd(pipe_ends[1]);
		work();
		_exit(0);
	}
	close(pipe_ends[1]);
	while ((part = read(pipe_ends[0], text + n, sizeof(text) - 1 - n)) > 0)
		n += (size_t)part;
	text[n] = '\0';
	close(pipe_ends[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 1);
	return text;
}

/* One line, with the place in our source, or that of a library, and what was asked for. */
static void assert_line(const char *text, const char *place, const char *what)
{
	cleanup_free char *pattern = xasprintf(
		"^E[^\n]* %s:[0-9]+\\] \"Out of memory, the process ends and rules stay\" %s\n$",
		place, what);
	regex_t regex;

	assert_int_equal(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB), 0);
	if (regexec(&regex, text, 0, NULL, 0) != 0)
		fail_msg("'%s' does not match '%s'", text, pattern);
	regfree(&regex);
}

static void ask_malloc(void)
{
	empty = true;
	free(xmalloc(12345));
}

static void ask_calloc(void)
{
	empty = true;
	free(xcalloc(10, 100));
}

static void ask_too_much(void)
{
	volatile size_t many = SIZE_MAX / 2;

	empty = true;
	free(xcalloc(many, 100));
}

static void ask_array(void)
{
	size_t capacity = 0;
	int *items = NULL;

	empty = true;
	array_grow(&items, &capacity, 0, sizeof(*items));
}

static void ask_strdup(void)
{
	empty = true;
	free(xstrdup("1234567"));
}

static void our_own_allocators_name_bytes_and_caller(void **state attr_unused)
{
	const char *err = "err=\"Cannot allocate memory\"";
	const struct {
		void (*work)(void);
		const char *bytes;
	} cases[] = {
		{ask_malloc, "12345"}, {ask_calloc, "1000"}, {ask_too_much, "9223372036854775807"},
		{ask_array, "32"},     {ask_strdup, "8"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		cleanup_free char *what = xasprintf("for=\"\" bytes=%s %s", cases[i].bytes, err);

		assert_line(logged_by(cases[i].work), "test_oom\\.c", what);
	}
}

static void ask_asprintf(void)
{
	empty = true;
	free(xasprintf("%d", 1));
}

static void ask_arena(void)
{
	struct arena *arena = arena_new(16);

	empty = true;
	arena_printf(arena, "%d", 1);
}

static void ask_text(void)
{
	struct text text;

	text_init(&text);
	empty = true;
	text_printf(&text, "%d", 1);
}

static void texts_of_unknown_length_are_named(void **state attr_unused)
{
	const char *what = "for=\"a text\" bytes=0 err=\"Cannot allocate memory\"";

	assert_line(logged_by(ask_asprintf), "test_oom\\.c", what);
	assert_line(logged_by(ask_arena), "arena\\.c", what);
	assert_line(logged_by(ask_text), "text\\.c", what);
}

static void ask_libevent(void)
{
	oom_watch_libraries();
	empty = true;
	event_base_new();
}

static void ask_openssl(void)
{
	oom_watch_libraries();
	empty = true;
	OPENSSL_free(OPENSSL_malloc(77));
}

static void libraries_come_here_too(void **state attr_unused)
{
	assert_line(logged_by(ask_libevent), "oom\\.c",
		    "for=\"libevent\" bytes=[1-9][0-9]* err=\"Cannot allocate memory\"");
	assert_line(logged_by(ask_openssl), "test_oom\\.c",
		    "for=\"OpenSSL\" bytes=77 err=\"Cannot allocate memory\"");
}

static void ask_mmap(void)
{
	no_pages = true;
	nft_batch_message(nft_batch_new(), NFT_MSG_NEWTABLE, FAMILY_IPV4, 0);
}

static void a_batch_of_messages_is_named(void **state attr_unused)
{
	assert_line(logged_by(ask_mmap), "nft_batch\\.c",
		    "for=\"a batch of messages\" bytes=[1-9][0-9]* err=\"Cannot allocate memory\"");
}

/* As if it had 4 GiB already, but for a byte. */
static void ask_slice(void)
{
	struct slice_writer writer;

	slice_writer_init(&writer, "ns", "name", "service", FAMILY_IPV4);
	writer.slice->size = UINT32_MAX - 1;
	slice_writer_port(&writer, "http", PROTOCOL_TCP, 80);
}

static void a_slice_whose_size_cannot_be_counted_is_named(void **state attr_unused)
{
	assert_line(logged_by(ask_slice), "slice\\.c",
		    "for=\"an EndpointSlice\" bytes=42949[0-9]* "
		    "err=\"Value too large for defined data type\"");
}

static void ask_kernel(void)
{
	errno = ENOSPC;
	oom("an event", 0);
}

static void the_kernels_reason_is_told(void **state attr_unused)
{
	assert_line(logged_by(ask_kernel), "test_oom\\.c",
		    "for=\"an event\" bytes=0 err=\"No space left on device\"");
}

static void ask_in_json(void)
{
	log_setup(LOG_FORMAT_JSON, 0);
	ask_malloc();
}

static void the_line_has_the_format_of_the_log(void **state attr_unused)
{
	assert_non_null(strstr(logged_by(ask_in_json),
			       "\"msg\":\"Out of memory, the process ends and rules stay\","
			       "\"for\":\"\",\"bytes\":12345,"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(our_own_allocators_name_bytes_and_caller),
		cmocka_unit_test(texts_of_unknown_length_are_named),
		cmocka_unit_test(libraries_come_here_too),
		cmocka_unit_test(a_batch_of_messages_is_named),
		cmocka_unit_test(a_slice_whose_size_cannot_be_counted_is_named),
		cmocka_unit_test(the_kernels_reason_is_told),
		cmocka_unit_test(the_line_has_the_format_of_the_log),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log_sink.h"
#include "base/loop.h"
#include "base/siphash.h"

/*
 * A line is put together in memory and leaves in one write(2), so that lines of several processes
 * on one pipe do not mix; its end comes last, for a line that was kept gets one more pair. Strings are escaped such that a line stays one line and valid UTF-8
 * whatever they hold: as Go's %q does in text, as JSON asks for in JSON.
 */

#define PATIENCE_NS (1 * CLOCK_NS_PER_SECOND) /* for a reader, at the end */

static struct {
	enum log_format format;
	int verbosity;
} settings;

static struct log_sink sink = {.fd = STDERR_FILENO, .out = STDERR_FILENO};

/* Between log_begin() and log_end(). */
static struct {
	bool on;
	struct log_limit limit;
	uint64_t key[2];
	struct event *release; /* writes what was kept; armed for due_ns */
	int64_t due_ns;
} running;

/* Short lines stay where they begin: to say that memory is short takes none. */
struct line {
	char *data; /* `begin`, or memory of its own */
	size_t n, capacity;
	char begin[1024];
};

void log_setup(enum log_format format, int verbosity)
{
	settings.format = format;
	settings.verbosity = verbosity;
}

void log_set_fd(int fd)
{
	sink.fd = sink.out = fd;
}

bool log_enabled(int verbosity)
{
	return verbosity <= settings.verbosity;
}

static void grow(struct line *line, size_t capacity)
{
	char *owned = line->data == line->begin ? NULL : line->data;

	line->data = xrealloc(owned, capacity);
	if (!owned)
		memcpy(line->data, line->begin, line->n);
	line->capacity = capacity;
}

static void add(struct line *line, const char *data, size_t n)
{
	if (line->capacity - line->n < n)
		grow(line, MAX(line->n + n, 2 * line->capacity));
	memcpy(line->data + line->n, data, n);
	line->n += n;
}

static void add_str(struct line *line, const char *s)
{
	add(line, s, strlen(s));
}

/* For short pieces of known length only. */
static void attr_printf(2, 3) add_short(struct line *line, const char *fmt, ...)
{
	char piece[64];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(piece, sizeof(piece), fmt, ap);
	va_end(ap);
	add(line, piece, MIN((size_t)MAX(n, 0), sizeof(piece) - 1));
}

/* What Go does not print as it is: controls, spaces but the plain one, format characters, ... */
static bool printable(uint32_t c)
{
	static const uint32_t hidden[][2] = {
		{0x00, 0x1f},     {0x7f, 0xa0},       {0xad, 0xad},        {0x600, 0x605},
		{0x61c, 0x61c},   {0x6dd, 0x6dd},     {0x70f, 0x70f},      {0x1680, 0x1680},
		{0x180e, 0x180e}, {0x2000, 0x200f},   {0x2028, 0x202f},    {0x205f, 0x206f},
		{0x3000, 0x3000}, {0xe000, 0xf8ff},   {0xfeff, 0xfeff},    {0xfff0, 0xfffb},
		{0xfffe, 0xffff}, {0xe0000, 0xe00ff}, {0xf0000, 0x10ffff},
	};

	for (size_t i = 0; i < ARRAY_SIZE(hidden); i++)
		if (c >= hidden[i][0] && c <= hidden[i][1])
			return false;
	return true;
}

static const char *short_escape(unsigned char c)
{
	static const char *const escapes[] = {
		['\a'] = "\\a", ['\b'] = "\\b", ['\f'] = "\\f", ['\n'] = "\\n",  ['\r'] = "\\r",
		['\t'] = "\\t", ['\v'] = "\\v", ['"'] = "\\\"", ['\\'] = "\\\\",
	};

	return c < ARRAY_SIZE(escapes) ? escapes[c] : NULL;
}

static void add_quoted(struct line *line, const char *s)
{
	add(line, "\"", 1);
	while (*s) {
		uint32_t c = 0;
		size_t n = util_utf8(s, &c);

		if (n == 0)
			add_short(line, "\\x%02x", (unsigned char)*s);
		else if (n == 1 && short_escape((unsigned char)c))
			add_str(line, short_escape((unsigned char)c));
		else if (printable(c))
			add(line, s, n);
		else if (c < 0x80)
			add_short(line, "\\x%02x", c);
		else
			add_short(line, c < 0x10000 ? "\\u%04x" : "\\U%08x", c);
		s += n ? n : 1;
	}
	add(line, "\"", 1);
}

static void add_json_string(struct line *line, const char *s)
{
	add(line, "\"", 1);
	while (*s) {
		uint32_t c = 0;
		size_t n = util_utf8(s, &c);

		if (n == 0)
			add_str(line, "\\ufffd");
		else if (c == '"' || c == '\\' || c == '\n' || c == '\r' || c == '\t')
			add_str(line, short_escape((unsigned char)c));
		else if (c < 0x20)
			add_short(line, "\\u%04x", c);
		else
			add(line, s, n);
		s += n ? n : 1;
	}
	add(line, "\"", 1);
}

static void add_value(struct line *line, const struct log_pair *pair,
		      void (*add_string)(struct line *line, const char *s))
{
	switch (pair->kind) {
	case LOG_VALUE_STRING:
		add_string(line, pair->string ? pair->string : "");
		break;
	case LOG_VALUE_INT:
		add_short(line, "%lld", pair->number);
		break;
	case LOG_VALUE_BOOL:
		add_str(line, pair->number ? "true" : "false");
		break;
	case LOG_VALUE_END:
	case LOG_VALUE_COUNT:
		break;
	}
}

static void add_text_line(struct line *line, enum log_severity severity, const struct timespec *now,
			  const char *file, int line_number, const char *message,
			  const struct log_pair *pairs, size_t n_pairs)
{
	static const char letters[] = {'I', 'W', 'E'};
	struct tm tm = {0};

	_Static_assert(ARRAY_SIZE(letters) == LOG_SEVERITY_COUNT, "a letter for each severity");
	localtime_r(&now->tv_sec, &tm);
	add_short(line, "%c%02d%02d %02d:%02d:%02d.%06ld %7d ", letters[severity], tm.tm_mon + 1,
		  tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, now->tv_nsec / 1000, getpid());
	add_str(line, file);
	add_short(line, ":%d] ", line_number);
	add_quoted(line, message);
	for (size_t i = 0; i < n_pairs; i++) {
		add(line, " ", 1);
		add_str(line, pairs[i].key);
		add(line, "=", 1);
		add_value(line, &pairs[i], add_quoted);
	}
}

static void add_json_line(struct line *line, enum log_severity severity, const struct timespec *now,
			  int verbosity, const char *file, int line_number, const char *message,
			  const struct log_pair *pairs, size_t n_pairs)
{
	add_short(line, "{\"ts\":%lld.%03ld,\"caller\":\"",
		  (long long)now->tv_sec * 1000 + now->tv_nsec / 1000000,
		  now->tv_nsec / 1000 % 1000);
	add_str(line, file);
	add_short(line, ":%d\",\"msg\":", line_number);
	add_json_string(line, message);
	if (severity != LOG_SEVERITY_ERROR)
		add_short(line, ",\"v\":%d", verbosity);
	for (size_t i = 0; i < n_pairs; i++) {
		add(line, ",", 1);
		add_json_string(line, pairs[i].key);
		add(line, ":", 1);
		add_value(line, &pairs[i], add_json_string);
	}
}

/* -- leaving out what was said just now */

/* Says how or why, which may be another each time, and not about what. */
static bool tells_why(const char *key)
{
	static const char *const keys[] = {"err", "reason", "top", "advice"};

	return word_among(key, keys);
}

static uint64_t object_of(const struct log_site *site, const char *message,
			  const struct log_pair *pairs, size_t n_pairs)
{
	const char *colon = site->of_object ? strstr(message, ": ") : NULL;
	struct siphash hash;

	siphash_init(&hash, running.key);
	siphash_add(&hash, message, colon ? (size_t)(colon - message) : strlen(message));
	for (size_t i = 0; i < n_pairs; i++) {
		if (pairs[i].kind != LOG_VALUE_STRING || tells_why(pairs[i].key))
			continue;
		siphash_add(&hash, pairs[i].key, strlen(pairs[i].key) + 1);
		if (pairs[i].string)
			siphash_add(&hash, pairs[i].string, strlen(pairs[i].string) + 1);
	}
	return siphash_end(&hash);
}

static void release_at(int64_t due_ns)
{
	if (!running.release || due_ns >= running.due_ns)
		return;
	running.due_ns = due_ns;
	loop_arm(running.release, due_ns - clock_now_ns());
}

/* Is the line to be written now? */
static bool passes(struct log_site *site, enum log_severity severity, const char *message,
		   const struct log_pair *pairs, size_t n_pairs, const struct line *line)
{
	int64_t due_ns =
		log_limit_ask(&running.limit, site, object_of(site, message, pairs, n_pairs),
			      line->data, line->n, (int)severity, clock_now_ns());

	if (due_ns != 0)
		release_at(due_ns);
	return due_ns == 0;
}

/* -- writing */

static void line_init(struct line *line)
{
	line->data = line->begin;
	line->n = 0;
	line->capacity = sizeof(line->begin);
}

static void line_done(struct line *line)
{
	if (line->data != line->begin)
		free(line->data);
}

static void begin_line(struct line *line, enum log_severity severity, int verbosity,
		       const struct log_site *site, const char *message,
		       const struct log_pair *pairs, size_t n_pairs)
{
	const char *slash = strrchr(site->file, '/');
	const char *file = slash ? slash + 1 : site->file;
	struct timespec now;

	line_init(line);
	clock_gettime(CLOCK_REALTIME, &now);
	if (settings.format == LOG_FORMAT_JSON)
		add_json_line(line, severity, &now, verbosity, file, site->line, message, pairs,
			      n_pairs);
	else
		add_text_line(line, severity, &now, file, site->line, message, pairs, n_pairs);
}

static void end_line(struct line *line)
{
	if (line->data[0] == '{')
		add(line, "}", 1);
	add(line, "\n", 1);
}

static void send_line(struct line *line, enum log_severity severity)
{
	end_line(line);
	log_sink_write(&sink, line->data, line->n, severity != LOG_SEVERITY_INFO);
}

static void send_kept(const struct log_kept *kept)
{
	const char *key = kept->of_site ? "othersLeftOut" : "leftOut";
	struct line line;

	line_init(&line);
	add(&line, kept->line, kept->n);
	if (kept->left_out > 0)
		add_short(&line, line.data[0] == '{' ? ",\"%s\":%lu" : " %s=%lu", key,
			  kept->left_out);
	send_line(&line, (enum log_severity)kept->severity);
	line_done(&line);
}

static void release(bool all)
{
	int64_t now_ns = clock_now_ns();
	struct log_kept kept;

	while (log_limit_next(&running.limit, all, now_ns, &kept)) {
		send_kept(&kept);
		free(kept.line);
	}
}

static void on_release(evutil_socket_t fd attr_unused, short what attr_unused,
		       void *arg attr_unused)
{
	release(false);
	running.due_ns = INT64_MAX;
	release_at(log_limit_due(&running.limit));
}

void log_write(struct log_site *site, enum log_severity severity, int verbosity,
	       const char *message, const struct log_pair *pairs, size_t n_pairs)
{
	int saved = errno;
	struct line line;

	begin_line(&line, severity, verbosity, site, message, pairs, n_pairs);
	if (!running.on || verbosity > 0 || passes(site, severity, message, pairs, n_pairs, &line))
		send_line(&line, severity);
	line_done(&line);
	errno = saved;
}

/* -- the life of a daemon */

static size_t make_notice(unsigned long long lines, char *out, size_t size)
{
	const char *message = "Lines of the log were dropped, its reader does not keep up";
	const struct log_pair pairs[] = {KV("lines", LOG_INT(lines))};
	static const struct log_site site = {.file = __FILE__, .line = __LINE__};
	struct line line;
	size_t n;

	begin_line(&line, LOG_SEVERITY_WARNING, 0, &site, message, pairs, ARRAY_SIZE(pairs));
	end_line(&line);
	n = MIN(line.n, size);
	memcpy(out, line.data, n);
	line_done(&line);
	return n;
}

/* It would write to stderr itself, and wait there. */
static void on_libevent(int severity, const char *text)
{
	if (severity != EVENT_LOG_DEBUG)
		log_warning("The event library reports a problem", KV("err", LOG_STR(text)));
}

void log_begin(void)
{
	running.on = true;
	if (getrandom(running.key, sizeof(running.key), GRND_NONBLOCK) < 0)
		running.key[0] = (uint64_t)clock_wall_ns();
	sink.notice = make_notice;
	log_sink_open(&sink, sink.fd);
	event_set_log_callback(on_libevent);
}

void log_attach(struct event_base *loop)
{
	if (!running.on)
		return;
	log_sink_attach(&sink, loop);
	loop_free(running.release);
	running.release = loop ? loop_timer(loop, on_release, NULL) : NULL;
	running.due_ns = INT64_MAX;
	release_at(log_limit_due(&running.limit));
}

void log_end(void)
{
	release(true);
	log_attach(NULL);
	log_limit_forget(&running.limit);
	running.on = false;
	log_sink_close(&sink, PATIENCE_NS);
	event_set_log_callback(NULL);
}

void log_flush(void)
{
	release(true);
	log_sink_flush(&sink, PATIENCE_NS);
}

void log_forked(void)
{
	running.on = false;
	log_sink_forked(&sink, STDERR_FILENO);
}

unsigned long long log_dropped(void)
{
	return sink.dropped;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/*
 * A line is put together in memory and leaves in one write(2), so that lines of several processes
 * on one pipe do not mix. Strings are escaped such that a line stays one line and valid UTF-8
 * whatever they hold: as Go's %q does in text, as JSON asks for in JSON.
 */

static struct {
	enum log_format format;
	int verbosity;
	int fd;
} settings = {.fd = STDERR_FILENO};

struct line {
	char *data;
	size_t n, capacity;
};

void log_setup(enum log_format format, int verbosity)
{
	settings.format = format;
	settings.verbosity = verbosity;
}

void log_set_fd(int fd)
{
	settings.fd = fd;
}

bool log_enabled(int verbosity)
{
	return verbosity <= settings.verbosity;
}

static void add(struct line *line, const char *data, size_t n)
{
	if (line->capacity - line->n < n) {
		line->capacity = MAX(line->n + n, 2 * line->capacity);
		line->data = xrealloc(line->data, line->capacity);
	}
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

/*
 * Decodes one character of UTF-8; returns its length, or 0 when the bytes are none: overlong forms,
 * surrogates and what lies beyond U+10FFFF included.
 */
static size_t decode(const unsigned char *s, uint32_t *ret)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t n = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
	uint32_t c = n == 1 ? s[0] : n == 2 ? s[0] & 0x1f : n == 3 ? s[0] & 0x0f : s[0] & 0x07;

	if (s[0] > 0xf4)
		return 0;
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	if (n == 0 || c < least[n] || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff)
		return 0;
	*ret = c;
	return n;
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
		size_t n = decode((const unsigned char *)s, &c);

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
		size_t n = decode((const unsigned char *)s, &c);

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
	add(line, "}", 1);
}

/* What cannot be written is lost: there is nowhere else to say it. */
static void write_out(const char *data, size_t n)
{
	while (n > 0) {
		ssize_t written = write(settings.fd, data, n);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return;
		data += written;
		n -= (size_t)written;
	}
}

void log_write(enum log_severity severity, int verbosity, const char *file, int line_number,
	       const char *message, const struct log_pair *pairs, size_t n_pairs)
{
	const char *slash = strrchr(file, '/');
	struct line line = {0};
	struct timespec now;
	int saved = errno;

	clock_gettime(CLOCK_REALTIME, &now);
	file = slash ? slash + 1 : file;
	if (settings.format == LOG_FORMAT_JSON)
		add_json_line(&line, severity, &now, verbosity, file, line_number, message, pairs,
			      n_pairs);
	else
		add_text_line(&line, severity, &now, file, line_number, message, pairs, n_pairs);
	add(&line, "\n", 1);
	write_out(line.data, line.n);
	free(line.data);
	errno = saved;
}

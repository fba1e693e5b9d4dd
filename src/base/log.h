/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Logs in klog's shape, as text
 *	I1115 20:42:24.123456    1234 manifests.c:77] "Reading manifests" dir="/etc/x" files=3
 * or as JSON, one object a line. A line is a message and key-value pairs:
 *
 *	log_info("Reading manifests", KV("dir", LOG_STR(dir)), KV("files", LOG_INT(n)));
 *
 * Below daemon/ and commands/, functions return errors instead of logging them; the caller that decides
 * what happens next logs, once. log_debug(level, ...) prints when --v is at least that level.
 */

#include "base/log_limit.h"
#include "base/util.h"

struct event_base;

enum log_severity {
	LOG_SEVERITY_INFO = 0,
	LOG_SEVERITY_WARNING,
	LOG_SEVERITY_ERROR,
	LOG_SEVERITY_COUNT,
};

enum log_format {
	LOG_FORMAT_TEXT = 0,
	LOG_FORMAT_JSON,
	LOG_FORMAT_COUNT,
};

enum log_value_kind {
	LOG_VALUE_END = 0,
	LOG_VALUE_STRING,
	LOG_VALUE_INT,
	LOG_VALUE_BOOL,
	LOG_VALUE_COUNT,
};

struct log_pair {
	const char *key;
	enum log_value_kind kind;
	const char *string;
	long long number;
};

/*
 * KV(key, LOG_STR(s)) makes a pair; a NULL string is logged as an empty one. Strings are escaped so
 * that a line stays one line and valid UTF-8; keys and file names are ours and go out as they are.
 */
#define LOG_STR(s)  .kind = LOG_VALUE_STRING, .string = (s)
#define LOG_INT(n)  .kind = LOG_VALUE_INT, .number = (long long)(n)
#define LOG_BOOL(b) .kind = LOG_VALUE_BOOL, .number = (b)

void log_setup(enum log_format format, int verbosity);
void log_set_fd(int fd); /* stderr (2) unless told otherwise */
bool log_enabled(int verbosity);
void log_write(struct log_site *site, enum log_severity severity, int verbosity,
	       const char *message, const struct log_pair *pairs, size_t n_pairs);

/*
 * A command waits for the reader of its log. A daemon must not, and between log_begin() and log_end()
 * nothing does: see log_sink.h for what is buffered and dropped, and log_limit.h for what is left out
 * because it was said just now.
 *
 * What a line is about, for the latter, is its message and all its strings but those that say how or
 * why (err, reason, top, advice); numbers do not count. Lines that --v asks for are never left out.
 */
void log_begin(void);
void log_attach(
	struct event_base *loop); /* that tells when there is room or time; NULL: no longer */
void log_end(void);               /* waits a second at most for the reader */
/* For the moment before _exit(): what is buffered leaves, as far as it does in a second. */
void log_flush(void);
void log_forked(void); /* in a copy of the process, with only the standard files open */
unsigned long long log_dropped(void); /* lines, since the start */

#define KV(k, ...) ((struct log_pair){.key = (k), __VA_ARGS__})

#define LOG_AT(by_object, severity, verbosity, message, ...)                                       \
	do {                                                                                       \
		static struct log_site site_ = {                                                   \
			.file = __FILE__, .line = __LINE__, .of_object = (by_object)};             \
		const struct log_pair pairs_[] = {__VA_ARGS__ __VA_OPT__(, )(struct log_pair){0}}; \
		log_write(&site_, (severity), (verbosity), (message), pairs_,                      \
			  ARRAY_SIZE(pairs_) - 1);                                                 \
	} while (0)
#define LOG_CALL(severity, verbosity, message, ...) \
	LOG_AT(false, severity, verbosity, message __VA_OPT__(, ) __VA_ARGS__)
/* A message made elsewhere that names its object before the first ": ": all about that is one thing. */
#define log_report(severity, text) LOG_AT(true, severity, 0, text)

#define log_info(message, ...) LOG_CALL(LOG_SEVERITY_INFO, 0, message __VA_OPT__(, ) __VA_ARGS__)
#define log_warning(message, ...) \
	LOG_CALL(LOG_SEVERITY_WARNING, 0, message __VA_OPT__(, ) __VA_ARGS__)
#define log_error(message, ...) LOG_CALL(LOG_SEVERITY_ERROR, 0, message __VA_OPT__(, ) __VA_ARGS__)
#define log_debug(level, message, ...)                                                            \
	do {                                                                                      \
		if (log_enabled(level))                                                           \
			LOG_CALL(LOG_SEVERITY_INFO, (level), message __VA_OPT__(, ) __VA_ARGS__); \
	} while (0)

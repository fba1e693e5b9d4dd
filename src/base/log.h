/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Logs in klog's shape, as text
 *	I1115 20:42:24.123456    1234 manifests.c:77] "Reading manifests" dir="/etc/x" files=3
 * or as JSON, one object a line. A line is a message and key-value pairs:
 *
 *	log_info("Reading manifests", KV("dir", LOG_STR(dir)), KV("files", LOG_INT(n)));
 *
 * Below cli/, functions return errors instead of logging them; whoever decides what happens next
 * logs, once. log_debug(level, ...) prints when --v is at least that level.
 */

#include "base/util.h"

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
void log_write(enum log_severity severity, int verbosity, const char *file, int line_number,
	       const char *message, const struct log_pair *pairs, size_t n_pairs);

#define KV(k, ...) ((struct log_pair){.key = (k), __VA_ARGS__})

#define LOG_CALL(severity, verbosity, message, ...)                                                \
	do {                                                                                       \
		const struct log_pair pairs_[] = {__VA_ARGS__ __VA_OPT__(, )(struct log_pair){0}}; \
		log_write((severity), (verbosity), __FILE__, __LINE__, (message), pairs_,          \
			  ARRAY_SIZE(pairs_) - 1);                                                 \
	} while (0)

#define log_info(message, ...) LOG_CALL(LOG_SEVERITY_INFO, 0, message __VA_OPT__(, ) __VA_ARGS__)
#define log_warning(message, ...) \
	LOG_CALL(LOG_SEVERITY_WARNING, 0, message __VA_OPT__(, ) __VA_ARGS__)
#define log_error(message, ...) LOG_CALL(LOG_SEVERITY_ERROR, 0, message __VA_OPT__(, ) __VA_ARGS__)
#define log_debug(level, message, ...)                                                            \
	do {                                                                                      \
		if (log_enabled(level))                                                           \
			LOG_CALL(LOG_SEVERITY_INFO, (level), message __VA_OPT__(, ) __VA_ARGS__); \
	} while (0)

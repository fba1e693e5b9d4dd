/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

static size_t attr_printf(2, 0) format(struct err *err, const char *fmt, va_list ap)
{
	int n = vsnprintf(err->text, sizeof(err->text), fmt, ap);

	if (n < 0)
		n = 0;
	return MIN((size_t)n, sizeof(err->text) - 1);
}

int err_set(struct err *err, int code, const char *fmt, ...)
{
	va_list ap;

	assert(code < 0);
	va_start(ap, fmt);
	format(err, fmt, ap);
	va_end(ap);
	err->code = code;
	return code;
}

int err_wrap(struct err *err, int code, const char *fmt, ...)
{
	char inner[sizeof(err->text)];
	va_list ap;
	size_t n;

	assert(code < 0);
	memcpy(inner, err->text, sizeof(inner));
	va_start(ap, fmt);
	n = format(err, fmt, ap);
	va_end(ap);
	snprintf(err->text + n, sizeof(err->text) - n, ": %s", inner);
	err->code = code;
	return code;
}

int err_sys(struct err *err, int code, const char *fmt, ...)
{
	va_list ap;
	size_t n;

	assert(code < 0);
	va_start(ap, fmt);
	n = format(err, fmt, ap);
	va_end(ap);
	snprintf(err->text + n, sizeof(err->text) - n, ": %s", strerror(-code));
	err->code = code;
	return code;
}

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The one error idiom.
 *
 * A fallible function returns int: a negative errno on failure, zero or a useful positive number
 * on success. It takes `struct err *err` last. err lives on the stack of the caller that will report it,
 * is never NULL, and is touched only on failure. Each level adds, once, what only it knows: what
 * was attempted and on which object.
 *
 *	r = restore_apply(tool, text, err);
 *	if (r < 0)
 *		return err_wrap(err, r, "writing the %s rules", family_name(family));
 */

#include "base/util.h"

struct err {
	int code; /* negative errno */
	char text[1024];
};

/* All return `code`, which must be negative. Text that does not fit is cut. */
int err_set(struct err *err, int code, const char *fmt, ...) attr_printf(3, 4);
int err_wrap(struct err *err, int code, const char *fmt, ...) attr_printf(3, 4);
/* As err_set, with ": " and the text of the errno behind. */
int err_sys(struct err *err, int code, const char *fmt, ...) attr_printf(3, 4);

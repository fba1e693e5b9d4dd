/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The terminal as a screen: the other buffer, no cursor, keys as they are pressed. Whatever ends the
 * process, a signal or an abort, puts everything back first, but for SIGKILL. There is one terminal.
 *
 * Plain VT sequences, as every terminal of today knows them.
 */

#include "base/err.h"
#include "base/text.h"

/* Can standard input and output be used that way? */
bool terminal_usable(void);
/* Takes it over. */
int terminal_open(struct err *err);
/* Puts it back; as often as you like. */
void terminal_close(void);
/* 80 by 24 when it does not say. */
void terminal_size(size_t *ret_width, size_t *ret_height);
/* Lines for all of the screen, in one write; line number `title` (from 0) stands out. */
int terminal_draw(struct text *lines, size_t title, struct err *err);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Flags as a table, and command lines read by kube-proxy's rules:
 *
 *   - --name=value or --name value; -v 4, -v=4 or -v4; `_` and `-` in names are the same
 *   - switches: --name or --name=false; a value behind a blank would be an argument of its own
 *   - the word behind a flag that needs a value is its value, whatever it looks like
 *   - a flag may be repeated: lists grow, for all others the last one counts
 *   - `--` ends the flags; arguments that are no flags are an error unless the command has rows
 *     for them, empty ones are not
 *
 * A row says where its value goes as an offset into the caller's structure, so a new flag is one
 * new row and one new member. A row with a `path` stands for a field of the configuration: its text
 * is checked and noted in a list, in the order of the command line, for the code that makes the
 * configuration. Text is borrowed from the command line.
 */

#include <stdio.h>

#include "base/err.h"

struct flag_list {
	char **v; /* owned */
	size_t n;
	size_t capacity;
};

enum flag_kind {
	FLAG_BOOL = 0, /* bool */
	FLAG_INT,      /* int32_t; 0x, 0o and 0b prefixes and a plain leading 0 (octal) as in Go */
	FLAG_LEVEL,    /* int32_t; decimal, not negative */
	FLAG_STRING,   /* const char *; NULL when not given and without default */
	FLAG_WORD,     /* const char *; as a string, but "--name" alone means "true" */
	FLAG_LIST,     /* struct flag_list; split at commas, "" adds nothing */
	FLAG_DURATION, /* int64_t nanoseconds */
	FLAG_ARGUMENT, /* const char *; a word that is no flag. The first row takes the first word */
	FLAG_ARGUMENTS, /* struct flag_list; all words that are no flags and that no row above took */
	/* only in rows with a path */
	FLAG_ADDRESS, /* as a string, but "" changes nothing */
	FLAG_FLOAT,
	FLAG_QUANTITY, /* bytes: 512, 1K, 2Ki, ... */
	FLAG_GATES,    /* Name=bool,... */
	FLAG_VMODULE,  /* pattern=N,... */
	FLAG_KIND_COUNT,
};

/* One use of a flag with a path. */
struct flag_setting {
	const struct flag *flag;
	const char *text;
};

struct flag_settings {
	struct flag_setting *v;
	size_t n;
	size_t capacity;
};

struct flag {
	const char *group; /* heading in the help; rows of a group stand together */
	const char *name;  /* with `-` between the words; "" for an argument */
	char letter;       /* the short form, or 0 */
	enum flag_kind kind;
	size_t offset;         /* with a path: that of a struct flag_settings */
	const char *path;      /* NULL: the value goes to offset */
	unsigned int commands; /* bit set: where it may be used */
	const char *initial;   /* the default as text; NULL: zero, false, empty */
	const char *value;     /* what the help calls the value; NULL: after the kind */
	bool past;             /* kube-proxy no longer has it: accepted, and not on /flagz */
	const char *help;
};

/* True and false as Go spells them: 1, t, T, true, TRUE, True and their opposites; or -EINVAL. */
int flag_bool_parse(const char *s, bool *ret);
/* A number of 32 bits with Go's prefixes; or -EINVAL. */
int flag_int_parse(const char *value, int32_t *ret);
/* Each pair of a list; -EINVAL at the first that is none. `add` may be NULL. */
int flag_gates_parse(const char *s, void (*add)(void *arg, const char *name, bool on), void *arg);
int flag_vmodule_parse(const char *s, void (*add)(void *arg, const char *pattern, int32_t level),
		       void *arg);
/* Sets the defaults in `target`, which must be zeroed or have gone through flags_done(). */
void flags_init(const struct flag *flags, size_t n, void *target);
void flags_done(const struct flag *flags, size_t n, void *target);
/* Reads a command line without program and command name; `command` is one bit. */
int flags_parse(const struct flag *flags, size_t n, unsigned int command, int argc, char **argv,
		void *target, struct err *err);
/* The row of a flag by its name, n bytes, or its letter; NULL: the command has none. */
const struct flag *flags_find(const struct flag *flags, size_t n_flags, unsigned int command,
			      const char *name, size_t n);
const struct flag *flags_find_letter(const struct flag *flags, size_t n_flags, unsigned int command,
				     char letter);
/* Is the word behind it its value? */
bool flag_needs_value(const struct flag *flag);
/* The flags of one command, for people. */
void flags_help(const struct flag *flags, size_t n, unsigned int command, FILE *out);

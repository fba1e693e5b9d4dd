/* SPDX-License-Identifier: Apache-2.0 */

#include "config/flags.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/nearest.h"
#include "config/duration.h"

/* A table of flags with where its values go. */
struct flag_set {
	const struct flag *flags;
	size_t n;
	unsigned int command;
	char *target;
};

/* What is left of the command line. */
struct words {
	int n;
	char **v;
};

int flag_bool_parse(const char *s, bool *ret)
{
	static const char *const yes[] = {"1", "t", "T", "true", "TRUE", "True"};
	static const char *const no[] = {"0", "f", "F", "false", "FALSE", "False"};
	bool on = word_among(s, yes);

	if (!on && !word_among(s, no))
		return -EINVAL;
	*ret = on;
	return 0;
}

static int set_bool(void *at, const char *value)
{
	return flag_bool_parse(value, at);
}

static int set_number(const char *value, int base, long min, int32_t *ret)
{
	char *end;
	long number;

	if (isspace((unsigned char)value[0]) || value[0] == '\0')
		return -EINVAL;
	errno = 0;
	number = strtol(value, &end, base);
	if (errno != 0 || *end || end == value || number < min || number > INT32_MAX)
		return -EINVAL;
	*ret = (int32_t)number;
	return 0;
}

/* Drops underscores, each of which must stand between two digits (or behind the prefix). */
static int drop_underscores(const char *value, char *out, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; value[i]; i++) {
		if (value[i] == '_' && (i == 0 || !isalnum((unsigned char)value[i - 1]) ||
					!isalnum((unsigned char)value[i + 1])))
			return -EINVAL;
		if (value[i] == '_')
			continue;
		if (n + 1 >= size)
			return -EINVAL;
		out[n++] = value[i];
	}
	out[n] = '\0';
	return 0;
}

/* Go's prefixes: C's own, and 0o and 0b, which strtol does not know. */
int flag_int_parse(const char *value, int32_t *ret)
{
	const char *digits;
	int base = 0;
	char joined[64];
	char plain[64];

	if (drop_underscores(value, joined, sizeof(joined)) < 0)
		return -EINVAL;
	value = joined;
	digits = value + strspn(value, "+-");
	if (digits - value > 1)
		return -EINVAL;
	if (digits[0] == '0' && digits[1] && strchr("oObB", digits[1])) {
		base = tolower((unsigned char)digits[1]) == 'o' ? 8 : 2;
		if (!isdigit((unsigned char)digits[2]))
			return -EINVAL;
		snprintf(plain, sizeof(plain), "%.*s%s", (int)(digits - value), value, digits + 2);
		value = plain;
	}
	return set_number(value, base, INT32_MIN, ret);
}

static int set_int(void *at, const char *value)
{
	return flag_int_parse(value, at);
}

static int set_level(void *at, const char *value)
{
	return isdigit((unsigned char)value[0]) ? set_number(value, 10, 0, at) : -EINVAL;
}

static int set_string(void *at, const char *value)
{
	*(const char **)at = value;
	return 0;
}

static int set_list(void *at, const char *value)
{
	struct flag_list *list = at;

	if (value[0] == '\0')
		return 0;
	for (;;) {
		size_t n = strcspn(value, ",");

		array_grow(&list->v, &list->capacity, list->n, sizeof(*list->v));
		list->v[list->n++] = xasprintf("%.*s", (int)n, value);
		if (value[n] == '\0')
			return 0;
		value += n + 1;
	}
}

static int set_duration(void *at, const char *value)
{
	return duration_parse(value, at);
}

static int set_float(void *at, const char *value)
{
	char *end;

	if (isspace((unsigned char)value[0]) || value[0] == '\0')
		return -EINVAL;
	errno = 0;
	*(float *)at = strtof(value, &end);
	return *end || (errno == ERANGE && isinf(*(float *)at)) ? -EINVAL : 0;
}

static int set_quantity(void *at, const char *value)
{
	static const char *const units[] = {"",  "k",  "K",  "M",  "G",  "T",  "P",
					    "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
	size_t n = strspn(value, "0123456789");

	(void)at;
	return n > 0 && n < 19 && word_among(value + n, units) ? 0 : -EINVAL;
}

/* The next "name=value" of a list, without blanks around either; 0 at the end, -EINVAL for a piece
 * that has no "=". Empty pieces are passed over. */
static int next_pair(const char **s, char **ret_name, char **ret_value)
{
	while (**s) {
		size_t n = strcspn(*s, ",");
		cleanup_free char *piece = util_trimmed(*s, n);
		const char *equals = strchr(piece, '=');

		*s += n + ((*s)[n] == ',');
		if (!piece[0])
			continue;
		if (!equals)
			return -EINVAL;
		*ret_name = util_trimmed(piece, (size_t)(equals - piece));
		*ret_value = util_trimmed(equals + 1, strlen(equals + 1));
		return 1;
	}
	return 0;
}

int flag_gates_parse(const char *s, void (*add)(void *arg, const char *name, bool on), void *arg)
{
	int r;

	for (;;) {
		cleanup_free char *name = NULL;
		cleanup_free char *value = NULL;
		bool on;

		r = next_pair(&s, &name, &value);
		if (r <= 0)
			return r;
		if (flag_bool_parse(value, &on) < 0)
			return -EINVAL;
		if (add)
			add(arg, name, on);
	}
}

int flag_vmodule_parse(const char *s, void (*add)(void *arg, const char *pattern, int32_t level),
		       void *arg)
{
	int r;

	for (;;) {
		cleanup_free char *pattern = NULL;
		cleanup_free char *value = NULL;
		int32_t level;

		r = next_pair(&s, &pattern, &value);
		if (r <= 0)
			return r;
		if (!pattern[0] || set_level(&level, value) < 0)
			return -EINVAL;
		if (add)
			add(arg, pattern, level);
	}
}

static int set_gates(void *at, const char *value)
{
	(void)at;
	return flag_gates_parse(value, NULL, NULL);
}

static int set_vmodule(void *at, const char *value)
{
	(void)at;
	return flag_vmodule_parse(value, NULL, NULL);
}

static const struct kind {
	const char *value;    /* in the help */
	const char *expected; /* in an error */
	const char *alone;    /* what "--name" means; NULL: a value must follow */
	int (*set)(void *at, const char *value);
} kinds[] = {
	[FLAG_BOOL] = {NULL, "true or false", "true", set_bool},
	[FLAG_INT] = {"int", "a whole number of 32 bits", NULL, set_int},
	[FLAG_LEVEL] = {"level", "a whole number from 0", NULL, set_level},
	[FLAG_STRING] = {"string", "a string", NULL, set_string},
	[FLAG_WORD] = {NULL, "a word", "true", set_string},
	[FLAG_LIST] = {"list", "a list with commas", NULL, set_list},
	[FLAG_DURATION] = {"duration", "a duration such as 30s, 100ms or 1m30s", NULL,
			   set_duration},
	[FLAG_ARGUMENT] = {NULL, "a word", NULL, set_string},
	[FLAG_ARGUMENTS] = {NULL, "words", NULL, set_list},
	[FLAG_ADDRESS] = {"ip:port", "an address", NULL, set_string},
	[FLAG_FLOAT] = {"number", "a number", NULL, set_float},
	[FLAG_QUANTITY] = {"size", "a number of bytes such as 512, 1K or 2Ki", NULL, set_quantity},
	[FLAG_GATES] = {"name=bool,...", "a list such as Name=true,Other=false", NULL, set_gates},
	[FLAG_VMODULE] = {"pattern=level,...", "a list such as family_sync=4,daemon=2", NULL,
			  set_vmodule},
};

static_assert(ARRAY_SIZE(kinds) == FLAG_KIND_COUNT, "each kind of flag has a row");

static void *flag_place(const struct flag *flag, void *target)
{
	return (char *)target + flag->offset;
}

void flags_init(const struct flag *flags, size_t n, void *target)
{
	for (size_t i = 0; i < n; i++) {
		const struct flag *flag = &flags[i];

		if (flag->initial && !flag->path) {
			int r = kinds[flag->kind].set(flag_place(flag, target), flag->initial);

			assert(r == 0);
			(void)r;
		}
	}
}

void flags_done(const struct flag *flags, size_t n, void *target)
{
	for (size_t i = 0; i < n; i++) {
		struct flag_list *list = flag_place(&flags[i], target);

		if (flags[i].path) {
			struct flag_settings *settings = flag_place(&flags[i], target);

			free(settings->v);
			*settings = (struct flag_settings){0};
		}
		if (flags[i].path ||
		    (flags[i].kind != FLAG_LIST && flags[i].kind != FLAG_ARGUMENTS))
			continue;
		for (size_t j = 0; j < list->n; j++)
			free(list->v[j]);
		free(list->v);
		*list = (struct flag_list){0};
	}
}

static bool name_matches(const char *name, const char *given, size_t n)
{
	if (strlen(name) != n)
		return false;
	for (size_t i = 0; i < n; i++)
		if (name[i] != (given[i] == '_' ? '-' : given[i]))
			return false;
	return true;
}

const struct flag *flags_find(const struct flag *flags, size_t n_flags, unsigned int command,
			      const char *name, size_t n)
{
	for (size_t i = 0; i < n_flags; i++)
		if (flags[i].commands & command && name_matches(flags[i].name, name, n))
			return &flags[i];
	return NULL;
}

const struct flag *flags_find_letter(const struct flag *flags, size_t n_flags, unsigned int command,
				     char letter)
{
	for (size_t i = 0; i < n_flags; i++)
		if (flags[i].commands & command && flags[i].letter == letter)
			return &flags[i];
	return NULL;
}

bool flag_needs_value(const struct flag *flag)
{
	return !kinds[flag->kind].alone;
}

static int unknown_flag(const struct flag_set *set, const char *given, size_t n, struct err *err)
{
	cleanup_free char *name = xasprintf("%.*s", (int)n, given);
	struct nearest nearest;

	nearest_init(&nearest, name);
	for (size_t i = 0; i < set->n; i++)
		if (set->flags[i].commands & set->command && set->flags[i].name[0])
			nearest_offer(&nearest, set->flags[i].name);
	if (nearest.best)
		return err_set(err, -EINVAL, "unknown flag --%s; did you mean --%s?", name,
			       nearest.best);
	return err_set(err, -EINVAL, "unknown flag --%s; --help lists the flags", name);
}

/* Room for whatever a kind writes, when only its judgement is wanted. */
union scratch {
	bool on;
	int32_t number;
	int64_t ns;
	float real;
	const char *string;
};

static int note_setting(const struct flag_set *set, const struct flag *flag, const char *value)
{
	struct flag_settings *settings = flag_place(flag, set->target);
	union scratch scratch;

	if (flag->kind != FLAG_LIST && kinds[flag->kind].set(&scratch, value) < 0)
		return -EINVAL;
	if (flag->kind == FLAG_ADDRESS && !value[0])
		return 0;
	array_grow(&settings->v, &settings->capacity, settings->n, sizeof(*settings->v));
	settings->v[settings->n++] = (struct flag_setting){flag, value};
	return 0;
}

static int set_flag(const struct flag_set *set, const struct flag *flag, const char *value,
		    struct err *err)
{
	if (flag->path && note_setting(set, flag, value) == 0)
		return 0;
	if (!flag->path && kinds[flag->kind].set(flag_place(flag, set->target), value) == 0)
		return 0;
	return err_set(err, -EINVAL, "--%s: \"%s\" is not %s", flag->name, value,
		       kinds[flag->kind].expected);
}

/* The next word as a flag's value; NULL, with *err set, when there is none. */
static const char *next_word(struct words *words, const struct flag *flag, struct err *err)
{
	if (words->n == 0) {
		err_set(err, -EINVAL, "--%s needs a value: %s", flag->name,
			kinds[flag->kind].expected);
		return NULL;
	}
	words->n--;
	return *words->v++;
}

static int parse_long(const struct flag_set *set, const char *word, struct words *words,
		      struct err *err)
{
	const char *name = word + 2;
	size_t n = strcspn(name, "=");
	const struct flag *flag;
	const char *value;

	if (n == 0 || name[0] == '-')
		return err_set(err, -EINVAL, "\"%s\" is not a flag: write --name=value", word);
	flag = flags_find(set->flags, set->n, set->command, name, n);
	if (!flag)
		return unknown_flag(set, name, n, err);
	if (name[n] == '=')
		value = name + n + 1;
	else if (kinds[flag->kind].alone)
		value = kinds[flag->kind].alone;
	else
		value = next_word(words, flag, err);
	return value ? set_flag(set, flag, value, err) : -EINVAL;
}

/* Letters behind one dash: several switches may stand together, a value ends the word. */
static int parse_letters(const struct flag_set *set, const char *word, struct words *words,
			 struct err *err)
{
	const struct flag *flag;
	const char *value;
	int r;

	for (const char *at = word + 1; *at; at++) {
		flag = flags_find_letter(set->flags, set->n, set->command, *at);
		if (!flag)
			return err_set(err, -EINVAL,
				       "unknown flag -%c in \"%s\"; --help lists the flags", *at,
				       word);
		if (at[1] == '=' && at[2]) {
			return set_flag(set, flag, at + 2, err);
		} else if (kinds[flag->kind].alone) {
			r = set_flag(set, flag, kinds[flag->kind].alone, err);
			if (r < 0)
				return r;
			continue;
		} else if (at[1]) {
			return set_flag(set, flag, at + 1, err);
		}
		value = next_word(words, flag, err);
		return value ? set_flag(set, flag, value, err) : -EINVAL;
	}
	return 0;
}

/* To the first row for arguments that has none yet, or that takes them all. */
static int take_argument(const struct flag_set *set, const char *word, struct err *err)
{
	for (size_t i = 0; i < set->n; i++) {
		const struct flag *flag = &set->flags[i];
		const char **place = flag_place(flag, set->target);

		if (!(flag->commands & set->command))
			continue;
		if (flag->kind == FLAG_ARGUMENTS)
			return set_list(place, word);
		if (flag->kind != FLAG_ARGUMENT || *place)
			continue;
		*place = word;
		return 0;
	}
	return err_set(err, -EINVAL,
		       "unexpected argument \"%s\": all settings are flags (a switch is turned off "
		       "with --name=false)",
		       word);
}

int flags_parse(const struct flag *flags, size_t n, unsigned int command, int argc, char **argv,
		void *target, struct err *err)
{
	const struct flag_set set = {flags, n, command, target};
	struct words words = {argc, argv};
	bool ended = false; /* "--" was seen */

	while (words.n > 0) {
		const char *word = words.v[0];
		int r = 0;

		words.v++;
		words.n--;
		if (!ended && streq(word, "--"))
			ended = true;
		else if (!ended && has_prefix(word, "--"))
			r = parse_long(&set, word, &words, err);
		else if (!ended && word[0] == '-' && word[1])
			r = parse_letters(&set, word, &words, err);
		else if (word[0])
			r = take_argument(&set, word, err);
		if (r < 0)
			return r;
	}
	return 0;
}

#define HELP_INDENT 8
#define HELP_WIDTH  80

static void print_wrapped(const char *text, FILE *out)
{
	size_t column = 0;

	while (*text) {
		size_t n = strcspn(text, " ");

		if (column > 0 && column + 1 + n > HELP_WIDTH) {
			fputc('\n', out);
			column = 0;
		}
		if (column == 0)
			column = (size_t)fprintf(out, "%*s", HELP_INDENT, "");
		else
			column += (size_t)fprintf(out, " ");
		column += (size_t)fprintf(out, "%.*s", (int)n, text);
		text += n;
		text += strspn(text, " ");
	}
	fputc('\n', out);
}

static void print_flag(const struct flag *flag, FILE *out)
{
	const char *value = flag->value ? flag->value : kinds[flag->kind].value;
	cleanup_free char *text = NULL;

	if (flag->letter)
		fprintf(out, "  -%c, --%s", flag->letter, flag->name);
	else
		fprintf(out, "  --%s", flag->name);
	if (kinds[flag->kind].alone)
		fprintf(out, "%s%s%s\n", value ? "[=" : "", value ? value : "", value ? "]" : "");
	else
		fprintf(out, " %s\n", value);
	if (flag->initial && flag->initial[0])
		text = xasprintf("%s (default %s)", flag->help, flag->initial);
	print_wrapped(text ? text : flag->help, out);
}

void flags_help(const struct flag *flags, size_t n, unsigned int command, FILE *out)
{
	const char *group = NULL;

	for (size_t i = 0; i < n; i++) {
		if (!(flags[i].commands & command) || flags[i].kind == FLAG_ARGUMENT ||
		    flags[i].kind == FLAG_ARGUMENTS)
			continue;
		if (!group || !streq(group, flags[i].group))
			fprintf(out, "\n%s:\n", flags[i].group);
		group = flags[i].group;
		print_flag(&flags[i], out);
	}
}

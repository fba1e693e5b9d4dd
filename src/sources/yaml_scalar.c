/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/yaml_scalar.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define NUMBER_MAX 80 /* a sign, "0b", 64 digits, and some underscores */

const char *yaml_type_name(enum yaml_type type)
{
	static const char *const names[] = {
		[YAML_TYPE_NULL] = "null",       [YAML_TYPE_BOOL] = "a boolean",
		[YAML_TYPE_INT] = "an integer",  [YAML_TYPE_FLOAT] = "a fraction",
		[YAML_TYPE_STRING] = "a string",
	};

	static_assert(ARRAY_SIZE(names) == YAML_TYPE_COUNT, "a name for each type");
	return names[type];
}

static bool is_null(const char *text)
{
	static const char *const words[] = {"", "~", "null", "Null", "NULL"};

	return word_among(text, words);
}

static bool is_true(const char *text)
{
	static const char *const words[] = {"true", "True", "TRUE", "yes", "Yes", "YES",
					    "on",   "On",   "ON",   "y",   "Y"};

	return word_among(text, words);
}

static bool is_false(const char *text)
{
	static const char *const words[] = {"false", "False", "FALSE", "no", "No", "NO",
					    "off",   "Off",   "OFF",   "n",  "N"};

	return word_among(text, words);
}

/* Drops the underscores, which only group digits. False: too long for an integer. */
static bool strip_underscores(const char *text, char out[static NUMBER_MAX])
{
	size_t n = 0;

	for (; *text; text++) {
		if (*text == '_')
			continue;
		if (n == NUMBER_MAX - 1)
			return false;
		out[n++] = *text;
	}
	out[n] = '\0';
	return true;
}

static int base_of(const char **digits)
{
	static const struct {
		const char *prefix;
		int base;
	} bases[] = {{"0x", 16}, {"0X", 16}, {"0b", 2}, {"0B", 2}, {"0o", 8}, {"0O", 8}};

	for (size_t i = 0; i < ARRAY_SIZE(bases); i++) {
		if (has_prefix(*digits, bases[i].prefix)) {
			*digits += 2;
			return bases[i].base;
		}
	}
	return (*digits)[0] == '0' && (*digits)[1] ? 8 : 10;
}

static bool is_digit_of(char c, int base)
{
	if (base == 16 && ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')))
		return true;
	return c >= '0' && c < '0' + MIN(base, 10);
}

static bool parse_int(const char *text, int64_t *ret)
{
	char plain[NUMBER_MAX] = {0}, number[NUMBER_MAX + 1];
	const char *digits = plain;
	long long value;
	int base;

	if (!strip_underscores(text, plain))
		return false;
	if (*digits == '+' || *digits == '-')
		digits++;
	base = base_of(&digits);
	if (!*digits)
		return false;
	for (const char *c = digits; *c; c++)
		if (!is_digit_of(*c, base))
			return false;
	number[0] = plain[0] == '-' ? '-' : '+';
	memcpy(number + 1, digits, strlen(digits) + 1);
	errno = 0;
	value = strtoll(number, NULL, base);
	if (errno)
		return false;
	*ret = value;
	return true;
}

static const char *skip_digits(const char *s)
{
	while (*s >= '0' && *s <= '9')
		s++;
	return s;
}

static bool is_float(const char *s)
{
	static const char *const words[] = {".inf", ".Inf", ".INF", ".nan", ".NaN", ".NAN"};
	const char *start, *end;

	if (*s == '+' || *s == '-')
		s++;
	if (word_among(s, words))
		return true;
	start = s;
	end = skip_digits(s);
	if (*end == '.') {
		s = end + 1;
		end = skip_digits(s);
		if (s - start == 1 && end == s)
			return false; /* only a dot */
	} else if (end == start) {
		return false;
	}
	if (*end == 'e' || *end == 'E') {
		s = end + 1 + (end[1] == '+' || end[1] == '-');
		end = skip_digits(s);
		if (end == s)
			return false;
	}
	return !*end;
}

enum yaml_type yaml_scalar_type(const char *text)
{
	int64_t value;

	if (is_null(text))
		return YAML_TYPE_NULL;
	if (is_true(text) || is_false(text))
		return YAML_TYPE_BOOL;
	if (!strchr("+-.0123456789", text[0]))
		return YAML_TYPE_STRING;
	if (parse_int(text, &value))
		return YAML_TYPE_INT;
	return is_float(text) ? YAML_TYPE_FLOAT : YAML_TYPE_STRING;
}

bool yaml_scalar_bool(const char *text)
{
	return is_true(text);
}

int64_t yaml_scalar_int(const char *text)
{
	int64_t value = 0;
	bool ok = parse_int(text, &value);

	assert(ok);
	(void)ok;
	return value;
}

bool yaml_scalar_whole(enum yaml_type type, const char *text, int64_t *ret)
{
	double value;

	if (type == YAML_TYPE_INT) {
		*ret = yaml_scalar_int(text);
		return true;
	}
	if (type != YAML_TYPE_FLOAT || strpbrk(text, "nN")) /* .nan, .inf */
		return false;
	value = strtod(text, NULL);
	if (!(value > -0x1p63 && value < 0x1p63) || value != (double)(int64_t)value)
		return false;
	*ret = (int64_t)value;
	return true;
}

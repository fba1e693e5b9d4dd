/* SPDX-License-Identifier: Apache-2.0 */

/*
 * All arithmetic is done on the magnitude in 64 unsigned bits with 2^63 as the ceiling, so that the
 * most negative value can be written and nothing wraps. A fraction is kept as digits and a scale
 * and is cut, not rounded, when it is finer than a nanosecond.
 */

#include "config/duration.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>

#include "base/util.h"

#define CEILING ((uint64_t)1 << 63)

static const struct unit {
	const char *name;
	uint64_t ns;
} units[] = {
	{"ns", 1},
	{"us", 1000},
	{"\u00b5s", 1000}, /* micro sign */
	{"\u03bcs", 1000}, /* Greek letter mu */
	{"ms", 1000000},
	{"s", 1000000000},
	{"m", 60 * (uint64_t)1000000000},
	{"h", 3600 * (uint64_t)1000000000},
};

static int whole_parse(const char **s, uint64_t *ret)
{
	uint64_t value = 0;

	for (; isdigit((unsigned char)**s); (*s)++) {
		if (value > CEILING / 10)
			return -EINVAL;
		value = value * 10 + (uint64_t)(**s - '0');
		if (value > CEILING)
			return -EINVAL;
	}
	*ret = value;
	return 0;
}

/* Digits that no longer fit change nothing that could be seen, so they are read and dropped. */
static void fraction_parse(const char **s, uint64_t *ret, double *ret_scale)
{
	uint64_t value = 0;
	double scale = 1;

	for (; isdigit((unsigned char)**s); (*s)++) {
		if (value > (CEILING - 10) / 10)
			continue;
		value = value * 10 + (uint64_t)(**s - '0');
		scale *= 10;
	}
	*ret = value;
	*ret_scale = scale;
}

static const struct unit *unit_parse(const char **s)
{
	size_t n = strcspn(*s, ".0123456789");

	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (strlen(units[i].name) == n && memcmp(units[i].name, *s, n) == 0) {
			*s += n;
			return &units[i];
		}
	}
	return NULL;
}

/* One "number unit" of the text. */
static int term_parse(const char **s, uint64_t *ret)
{
	const char *start = *s;
	const struct unit *unit;
	uint64_t whole;
	uint64_t fraction = 0;
	double scale = 1;
	size_t digits;

	if (whole_parse(s, &whole) < 0)
		return -EINVAL;
	digits = (size_t)(*s - start);
	if (**s == '.') {
		const char *point = ++*s;

		fraction_parse(s, &fraction, &scale);
		digits += (size_t)(*s - point);
	}
	unit = digits > 0 ? unit_parse(s) : NULL;
	if (!unit || whole > CEILING / unit->ns)
		return -EINVAL;
	whole *= unit->ns;
	if (fraction > 0)
		whole += (uint64_t)((double)fraction * ((double)unit->ns / scale));
	if (whole > CEILING)
		return -EINVAL;
	*ret = whole;
	return 0;
}

int duration_parse(const char *s, int64_t *ret_ns)
{
	bool negative = *s == '-';
	uint64_t total = 0;
	uint64_t term;

	if (*s == '-' || *s == '+')
		s++;
	if (streq(s, "0")) {
		*ret_ns = 0;
		return 0;
	}
	do {
		if (term_parse(&s, &term) < 0)
			return -EINVAL;
		total += term;
		if (total > CEILING)
			return -EINVAL;
	} while (*s);
	if (!negative && total == CEILING)
		return -EINVAL;
	*ret_ns = (int64_t)(negative ? -total : total);
	return 0;
}

/* "1.5" for 1500000 in units of a million: no zeros at the end, no point without a fraction. */
static size_t decimal_print(uint64_t value, uint64_t unit, char *out, size_t size)
{
	size_t n = (size_t)snprintf(out, size, "%llu", (unsigned long long)(value / unit));
	uint64_t rest = value % unit;

	if (rest > 0)
		out[n++] = '.';
	while (rest > 0) {
		unit /= 10;
		out[n++] = (char)('0' + rest / unit);
		rest %= unit;
	}
	out[n] = '\0';
	return n;
}

static const struct unit *unit_below_second(uint64_t ns)
{
	static const struct unit small[] = {{"ns", 1}, {"\u00b5s", 1000}, {"ms", 1000000}};

	return &small[ns < 1000 ? 0 : ns < 1000000 ? 1 : 2];
}

size_t duration_print(int64_t ns, char out[static DURATION_TEXT_MAX])
{
	const uint64_t second = 1000000000;
	uint64_t value = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
	uint64_t minutes = value / (60 * second);
	char seconds[DURATION_TEXT_MAX];
	const char *sign = ns < 0 ? "-" : "";
	unsigned long long hours = minutes / 60;
	int n;

	if (value > 0 && value < second) {
		const struct unit *unit = unit_below_second(value);

		decimal_print(value, unit->ns, seconds, sizeof(seconds));
		n = snprintf(out, DURATION_TEXT_MAX, "%s%s%s", sign, seconds, unit->name);
		return (size_t)n;
	}
	decimal_print(value % (60 * second), second, seconds, sizeof(seconds));
	if (hours > 0)
		n = snprintf(out, DURATION_TEXT_MAX, "%s%lluh%um%ss", sign, hours,
			     (unsigned int)(minutes % 60), seconds);
	else if (minutes > 0)
		n = snprintf(out, DURATION_TEXT_MAX, "%s%um%ss", sign, (unsigned int)minutes,
			     seconds);
	else
		n = snprintf(out, DURATION_TEXT_MAX, "%s%ss", sign, seconds);
	return (size_t)n;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/rfc3339.h"

#include <errno.h>

/* Reads exactly n digits, then the byte `end` unless it is 0; returns what follows, or NULL. */
static const char *read_number(const char *s, int n, char end, int *ret)
{
	int value = 0;

	for (int i = 0; i < n; i++, s++) {
		if (*s < '0' || *s > '9')
			return NULL;
		value = value * 10 + (*s - '0');
	}
	if (end && *s++ != end)
		return NULL;
	*ret = value;
	return s;
}

/* Days since 1970-01-01 in the Gregorian calendar; years start in March, so that a leap day comes
 * last. */
static int64_t days_from_date(int year, int month, int day)
{
	int64_t y = year - (month <= 2);
	int64_t era = (y >= 0 ? y : y - 399) / 400;
	int64_t year_of_era = y - era * 400;
	int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
	int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;

	return era * 146097 + day_of_era - 719468;
}

static int days_in_month(int year, int month)
{
	static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

	return month == 2 && leap ? 29 : days[month - 1];
}

static const char *read_date(const char *s, int64_t *ret_days)
{
	int year, month, day;

	s = read_number(s, 4, '-', &year);
	s = s ? read_number(s, 2, '-', &month) : NULL;
	s = s ? read_number(s, 2, 0, &day) : NULL;
	if (!s || month < 1 || month > 12 || day < 1 || day > days_in_month(year, month))
		return NULL;
	*ret_days = days_from_date(year, month, day);
	return s;
}

static const char *read_clock(const char *s, int64_t *ret_seconds)
{
	int hour, minute, second;

	s = read_number(s, 2, ':', &hour);
	s = s ? read_number(s, 2, ':', &minute) : NULL;
	s = s ? read_number(s, 2, 0, &second) : NULL;
	if (!s || hour > 23 || minute > 59 || second > 59)
		return NULL;
	*ret_seconds = hour * 3600 + minute * 60 + second;
	return s;
}

/* ".5" is 500,000,000; digits behind the ninth are dropped. */
static const char *read_fraction(const char *s, int32_t *ret_nanos)
{
	int32_t nanos = 0, unit = 100000000;

	*ret_nanos = 0;
	if (*s != '.')
		return s;
	if (s[1] < '0' || s[1] > '9')
		return NULL;
	for (s++; *s >= '0' && *s <= '9'; s++, unit /= 10)
		nanos += (*s - '0') * unit;
	*ret_nanos = nanos;
	return s;
}

static const char *read_zone(const char *s, int64_t *ret_offset)
{
	int hours, minutes;
	int sign = *s == '-' ? -1 : 1;

	*ret_offset = 0;
	if (*s == 'Z')
		return s + 1;
	if (*s != '+' && *s != '-')
		return NULL;
	s = read_number(s + 1, 2, ':', &hours);
	s = s ? read_number(s, 2, 0, &minutes) : NULL;
	if (!s || hours > 23 || minutes > 59)
		return NULL;
	*ret_offset = sign * ((int64_t)hours * 3600 + (int64_t)minutes * 60);
	return s;
}

int rfc3339_parse(const char *s, int64_t *ret_seconds, int32_t *ret_nanos)
{
	int64_t days, seconds, offset;
	int32_t nanos;

	s = read_date(s, &days);
	if (!s || *s != 'T')
		return -EINVAL;
	s = read_clock(s + 1, &seconds);
	s = s ? read_fraction(s, &nanos) : NULL;
	s = s ? read_zone(s, &offset) : NULL;
	if (!s || *s)
		return -EINVAL;
	*ret_seconds = days * 86400 + seconds - offset;
	*ret_nanos = nanos;
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/output.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define WIDTH_MOST 100 /* longer lines are hard to read */

void output_parse(const char *text, enum output *ret, struct problems *problems)
{
	static const char *const names[] = {"human", "json", "yaml"};

	static_assert(ARRAY_SIZE(names) == OUTPUT_COUNT, "one name for each form");
	if (!word_parse(text, names, ret))
		problems_add(problems, "--output: \"%s\" is not human, json or yaml", text);
}

void output_protocol(const char *text, enum protocol *ret, struct problems *problems)
{
	bool given = text && *text;

	for (*ret = 0; given && *ret < PROTOCOL_COUNT; (*ret)++)
		if (streq(text, protocol_name(*ret)))
			return;
	*ret = PROTOCOL_COUNT;
	if (given)
		problems_add(problems, "--proto: \"%s\" is not tcp, udp or sctp", text);
}

void output_style(struct human_style *ret)
{
	const char *no_colour = getenv("NO_COLOR");
	const char *terminal = getenv("TERM");
	struct winsize size = {0};

	*ret = (struct human_style){0};
	if (!isatty(STDOUT_FILENO))
		return;
	ret->colour = !(no_colour && *no_colour) && terminal && !streq(terminal, "dumb");
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
		ret->width = MIN((size_t)size.ws_col, WIDTH_MOST);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/question.h"

#include "commands/output.h"

static void read_destination(const char *text, struct question *question, struct problems *problems)
{
	struct err err;

	if (!text)
		problems_add(problems, "which connection? Give ADDRESS:PORT, "
				       "service/NAMESPACE/NAME[:PORT] or :NODEPORT");
	else if (packet_destination_parse(text, &question->destination, &err) < 0)
		problems_add(problems, "%s", err.text);
}

void question_read(const struct options *options, struct question *ret, struct problems *problems)
{
	*ret = (struct question){0};
	read_destination(options->argument, ret, problems);
	output_protocol(options->proto, &ret->protocol, problems);
	if (streq(options->prefer_family, "ipv6"))
		ret->family = FAMILY_IPV6;
	else if (!streq(options->prefer_family, "ipv4"))
		problems_add(problems, "--ip-family: \"%s\" is not ipv4 or ipv6",
			     options->prefer_family);
}

void question_done(struct question *question)
{
	packet_destination_done(&question->destination);
}

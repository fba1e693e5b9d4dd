/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What explain and trace are asked about a connection, as far as both ask the same. */

#include "config/options.h"
#include "inspect/packet_destination.h"

struct question {
	struct packet_destination destination;
	enum protocol protocol; /* PROTOCOL_COUNT: not said */
	enum family family;     /* where the destination leaves a choice */
};

/* What is wrong goes to problems. *ret is good for question_done() in all cases. */
void question_read(const struct options *options, struct question *ret, struct problems *problems);
void question_done(struct question *question);
#define cleanup_question attr_cleanup(question_done)

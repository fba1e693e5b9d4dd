/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* -o human|json|yaml, and how human text should look on this terminal. */

#include "config/problems.h"
#include "inspect/printer.h"

enum output {
	OUTPUT_HUMAN = 0,
	OUTPUT_JSON,
	OUTPUT_YAML,
	OUTPUT_COUNT,
};

void output_parse(const char *text, enum output *ret, struct problems *problems);
/* --proto; PROTOCOL_COUNT when it is not given. */
void output_protocol(const char *text, enum protocol *ret, struct problems *problems);
/* Colours only on a terminal that has them, and not where NO_COLOR is set. */
void output_style(struct human_style *ret);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Are the rules that all others hang on in the kernel? Asked of the program iptables, rule by rule: the
 * jumps of the base chains, and one fixed rule of the chains that matter most. What it costs does not
 * grow with the number of checks, only with the tables, as every call of iptables does.
 */

#include "kernel/iptables_tool.h"
#include "plan/settings.h"

struct rules_check;

/* r: 1, all are there; 0, err names one that is not; negative, it could not be found out. */
typedef void rules_check_fn(void *arg, int r, const struct err *err);

/* All is borrowed. */
struct rules_check *rules_check_new(struct iptables_tool *tool, const struct settings *settings,
				    rules_check_fn *done, void *arg);
struct rules_check *rules_check_free(struct rules_check *check); /* accepts NULL, returns NULL */

/* Ends with done(), from the loop. Nothing happens while one runs. */
void rules_check_start(struct rules_check *check);

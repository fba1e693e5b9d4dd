/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Writes a transaction as iptables-save (1.8.9, nf_tables) shows it once it is applied to an empty
 * host: user chains sorted by name, matches in the tool's order and spelling, counters zero.
 */

#include "base/text.h"
#include "xtables/txn.h"

struct save_writer;

struct save_writer *save_writer_new(enum family family);
struct save_writer *save_writer_free(struct save_writer *writer); /* accepts NULL, returns NULL */
struct txn *save_writer_txn(struct save_writer *writer);
/* A rule put before all others of a base chain: iptables -I. */
void save_writer_prepend(struct save_writer *writer, const struct rule *rule);
/* Without the two comment lines with the time that iptables-save adds. */
void save_writer_finish(struct save_writer *writer, struct text *ret);

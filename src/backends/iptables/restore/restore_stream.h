/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The text of a full sync for iptables-restore, piece by piece: the same bytes that
 * restore_writer.h would give as a whole, of which a large cluster has tens of megabytes.
 *
 * From the ruleset's begin to its end, and the input's strings as long. What was said is forgotten,
 * so the services are gone through for each table and for chains and rules apart.
 */

#include "backends/iptables/ruleset.h"
#include "base/text.h"

#define RESTORE_STREAM_PIECE (256UL * 1024) /* about the size of a piece */

struct restore_stream;

struct restore_stream *restore_stream_new(struct ruleset *ruleset,
					  const struct ruleset_input *input);
struct restore_stream *restore_stream_free(struct restore_stream *stream); /* accepts NULL */
/* Appends the next piece to *ret; false, and nothing appended: that was all. */
bool restore_stream_more(struct restore_stream *stream, struct text *ret);

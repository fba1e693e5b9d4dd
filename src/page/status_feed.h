/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The live part of the page: server-sent events (text/event-stream) to the browsers that have it open.
 *
 *	hello       once: node, mode, versions, and whether rates will come
 *	syncs       the last syncs, then each new one
 *	troubles    what went wrong, likewise
 *	services    all Services, in pieces, then those that changed
 *	loaded      once: that was all of them
 *	gauges      once a second
 *	traffic     every other second, where traffic is counted
 *
 * It must not cost the daemon anything worth a thought. So: with no page open there is no timer and no list of
 * Services. What changes is noted after its sync and told at most four times a second. All Services are told in pieces
 * of STATUS_PIECE, with pauses, and only to a reader that has taken most of what it was sent before. Nothing
 * is kept for one that is slow but its place in the list (service_log.h), and one that takes nothing for
 * STATUS_STUCK_NS is let go. There are at most STATUS_READERS.
 */

#include "base/clock.h"
#include "page/status_history.h"
#include "page/status_source.h"
#include "serving/http_server.h"

#define STATUS_READERS     16
#define STATUS_PIECE       100                     /* Services at once: some 0.6 ms */
#define STATUS_PIECE_BYTES (64 * 1024)             /* but no more than this and one Service */
#define STATUS_PAUSE_NS    (10 * CLOCK_NS_PER_MS)  /* between pieces */
#define STATUS_GATHER_NS   (250 * CLOCK_NS_PER_MS) /* after a change */
#define STATUS_GAUGES_NS   CLOCK_NS_PER_SECOND
#define STATUS_LAG_MAX     (128 * 1024) /* bytes on their way, beyond which a reader waits */
#define STATUS_STUCK_NS    (60 * CLOCK_NS_PER_SECOND)

struct backend_result;
struct event_base;
struct status_feed;

struct status_feed *status_feed_new(struct event_base *loop, const struct status_source *source);
/* Accepts NULL, returns NULL. The servers whose streams it has are closed before. */
struct status_feed *status_feed_free(struct status_feed *feed);

/* Begins a stream as the answer; false: there are enough, and nothing was answered. */
bool status_feed_open(struct status_feed *feed, struct http_exchange *exchange);
size_t status_feed_readers(const struct status_feed *feed);

/* What happens, for all that is shown; costs next to nothing while no page is open. */
void status_feed_synced(struct status_feed *feed, enum family family,
			const struct backend_result *result);
void status_feed_repaired(struct status_feed *feed, const char *words);
void status_feed_trouble(struct status_feed *feed, const char *words);

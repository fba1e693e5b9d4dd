/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The status page, beside the metrics:
 *
 *	/                                  the page, one file
 *	/status/icon.svg                   its icon
 *	/status/events                     what it follows, see status_feed.h
 *	/status/explain?dest=&from=&proto= the way of a packet, see status_way.h
 *	/status/chart.svg?service=         a Service's picture, or without a name the node's if it has few
 *
 * It only reads: GET and HEAD are answered, everything else with 405. Every answer forbids a browser to load or
 * run anything but what is in the page itself, by hashes of its script and its style.
 *
 * A client that asks for explanations and pictures without a pause gets a tenth of the daemon's time, then 503.
 *
 * The caller has looked at the Host header before (http_request_is_for()).
 */

#include "page/status_feed.h"

/*
 * Explaining and drawing take milliseconds of the daemon's only thread. So that no client can keep syncs waiting by asking
 * without a pause, they have one part in STATUS_WORK_SHARE of the time, which is saved up for those who click around;
 * but no more than health checks can wait for.
 */
#define STATUS_WORK_SHARE    10
#define STATUS_WORK_SAVED_NS (250 * CLOCK_NS_PER_MS)

struct status_page;

/* source is borrowed. */
struct status_page *status_page_new(struct event_base *loop, const struct status_source *source);
/* Accepts NULL, returns NULL. The servers that it answers for are closed before. */
struct status_page *status_page_free(struct status_page *page);

/* Answers if the path is one of its own; else returns false. */
bool status_page_answer(struct status_page *page, struct http_exchange *exchange,
			const struct http_request *request);
/* To be told what happens. */
struct status_feed *status_page_feed(const struct status_page *page);

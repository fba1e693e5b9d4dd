/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Measures for `portolan top`: rounds through the connection tracking table, one in each interval, and
 * flows that end meanwhile (service_traffic.h). Nothing is changed, not even whether flows are counted.
 *
 * A round that takes long makes the next one wait: at most a quarter of the time of one core is spent.
 */

#include "conntrack/service_traffic.h"

struct event_base;
struct top_meter;

/* All is borrowed. */
struct top_meter_config {
	struct event_base *loop;
	int64_t interval_ns;
	/* Services, if they changed since the last round, which begins now; NULL: they did not */
	const struct model *(*changed)(void *arg);
	/* A round is over; error NULL: it went well */
	void (*round)(void *arg, const struct service_traffic *traffic, const char *error);
	void *arg;
};

/* The first round begins with the loop's next turn. */
struct top_meter *top_meter_new(const struct top_meter_config *config);
struct top_meter *top_meter_free(struct top_meter *meter); /* accepts NULL, returns NULL */
/* Why short flows may be missed, in words; "": they are not. */
const char *top_meter_note(const struct top_meter *meter);
/* Does the kernel count packets and bytes of new flows? */
bool top_meter_accounting(void);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Elements that several service ports may ask for: cluster IPs and local endpoints. Each is counted,
 * and is there as long as a service port asks for it.
 *
 * Local endpoints that may reach themselves linger when no port asks for them any more, until two rounds of
 * shared_age() have passed. A packet asks twice: first for an endpoint, then, on its way out, whether
 * that is the sender itself. One that was led to an endpoint just before it went must still get the
 * second answer, however long it was held up in between; and so must clients that affinity
 * remembers with an endpoint until they are forgotten. Else their connection hears nothing. It does
 * no harm: nothing but a translated packet from an address to itself meets such an element.
 */

#include "backends/nftables/element.h"
#include "base/map.h"

struct shared_element {
	struct element element;
	size_t count;
	bool applied; /* the kernel has it */
	bool touched;
	bool lingers;
	bool aged; /* lingered when the last round came */
	struct shared_element *next_touched;
	char key[];
};

struct shared {
	struct map all;
	struct shared_element *touched; /* counts that changed since the last settling */
	size_t n_lingering;
};

void shared_done(struct shared *shared);
/* No port asks for anything any more, but what the kernel has may linger. */
void shared_restart(struct shared *shared);
void shared_count(struct shared *shared, const struct element *element, bool up);
/* What is wanted is applied. */
void shared_settle(struct shared *shared);
/* What has to go and what has to come. */
void shared_compare(const struct shared *shared, element_fn *remove, element_fn *add, void *arg);
void shared_each(const struct shared *shared, element_fn *fn, void *arg);
void shared_each_unasked(const struct shared *shared, element_fn *fn, void *arg);
/* A round, between syncs: calls remove() for each that is to go, and forgets it. */
void shared_age(struct shared *shared, element_fn *remove, void *arg);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Elements that several service ports may ask for: cluster IPs and local endpoints. Each is counted,
 * and is there as long as somebody asks for it.
 */

#include "backends/nftables/element.h"
#include "base/map.h"

struct shared_element {
	struct element element;
	size_t count;
	bool applied; /* the kernel has it */
	bool touched;
	struct shared_element *next_touched;
	char key[];
};

struct shared {
	struct map all;
	struct shared_element *touched; /* counts that changed since the last settling */
};

void shared_done(struct shared *shared);
void shared_count(struct shared *shared, const struct element *element, bool up);
/* What is wanted is applied. */
void shared_settle(struct shared *shared);
/* What has to go and what has to come. */
void shared_compare(const struct shared *shared, element_fn *remove, element_fn *add, void *arg);
void shared_each(const struct shared *shared, element_fn *fn, void *arg);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What --sync-guard holds back at the moment: as a metric, and in words for /healthz and the status page. */

#include "base/util.h"

struct proxy_metrics;
struct source_held;

enum sync_held_kind {
	SYNC_HELD_SERVICES = 0,
	SYNC_HELD_SLICES,
	SYNC_HELD_COUNT,
};

struct sync_held {
	struct proxy_metrics *metrics; /* borrowed */
	char *texts[SYNC_HELD_COUNT];  /* NULL: nothing is held back */
};

void sync_held_init(struct sync_held *held, struct proxy_metrics *metrics);
void sync_held_done(struct sync_held *held);
void sync_held_told(struct sync_held *held, const struct source_held *news);
/* For the caller to free; NULL: nothing is held back. */
char *sync_held_words(const struct sync_held *held);

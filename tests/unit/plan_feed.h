/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A plan_store and its one reader, as daemon/family_sync.c has them: what a backend is told to sync.
 *
 *	struct plan_feed feed;
 *	plan_feed_open(&feed, &settings, model);
 *	backend.sync(..., plan_feed_next(&feed));
 *	plan_feed_end(&feed, result.error == 0);
 *	plan_feed_close(&feed);
 */

#include "plan/plan_store.h"

struct plan_feed {
	struct plan_store *store;
	struct plan_reader *reader;
	bool full;                      /* the next delta is */
	struct model_changes changes;   /* of the last one */
	const struct plan_delta *delta; /* which that is, until it has ended */
};

attr_unused static void plan_feed_open(struct plan_feed *feed, const struct settings *settings,
				       struct model *model)
{
	struct plan_store *store = plan_store_new(settings, model, 1);

	*feed = (struct plan_feed){store, plan_reader_new(store), .full = true};
}

attr_unused static void plan_feed_close(struct plan_feed *feed)
{
	model_changes_done(&feed->changes);
	plan_reader_free(feed->reader);
	plan_store_free(feed->store);
}

attr_unused static const struct plan_delta *plan_feed_next(struct plan_feed *feed)
{
	model_changes_done(&feed->changes);
	plan_store_update(feed->store, &feed->changes);
	return feed->delta = plan_reader_take(feed->reader, feed->full);
}

attr_unused static void plan_feed_end(struct plan_feed *feed, bool good)
{
	if (good)
		plan_reader_commit(feed->reader);
	else
		plan_reader_fail(feed->reader);
	feed->full = !good;
}

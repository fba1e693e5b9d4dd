/* SPDX-License-Identifier: Apache-2.0 */

#include "page/status_history.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/doc.h"

void status_history_done(struct status_history *history)
{
	for (size_t i = 0; i < STATUS_TROUBLES; i++)
		free(history->troubles[i].text);
	for (size_t i = 0; i < STATUS_RECENT; i++)
		free(history->recent[i].key);
	*history = (struct status_history){0};
}

void status_history_sync(struct status_history *history, const struct status_sync *sync)
{
	history->syncs[history->n_syncs++ % STATUS_SYNCS] = *sync;
}

/* The one with these words, else the one that is to make room. */
static struct status_trouble *find_trouble(struct status_history *history, const char *text)
{
	struct status_trouble *oldest = &history->troubles[0];

	for (size_t i = 0; i < STATUS_TROUBLES; i++) {
		struct status_trouble *trouble = &history->troubles[i];

		if (trouble->text && streq(trouble->text, text))
			return trouble;
		if (trouble->number < oldest->number)
			oldest = trouble;
	}
	free(oldest->text);
	*oldest = (struct status_trouble){.text = xstrdup(text), .id = history->n_troubles + 1};
	return oldest;
}

void status_history_trouble(struct status_history *history, int64_t at_s, const char *text)
{
	struct status_trouble *trouble = find_trouble(history, text);

	trouble->number = ++history->n_troubles;
	trouble->at_s = at_s;
	trouble->times++;
}

void status_history_changed(struct status_history *history, int64_t at_s, const char *key)
{
	struct status_recent *recent = &history->recent[history->n_recent++ % STATUS_RECENT];

	free(recent->key);
	*recent = (struct status_recent){.key = xstrdup(key), .at_s = at_s};
}

void status_history_replay(const struct status_history *history, struct service_log *log,
			   bool (*is_there)(void *arg, const char *key), void *arg)
{
	uint64_t from = history->n_recent > STATUS_RECENT ? history->n_recent - STATUS_RECENT : 0;

	for (uint64_t i = from; i < history->n_recent; i++) {
		const struct status_recent *recent = &history->recent[i % STATUS_RECENT];

		if (is_there(arg, recent->key))
			service_log_touch(log, recent->key, false, recent->at_s);
	}
}

bool status_history_print_syncs(const struct status_history *history, uint64_t *cursor,
				struct text *ret)
{
	uint64_t kept = history->n_syncs > STATUS_SYNCS ? history->n_syncs - STATUS_SYNCS : 0;
	uint64_t from = MAX(*cursor, kept);

	if (from >= history->n_syncs)
		return false;
	for (uint64_t i = from; i < history->n_syncs; i++) {
		const struct status_sync *sync = &history->syncs[i % STATUS_SYNCS];

		text_printf(ret,
			    "%s{\"at\":%" PRId64 ",\"ms\":%.3f,\"services\":%zu,\"family\":\"%s\","
			    "\"full\":%s,\"good\":%s}",
			    i > from ? "," : "[", sync->at_s, (double)sync->duration_ns / 1e6,
			    sync->services, family_name(sync->family),
			    sync->full ? "true" : "false", sync->good ? "true" : "false");
	}
	text_str(ret, "]");
	*cursor = history->n_syncs;
	return true;
}

bool status_history_print_troubles(const struct status_history *history, uint64_t *cursor,
				   struct text *ret)
{
	const char *before = "[";

	if (*cursor >= history->n_troubles)
		return false;
	for (size_t i = 0; i < STATUS_TROUBLES; i++) {
		const struct status_trouble *trouble = &history->troubles[i];

		if (!trouble->text || trouble->number <= *cursor)
			continue;
		text_printf(ret, "%s{\"id\":%" PRIu64 ",\"at\":%" PRId64 ",\"times\":%zu,\"text\":",
			    before, trouble->id, trouble->at_s, trouble->times);
		doc_quote(ret, trouble->text);
		text_str(ret, "}");
		before = ",";
	}
	text_str(ret, "]");
	*cursor = history->n_troubles;
	return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/other_modes.h"

#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "kernel/forked_task.h"

/* The kubelet or systemd, which ends us, waits longer than that. */
#define GRACE_NS (5 * CLOCK_NS_PER_SECOND)

struct other_modes {
	const struct backend_ops *mine;
	unsigned int families;
	struct other_modes_leftovers leftovers;
	struct forked_task *task;
};

void other_modes_look(const struct backend_ops *mine, struct other_modes_leftovers *ret)
{
	*ret = (struct other_modes_leftovers){0};
	for (size_t i = 0; backend_modes[i]; i++) {
		const struct backend_ops *mode = backend_modes[i];

		assert(i < BACKEND_MODES_MAX);
		if (mode == mine || !mode->leftovers)
			continue;
		for (enum family family = 0; family < FAMILY_COUNT; family++) {
			unsigned int needs = 0;

			ret->v[i][family] = mode->leftovers(family, &needs);
			ret->needs |= needs;
		}
	}
}

static void report(enum family family, const char *mode, int r, const struct err *err)
{
	if (r < 0)
		log_error("Cannot remove what another mode left, going on beside it",
			  KV("ipFamily", LOG_STR(family_name(family))), KV("mode", LOG_STR(mode)),
			  KV("err", LOG_STR(err->text)));
	else if (r > 0)
		log_info("Removed what another mode left",
			 KV("ipFamily", LOG_STR(family_name(family))), KV("mode", LOG_STR(mode)));
}

static void clean_mode(const struct backend_ops *mode, enum family family, unsigned int left)
{
	struct err err;

	if (mode->leftovers && !left)
		return;
	report(family, mode->name, mode->cleanup(NULL, family, left, &err), &err);
}

static int clean(void *arg)
{
	const struct other_modes *other = arg;

	for (enum family family = 0; family < FAMILY_COUNT; family++)
		for (size_t i = 0; other->families & 1u << family && backend_modes[i]; i++)
			if (backend_modes[i] != other->mine)
				clean_mode(backend_modes[i], family, other->leftovers.v[i][family]);
	return 0;
}

struct other_modes *other_modes_clean(struct event_base *loop, const struct backend_ops *mine,
				      unsigned int families,
				      struct other_modes_leftovers *leftovers)
{
	struct other_modes *other = xcalloc(1, sizeof(*other));
	const struct forked_task_spec spec = {.work = clean, .arg = other, .grace_ns = GRACE_NS};
	struct err err;

	other->mine = mine;
	other->families = families;
	other->leftovers = *leftovers;
	*leftovers = (struct other_modes_leftovers){0};
	if (forked_task_start(loop, &spec, &other->task, &err) == 0)
		return other;
	log_error("Cannot remove what another mode left, going on beside it",
		  KV("err", LOG_STR(err.text)));
	return other_modes_free(other);
}

struct other_modes *other_modes_free(struct other_modes *other)
{
	if (!other)
		return NULL;
	forked_task_free(other->task);
	free(other);
	return NULL;
}

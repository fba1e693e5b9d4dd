/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A mode that writes nothing and counts syncs: what a mode is, in one file, and its row in the table of modes.
 * This table takes the place of backends/modes.c's, which the linker then leaves out.
 */

#include "null_backend.h"

#include <errno.h>
#include <stdlib.h>

#include "base/text.h"
#include "inspect/inspect_ops.h"
#include "inspect/walk.h"

struct backend {
	const struct backend_events *events;
};

struct null_backend_counts null_backend_counts;

static int usable(const struct backend_host *host attr_unused, enum family family, struct err *err)
{
	if (family == FAMILY_IPV4)
		return 1;
	err_set(err, -EOPNOTSUPP, "null counts IPv4 only");
	return 0;
}

static int null_open(struct event_base *loop attr_unused,
		     const struct backend_host *host attr_unused,
		     const struct settings *settings attr_unused,
		     const struct backend_events *events, struct backend **ret,
		     struct err *err attr_unused)
{
	*ret = xcalloc(1, sizeof(**ret));
	**ret = (struct backend){events};
	return 0;
}

static void null_close(struct backend *backend)
{
	free(backend);
}

static void null_sync(struct backend *backend, const struct plan_delta *delta)
{
	const struct backend_result result = {.full = delta->full};

	null_backend_counts.syncs++;
	null_backend_counts.services += delta->n_changes;
	backend->events->synced(backend->events->arg, &result);
	if (null_backend_counts.synced)
		null_backend_counts.synced();
}

static bool syncing(const struct backend *backend attr_unused)
{
	return false;
}

static void ignore(struct backend *backend attr_unused)
{
}

static bool audit(struct backend *backend attr_unused)
{
	return false;
}

static void check(struct backend *backend)
{
	struct err err = {0};

	backend->events->checked(backend->events->arg, 1, &err);
}

static int cleanup(const struct backend_host *host attr_unused, enum family family attr_unused,
		   unsigned int leftovers attr_unused, struct err *err attr_unused)
{
	null_backend_counts.cleanups++;
	return 0;
}

static void render(const struct backend_render *input, struct text *ret)
{
	text_printf(ret, "# nothing for %s\n", family_name(input->settings->family));
}

/* -- questions about rules that there are none of */

static void *rules_new(const struct explain_input *input attr_unused,
		       const struct plan_delta *delta attr_unused)
{
	return NULL;
}

static void rules_free(void *rules attr_unused)
{
}

static enum walk_end meet_nothing(void *rules attr_unused, struct walk *walk attr_unused,
				  bool nat attr_unused)
{
	return WALK_ON;
}

static struct packet_path *walk(void *rules, const struct packet *packet, const struct host *host)
{
	static const struct walk_ops ops = {meet_nothing};

	return walk_packet(&ops, rules, packet, host);
}

static int diff(struct diff *diff attr_unused, const struct inspect_question *question attr_unused,
		struct err *err attr_unused)
{
	return 0;
}

static bool is_ours(void *rules attr_unused, const struct step *step attr_unused)
{
	return false;
}

static const struct inspect_ops inspect_null = {
	.rules_new = rules_new,
	.rules_free = rules_free,
	.walk = walk,
	.diff = diff,
	.is_ours = is_ours,
};

static const char *const formats[] = {"nothing", NULL};

const struct backend_ops backend_null = {
	.name = "null",
	.formats = formats,
	.usable = usable,
	.open = null_open,
	.close = null_close,
	.sync = null_sync,
	.syncing = syncing,
	.need_full_sync = ignore,
	.watch = ignore,
	.audit = audit,
	.check = check,
	.cleanup = cleanup,
	.render = render,
	.inspect = &inspect_null,
};

const struct backend_ops *const backend_modes[] = {
	&backend_iptables,
	&backend_nftables,
	&backend_null,
	NULL,
};

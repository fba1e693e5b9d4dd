/* SPDX-License-Identifier: Apache-2.0 */
#include "serving/connection_budget.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"

#define IDLE_NS  CLOCK_NS_PER_SECOND
#define QUIET_NS (60 * CLOCK_NS_PER_SECOND) /* without a failure: the next one is told again */

TAILQ_HEAD(place_list, connection_place);

/* What a kind of server is sure of is at most one part in `share` of all places. */
static const struct {
	const char *name;
	size_t sure, share;
	size_t most;
} kinds[] = {
	[CONNECTION_HEALTH] = {"health", 64, 4, 256},
	[CONNECTION_METRICS] = {"metrics", 32, 8, 256},
	[CONNECTION_SERVICE] = {"service", 64, 8, 1024},
};
static_assert(ARRAY_SIZE(kinds) == CONNECTION_KIND_COUNT, "a row for each kind");

struct connection_budget {
	struct connection_budget_config config;
	size_t places; /* for listeners and connections */
	size_t listeners;
	int64_t failed_ns; /* when accept() last failed; 0: never */
	struct {
		size_t sure;
		size_t used;
		uint64_t refused;
		struct place_list places; /* in the order of their coming */
	} kinds[CONNECTION_KIND_COUNT];
};

const char *connection_kind_name(enum connection_kind kind)
{
	return kinds[kind].name;
}

struct connection_budget *connection_budget_new(const struct connection_budget_config *config)
{
	struct connection_budget *budget = xcalloc(1, sizeof(*budget));

	budget->config = *config;
	budget->places = config->descriptors - MIN(BUDGET_PROGRAM, config->descriptors / 2);
	for (size_t kind = 0; kind < CONNECTION_KIND_COUNT; kind++) {
		budget->kinds[kind].sure =
			MIN(kinds[kind].sure, budget->places / kinds[kind].share);
		TAILQ_INIT(&budget->kinds[kind].places);
	}
	return budget;
}

struct connection_budget *connection_budget_free(struct connection_budget *budget)
{
	free(budget);
	return NULL;
}

/* Is one place free that no kind is sure of? kind: for which one, whose own places count; COUNT: for none. */
static bool is_free(const struct connection_budget *budget, enum connection_kind kind)
{
	size_t taken = budget->listeners;

	for (enum connection_kind other = 0; other < CONNECTION_KIND_COUNT; other++) {
		size_t used = budget->kinds[other].used;

		taken += other == kind ? used : MAX(used, budget->kinds[other].sure);
	}
	return taken < budget->places;
}

/* -- listeners */

int connection_budget_listen(struct connection_budget *budget, enum connection_kind kind,
			     struct err *err)
{
	if (kind == CONNECTION_SERVICE && !is_free(budget, CONNECTION_KIND_COUNT))
		return err_set(
			err, -EMFILE,
			"no file descriptor is left for it, %zu ports are open: raise the limit "
			"of %zu open files (LimitNOFILE=, ulimit -n)",
			budget->listeners, budget->config.descriptors);
	budget->listeners++;
	return 0;
}

void connection_budget_unlisten(struct connection_budget *budget)
{
	budget->listeners--;
}

void connection_budget_cannot_accept(struct connection_budget *budget, int code)
{
	int64_t now = clock_now_ns();
	struct err err;

	if (budget->config.cannot_accept &&
	    (!budget->failed_ns || now - budget->failed_ns > QUIET_NS)) {
		err_sys(&err, code, "accept");
		budget->config.cannot_accept(budget->config.arg, &err);
	}
	budget->failed_ns = now;
}

/* -- connections */

bool connection_budget_has_room(const struct connection_budget *budget, enum connection_kind kind)
{
	return budget->kinds[kind].used < kinds[kind].most && is_free(budget, kind);
}

/* A thousand places at most are looked at, for a connection that costs several system calls. */
struct connection_place *connection_budget_victim(const struct connection_budget *budget,
						  enum connection_kind kind,
						  const struct http_server *server)
{
	struct connection_place *oldest = NULL, *idle = NULL, *place;

	TAILQ_FOREACH(place, &budget->kinds[kind].places, list)
	{
		if (place->state == PLACE_STREAMING || (server && place->server != server))
			continue;
		if (!oldest)
			oldest = place;
		if (place->state == PLACE_WAITING && (!idle || place->since_ns < idle->since_ns))
			idle = place;
	}
	return idle && clock_now_ns() - idle->since_ns >= IDLE_NS ? idle : oldest;
}

void connection_budget_take(struct connection_budget *budget, struct connection_place *place)
{
	budget->kinds[place->kind].used++;
	TAILQ_INSERT_TAIL(&budget->kinds[place->kind].places, place, list);
}

void connection_budget_give(struct connection_budget *budget, struct connection_place *place)
{
	budget->kinds[place->kind].used--;
	TAILQ_REMOVE(&budget->kinds[place->kind].places, place, list);
}

void connection_budget_count_refused(struct connection_budget *budget, enum connection_kind kind)
{
	budget->kinds[kind].refused++;
}

uint64_t connection_budget_refused(const struct connection_budget *budget,
				   enum connection_kind kind)
{
	return budget->kinds[kind].refused;
}

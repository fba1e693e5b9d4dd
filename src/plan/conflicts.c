/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/conflicts.h"

#include <assert.h>
#include <stdlib.h>

/*
 * A Service may name an address more than once, in different ways, and only some of them are a conflict. So a look
 * first notes what it finds, and then forgets what it did not find again.
 */

struct told {
	enum conflict_kind kind;
	uint64_t look; /* the last that found it */
	char key[];    /* "SERVICE DESTINATION" */
};

const char *conflict_kind_name(enum conflict_kind kind)
{
	static const char *const names[] = {
		[CONFLICT_DESTINATION] = "destination",
		[CONFLICT_CLUSTER_IP] = "cluster_ip",
		[CONFLICT_NODE_ADDRESS] = "node_address",
	};

	static_assert(ARRAY_SIZE(names) == CONFLICT_KIND_COUNT, "a name for each kind");
	return names[kind];
}

void conflicts_done(struct conflicts *conflicts)
{
	map_free_values(&conflicts->told);
	map_free_values(&conflicts->before);
	*conflicts = (struct conflicts){0};
}

/* -- one Service and one destination */

static void forget(struct conflicts *conflicts, const char *key)
{
	struct told *told = map_remove(&conflicts->told, key);

	if (told)
		conflicts->counts[told->kind]--;
	free(told);
}

/* Notes that it has been told of this kind; true: it has to be. */
static bool remember(struct conflicts *conflicts, const char *key, enum conflict_kind kind)
{
	struct told *before = map_get(&conflicts->told, key), *told;
	bool known = before && before->kind == kind;

	if (known) {
		before->look = conflicts->look;
		return false;
	}
	forget(conflicts, key);
	before = map_remove(&conflicts->before, key);
	known = before && before->kind == kind;
	free(before);
	told = map_ensure(&conflicts->told, key, sizeof(*told), offsetof(struct told, key));
	told->kind = kind;
	told->look = conflicts->look;
	conflicts->counts[kind]++;
	return !known;
}

struct look {
	struct conflicts *conflicts;
	const struct conflicts_view *view;
	const struct service *subject;
	/* of the destination in hand */
	const struct destination *destination;
	const struct service *owner;
	bool owner_external;
};

/* CONFLICT_KIND_COUNT: none. An address that is a cluster IP is told once, not for each port. */
static enum conflict_kind kind_of(const struct look *look, const struct service *service,
				  bool external, bool balancer)
{
	const struct destination *destination = look->destination;
	bool stolen = service != look->owner && external && !look->owner_external;

	if (!destination->whole)
		return service != look->owner && !stolen ? CONFLICT_DESTINATION
							 : CONFLICT_KIND_COUNT;
	if (stolen)
		return CONFLICT_CLUSTER_IP;
	if (external && !balancer &&
	    addr_among(look->view->node_addresses, look->view->n_node_addresses,
		       &destination->addr))
		return CONFLICT_NODE_ADDRESS;
	return CONFLICT_KIND_COUNT;
}

static char *key_of(const struct look *look, const struct service *service)
{
	char text[DESTINATION_TEXT_MAX];

	destination_print(look->destination, text);
	return xasprintf("%s %s", service->key, text);
}

static void note(const struct look *look, const struct service *service, enum conflict_kind kind)
{
	cleanup_free char *key = NULL;

	if (kind == CONFLICT_KIND_COUNT)
		return;
	key = key_of(look, service);
	if (remember(look->conflicts, key, kind) && look->view->fn)
		look->view->fn(
			look->view->arg,
			&(struct conflict){
				.kind = kind,
				.destination = key + strlen(service->key) + 1,
				.service = service->key,
				.owner = kind == CONFLICT_NODE_ADDRESS ? NULL : look->owner->key,
			});
}

static void forget_unless_found(const struct look *look, const struct service *service)
{
	cleanup_free char *key = NULL;
	const struct told *told;

	if (look->conflicts->told.count == 0)
		return;
	key = key_of(look, service);
	told = map_get(&look->conflicts->told, key);
	if (told && told->look != look->conflicts->look)
		forget(look->conflicts, key);
}

static void note_claim(void *arg, const struct service *service, bool external, bool balancer)
{
	const struct look *look = arg;

	note(look, service, kind_of(look, service, external, balancer));
}

static void forget_claim(void *arg, const struct service *service, bool external attr_unused,
			 bool balancer attr_unused)
{
	forget_unless_found(arg, service);
}

static void begin_destination(struct look *look, const struct destination *destination)
{
	look->destination = destination;
	look->owner = address_owners_of(look->view->owners, destination, &look->owner_external);
}

static void look_at_own(void *arg, const struct destination *destination)
{
	struct look *look = arg;

	begin_destination(look, destination);
	note_claim(look, look->subject, destination->external, destination->balancer);
}

/* -- those that changed */

static void forget_own(void *arg, const struct destination *destination)
{
	struct look *look = arg;

	look->destination = destination;
	forget_unless_found(look, look->subject);
}

static void look_at_plan(struct look *look, const struct service_plan *plan, destination_fn *fn)
{
	if (!plan)
		return;
	look->subject = plan->service;
	destination_each(plan, fn, look);
	destination_each_address(plan, fn, look);
}

void conflicts_look(struct conflicts *conflicts, const struct conflicts_view *view,
		    const struct service_plan *old, const struct service_plan *new)
{
	struct look look = {.conflicts = conflicts, .view = view};

	conflicts->look++;
	look_at_plan(&look, new, look_at_own);
	look_at_plan(&look, old, forget_own);
}

static void look_at_moved(void *arg, const struct destination *destination)
{
	struct look *look = arg;

	begin_destination(look, destination);
	look->conflicts->look++;
	address_owners_each(look->view->owners, destination, note_claim, look);
	address_owners_each(look->view->owners, destination, forget_claim, look);
}

void conflicts_look_moved(struct conflicts *conflicts, const struct conflicts_view *view)
{
	struct look look = {.conflicts = conflicts, .view = view};

	address_owners_each_moved(view->owners, look_at_moved, &look);
}

/* -- all Services */

void conflicts_begin_all(struct conflicts *conflicts)
{
	map_free_values(&conflicts->before);
	conflicts->before = conflicts->told;
	conflicts->told = (struct map){0};
	memset(conflicts->counts, 0, sizeof(conflicts->counts));
}

void conflicts_look_own(struct conflicts *conflicts, const struct conflicts_view *view,
			const struct service_plan *plan)
{
	struct look look = {.conflicts = conflicts, .view = view};

	look_at_plan(&look, plan, look_at_own);
}

void conflicts_end_all(struct conflicts *conflicts)
{
	map_free_values(&conflicts->before);
}

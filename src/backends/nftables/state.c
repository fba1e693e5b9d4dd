/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/nftables/state.h"

#include <assert.h>
#include <stdlib.h>

#include "backends/nftables/slots.h"

/*
 * Sizes up to this have their chains from the start: a rule that is bound to a map makes the kernel
 * walk all of the map, so it is best done while the maps are empty. Larger ones come when they are
 * needed first. Chains stay until the next full sync.
 */
#define PICKS_AT_START 16

/* An element that several service ports ask for. */
struct shared {
	struct element element;
	size_t count;
	bool applied;
	struct shared *next_touched;
	bool touched;
	char key[];
};

struct state {
	const struct settings *settings;
	struct map services; /* struct served */
	struct served *dirty;
	struct claims claims;
	struct map shared;
	struct shared *touched;
	struct affinity_ids ids;
	size_t n_affinity; /* service ports that have it */
	size_t n_no_local_internal, n_no_local_external;
	bool affinity_written;
	bool lost_members;
	bool full;
	struct map waiting; /* "SERVICE DESTINATION": told to wait */

	struct chain *chains; /* with a number, that the kernel has */
	size_t n_chains, chains_capacity;
	struct element_list node_port_ips, next_node_port_ips;
	struct element_list removals, additions; /* of a sync that is not full */
};

struct state *state_new(const struct settings *settings)
{
	struct state *state = xcalloc(1, sizeof(*state));

	state->settings = settings;
	affinity_ids_init(&state->ids);
	return state;
}

static void free_served(struct served *service)
{
	if (service->next != service->applied)
		service_plan_free(service->next);
	service_plan_free(service->applied);
	free(service->key);
	free(service);
}

static void free_values(struct map *map)
{
	void *value;
	size_t at = 0;

	while ((value = map_next(map, &at)))
		free(value);
	map_done(map);
	*map = (struct map){0};
}

static void forget_services(struct state *state)
{
	struct served *service;
	size_t at = 0;

	while ((service = map_next(&state->services, &at)))
		free_served(service);
	map_done(&state->services);
	state->services = (struct map){0};
	claims_done(&state->claims);
	free_values(&state->shared);
	state->dirty = NULL;
	state->touched = NULL;
	state->n_affinity = state->n_no_local_internal = state->n_no_local_external = 0;
}

struct state *state_free(struct state *state)
{
	if (!state)
		return NULL;
	forget_services(state);
	affinity_ids_done(&state->ids);
	free_values(&state->waiting);
	element_list_done(&state->node_port_ips);
	element_list_done(&state->next_node_port_ips);
	element_list_done(&state->removals);
	element_list_done(&state->additions);
	free(state->chains);
	free(state);
	return NULL;
}

struct affinity_ids *state_affinity_ids(struct state *state)
{
	return &state->ids;
}

static uint32_t id_of(struct state *state, const struct port_plan *port)
{
	return elements_have_affinity(port) ? affinity_ids_get(&state->ids, port) : 0;
}

/* -- elements that are shared */

struct counting {
	struct state *state;
	bool up;
};

static void shared_key(const struct element *element, char out[static 2 * ELEMENT_BYTES + 4])
{
	static const char digits[] = "0123456789abcdef";
	char *at = out;

	*at++ = (char)('a' + element->container);
	for (size_t i = 0; i < element->key_size; i++) {
		*at++ = digits[element->bytes[i] >> 4];
		*at++ = digits[element->bytes[i] & 15];
	}
	*at = '\0';
}

static struct shared *ensure_shared(struct state *state, const struct element *element)
{
	char key[2 * ELEMENT_BYTES + 4];
	struct shared *shared;
	size_t n;

	shared_key(element, key);
	shared = map_get(&state->shared, key);
	if (shared)
		return shared;
	n = strlen(key) + 1;
	shared = xcalloc(1, sizeof(*shared) + n);
	shared->element = *element;
	memcpy(shared->key, key, n);
	map_set(&state->shared, shared->key, shared);
	return shared;
}

static void count_shared(void *arg, const struct element *element)
{
	const struct counting *counting = arg;
	struct state *state = counting->state;
	struct shared *shared = ensure_shared(state, element);

	assert(counting->up || shared->count > 0);
	shared->count += counting->up ? 1 : (size_t)-1;
	if (shared->touched)
		return;
	shared->touched = true;
	shared->next_touched = state->touched;
	state->touched = shared;
}

static void settle_shared(struct state *state)
{
	while (state->touched) {
		struct shared *shared = state->touched;

		state->touched = shared->next_touched;
		shared->touched = false;
		shared->applied = shared->count > 0;
		if (shared->applied)
			continue;
		map_remove(&state->shared, shared->key);
		free(shared);
	}
}

/* -- plans */

/* What a plan asks for beside its claims, counted up or down. */
static void count_plan(struct state *state, const struct service_plan *plan, bool up)
{
	struct counting counting = {.state = state, .up = up};
	size_t one = up ? 1 : (size_t)-1;

	for (size_t i = 0; plan && i < plan->n_ports; i++) {
		elements_shared(&plan->ports[i], count_shared, &counting);
		state->n_affinity += elements_have_affinity(&plan->ports[i]) ? one : 0;
		state->n_no_local_internal += plan->ports[i].internal == PLAN_DROP ? one : 0;
		state->n_no_local_external += plan->ports[i].external == PLAN_DROP ? one : 0;
	}
}

static bool list_has(const struct port_plan *port, const struct index_list *list,
		     const struct addr *addr, uint16_t number)
{
	for (size_t i = 0; i < list->n; i++) {
		const struct endpoint *endpoint = &port->endpoints->v[list->v[i]];

		if (endpoint->port == number && addr_equal(&endpoint->addr, addr))
			return true;
	}
	return false;
}

static bool list_lost(const struct port_plan *old, const struct index_list *before,
		      const struct port_plan *new, const struct index_list *now)
{
	for (size_t i = 0; i < before->n; i++) {
		const struct endpoint *endpoint = &old->endpoints->v[before->v[i]];

		if (!list_has(new, now, &endpoint->addr, endpoint->port))
			return true;
	}
	return false;
}

/* Ports that go, or lose affinity, lose their id too: nobody asks for their clients again. */
static void compare_affinity(struct state *state, const struct service_plan *applied,
			     const struct service_plan *next)
{
	for (size_t i = 0; applied && i < applied->n_ports; i++) {
		const struct port_plan *old = &applied->ports[i];
		const struct port_plan *new = slots_find_port(next, old);

		if (!elements_have_affinity(old))
			continue;
		if (!new || !new->service->sticky_seconds)
			continue; /* state_end() forgets the id */
		if (list_lost(old, &old->use.cluster, new, &new->use.cluster) ||
		    list_lost(old, &old->use.local, new, &new->use.local))
			state->lost_members = true;
	}
}

static struct served *new_served(struct state *state, const char *key)
{
	struct served *service = xcalloc(1, sizeof(*service));

	service->key = xstrdup(key);
	map_set(&state->services, service->key, service);
	return service;
}

static void mark_dirty(struct state *state, struct served *service)
{
	service->dirty = true;
	service->next_dirty = state->dirty;
	state->dirty = service;
}

static int compare_keys(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Keys of all Services, sorted, so that the same cluster always gives the same ids; the caller frees. */
static const char **sorted_keys(const struct model *model, size_t *ret_n)
{
	const struct service *object;
	const char **keys = NULL;
	size_t at = 0, n = 0, capacity = 0;

	while ((object = model_next_service(model, &at))) {
		array_grow(&keys, &capacity, n, sizeof(*keys));
		keys[n++] = object->key;
	}
	if (n > 1)
		qsort(keys, n, sizeof(*keys), compare_keys);
	*ret_n = n;
	return keys;
}

static void plan_all(struct state *state, const struct model *model)
{
	size_t n;
	cleanup_free const char **keys = sorted_keys(model, &n);

	forget_services(state);
	affinity_ids_begin(&state->ids);
	for (size_t i = 0; i < n; i++) {
		struct service_plan *plan = plan_service(state->settings, model, keys[i]);
		struct served *service;

		if (!plan)
			continue;
		service = new_served(state, keys[i]);
		slots_arrange(plan, NULL);
		service->next = plan;
		claims_add(&state->claims, service, plan);
		count_plan(state, plan, true);
		for (size_t j = 0; j < plan->n_ports; j++)
			id_of(state, &plan->ports[j]);
		mark_dirty(state, service);
	}
}

static void plan_one(struct state *state, const struct model *model, const char *key)
{
	struct service_plan *plan = plan_service(state->settings, model, key);
	struct served *service = map_get(&state->services, key);

	if (!plan && !service)
		return;
	if (!service)
		service = new_served(state, key);
	if (plan)
		slots_arrange(plan, service->applied);
	if (service_plan_equal(service->applied, plan)) {
		service_plan_free(service->applied);
		service->applied = service->next = plan;
		return;
	}
	if (service->applied)
		claims_remove(&state->claims, service, service->applied);
	count_plan(state, service->applied, false);
	service->next = plan;
	if (plan)
		claims_add(&state->claims, service, plan);
	count_plan(state, plan, true);
	compare_affinity(state, service->applied, plan);
	mark_dirty(state, service);
}

static void list_node_port_ips(struct state *state, const struct addr *addresses, size_t n)
{
	const struct node_ports *node_ports = &state->settings->node_ports;
	size_t n_found = 0;
	cleanup_free struct addr *found = NULL;

	element_list_done(&state->next_node_port_ips);
	if (node_ports->match_all)
		return;
	found = node_ports_select(node_ports, addresses, n, &n_found);
	for (size_t i = 0; i < n_found; i++) {
		struct element element;

		if (addr_is_loopback(&found[i]))
			continue;
		element_begin(&element, CONTAINER_NODEPORT_IPS);
		element_key_addr(&element, &found[i]);
		element_list_add(&state->next_node_port_ips, &element);
	}
	element_list_sort(&state->next_node_port_ips);
}

void state_begin(struct state *state, const struct model *model,
		 const struct model_changes *changes, bool full, const struct addr *addresses,
		 size_t n_addresses)
{
	state->full = full;
	state->lost_members = full;
	list_node_port_ips(state, addresses, n_addresses);
	if (full)
		plan_all(state, model);
	for (size_t i = 0; !full && i < changes->n_services; i++)
		plan_one(state, model, changes->services[i]);
}

/* -- chains with a number */

static bool has_chain(const struct state *state, struct chain chain)
{
	for (size_t i = 0; i < state->n_chains; i++)
		if (state->chains[i].id == chain.id && state->chains[i].number == chain.number)
			return true;
	return false;
}

bool state_has_chain(const struct state *state, const char *name)
{
	char own[CHAIN_NAME_MAX];

	for (enum chain_id id = 0; id < CHAIN_FIXED_COUNT; id++) {
		chain_name((struct chain){.id = id}, own);
		if (streq(own, name))
			return true;
	}
	for (size_t i = 0; i < state->n_chains; i++) {
		chain_name(state->chains[i], own);
		if (streq(own, name))
			return true;
	}
	return false;
}

/* What a chain leads to is there before it. */
static void ensure_chain(struct state *state, struct writer *writer, struct chain chain)
{
	if (chain.number == 0 || has_chain(state, chain))
		return;
	if (chain.id == CHAIN_MASQ_PICK)
		ensure_chain(state, writer, (struct chain){CHAIN_PICK, chain.number});
	else if (chain.id == CHAIN_NODEPORT_MASQ_PICK)
		ensure_chain(state, writer, (struct chain){CHAIN_NODEPORT_PICK, chain.number});
	else if (chain.id != CHAIN_REMEMBER_FOR && chain.number > 1)
		ensure_chain(state, writer, (struct chain){chain.id, 1});
	layout_numbered(writer, state->settings, chain);
	array_grow(&state->chains, &state->chains_capacity, state->n_chains,
		   sizeof(*state->chains));
	state->chains[state->n_chains++] = chain;
}

/* Chains with a number that elements name, each once. */
struct chain_needs {
	struct chain *v;
	size_t n, capacity;
};

static void need_chain(void *arg, const struct element *element)
{
	struct chain_needs *needs = arg;

	if (element->verdict != VERDICT_GOTO || element->chain.number == 0)
		return;
	for (size_t i = 0; i < needs->n; i++)
		if (needs->v[i].id == element->chain.id &&
		    needs->v[i].number == element->chain.number)
			return;
	array_grow(&needs->v, &needs->capacity, needs->n, sizeof(*needs->v));
	needs->v[needs->n++] = element->chain;
}

static int compare_chains(const void *left, const void *right)
{
	const struct chain *a = left, *b = right;

	if (a->id != b->id)
		return a->id < b->id ? -1 : 1;
	return (a->number > b->number) - (a->number < b->number);
}

static void meet_needs(struct state *state, struct writer *writer, struct chain_needs *needs)
{
	if (needs->n > 1)
		qsort(needs->v, needs->n, sizeof(*needs->v), compare_chains);
	for (size_t i = 0; i < needs->n; i++)
		ensure_chain(state, writer, needs->v[i]);
	free(take(needs->v));
}

static struct layout_facts facts_of(const struct state *state)
{
	return (struct layout_facts){
		.settings = state->settings,
		.affinity = state->n_affinity > 0,
	};
}

/* -- a full sync */

/* All elements that the owners of destinations have, and service ports themselves. */
static void each_element(struct state *state, bool slots, element_fn *fn, void *arg)
{
	const struct served *service;
	const struct spot *spot;
	size_t at = 0;

	while ((spot = map_next(&state->claims.spots, &at))) {
		const struct claim *owner = spot->first;
		const struct port_plan *port = &owner->service->next->ports[owner->port];

		elements_of_destination(port, &owner->destination, id_of(state, port), slots, fn,
					arg);
	}
	at = 0;
	while ((service = map_next(&state->services, &at))) {
		const struct service_plan *plan = service->next;

		for (size_t i = 0; i < plan->n_ports; i++)
			elements_of_port(&plan->ports[i], id_of(state, &plan->ports[i]), fn, arg);
	}
}

void state_write_chains(struct state *state, struct writer *writer)
{
	const struct layout_facts facts = facts_of(state);
	struct chain_needs needs = {0};

	state->n_chains = 0;
	layout_fixed_chains(writer);
	for (enum chain_id id = 0; id < CHAIN_FIXED_COUNT; id++)
		layout_rules(writer, &facts, id);
	for (enum chain_id id = CHAIN_PICK; id < CHAIN_PICKS_END; id++)
		for (uint32_t n = 1; n <= PICKS_AT_START; n++)
			ensure_chain(state, writer, (struct chain){id, n});
	each_element(state, false, need_chain, &needs);
	meet_needs(state, writer, &needs);
	state->affinity_written = facts.affinity;
}

static void add_to(void *arg, const struct element *element)
{
	struct writer *writer = arg;

	writer->ops->add(writer, element);
}

void state_write_elements(struct state *state, struct writer *writer)
{
	const struct shared *shared;
	size_t at = 0;

	for (size_t i = 0; i < state->next_node_port_ips.n; i++)
		add_to(writer, &state->next_node_port_ips.v[i]);
	while ((shared = map_next(&state->shared, &at)))
		add_to(writer, &shared->element);
	each_element(state, true, add_to, writer);
}

/* -- any other sync */

static void removal(void *arg, const struct element *element)
{
	struct state *state = arg;

	element_list_add(&state->removals, element);
}

static void addition(void *arg, const struct element *element)
{
	struct state *state = arg;

	element_list_add(&state->additions, element);
}

static void compare_spot(struct state *state, const struct spot *spot)
{
	cleanup_element_list struct element_list from = {0};
	cleanup_element_list struct element_list to = {0};
	const struct claim *owner = &spot->owner, *first = spot->first;
	const struct port_plan *port;

	if (owner->service) {
		port = &owner->service->applied->ports[owner->port];
		elements_of_destination(port, &owner->destination, id_of(state, port), true,
					element_list_add, &from);
	}
	if (first) {
		port = &first->service->next->ports[first->port];
		elements_of_destination(port, &first->destination, id_of(state, port), true,
					element_list_add, &to);
	}
	element_list_compare(&from, &to, removal, addition, state);
}

static void port_elements(struct state *state, const struct service_plan *plan,
			  struct element_list *ret)
{
	for (size_t i = 0; plan && i < plan->n_ports; i++)
		elements_of_port(&plan->ports[i], id_of(state, &plan->ports[i]), element_list_add,
				 ret);
	element_list_sort(ret);
}

static void compare_service(struct state *state, const struct served *service)
{
	cleanup_element_list struct element_list from = {0};
	cleanup_element_list struct element_list to = {0};

	port_elements(state, service->applied, &from);
	port_elements(state, service->next, &to);
	element_list_compare(&from, &to, removal, addition, state);
}

static void collect_delta(struct state *state)
{
	state->removals.n = state->additions.n = 0;
	for (const struct spot *spot = state->claims.touched; spot; spot = spot->next_touched)
		compare_spot(state, spot);
	for (const struct served *service = state->dirty; service; service = service->next_dirty)
		compare_service(state, service);
	for (const struct shared *shared = state->touched; shared; shared = shared->next_touched) {
		if (shared->applied && shared->count == 0)
			removal(state, &shared->element);
		else if (!shared->applied && shared->count > 0)
			addition(state, &shared->element);
	}
	element_list_compare(&state->node_port_ips, &state->next_node_port_ips, removal, addition,
			     state);
}

void state_write_delta(struct state *state, struct writer *writer,
		       void (*flush_chain)(struct writer *writer, struct chain chain))
{
	static const enum chain_id remembering[] = {CHAIN_FILTER_INPUT, CHAIN_FILTER_FORWARD,
						    CHAIN_FILTER_OUTPUT};
	const struct layout_facts facts = facts_of(state);
	struct chain_needs needs = {0};

	collect_delta(state);
	for (size_t i = 0; i < state->additions.n; i++)
		need_chain(&needs, &state->additions.v[i]);
	meet_needs(state, writer, &needs);
	for (size_t i = 0; facts.affinity != state->affinity_written && i < ARRAY_SIZE(remembering);
	     i++) {
		flush_chain(writer, (struct chain){.id = remembering[i]});
		layout_rules(writer, &facts, remembering[i]);
	}
	state->affinity_written = facts.affinity;
	for (size_t i = 0; i < state->removals.n; i++)
		writer->ops->remove(writer, &state->removals.v[i]);
	for (size_t i = 0; i < state->additions.n; i++)
		writer->ops->add(writer, &state->additions.v[i]);
	element_list_done(&state->removals);
	element_list_done(&state->additions);
}

/* -- the end */

/* `told`: who has been told before. */
static void tell_spot(struct state *state, const struct spot *spot, struct map *told,
		      state_conflict_fn *conflict, void *arg)
{
	for (const struct claim *claim = spot->first; claim; claim = claim->behind) {
		const struct state_conflict found = {
			.destination = spot->text,
			.service = claim->service->key,
			.owner = spot->first->service->key,
		};
		cleanup_free char *key = xasprintf("%s %s", found.service, found.destination);
		char *before = map_remove(told, key);

		if (claim->service != spot->first->service) {
			if (!before)
				conflict(arg, &found);
			free(map_set(&state->waiting, key, key));
			take(key);
		}
		free(before);
	}
}

static void tell_waiting(struct state *state, state_conflict_fn *conflict, void *arg)
{
	struct map all = {0};
	struct map *told = &state->waiting;

	if (state->full) { /* every destination is touched: who is not among them waits no longer */
		all = state->waiting;
		state->waiting = (struct map){0};
		told = &all;
	}
	for (const struct spot *spot = state->claims.touched; spot; spot = spot->next_touched)
		tell_spot(state, spot, told, conflict, arg);
	free_values(&all);
}

/* Whoever no longer asks for a destination may be told again when it does. */
static void forget_waiting(struct state *state, const struct served *service)
{
	const struct service_plan *plan = service->applied;

	for (size_t i = 0; state->waiting.count > 0 && plan && i < plan->n_ports; i++) {
		size_t n;
		cleanup_free struct destination *v = elements_destinations(&plan->ports[i], &n);

		for (size_t j = 0; j < n; j++) {
			char text[DESTINATION_TEXT_MAX];
			cleanup_free char *key = NULL;
			const struct spot *spot;
			bool claimed = false;

			destination_print(&v[j], text);
			spot = map_get(&state->claims.spots, text);
			for (const struct claim *claim = spot ? spot->first : NULL; claim;
			     claim = claim->behind)
				claimed = claimed || claim->service == service;
			key = xasprintf("%s %s", service->key, text);
			if (!claimed)
				free(map_remove(&state->waiting, key));
		}
	}
}

static void forget_ids(struct state *state, const struct served *service)
{
	for (size_t i = 0; service->applied && i < service->applied->n_ports; i++) {
		const struct port_plan *old = &service->applied->ports[i];
		const struct port_plan *new = slots_find_port(service->next, old);

		if (old->service->sticky_seconds && (!new || !new->service->sticky_seconds))
			affinity_ids_forget(&state->ids, old);
	}
}

static void settle_service(struct state *state, struct served *service)
{
	forget_waiting(state, service);
	forget_ids(state, service);
	service->dirty = false;
	service_plan_free(service->applied);
	service->applied = service->next;
	if (service->applied)
		return;
	map_remove(&state->services, service->key);
	free_served(service);
}

void state_end(struct state *state, bool success, state_conflict_fn *conflict, void *arg)
{
	struct element_list ips = state->node_port_ips;

	if (!success)
		return; /* the next one is full, and forgets all of this */
	tell_waiting(state, conflict, arg);
	while (state->dirty) {
		struct served *service = state->dirty;

		state->dirty = service->next_dirty;
		settle_service(state, service);
	}
	claims_settle(&state->claims);
	settle_shared(state);
	if (state->full)
		affinity_ids_prune(&state->ids);
	state->node_port_ips = state->next_node_port_ips;
	state->next_node_port_ips = ips;
}

void state_count_no_local(const struct state *state, size_t *ret_internal, size_t *ret_external)
{
	*ret_internal = state->n_no_local_internal;
	*ret_external = state->n_no_local_external;
}

bool state_lost_members(const struct state *state)
{
	return state->lost_members;
}

void state_each_affinity(struct state *state, state_affinity_fn *fn, void *arg)
{
	const struct served *service;
	size_t at = 0;

	while (state->n_affinity > 0 && (service = map_next(&state->services, &at))) {
		const struct service_plan *plan = service->applied;

		for (size_t i = 0; plan && i < plan->n_ports; i++)
			if (elements_have_affinity(&plan->ports[i]))
				fn(arg, id_of(state, &plan->ports[i]), &plan->ports[i]);
	}
}

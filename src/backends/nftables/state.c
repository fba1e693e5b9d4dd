/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/nftables/state.h"

#include <stdlib.h>

#include "backends/nftables/members.h"
#include "backends/nftables/slots.h"
#include "backends/nftables/state_parts.h"

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

static void forget_services(struct state *state)
{
	struct served *service;
	size_t at = 0;

	while ((service = map_next(&state->services, &at)))
		free_served(service);
	map_done(&state->services);
	state->services = (struct map){0};
	claims_done(&state->claims);
	shared_restart(&state->shared);
	state->dirty = NULL;
	state->n_affinity = state->n_no_local_internal = state->n_no_local_external = 0;
}

struct state *state_free(struct state *state)
{
	if (!state)
		return NULL;
	forget_services(state);
	shared_done(&state->shared);
	affinity_ids_done(&state->ids);
	waiting_done(&state->waiting);
	numbered_done(&state->numbered);
	element_list_done(&state->node_port_ips);
	element_list_done(&state->next_node_port_ips);
	element_list_done(&state->removals);
	element_list_done(&state->additions);
	free(state->cidrs);
	free(state);
	return NULL;
}

struct affinity_ids *state_affinity_ids(struct state *state)
{
	return &state->ids;
}

uint32_t state_id_of(struct state *state, const struct port_plan *port)
{
	return elements_have_affinity(port) ? affinity_ids_get(&state->ids, port) : 0;
}

/* -- plans */

static void count_up(void *arg, const struct element *element)
{
	shared_count(arg, element, true);
}

static void count_down(void *arg, const struct element *element)
{
	shared_count(arg, element, false);
}

/* What a plan asks for beside its claims, counted up or down. */
static void count_plan(struct state *state, const struct service_plan *plan, bool up)
{
	size_t one = up ? 1 : (size_t)-1;

	for (size_t i = 0; plan && i < plan->n_ports; i++) {
		elements_shared(&plan->ports[i], up ? count_up : count_down, &state->shared);
		state->n_affinity += elements_have_affinity(&plan->ports[i]) ? one : 0;
		state->n_no_local_internal += plan->ports[i].internal == PLAN_DROP ? one : 0;
		state->n_no_local_external += plan->ports[i].external == PLAN_DROP ? one : 0;
	}
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
		if (members_lost(old, new))
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

static void plan_anew(struct state *state, const struct model *model, const char *key)
{
	struct service_plan *plan = plan_service(state->settings, model, key);
	struct served *service;

	if (!plan)
		return;
	service = new_served(state, key);
	slots_arrange(plan, NULL);
	service->next = plan;
	claims_add(&state->claims, service, plan);
	count_plan(state, plan, true);
	for (size_t i = 0; i < plan->n_ports; i++)
		state_id_of(state, &plan->ports[i]);
	mark_dirty(state, service);
}

static bool left_out(const struct state_input *input, const char *key)
{
	return input->refusals && refusals_wait(input->refusals, key, input->now_ns);
}

static void plan_all(struct state *state, const struct state_input *input)
{
	size_t n;
	cleanup_free const char **keys = sorted_keys(input->model, &n);

	forget_services(state);
	affinity_ids_begin(&state->ids);
	for (size_t i = 0; i < n; i++)
		if (!left_out(input, keys[i]))
			plan_anew(state, input->model, keys[i]);
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

static void take_cidrs(struct state *state, const struct model *model)
{
	size_t n;
	const struct prefix *cidrs = model_service_cidrs(model, state->settings->family, &n);
	bool same = n == state->n_cidrs;

	for (size_t i = 0; same && i < n; i++)
		same = prefix_equal(&cidrs[i], &state->cidrs[i]);
	if (same)
		return;
	state->cidrs_changed = true;
	state->cidrs = xrealloc(state->cidrs, MAX(n, 1) * sizeof(*cidrs));
	for (size_t i = 0; i < n; i++)
		state->cidrs[i] = cidrs[i];
	state->n_cidrs = n;
}

struct planning {
	struct state *state;
	const struct model *model;
};

static void plan_due(void *arg, const char *key)
{
	const struct planning *planning = arg;

	plan_one(planning->state, planning->model, key);
}

static void plan_changes(struct state *state, const struct state_input *input)
{
	struct planning planning = {state, input->model};

	for (size_t i = 0; i < input->changes->n_services; i++) {
		const char *key = input->changes->services[i];

		if (!input->refusals || !map_get(&input->refusals->all, key))
			plan_one(state, input->model, key);
	}
	if (input->refusals)
		refusals_each_due(input->refusals, input->now_ns, plan_due, &planning);
}

void state_begin(struct state *state, const struct state_input *input)
{
	state->full = input->full;
	state->lost_members = input->full;
	state->members_removed = false;
	take_cidrs(state, input->model);
	list_node_port_ips(state, input->addresses, input->n_addresses);
	if (input->full) {
		plan_all(state, input);
		return;
	}
	plan_changes(state, input);
	state_collect_delta(state);
}

/* -- the end */

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
	waiting_forget(&state->waiting, &state->claims, service);
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

	element_list_done(&state->removals);
	element_list_done(&state->additions);
	if (!success)
		return; /* the next one is full, and forgets all of this */
	waiting_tell(&state->waiting, &state->claims, state->full, conflict, arg);
	while (state->dirty) {
		struct served *service = state->dirty;

		state->dirty = service->next_dirty;
		settle_service(state, service);
	}
	claims_settle(&state->claims);
	shared_settle(&state->shared);
	if (state->full)
		affinity_ids_prune(&state->ids);
	numbered_settle(&state->numbered);
	state->affinity_written = state->n_affinity > 0;
	state->cidrs_changed = false;
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
		const struct service_plan *plan = service->next;

		for (size_t i = 0; plan && i < plan->n_ports; i++)
			if (elements_have_affinity(&plan->ports[i]))
				fn(arg, state_id_of(state, &plan->ports[i]), &plan->ports[i]);
	}
}

void state_age(struct state *state, numbered_remove_fn *chain, element_fn *element, void *arg)
{
	numbered_age(&state->numbered, chain, arg);
	shared_age(&state->shared, element, arg);
}

bool state_has_idle(const struct state *state)
{
	return numbered_idle(&state->numbered) || state->shared.n_lingering > 0;
}

size_t state_count_services(const struct state *state)
{
	return state->services.count;
}

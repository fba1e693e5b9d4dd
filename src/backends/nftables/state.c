/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/nftables/state.h"

#include <stdlib.h>

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
		service_plan_unref(service->next);
	service_plan_unref(service->applied);
	free(service->key);
	free(service);
}

static void set_before(struct state *state, struct service_plan *plan)
{
	service_plan_unref(map_set(&state->before, plan->key, plan));
}

static void forget_before(struct state *state)
{
	struct service_plan *plan;
	size_t at = 0;

	while ((plan = map_next(&state->before, &at)))
		service_plan_unref(plan);
	map_done(&state->before);
	state->before = (struct map){0};
}

/* What the kernel has is kept for Services whose new version it will refuse. */
static void keep_applied(struct state *state)
{
	struct served *service;
	size_t at = 0;

	while ((service = map_next(&state->services, &at))) {
		if (!service->applied)
			continue;
		if (service->next == service->applied)
			service->next = NULL;
		set_before(state, take(service->applied));
	}
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
	address_owners_done(&state->owners);
	shared_restart(&state->shared);
	state->dirty = NULL;
	state->n_affinity = state->n_no_local_internal = state->n_no_local_external = 0;
}

struct state *state_free(struct state *state)
{
	if (!state)
		return NULL;
	forget_services(state);
	forget_before(state);
	shared_done(&state->shared);
	affinity_ids_done(&state->ids);
	conflicts_done(&state->conflicts);
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
	return elements_have_affinity(port) ? affinity_ids_port(&state->ids, port) : 0;
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

static void ignore_element(void *arg attr_unused, const struct element *element attr_unused)
{
}

/* Ids are given here, in the order of keys. */
static struct served *add_plan(struct state *state, struct service_plan *plan)
{
	struct served *service = new_served(state, plan->key);

	service->next = plan;
	claims_add(&state->claims, service, plan);
	address_owners_add(&state->owners, plan);
	count_plan(state, plan, true);
	for (size_t i = 0; i < plan->n_ports; i++)
		elements_of_port(&plan->ports[i], &state->ids, ignore_element, NULL);
	mark_dirty(state, service);
	return service;
}

static void plan_anew(struct state *state, const struct model *model, const char *key)
{
	struct service_plan *plan = plan_service(state->settings, model, key);

	if (!plan)
		return;
	slots_arrange(plan, NULL);
	add_plan(state, plan);
}

/* As it was when the kernel last took it, if it did. */
static void plan_as_before(struct state *state, const char *key)
{
	struct service_plan *plan = map_remove(&state->before, key);

	if (plan)
		add_plan(state, plan)->applied = plan;
}

static bool is_waiting(const struct state_input *input, const char *key)
{
	return input->refusals && refusals_wait(input->refusals, key, input->now_ns);
}

static void plan_all(struct state *state, const struct state_input *input)
{
	size_t n;
	cleanup_free const char **keys = sorted_keys(input->model, &n);

	keep_applied(state);
	forget_services(state);
	affinity_ids_begin(&state->ids);
	for (size_t i = 0; i < n; i++)
		if (!is_waiting(input, keys[i]))
			plan_anew(state, input->model, keys[i]);
		else if (!refusals_is_bare(input->refusals, keys[i]))
			plan_as_before(state, keys[i]);
	affinity_ids_raise_mark(&state->ids);
}

/* Is it another object that asks? */
static bool asks_anew(const struct service_plan *old, const struct service_plan *new)
{
	return !old || !new || old->service != new->service;
}

static void change_owners(struct state *state, const struct service_plan *old,
			  const struct service_plan *new)
{
	if (!asks_anew(old, new))
		return;
	if (old)
		address_owners_remove(&state->owners, old);
	if (new)
		address_owners_add(&state->owners, new);
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
	change_owners(state, service->applied, plan);
	if (service_plan_equal(service->applied, plan)) {
		service_plan_unref(service->applied);
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
	state->node = model_node(input->model);
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

static void settle_service(struct state *state, struct served *service)
{
	state_forget_ports(state, service);
	service->dirty = false;
	if (service->applied != service->next)
		service_plan_unref(service->applied);
	service->applied = service->next;
	if (service->applied)
		return;
	map_remove(&state->services, service->key);
	free_served(service);
}

static void look_at_dirty(struct state *state, const struct conflicts_view *view)
{
	for (const struct served *service = state->dirty; service; service = service->next_dirty) {
		if (asks_anew(service->applied, service->next))
			conflicts_look(&state->conflicts, view, service->applied, service->next);
	}
	conflicts_look_moved(&state->conflicts, view);
}

static void look_for_conflicts(struct state *state, conflict_fn *conflict, void *arg)
{
	const struct conflicts_view view = {
		.owners = &state->owners,
		.node_addresses = state->node ? state->node->addresses : NULL,
		.n_node_addresses = state->node ? state->node->n_addresses : 0,
		.fn = conflict,
		.arg = arg,
	};
	const struct served *service;
	size_t at = 0;

	if (!state->full) {
		look_at_dirty(state, &view);
		return;
	}
	conflicts_begin_all(&state->conflicts);
	while ((service = map_next(&state->services, &at)))
		conflicts_look_own(&state->conflicts, &view, service->next);
	conflicts_end_all(&state->conflicts);
}

void state_end(struct state *state, bool success, conflict_fn *conflict, void *arg)
{
	struct element_list ips = state->node_port_ips;

	if (success && !state->full)
		state_forget_members(state);
	element_list_done(&state->removals);
	element_list_done(&state->additions);
	if (!success)
		return; /* the next one is full, and forgets all of this */
	look_for_conflicts(state, conflict, arg);
	while (state->dirty) {
		struct served *service = state->dirty;

		state->dirty = service->next_dirty;
		settle_service(state, service);
	}
	forget_before(state);
	claims_settle(&state->claims);
	address_owners_settle(&state->owners);
	shared_settle(&state->shared);
	if (state->full)
		affinity_ids_prune(&state->ids);
	numbered_settle(&state->numbered);
	state->affinity_written = state->n_affinity > 0;
	state->mark_written = state->ids.mark;
	state->cidrs_changed = false;
	state->node_port_ips = state->next_node_port_ips;
	state->next_node_port_ips = ips;
}

const size_t *state_conflicts(const struct state *state)
{
	return state->conflicts.counts;
}

void state_count_no_local(const struct state *state, size_t *ret_internal, size_t *ret_external)
{
	*ret_internal = state->n_no_local_internal;
	*ret_external = state->n_no_local_external;
}

size_t state_count_affinity(const struct state *state)
{
	return state->n_affinity;
}

struct port_with_id {
	uint32_t id;
	const struct port_plan *port;
};

static int compare_ids(const void *a, const void *b)
{
	const struct port_with_id *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

void state_each_affinity(struct state *state, state_affinity_fn *fn, void *arg)
{
	cleanup_free struct port_with_id *v = NULL;
	const struct served *service;
	size_t at = 0, n = 0, capacity = 0;

	while (state->n_affinity > 0 && (service = map_next(&state->services, &at))) {
		const struct service_plan *plan = service->next;

		for (size_t i = 0; plan && i < plan->n_ports; i++) {
			const struct port_plan *port = &plan->ports[i];

			if (!elements_have_affinity(port))
				continue;
			array_grow(&v, &capacity, n, sizeof(*v));
			v[n++] = (struct port_with_id){state_id_of(state, port), port};
		}
	}
	if (n > 1)
		qsort(v, n, sizeof(*v), compare_ids);
	for (size_t i = 0; i < n; i++)
		fn(arg, v[i].id, v[i].port);
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

bool state_can_keep(const struct state *state, const char *key)
{
	return map_get(&state->before, key);
}

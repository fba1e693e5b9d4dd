/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/nftables/state.h"

#include <stdlib.h>

#include "backends/nftables/state_parts.h"
#include "base/fiber.h"

struct state *state_new(const struct settings *settings)
{
	struct state *state = xcalloc(1, sizeof(*state));

	state->settings = settings;
	affinity_ids_init(&state->ids);
	return state;
}

/* -- Services */

static void set_plan(struct service_plan **to, struct service_plan *plan)
{
	struct service_plan *old = *to;

	*to = service_plan_ref(plan);
	service_plan_unref(old);
}

/* Takes the slots over, unless they are those of what is applied. */
static void set_next(struct served *service, struct service_plan *plan, struct slotted_port *slots)
{
	if (service->next.slots != service->applied.slots)
		slots_free(service->next.slots);
	service->next.slots = slots;
	set_plan(&service->next.plan, plan);
}

static void set_applied(struct served *service)
{
	if (service->applied.slots != service->next.slots)
		slots_free(service->applied.slots);
	service->applied.slots = service->next.slots;
	set_plan(&service->applied.plan, service->next.plan);
}

static void free_served(struct served *service)
{
	set_next(service, NULL, NULL);
	set_applied(service);
	service_plan_unref(service->wanted);
	free(service);
}

static void drop_if_gone(struct state *state, struct served *service)
{
	if (service->applied.plan || service->wanted)
		return;
	map_remove(&state->services, service->key);
	free_served(service);
}

static void forget_services(struct state *state)
{
	struct served *service;
	size_t at = 0;

	while ((service = map_next(&state->services, &at)))
		free_served(service);
	map_done(&state->services);
}

struct state *state_free(struct state *state)
{
	if (!state)
		return NULL;
	claims_done(&state->claims);
	forget_services(state);
	shared_done(&state->shared);
	affinity_ids_done(&state->ids);
	pick_chains_done(&state->pick_chains);
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
	}
}

static void mark_dirty(struct state *state, struct served *service)
{
	service->next_dirty = state->dirty;
	state->dirty = service;
}

static void note_wanted(struct state *state, const struct plan_change *changes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct served *service = map_get(&state->services, changes[i].key);

		if (!service && changes[i].wanted)
			service = map_ensure(&state->services, changes[i].key, sizeof(*service),
					     offsetof(struct served, key));
		if (service)
			set_plan(&service->wanted, changes[i].wanted);
	}
}

static void take_delta(struct state *state, const struct plan_delta *delta)
{
	struct served *service;
	size_t at = 0;

	while (delta->full && (service = map_next(&state->services, &at)))
		set_plan(&service->wanted, NULL);
	note_wanted(state, delta->changes, delta->n_changes);
	note_wanted(state, delta->renewed, delta->n_renewed);
}

static int compare_keys(const void *a, const void *b)
{
	const struct served *const *x = a, *const *y = b;

	return strcmp((*x)->key, (*y)->key);
}

/* Sorted by key, so that the same cluster always gives the same ids; the caller frees. */
static struct served **sorted_services(const struct state *state)
{
	struct served **v = xcalloc(state->services.count + 1, sizeof(*v));
	size_t at = 0, n = 0;

	while ((v[n] = map_next(&state->services, &at)))
		n++;
	qsort(v, n, sizeof(*v), compare_keys);
	return v;
}

static void ignore_element(void *arg attr_unused, const struct element *element attr_unused)
{
}

/* Ids are given here, in the order of keys. */
static void add_next(struct state *state, struct served *service)
{
	const struct service_plan *plan = service->next.plan;

	mark_dirty(state, service);
	if (!plan)
		return;
	claims_add(&state->claims, service, plan);
	count_plan(state, plan, true);
	for (size_t i = 0; i < plan->n_ports; i++)
		elements_of_port(&plan->ports[i], &state->ids, ignore_element, NULL);
}

static bool is_waiting(const struct state_input *input, const char *key)
{
	return input->refused && refused_services_wait(input->refused, key);
}

/* One that was refused stays as it was when the kernel last took it, if it did. */
static void choose_next(struct served *service, const struct state_input *input)
{
	static const struct slotted_plan nothing = {.plan = NULL};

	if (!is_waiting(input, service->key))
		set_next(service, service->wanted,
			 service->wanted ? slots_arrange(service->wanted, &nothing) : NULL);
	else if (refused_services_is_bare(input->refused, service->key))
		set_next(service, NULL, NULL);
	else
		set_next(service, service->applied.plan, service->applied.slots);
}

static void begin_all(struct state *state, const struct state_input *input)
{
	cleanup_free struct served **services = sorted_services(state);

	claims_done(&state->claims);
	shared_restart(&state->shared);
	state->dirty = NULL;
	state->n_affinity = 0;
	affinity_ids_begin(&state->ids);
	for (size_t i = 0; services[i]; i++) {
		fiber_breathe();
		choose_next(services[i], input);
		add_next(state, services[i]);
	}
	affinity_ids_raise_mark(&state->ids);
}

/* The same elements, and the same place among those who wait for a destination? */
static bool is_same(const struct service_plan *applied, const struct service_plan *plan)
{
	return service_plan_equal(applied, plan) &&
	       (!plan || applied->service->created_s == plan->service->created_s);
}

static void begin_one(struct state *state, const char *key)
{
	struct served *service = map_get(&state->services, key);
	struct service_plan *plan, *applied;
	bool same;

	if (!service)
		return;
	plan = service->wanted;
	applied = service->applied.plan;
	same = is_same(applied, plan);
	if (applied && !same) /* while `next` is there, by which claims are compared */
		claims_remove(&state->claims, service, applied);
	set_next(service, plan, plan ? slots_arrange(plan, &service->applied) : NULL);
	if (same) {
		set_applied(service);
		drop_if_gone(state, service);
		return;
	}
	count_plan(state, applied, false);
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

static void take_cidrs(struct state *state, const struct plan_delta *delta)
{
	const struct prefix *cidrs = delta->service_cidrs;
	size_t n = delta->n_service_cidrs;
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

static void begin_due(void *arg, const char *key)
{
	begin_one(arg, key);
}

static void begin_changes(struct state *state, const struct state_input *input,
			  const struct plan_change *changes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!input->refused || !map_get(&input->refused->all, changes[i].key))
			begin_one(state, changes[i].key);
}

void state_begin(struct state *state, const struct state_input *input)
{
	const struct plan_delta *delta = input->delta;

	state->full = input->full;
	take_cidrs(state, delta);
	list_node_port_ips(state, input->addresses, input->n_addresses);
	take_delta(state, delta);
	if (input->full) {
		begin_all(state, input);
		return;
	}
	begin_changes(state, input, delta->changes, delta->n_changes);
	begin_changes(state, input, delta->renewed, delta->n_renewed);
	if (input->refused)
		refused_services_each_tried(input->refused, begin_due, state);
	state_collect_delta(state);
}

void state_each_node_port(const struct state *state, state_node_port_fn *fn, void *arg)
{
	for (const struct claimed_destination *claimed = state->claims.touched; claimed;
	     claimed = claimed->next_touched) {
		const struct claim *first = claimed->first;
		const struct destination *destination =
			first ? &first->destination : &claimed->owner.destination;

		fiber_breathe();
		if (destination->node_port)
			fn(arg, destination,
			   first ? &first->service->next.plan->ports[first->port] : NULL);
	}
}

/* -- the end */

static void settle_service(struct state *state, struct served *service)
{
	if (!state->full) /* else those that are not asked for are pruned */
		state_forget_ports(state, service);
	set_applied(service);
	drop_if_gone(state, service);
}

void state_end(struct state *state, bool success)
{
	struct element_list ips = state->node_port_ips;

	if (success && !state->full)
		state_forget_members(state);
	element_list_done(&state->removals);
	element_list_done(&state->additions);
	if (!success)
		return; /* the next one is full, and forgets all of this */
	while (state->dirty) {
		struct served *service = state->dirty;

		state->dirty = service->next_dirty;
		settle_service(state, service);
	}
	claims_settle(&state->claims);
	shared_settle(&state->shared);
	if (state->full)
		affinity_ids_prune(&state->ids);
	pick_chains_settle(&state->pick_chains);
	state->affinity_written = state->n_affinity > 0;
	state->mark_written = state->ids.mark;
	state->cidrs_changed = false;
	state->node_port_ips = state->next_node_port_ips;
	state->next_node_port_ips = ips;
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
		const struct service_plan *plan = service->next.plan;

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

void state_age(struct state *state, pick_chains_remove_fn *chain, element_fn *element, void *arg)
{
	pick_chains_age(&state->pick_chains, chain, arg);
	shared_age(&state->shared, element, arg);
}

bool state_has_idle(const struct state *state)
{
	return pick_chains_idle(&state->pick_chains) || state->shared.n_lingering > 0;
}

size_t state_count_services(const struct state *state)
{
	const struct served *service;
	size_t at = 0, n = 0;

	while ((service = map_next(&state->services, &at)))
		n += service->next.plan != NULL;
	return n;
}

bool state_can_keep(const struct state *state, const char *key)
{
	const struct served *service = map_get(&state->services, key);

	return service && service->applied.plan;
}

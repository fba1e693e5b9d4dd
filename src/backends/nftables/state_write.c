/* SPDX-License-Identifier: Apache-2.0 */

/* What the wanted plans mean for the table: all of it, or the difference to what is applied. */

#include "backends/nftables/state_parts.h"
#include "base/fiber.h"

static struct layout_facts facts_of(const struct state *state)
{
	return (struct layout_facts){
		.settings = state->settings,
		.service_cidrs = state->cidrs,
		.n_service_cidrs = state->n_cidrs,
		.affinity = state->n_affinity > 0,
	};
}

/* -- a full sync */

/* Who is told whose the next elements are; NULL: not told. */
static void tell_owner(struct writer *writer, const struct port_plan *port)
{
	if (writer && writer->by_owner)
		writer->ops->owner(writer, port);
}

/* What the owner of a destination has there. */
static void each_element_of_claim(struct state *state, const struct slotted_plan *plan,
				  const struct claim *claim, bool slots, element_fn *fn, void *arg)
{
	const struct slotted_port port = slots_port(plan, claim->port);

	elements_of_destination(&port, &claim->destination, state_id_of(state, port.plan), slots,
				fn, arg);
	elements_of_localhost(state->settings, &claim->destination, fn, arg);
}

static void each_element_of_port(struct state *state, const struct port_plan *port,
				 struct writer *writer, element_fn *fn, void *arg)
{
	tell_owner(writer, port);
	elements_of_port(port, &state->ids, fn, arg);
	if (writer && writer->by_owner)
		elements_shared(port, fn, arg);
}

/* All elements that the owners of destinations have, and service ports themselves. */
static void each_element(struct state *state, bool slots, struct writer *writer, element_fn *fn,
			 void *arg)
{
	const struct served *service;
	const struct claimed_destination *claimed;
	size_t at = 0;

	while ((claimed = map_next(&state->claims.destinations, &at))) {
		const struct claim *owner = claimed->first;
		const struct slotted_plan *plan = &owner->service->next;

		tell_owner(writer, &plan->plan->ports[owner->port]);
		each_element_of_claim(state, plan, owner, slots, fn, arg);
	}
	at = 0;
	while ((service = map_next(&state->services, &at)))
		for (size_t i = 0; service->next.plan && i < service->next.plan->n_ports; i++)
			each_element_of_port(state, &service->next.plan->ports[i], writer, fn, arg);
	tell_owner(writer, NULL);
	if (state->ids.mark > 1)
		elements_of_mark(state->settings->family, state->ids.mark, fn, arg);
}

static void use_chain(void *arg, const struct element *element)
{
	pick_chains_count(arg, element, true);
}

void state_write_chains(struct state *state, struct writer *writer)
{
	const struct layout_facts facts = facts_of(state);

	layout_fixed_chains(writer, state->settings);
	for (enum chain_id id = 0; id < CHAIN_FIXED_COUNT; id++)
		layout_rules(writer, &facts, id);
	pick_chains_begin(&state->pick_chains);
	each_element(state, false, NULL, use_chain, &state->pick_chains);
	pick_chains_write(&state->pick_chains, writer, state->settings);
	state_write_affinity(state, writer);
}

static void add_to(void *arg, const struct element *element)
{
	struct writer *writer = arg;

	writer->ops->add(writer, element);
}

void state_write_elements(struct state *state, struct writer *writer)
{
	for (size_t i = 0; i < state->next_node_port_ips.n; i++)
		add_to(writer, &state->next_node_port_ips.v[i]);
	if (writer->by_owner)
		shared_each_unasked(&state->shared, add_to, writer);
	else
		shared_each(&state->shared, add_to, writer);
	each_element(state, true, writer, add_to, writer);
}

/* -- a repair */

void state_write_rules(struct state *state, struct writer *writer, struct chain chain)
{
	const struct layout_facts facts = facts_of(state);

	if (chain.id < CHAIN_FIXED_COUNT)
		layout_rules(writer, &facts, chain.id);
	else if (chain.id >= CHAIN_RECALL)
		state_write_affinity_rules(state, writer, chain);
	else
		layout_numbered(writer, state->settings, chain);
}

void state_each_element(struct state *state, bool slots, element_fn *fn, void *arg)
{
	for (size_t i = 0; i < state->node_port_ips.n; i++)
		fn(arg, &state->node_port_ips.v[i]);
	shared_each(&state->shared, fn, arg);
	each_element(state, slots, NULL, fn, arg);
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

static void compare_destination(struct state *state, const struct claimed_destination *claimed)
{
	cleanup_element_list struct element_list from = {0};
	cleanup_element_list struct element_list to = {0};
	const struct claim *owner = &claimed->owner, *first = claimed->first;

	if (owner->service)
		each_element_of_claim(state, &owner->service->applied, owner, true,
				      element_list_add, &from);
	if (first)
		each_element_of_claim(state, &first->service->next, first, true, element_list_add,
				      &to);
	element_list_compare(&from, &to, removal, addition, state);
}

static void port_elements(struct state *state, const struct service_plan *plan,
			  struct element_list *ret)
{
	for (size_t i = 0; plan && i < plan->n_ports; i++) {
		fiber_breathe();
		elements_of_port(&plan->ports[i], &state->ids, element_list_add, ret);
	}
	element_list_sort(ret);
}

static void compare_service(struct state *state, const struct served *service)
{
	cleanup_element_list struct element_list from = {0};
	cleanup_element_list struct element_list to = {0};

	port_elements(state, service->applied.plan, &from);
	port_elements(state, service->next.plan, &to);
	element_list_compare(&from, &to, removal, addition, state);
}

/* A daemon that comes after us must not give the ids once more that are given now. */
static void compare_mark(struct state *state)
{
	enum family family = state->settings->family;

	affinity_ids_raise_mark(&state->ids);
	if (state->ids.mark == state->mark_written)
		return;
	if (state->mark_written > 1)
		elements_of_mark(family, state->mark_written, removal, state);
	elements_of_mark(family, state->ids.mark, addition, state);
}

void state_collect_delta(struct state *state)
{
	state->removals.n = state->additions.n = 0;
	for (const struct claimed_destination *claimed = state->claims.touched; claimed;
	     claimed = claimed->next_touched)
		compare_destination(state, claimed);
	for (const struct served *service = state->dirty; service; service = service->next_dirty)
		compare_service(state, service);
	compare_mark(state);
	shared_compare(&state->shared, removal, addition, state);
	element_list_compare(&state->node_port_ips, &state->next_node_port_ips, removal, addition,
			     state);
	for (size_t i = 0; i < state->additions.n; i++)
		pick_chains_count(&state->pick_chains, &state->additions.v[i], true);
	for (size_t i = 0; i < state->removals.n; i++)
		pick_chains_count(&state->pick_chains, &state->removals.v[i], false);
}

static void rewrite_chain(struct writer *writer, const struct layout_facts *facts, enum chain_id id,
			  const struct state_delta_ops *ops)
{
	ops->flush_chain(writer, (struct chain){.id = id});
	layout_rules(writer, facts, id);
}

/* The rules that lead to `remember` are there only while a Service has affinity. */
static void write_remembering(struct state *state, struct writer *writer,
			      const struct state_delta_ops *ops)
{
	static const enum chain_id remembering[] = {CHAIN_FILTER_INPUT, CHAIN_FILTER_FORWARD,
						    CHAIN_FILTER_OUTPUT};
	const struct layout_facts facts = facts_of(state);

	if (facts.affinity == state->affinity_written)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(remembering); i++)
		rewrite_chain(writer, &facts, remembering[i], ops);
}

static void write_cidrs(struct state *state, struct writer *writer,
			const struct state_delta_ops *ops)
{
	const struct layout_facts facts = facts_of(state);

	if (state->cidrs_changed)
		rewrite_chain(writer, &facts, CHAIN_CLUSTER_IPS_CHECK, ops);
}

void state_write_delta(struct state *state, struct writer *writer,
		       const struct state_delta_ops *ops)
{
	pick_chains_write(&state->pick_chains, writer, state->settings);
	state_write_affinity_delta(state, writer, ops);
	write_remembering(state, writer, ops);
	write_cidrs(state, writer, ops);
	for (size_t i = 0; i < state->removals.n; i++)
		writer->ops->remove(writer, &state->removals.v[i]);
	for (size_t i = 0; i < state->additions.n; i++)
		writer->ops->add(writer, &state->additions.v[i]);
}

bool state_has_chain(const struct state *state, const char *name)
{
	char own[CHAIN_NAME_MAX];
	struct chain chain;

	if (chain_parse(name, &chain) && chain.id >= CHAIN_RECALL)
		return affinity_ids_has(&state->ids, chain.number, chain.id == CHAIN_LOCAL_RECALL);
	for (enum chain_id id = 0; id < CHAIN_FIXED_COUNT; id++) {
		chain_name((struct chain){.id = id}, own);
		if (streq(own, name))
			return layout_has_chain(state->settings, id);
	}
	return pick_chains_has(&state->pick_chains, name);
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What service ports with affinity have of their own: maps of clients, and the chains that read and write them. They
 * come before the elements that lead to them, and go after these.
 */

#include "backends/nftables/state_parts.h"

static const enum chain_id chains[] = {CHAIN_RECALL, CHAIN_LOCAL_RECALL, CHAIN_REMEMBER_PORT};

/* One port's, with the text that it borrows. */
struct own {
	struct layout_affinity affinity;
	char comment[AFFINITY_IDS_NAME_MAX];
};

static void describe(struct state *state, const struct port_plan *port, struct own *ret)
{
	affinity_ids_name(port, ret->comment);
	ret->affinity = (struct layout_affinity){
		.number = affinity_ids_port(&state->ids, port),
		.protocol = port->port->protocol,
		.seconds = port->service->sticky_seconds,
		.local = elements_have_local_affinity(port),
		.clients = state->settings->mode.affinity_clients,
		.comment = ret->comment,
	};
}

static bool has_chain(const struct layout_affinity *affinity, enum chain_id id)
{
	return id != CHAIN_LOCAL_RECALL || affinity->local;
}

static void write_rules(struct writer *writer, const struct layout_affinity *affinity,
			const struct state_delta_ops *ops)
{
	for (size_t i = 0; i < ARRAY_SIZE(chains); i++) {
		const struct chain chain = {chains[i], affinity->number};

		if (!has_chain(affinity, chain.id))
			continue;
		writer->ops->chain(writer, chain);
		if (ops)
			ops->flush_chain(writer, chain);
		layout_affinity_rules(writer, affinity, chain.id);
	}
}

struct writing {
	struct state *state;
	struct writer *writer;
	struct chain only; /* number 0: all */
};

static void tell_owner(struct writer *writer, const struct port_plan *port)
{
	if (writer->by_owner)
		writer->ops->owner(writer, port);
}

static void write_port(void *arg, uint32_t id, const struct port_plan *port)
{
	const struct writing *writing = arg;
	struct own own;

	if (writing->only.number != 0 && writing->only.number != id)
		return;
	describe(writing->state, port, &own);
	if (writing->only.number != 0) {
		layout_affinity_rules(writing->writer, &own.affinity, writing->only.id);
		return;
	}
	tell_owner(writing->writer, port);
	layout_affinity_maps(writing->writer, &own.affinity);
	write_rules(writing->writer, &own.affinity, NULL);
}

void state_write_affinity(struct state *state, struct writer *writer)
{
	struct writing writing = {.state = state, .writer = writer};

	state_each_affinity(state, write_port, &writing);
	tell_owner(writer, NULL);
}

void state_write_affinity_rules(struct state *state, struct writer *writer, struct chain chain)
{
	struct writing writing = {state, writer, chain};

	state_each_affinity(state, write_port, &writing);
}

/* -- a difference */

/* The port of the plan that has the same number, which it keeps while it is the same Service's; NULL: none. */
static const struct port_plan *find_same(struct state *state, const struct service_plan *plan,
					 const struct port_plan *port)
{
	const struct port_plan *found = slots_find_port(plan, port);

	return found && elements_have_affinity(found) &&
			       affinity_ids_port(&state->ids, found) ==
				       affinity_ids_port(&state->ids, port)
		       ? found
		       : NULL;
}

static void write_changed(struct state *state, struct writer *writer,
			  const struct state_delta_ops *ops, const struct service_plan *applied,
			  const struct port_plan *port)
{
	const struct port_plan *before = find_same(state, applied, port);
	struct own own, old;

	describe(state, port, &own);
	if (before) {
		describe(state, before, &old);
		if (old.affinity.seconds == own.affinity.seconds &&
		    old.affinity.local == own.affinity.local)
			return;
	}
	layout_affinity_maps(writer, &own.affinity);
	write_rules(writer, &own.affinity, before ? ops : NULL);
}

void state_write_affinity_delta(struct state *state, struct writer *writer,
				const struct state_delta_ops *ops)
{
	for (const struct served *service = state->dirty; service; service = service->next_dirty)
		for (size_t i = 0; service->next.plan && i < service->next.plan->n_ports; i++)
			if (elements_have_affinity(&service->next.plan->ports[i]))
				write_changed(state, writer, ops, service->applied.plan,
					      &service->next.plan->ports[i]);
}

/* All that `before` has and `now` has not. */
static void delete_own(struct writer *writer, const struct state_delta_ops *ops,
		       const struct layout_affinity *before, const struct layout_affinity *now)
{
	for (size_t i = 0; i < ARRAY_SIZE(chains); i++)
		if (has_chain(before, chains[i]) && !(now && has_chain(now, chains[i])))
			ops->delete_chain(writer, (struct chain){chains[i], before->number});
	if (before->local && !(now && now->local))
		ops->delete_clients(writer, CONTAINER_LOCAL_CLIENTS, before->number);
	if (!now)
		ops->delete_clients(writer, CONTAINER_CLIENTS, before->number);
}

static void delete_departed(struct state *state, struct writer *writer,
			    const struct state_delta_ops *ops, const struct served *service)
{
	for (size_t i = 0; service->applied.plan && i < service->applied.plan->n_ports; i++) {
		const struct port_plan *port = &service->applied.plan->ports[i], *now;
		struct own before, after;

		if (!elements_have_affinity(port))
			continue;
		now = find_same(state, service->next.plan, port);
		describe(state, port, &before);
		if (now)
			describe(state, now, &after);
		delete_own(writer, ops, &before.affinity, now ? &after.affinity : NULL);
	}
}

void state_write_departed(struct state *state, struct writer *writer,
			  const struct state_delta_ops *ops)
{
	for (const struct served *service = state->dirty; service; service = service->next_dirty)
		delete_departed(state, writer, ops, service);
}

/* -- ids */

void state_forget_members(struct state *state)
{
	size_t n = addr_bytes(state->settings->family);

	for (size_t i = 0; i < state->removals.n; i++) {
		const struct element *element = &state->removals.v[i];
		struct endpoint endpoint = {.addr.family = (uint8_t)state->settings->family};
		const uint8_t *port = element->bytes + sizeof(uint32_t) + n;

		if (element->container != CONTAINER_AFFINITY_MEMBERS)
			continue;
		memcpy(endpoint.addr.bytes, element->bytes + sizeof(uint32_t), n);
		endpoint.port = (uint16_t)(port[0] << 8 | port[1]);
		affinity_ids_forget_endpoint(&state->ids, element_id_number(element->bytes),
					     &endpoint);
	}
}

void state_forget_ports(struct state *state, const struct served *service)
{
	for (size_t i = 0; service->applied.plan && i < service->applied.plan->n_ports; i++) {
		const struct port_plan *port = &service->applied.plan->ports[i];

		if (elements_have_affinity(port) && !find_same(state, service->next.plan, port))
			affinity_ids_forget_port(&state->ids, port);
	}
}

bool state_has_clients(const struct state *state, enum container container, uint32_t number)
{
	return affinity_ids_has(&state->ids, number, container == CONTAINER_LOCAL_CLIENTS);
}

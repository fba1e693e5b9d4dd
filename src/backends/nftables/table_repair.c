/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/nftables/table_repair.h"

/* A chain that looks like one of ours, but that we have not made, is another program's. */
static bool is_possible(const struct damage *damage, const struct state *state)
{
	char name[CHAIN_NAME_MAX];

	for (size_t i = 0; i < damage->n_chains; i++) {
		chain_name(damage->chains[i], name);
		if (!state_has_chain(state, name))
			return false;
	}
	return !damage->everything;
}

static void remove_elements(const struct damage *damage, struct batch_writer *writer)
{
	for (enum container i = 0; i < CONTAINER_COUNT; i++)
		if (damage->containers[i])
			batch_writer_flush_container(writer, i);
	for (size_t i = 0; i < damage->n_keys; i++) {
		const struct damage_key *key = &damage->keys[i];

		if (key->there && !damage->containers[key->element.container])
			writer->writer.ops->remove(&writer->writer, &key->element);
	}
	batch_writer_flush(writer);
}

/* All are there before a rule leads from one to another. */
static void write_chains(const struct damage *damage, struct state *state,
			 struct batch_writer *writer)
{
	for (size_t i = 0; i < damage->n_chains; i++) {
		writer->writer.ops->chain(&writer->writer, damage->chains[i]);
		batch_writer_flush_chain(writer, damage->chains[i]);
	}
	for (size_t i = 0; i < damage->n_chains; i++)
		state_write_rules(state, &writer->writer, damage->chains[i]);
}

struct adding {
	const struct damage *damage;
	struct writer *writer;
};

static void add_covered(void *arg, const struct element *element)
{
	const struct adding *adding = arg;

	if (damage_covers(adding->damage, element))
		adding->writer->ops->add(adding->writer, element);
}

static bool touches_elements(const struct damage *damage, bool *ret_slots)
{
	bool touched = damage->n_keys > 0;

	*ret_slots = false;
	for (size_t i = 0; i < damage->n_keys; i++)
		*ret_slots |= container_has_slots(damage->keys[i].element.container);
	for (enum container i = 0; i < CONTAINER_COUNT; i++) {
		touched |= damage->containers[i];
		*ret_slots |= damage->containers[i] && container_has_slots(i);
	}
	return touched;
}

bool table_repair_write(const struct damage *damage, struct state *state,
			struct batch_writer *writer)
{
	struct adding adding = {damage, &writer->writer};
	bool slots;

	if (!is_possible(damage, state))
		return false;
	remove_elements(damage, writer);
	write_chains(damage, state, writer);
	if (touches_elements(damage, &slots))
		state_each_element(state, slots, add_covered, &adding);
	batch_writer_flush(writer);
	return true;
}

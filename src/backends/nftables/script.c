/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/nftables/script.h"

#include "backends/nftables/layout.h"
#include "backends/nftables/named_counter.h"
#include "backends/nftables/state.h"
#include "backends/nftables/statement_text.h"

static struct text *text_of(struct writer *writer)
{
	return ((struct script_writer *)writer)->text;
}

static const char *family_word(const struct writer *writer)
{
	return writer->family == FAMILY_IPV4 ? "ip" : "ip6";
}

static void begin(struct writer *writer, const char *command)
{
	text_printf(text_of(writer), "%s %s " LAYOUT_TABLE " ", command, family_word(writer));
}

static void declare(struct writer *writer, const struct clients_map *map)
{
	const struct container_type *type = &container_types[map->container];
	struct text *text = text_of(writer);
	char name[CONTAINER_NAME_MAX];

	container_name(map->container, map->number, name);
	begin(writer, type->data == DATA_NONE ? "add set" : "add map");
	text_printf(text, "%s { ", name);
	statement_text_type(text, writer->family, map->container);
	text_str(text, "; ");
	if (type->ranges)
		text_str(text, "flags interval; ");
	if (type->dynamic)
		text_str(text, "flags dynamic,timeout; ");
	if (type->dynamic && map->size > 0)
		text_printf(text, "size %u; ", map->size);
	text_printf(text, "comment \"%.*s\"; }\n", ELEMENT_COMMENT_MAX, map->comment);
}

static void write_container(struct writer *writer, enum container container)
{
	declare(writer, &(struct clients_map){.container = container,
					      .size = CONTAINER_FULL_SIZE,
					      .comment = container_types[container].comment});
}

static void write_counter(struct writer *writer, enum protocol protocol)
{
	char name[NAMED_COUNTER_MAX];

	named_counter_name(protocol, name);
	begin(writer, "add counter");
	text_printf(text_of(writer), "%s\n", name);
}

static void write_chain(struct writer *writer, struct chain chain)
{
	const struct chain_hook *hook = chain_hook(chain.id);
	struct text *text = text_of(writer);
	char name[CHAIN_NAME_MAX], comment[128];

	chain_name(chain, name);
	chain_comment(chain, comment);
	begin(writer, "add chain");
	text_str(text, name);
	if (hook)
		text_printf(text, " { type %s hook %s priority %s; }", hook->type, hook->hook,
			    hook->priority_text);
	else
		text_printf(text, " { comment \"%s\"; }", comment);
	text_str(text, "\n");
}

static void write_rule(struct writer *writer, const struct nft_rule *rule)
{
	struct text *text = text_of(writer);
	char name[CHAIN_NAME_MAX];

	chain_name(rule->chain, name);
	begin(writer, "add rule");
	text_printf(text, "%s ", name);
	statement_text_rule(text, writer->family, rule);
	text_str(text, "\n");
}

static void write_add(struct writer *writer, const struct element *element)
{
	element_list_add(&((struct script_writer *)writer)->added, element);
}

/* A script makes the table anew: there is nothing to remove from it. */
static void write_remove(struct writer *writer attr_unused,
			 const struct element *element attr_unused)
{
}

void script_writer_finish(struct script_writer *script)
{
	struct text *text = script->text;

	element_list_sort(&script->added);
	for (size_t i = 0; i < script->added.n; i++) {
		const struct element *element = &script->added.v[i];

		begin(&script->writer, "add element");
		text_printf(text, "%s { ", container_types[element->container].name);
		statement_text_element(text, script->writer.family, element);
		text_str(text, " }\n");
	}
	element_list_done(&script->added);
}

static const struct writer_ops ops = {
	.container = write_container,
	.clients = declare,
	.counter = write_counter,
	.chain = write_chain,
	.rule = write_rule,
	.add = write_add,
	.remove = write_remove,
};

void script_writer_init(struct script_writer *script, enum family family, struct text *text)
{
	const char *word = family == FAMILY_IPV4 ? "ip" : "ip6";

	*script = (struct script_writer){.writer = {.ops = &ops, .family = family}, .text = text};
	text_printf(text,
		    "add table %s " LAYOUT_TABLE "\n"
		    "delete table %s " LAYOUT_TABLE "\n"
		    "add table %s " LAYOUT_TABLE " { comment \"" LAYOUT_COMMENT "\"; }\n",
		    word, word, word);
}

void script_render(const struct settings *settings, const struct plan_delta *delta,
		   const struct addr *addresses, size_t n_addresses, struct text *ret)
{
	struct state *state = state_new(settings);
	struct script_writer script;

	state_begin(state, &(struct state_input){.delta = delta,
						 .full = true,
						 .addresses = addresses,
						 .n_addresses = n_addresses});
	script_writer_init(&script, settings->family, ret);
	layout_containers(&script.writer, settings);
	state_write_chains(state, &script.writer);
	state_write_elements(state, &script.writer);
	script_writer_finish(&script);
	state_free(state);
}

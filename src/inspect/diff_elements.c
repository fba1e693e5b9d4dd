/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/diff_elements.h"

#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <stdlib.h>

#include "backends/nftables/statement_text.h"
#include "backends/nftables/table.h"
#include "backends/nftables/user_data.h"

void diff_elements_init(struct diff_elements *elements, enum family family,
			enum container container)
{
	*elements = (struct diff_elements){.family = family, .container = container};
}

static void element_done(struct diff_element *element)
{
	free((char *)element->element.comment);
	free(element->chain);
	free(element->odd);
}

void diff_elements_done(struct diff_elements *elements)
{
	for (size_t i = 0; i < elements->n; i++)
		element_done(&elements->v[i]);
	free(elements->v);
	elements->v = NULL;
	elements->n = elements->capacity = 0;
}

void diff_elements_restart(void *arg)
{
	diff_elements_done(arg);
}

/* -- taking what the kernel lists */

/* The prefix that a range is, by its first and last address; a range that is none has no length. */
static bool take_prefix(const struct table_element *listed, enum family family, uint8_t *ret)
{
	size_t n = addr_bytes(family), from = listed->key_size - n;
	uint8_t bits = addr_bits(family), length = 0;

	if (!listed->key_end) {
		*ret = bits;
		return true;
	}
	for (; length < bits; length++)
		if ((listed->key[from + length / 8] ^ listed->key_end[from + length / 8]) &
		    0x80 >> length % 8)
			break;
	for (uint8_t i = length; i < bits; i++) {
		uint8_t bit = (uint8_t)(0x80 >> i % 8);

		if (listed->key[from + i / 8] & bit || !(listed->key_end[from + i / 8] & bit))
			return false;
	}
	*ret = length;
	return memcmp(listed->key, listed->key_end, from) == 0;
}

/* A range that is no prefix: FIRST-LAST behind the rest of the key. */
static char *range_words(const struct diff_elements *elements, const struct table_element *listed)
{
	struct addr last = {.family = (uint8_t)elements->family};
	size_t n = addr_bytes(elements->family);
	cleanup_text struct text text = {0};
	struct element element;
	char out[ADDR_TEXT_MAX];

	element_begin(&element, elements->container);
	element.prefix = addr_bits(elements->family);
	memcpy(element.bytes, listed->key, listed->key_size);
	memcpy(last.bytes, listed->key_end + listed->key_size - n, n);
	addr_print(&last, out);
	statement_text_key(&text, elements->family, &element);
	text_printf(&text, "-%s", out);
	return text_dup(&text);
}

static char *odd_words(const struct table_element *listed)
{
	cleanup_text struct text text = {0};

	text_str(&text, "0x");
	for (size_t i = 0; i < listed->key_size; i++)
		text_printf(&text, "%02x", listed->key[i]);
	for (size_t i = 0; i < listed->data_size && listed->data; i++)
		text_printf(&text, "%s%02x", i == 0 ? " : 0x" : "", listed->data[i]);
	return text_dup(&text);
}

static bool has_right_size(const struct diff_elements *elements, const struct table_element *listed)
{
	const struct container_type *type = &container_types[elements->container];
	size_t data = container_data_size(elements->container, elements->family);

	if (listed->key_size != container_key_size(elements->container, elements->family))
		return false;
	if (type->data == DATA_VERDICT)
		return listed->verdict;
	return type->data == DATA_NONE ? !listed->data : listed->data && listed->data_size == data;
}

static void take_element(void *arg, const struct table_element *listed)
{
	struct diff_elements *elements = arg;
	struct diff_element *taken;
	struct element *element;
	char comment[USER_DATA_COMMENT_MAX];

	array_grow(&elements->v, &elements->capacity, elements->n, sizeof(*elements->v));
	taken = &elements->v[elements->n++];
	*taken = (struct diff_element){.code = listed->code};
	element = &taken->element;
	element_begin(element, elements->container);
	if (!has_right_size(elements, listed))
		taken->odd = odd_words(listed);
	else if (container_types[elements->container].ranges &&
		 !take_prefix(listed, elements->family, &element->prefix))
		taken->odd = range_words(elements, listed);
	if (taken->odd)
		return;
	element->key_size = (uint8_t)listed->key_size;
	memcpy(element->bytes, listed->key, listed->key_size);
	if (listed->data) {
		element->data_size = (uint8_t)listed->data_size;
		memcpy(element->bytes + listed->key_size, listed->data, listed->data_size);
	}
	taken->chain = xstrdup_or_null(listed->chain);
	if (user_data_read_comment(listed->user_data, comment))
		element->comment = xstrdup(comment);
}

int diff_elements_take(void *arg, const struct nlmsghdr *message, struct err *err)
{
	return table_each_element(message, take_element, arg, err);
}

/* -- whose it is */

/* A destination at the beginning of a key, as one of another container. */
static const char *comment_at(struct nftables_rules *wanted, const struct element *element,
			      enum container container, size_t key_size)
{
	const struct element *found;
	struct element key;

	element_begin(&key, container);
	key.key_size = (uint8_t)key_size;
	memcpy(key.bytes, element->bytes, key_size);
	found = nftables_rules_find(wanted, &key);
	return found ? found->comment : NULL;
}

static const char *comment_of(struct nftables_rules *wanted, const struct element *element)
{
	const enum container_field *key = container_types[element->container].key;
	size_t n = addr_bytes(wanted->writer.family);
	const char *comment = element->comment;

	if (comment)
		return comment;
	if (key[0] == FIELD_PROTOCOL && key[1] == FIELD_PORT) {
		comment = comment_at(wanted, element, CONTAINER_SERVICE_NODEPORTS, 8);
		return comment ? comment
			       : comment_at(wanted, element, CONTAINER_NO_ENDPOINT_NODEPORTS, 8);
	}
	if (key[0] != FIELD_ADDRESS || key[1] != FIELD_PROTOCOL || key[2] != FIELD_PORT)
		return NULL;
	comment = comment_at(wanted, element, CONTAINER_SERVICE_IPS, n + 8);
	return comment ? comment
		       : comment_at(wanted, element, CONTAINER_NO_ENDPOINT_SERVICES, n + 8);
}

/* A comment is "namespace/name[:port]". */
static char *service_of(struct nftables_rules *wanted, const struct element *element)
{
	const char *comment = element->key_size > 0 ? comment_of(wanted, element) : NULL;

	return comment && strchr(comment, '/')
		       ? xasprintf("%.*s", (int)strcspn(comment, ":"), comment)
		       : NULL;
}

/* -- in words */

static void put_verdict(struct text *text, const struct diff_element *found)
{
	const char *chain = found->chain ? found->chain : "?";

	if (found->code == NFT_GOTO || found->code == NFT_JUMP)
		text_printf(text, " : %s %s", found->code == NFT_GOTO ? "goto" : "jump", chain);
	else if (found->code == NF_DROP || found->code == NF_ACCEPT)
		text_str(text, found->code == NF_DROP ? " : drop" : " : accept");
	else
		text_printf(text, " : verdict %d", found->code);
}

static char *words_of(enum family family, const struct diff_element *found)
{
	cleanup_text struct text text = {0};

	if (found->odd)
		return xstrdup(found->odd);
	if (container_types[found->element.container].data != DATA_VERDICT) {
		statement_text_element(&text, family, &found->element);
	} else {
		statement_text_key(&text, family, &found->element);
		put_verdict(&text, found);
	}
	return text_dup(&text);
}

/* -- comparing */

struct walk {
	struct diff *diff;
	const struct diff_place *place;
	struct nftables_rules *wanted;
	enum family family;
	size_t at[DIFF_SIDES]; /* numbers of the next lines */
};

static void put_missing(struct walk *walk, const struct element *element)
{
	cleanup_text struct text text = {0};
	cleanup_free char *words = NULL, *service = service_of(walk->wanted, element);

	statement_text_element(&text, walk->family, element);
	words = text_dup(&text);
	diff_put(walk->diff, walk->place, '-', walk->at, words, service);
	walk->at[DIFF_WANTED]++;
}

static void put_unwanted(struct walk *walk, const struct diff_element *found)
{
	bool lingers = !found->odd && container_types[found->element.container].lingers;
	cleanup_free char *words = words_of(walk->family, found);
	cleanup_free char *service = service_of(walk->wanted, &found->element);

	if (!lingers)
		diff_put(walk->diff, walk->place, '+', walk->at, words, service);
	walk->at[DIFF_KERNEL]++;
}

static void pass_both(struct walk *walk)
{
	walk->at[DIFF_WANTED]++;
	walk->at[DIFF_KERNEL]++;
}

static bool same_comment(const char *a, const char *b)
{
	return a == b || (a && b && strncmp(a, b, ELEMENT_COMMENT_MAX) == 0);
}

static bool same_data(const struct element *wanted, const struct diff_element *found)
{
	char name[CHAIN_NAME_MAX];

	if (found->odd || !same_comment(wanted->comment, found->element.comment))
		return false;
	if (wanted->verdict == VERDICT_DROP)
		return found->code == NF_DROP;
	if (wanted->verdict != VERDICT_NONE) {
		chain_name(wanted->chain, name);
		return found->code == (wanted->verdict == VERDICT_JUMP ? NFT_JUMP : NFT_GOTO) &&
		       found->chain && streq(found->chain, name);
	}
	return wanted->data_size == found->element.data_size &&
	       memcmp(wanted->bytes + wanted->key_size,
		      found->element.bytes + found->element.key_size, wanted->data_size) == 0;
}

/* What is odd has no key and comes first. */
static int compare_elements(const void *left, const void *right)
{
	const struct diff_element *a = left, *b = right;

	if (a->odd || b->odd)
		return a->odd && b->odd ? strcmp(a->odd, b->odd) : a->odd ? -1 : 1;
	return element_compare(&a->element, &b->element);
}

/* The kernel lists an element again when its table grows meanwhile. */
static void sort_elements(struct diff_elements *elements)
{
	size_t n = 0;

	if (elements->n > 1)
		qsort(elements->v, elements->n, sizeof(*elements->v), compare_elements);
	for (size_t i = 0; i < elements->n; i++)
		if (n > 0 && compare_elements(&elements->v[n - 1], &elements->v[i]) == 0)
			element_done(&elements->v[i]);
		else
			elements->v[n++] = elements->v[i];
	elements->n = n;
}

/* The elements of both sides that are next: negative, 0 or positive as element_compare(). */
static int order(const struct element *wanted, size_t n_wanted, const struct diff_element *found,
		 size_t n_found)
{
	if (n_wanted == 0 || n_found == 0)
		return n_wanted == 0 ? 1 : -1;
	return found->odd ? 1 : element_compare(wanted, &found->element);
}

static void compare_keys(struct walk *walk, const struct element *wanted, size_t n_wanted,
			 const struct diff_element *found, size_t n_found)
{
	size_t i = 0, j = 0;

	while (i < n_wanted || j < n_found) {
		int r = order(&wanted[i], n_wanted - i, &found[j], n_found - j);

		if (r == 0 && same_data(&wanted[i], &found[j])) {
			pass_both(walk);
			i++;
			j++;
			continue;
		}
		if (r <= 0)
			put_missing(walk, &wanted[i++]);
		if (r >= 0)
			put_unwanted(walk, &found[j++]);
	}
}

/* -- slots */

static uint32_t slot_of(const struct element *element)
{
	uint32_t slot;

	memcpy(&slot, element->bytes + element->key_size - sizeof(slot), sizeof(slot));
	return slot;
}

static bool same_group(const struct element *a, const struct element *b)
{
	return memcmp(a->bytes, b->bytes, a->key_size - sizeof(uint32_t)) == 0;
}

/* Which of the wanted is in no slot yet and like this one? The one of the same slot first. */
static size_t find_wanted(const struct element *wanted, size_t n, const bool *met,
			  const struct diff_element *found)
{
	uint32_t slot = slot_of(&found->element);

	if (!met[slot] && same_data(&wanted[slot], found))
		return slot;
	for (size_t i = 0; i < n; i++)
		if (!met[i] && same_data(&wanted[i], found))
			return i;
	return n;
}

/*
 * One destination. Slots that hold what is wanted are as they should be; the rest of the wanted goes
 * to the slots that are left, in order.
 */
static void compare_group(struct walk *walk, const struct element *wanted, size_t n_wanted,
			  const struct diff_element *found, size_t n_found)
{
	cleanup_free bool *met = xcalloc(n_wanted + 1, sizeof(*met));
	cleanup_free bool *right = xcalloc(n_wanted + 1, sizeof(*right)); /* slots */
	size_t next = 0, j = 0;

	for (size_t i = 0; i < n_found; i++) {
		uint32_t slot = slot_of(&found[i].element);
		size_t which =
			slot < n_wanted ? find_wanted(wanted, n_wanted, met, &found[i]) : n_wanted;

		if (which < n_wanted)
			met[which] = right[slot] = true;
	}
	for (uint32_t slot = 0; slot < n_wanted; slot++) {
		bool there = j < n_found && slot_of(&found[j].element) == slot;

		if (right[slot]) {
			pass_both(walk);
			j++;
			continue;
		}
		while (met[next])
			next++;
		struct element missing = wanted[next++];

		memcpy(missing.bytes + missing.key_size - sizeof(slot), &slot, sizeof(slot));
		put_missing(walk, &missing);
		if (there)
			put_unwanted(walk, &found[j++]);
	}
	while (j < n_found)
		put_unwanted(walk, &found[j++]);
}

static void compare_slots(struct walk *walk, const struct element *wanted, size_t n_wanted,
			  const struct diff_element *found, size_t n_found)
{
	size_t i = 0, j = 0;

	while (j < n_found && found[j].odd)
		put_unwanted(walk, &found[j++]);
	while (i < n_wanted || j < n_found) {
		const struct element *first = &wanted[i];
		size_t group = 0, others = 0;

		if (i == n_wanted ||
		    (j < n_found && element_compare(&found[j].element, first) < 0 &&
		     !same_group(&found[j].element, first)))
			first = &found[j].element;
		while (i + group < n_wanted && same_group(&wanted[i + group], first))
			group++;
		while (j + others < n_found && same_group(&found[j + others].element, first))
			others++;
		compare_group(walk, &wanted[i], group, &found[j], others);
		i += group;
		j += others;
	}
}

/* -- what a packet asked for */

static void keep_asked(const struct nftables_rules *wanted, struct diff_elements *kernel)
{
	size_t n = 0;

	for (size_t i = 0; i < kernel->n; i++)
		if (kernel->v[i].odd || nftables_rules_asked(wanted, &kernel->v[i].element))
			kernel->v[n++] = kernel->v[i];
		else
			element_done(&kernel->v[i]);
	kernel->n = n;
}

/* -- */

/* Those that are wanted in one container and asked for, sorted; the caller frees the array. */
static struct element *wanted_part(struct nftables_rules *wanted, enum container container,
				   size_t *ret_n)
{
	const struct element_list *list = nftables_rules_elements(wanted);
	struct element *part = xcalloc(list->n + 1, sizeof(*part));

	*ret_n = 0;
	for (size_t i = 0; i < list->n && list->v[i].container <= container; i++)
		if (list->v[i].container == container && nftables_rules_asked(wanted, &list->v[i]))
			part[(*ret_n)++] = list->v[i];
	return part;
}

void diff_elements_compare(struct diff *diff, const struct diff_place *place,
			   struct nftables_rules *wanted, struct diff_elements *kernel)
{
	static const struct diff_element none;
	struct walk walk = {diff, place, wanted, kernel->family, {1, 1}};
	const struct diff_element *found;
	size_t n;
	cleanup_free struct element *part = wanted_part(wanted, kernel->container, &n);

	keep_asked(wanted, kernel);
	sort_elements(kernel);
	found = kernel->n > 0 ? kernel->v : &none;
	if (container_has_slots(kernel->container))
		compare_slots(&walk, part, n, found, kernel->n);
	else
		compare_keys(&walk, part, n, found, kernel->n);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/diff_elements.h"

#include <stdlib.h>

#include "backends/nftables/element_read.h"
#include "backends/nftables/statement_text.h"

void diff_elements_init(struct diff_elements *elements, enum family family,
			enum container container)
{
	*elements = (struct diff_elements){.family = family, .container = container};
}

static void element_done(struct diff_element *element)
{
	free((char *)element->element.comment);
	free(element->raw);
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

static void take_element(void *arg, const struct element_read *read)
{
	struct diff_elements *elements = arg;
	cleanup_text struct text text = {0};
	struct diff_element *taken;

	array_grow(&elements->v, &elements->capacity, elements->n, sizeof(*elements->v));
	taken = &elements->v[elements->n++];
	*taken = (struct diff_element){.element = read->element};
	taken->element.comment = xstrdup_or_null(read->element.comment);
	if (!read->is_raw)
		return;
	element_read_text(&text, elements->family, read);
	taken->raw = text_dup(&text);
}

int diff_elements_take(void *arg, const struct nlmsghdr *message, struct err *err)
{
	const struct diff_elements *elements = arg;

	return element_read_each(message, elements->family, elements->container, take_element, arg,
				 err);
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

/* -- comparing */

struct walk {
	struct diff *diff;
	const struct diff_place *place;
	struct nftables_rules *wanted;
	enum family family;
	size_t at[DIFF_SIDES]; /* numbers of the next lines */
};

static char *words_of(enum family family, const struct element *element)
{
	cleanup_text struct text text = {0};

	statement_text_element(&text, family, element);
	return text_dup(&text);
}

static void put_missing(struct walk *walk, const struct element *element)
{
	cleanup_free char *words = words_of(walk->family, element);
	cleanup_free char *service = service_of(walk->wanted, element);

	diff_put(walk->diff, walk->place, '-', walk->at, words, service);
	walk->at[DIFF_WANTED]++;
}

static void put_unwanted(struct walk *walk, const struct diff_element *found)
{
	bool lingers = !found->raw && container_types[found->element.container].lingers;
	cleanup_free char *words =
		found->raw ? xstrdup(found->raw) : words_of(walk->family, &found->element);
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

static bool same_data(const struct element *wanted, const struct diff_element *found)
{
	return !found->raw && element_same_data(wanted, &found->element);
}

/* What has no key comes first. */
static int compare_elements(const void *left, const void *right)
{
	const struct diff_element *a = left, *b = right;

	if (a->element.key_size == 0 || b->element.key_size == 0)
		return a->element.key_size == b->element.key_size ? strcmp(a->raw, b->raw)
		       : a->element.key_size == 0                 ? -1
								  : 1;
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
	return found->element.key_size == 0 ? 1 : element_compare(wanted, &found->element);
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

	while (j < n_found && found[j].element.key_size == 0)
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
		if (kernel->v[i].element.key_size == 0 ||
		    nftables_rules_asked(wanted, &kernel->v[i].element))
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

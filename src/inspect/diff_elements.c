/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/diff_elements.h"

#include <stdlib.h>

#include "backends/nftables/element_read.h"
#include "backends/nftables/statement_text.h"

void diff_elements_init(struct diff_elements *elements, enum family family,
			enum container container)
{
	*elements = (struct diff_elements){
		.family = family, .container = container, .arena = arena_new(4096)};
}

void diff_elements_done(struct diff_elements *elements)
{
	free(elements->v);
	arena_free(elements->arena);
}

void diff_elements_restart(void *arg)
{
	((struct diff_elements *)arg)->n = 0;
}

static void take_element(void *arg, const struct element_read *read)
{
	struct diff_elements *elements = arg;
	struct diff_element *taken;

	array_grow(&elements->v, &elements->capacity, elements->n, sizeof(*elements->v));
	taken = &elements->v[elements->n++];
	*taken = (struct diff_element){.element = read->element};
	if (read->element.comment)
		taken->element.comment = arena_strdup(elements->arena, read->element.comment);
	if (read->is_raw) {
		cleanup_text struct text text = {0};

		element_read_text(&text, elements->family, read);
		taken->raw = text_keep(&text, elements->arena);
	}
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
	cleanup_free char *words = found->raw ? NULL : words_of(walk->family, &found->element);
	cleanup_free char *service = service_of(walk->wanted, &found->element);

	if (!lingers)
		diff_put(walk->diff, walk->place, '+', walk->at, words ? words : found->raw,
			 service);
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
		if (n == 0 || compare_elements(&elements->v[n - 1], &elements->v[i]) != 0)
			elements->v[n++] = elements->v[i];
	elements->n = n;
}

/* The elements of both sides that are next: negative, 0 or positive as element_compare(). */
static int order(const struct element_list *wanted, size_t i, const struct diff_elements *found,
		 size_t j)
{
	if (i == wanted->n || j == found->n)
		return i == wanted->n ? 1 : -1;
	if (found->v[j].element.key_size == 0)
		return 1;
	return element_compare(&wanted->v[i], &found->v[j].element);
}

static void compare_keys(struct walk *walk, const struct element_list *wanted,
			 const struct diff_elements *found)
{
	size_t i = 0, j = 0;

	while (i < wanted->n || j < found->n) {
		int r = order(wanted, i, found, j);

		if (r == 0 && same_data(&wanted->v[i], &found->v[j])) {
			walk->at[DIFF_WANTED]++;
			walk->at[DIFF_KERNEL]++;
			i++;
			j++;
			continue;
		}
		if (r <= 0)
			put_missing(walk, &wanted->v[i++]);
		if (r >= 0)
			put_unwanted(walk, &found->v[j++]);
	}
}

/* -- slots */

static uint32_t slot_of(const struct element *element)
{
	uint32_t slot;

	memcpy(&slot, element->bytes + element->key_size - sizeof(slot), sizeof(slot));
	return slot;
}

static void set_slot(struct element *element, uint32_t slot)
{
	memcpy(element->bytes + element->key_size - sizeof(slot), &slot, sizeof(slot));
}

static bool same_group(const struct element *a, const struct element *b)
{
	return memcmp(a->bytes, b->bytes, a->key_size - sizeof(uint32_t)) == 0;
}

/* Which of the wanted has no place yet and is like this one? The one of the same slot first. */
static size_t find_wanted(const struct element *wanted, size_t n, const bool *placed,
			  const struct diff_element *found)
{
	uint32_t slot = slot_of(&found->element);

	if (slot >= n)
		return n;
	if (!placed[slot] && same_data(&wanted[slot], found))
		return slot;
	for (size_t i = 0; i < n; i++)
		if (!placed[i] && same_data(&wanted[i], found))
			return i;
	return n;
}

/*
 * One destination. What is wanted goes to the slots where the kernel has it; the rest to the slots that are left,
 * in order.
 */
static void arrange_group(struct element *wanted, size_t n, const struct diff_element *found,
			  size_t n_found)
{
	cleanup_free bool *placed = xcalloc(n, sizeof(*placed));
	cleanup_free bool *taken = xcalloc(n + 1, sizeof(*taken)); /* slots */
	uint32_t next = 0;

	for (size_t i = 0; i < n_found; i++) {
		size_t which = find_wanted(wanted, n, placed, &found[i]);

		if (which == n)
			continue;
		placed[which] = taken[slot_of(&found[i].element)] = true;
		set_slot(&wanted[which], slot_of(&found[i].element));
	}
	for (size_t i = 0; i < n; i++) {
		if (placed[i])
			continue;
		while (taken[next])
			next++;
		set_slot(&wanted[i], next++);
	}
}

static void arrange_slots(struct element_list *wanted, const struct diff_elements *found)
{
	size_t j = 0, group;

	for (size_t i = 0; i < wanted->n; i += group) {
		const struct element first = wanted->v[i];
		size_t from;

		for (group = 1; i + group < wanted->n; group++)
			if (!same_group(&wanted->v[i + group], &first))
				break;
		while (j < found->n && (found->v[j].element.key_size == 0 ||
					memcmp(found->v[j].element.bytes, first.bytes,
					       first.key_size - sizeof(uint32_t)) < 0))
			j++;
		for (from = j; j < found->n; j++)
			if (!same_group(&found->v[j].element, &first))
				break;
		if (j > from)
			arrange_group(&wanted->v[i], group, &found->v[from], j - from);
	}
	element_list_sort(wanted);
}

/* -- what is asked for */

static void keep_asked(const struct nftables_rules *wanted, struct diff_elements *kernel)
{
	size_t n = 0;

	for (size_t i = 0; i < kernel->n; i++)
		if (kernel->v[i].element.key_size == 0 ||
		    nftables_rules_asked(wanted, &kernel->v[i].element))
			kernel->v[n++] = kernel->v[i];
	kernel->n = n;
}

/* Those that are wanted in one container, sorted. */
static void find_wanted_part(struct nftables_rules *wanted, enum container container,
			     struct element_list *ret)
{
	const struct element_list *list = nftables_rules_elements(wanted);

	for (size_t i = 0; i < list->n && list->v[i].container <= container; i++)
		if (list->v[i].container == container && nftables_rules_asked(wanted, &list->v[i]))
			element_list_add(ret, &list->v[i]);
}

void diff_elements_compare(struct diff *diff, const struct diff_place *place,
			   struct nftables_rules *wanted, struct diff_elements *kernel)
{
	struct walk walk = {diff, place, wanted, kernel->family, {1, 1}};
	cleanup_element_list struct element_list part = {0};

	find_wanted_part(wanted, kernel->container, &part);
	keep_asked(wanted, kernel);
	sort_elements(kernel);
	if (container_has_slots(kernel->container))
		arrange_slots(&part, kernel);
	compare_keys(&walk, &part, kernel);
}

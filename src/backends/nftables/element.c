/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/nftables/element.h"

#include <assert.h>
#include <endian.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <stdlib.h>

const struct element_verdict_type element_verdicts[VERDICT_COUNT] = {
	[VERDICT_GOTO] = {"goto", NFT_GOTO, true},
	[VERDICT_JUMP] = {"jump", NFT_JUMP, true},
	[VERDICT_DROP] = {"drop", NF_DROP, false},
	[VERDICT_ACCEPT] = {"accept", NF_ACCEPT, false},
};

void element_begin(struct element *element, enum container container)
{
	*element = (struct element){.container = (uint8_t)container};
}

/* Every field takes a multiple of four bytes; what is left of them is zero. */
static void put(struct element *element, uint8_t *used, const void *data, size_t n)
{
	size_t at = (size_t)element->key_size + element->data_size;
	size_t padded = (n + 3) / 4 * 4;

	assert(at + padded <= ELEMENT_BYTES);
	memcpy(element->bytes + at, data, n);
	*used = (uint8_t)(*used + padded);
}

void element_key_addr(struct element *element, const struct addr *addr)
{
	put(element, &element->key_size, addr->bytes, addr_bytes(addr->family));
}

void element_key_protocol(struct element *element, enum protocol protocol)
{
	uint8_t number = protocol_number(protocol);

	put(element, &element->key_size, &number, sizeof(number));
}

void element_key_port(struct element *element, uint16_t port)
{
	uint16_t wire = htobe16(port);

	put(element, &element->key_size, &wire, sizeof(wire));
}

void element_key_number(struct element *element, uint32_t number)
{
	put(element, &element->key_size, &number, sizeof(number));
}

void element_key_id(struct element *element, uint32_t number)
{
	element_key_number(element, CONTAINER_ID_BASE + number);
}

void element_data_endpoint(struct element *element, const struct addr *addr, uint16_t port)
{
	uint16_t wire = htobe16(port);

	put(element, &element->data_size, addr->bytes, addr_bytes(addr->family));
	put(element, &element->data_size, &wire, sizeof(wire));
}

void element_data_id(struct element *element, uint32_t number)
{
	uint32_t id = CONTAINER_ID_BASE + number;

	put(element, &element->data_size, &id, sizeof(id));
}

void element_goto(struct element *element, enum chain_id id, uint32_t number)
{
	element->verdict = VERDICT_GOTO;
	element->chain = (struct chain){id, number};
}

void element_jump(struct element *element, enum chain_id id, uint32_t number)
{
	element->verdict = VERDICT_JUMP;
	element->chain = (struct chain){id, number};
}

uint32_t element_id_number(const uint8_t *bytes)
{
	uint32_t id;

	memcpy(&id, bytes, sizeof(id));
	return id - CONTAINER_ID_BASE;
}

static uint32_t last_number(const struct element *element)
{
	uint32_t number;

	memcpy(&number, element->bytes + element->key_size - sizeof(number), sizeof(number));
	return number;
}

/* Slots count as numbers, whatever the byte order; all else is compared as bytes. */
int element_compare(const struct element *a, const struct element *b)
{
	bool slots = container_has_slots(a->container);
	int r = (int)a->container - (int)b->container;

	if (r == 0)
		r = memcmp(a->bytes, b->bytes, a->key_size - (slots ? sizeof(uint32_t) : 0));
	if (r == 0 && slots)
		r = (last_number(a) > last_number(b)) - (last_number(a) < last_number(b));
	if (r == 0)
		r = (int)a->prefix - (int)b->prefix;
	return r;
}

static bool same_comment(const char *a, const char *b)
{
	return a == b || (a && b && strncmp(a, b, ELEMENT_COMMENT_MAX) == 0);
}

bool element_same_data(const struct element *a, const struct element *b)
{
	return a->verdict == b->verdict && a->chain.id == b->chain.id &&
	       a->chain.number == b->chain.number && a->data_size == b->data_size &&
	       memcmp(a->bytes + a->key_size, b->bytes + b->key_size, a->data_size) == 0 &&
	       same_comment(a->comment, b->comment);
}

void element_list_add(void *arg, const struct element *element)
{
	struct element_list *list = arg;

	array_grow(&list->v, &list->capacity, list->n, sizeof(*list->v));
	list->v[list->n++] = *element;
}

void element_list_done(struct element_list *list)
{
	free(list->v);
	*list = (struct element_list){0};
}

static int compare_elements(const void *a, const void *b)
{
	return element_compare(a, b);
}

void element_list_sort(struct element_list *list)
{
	size_t n = 0;

	if (list->n > 1)
		qsort(list->v, list->n, sizeof(*list->v), compare_elements);
	for (size_t i = 0; i < list->n; i++)
		if (n == 0 || element_compare(&list->v[n - 1], &list->v[i]) != 0)
			list->v[n++] = list->v[i];
	list->n = n;
}

void element_list_compare(const struct element_list *from, const struct element_list *to,
			  element_fn *remove, element_fn *add, void *arg)
{
	size_t i = 0, j = 0;

	while (i < from->n || j < to->n) {
		int order = i == from->n ? 1
			    : j == to->n ? -1
					 : element_compare(&from->v[i], &to->v[j]);

		if (order == 0 && element_same_data(&from->v[i], &to->v[j])) {
			i++;
			j++;
			continue;
		}
		if (order <= 0)
			remove(arg, &from->v[i++]);
		if (order >= 0)
			add(arg, &to->v[j++]);
	}
}

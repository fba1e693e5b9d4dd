/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One element of a set or map, as a value. Elements have a total order (by container, then key), in
 * which all that makes them makes them, so that two lists are compared in one walk.
 */

#include "backends/nftables/chain.h"
#include "backends/nftables/container.h"
#include "model/service.h"

enum element_verdict {
	VERDICT_NONE = 0,
	VERDICT_GOTO,
	VERDICT_JUMP,
	VERDICT_DROP,
	VERDICT_ACCEPT, /* only other programs do */
	VERDICT_COUNT,
};

struct element_verdict_type {
	const char *word; /* nft's */
	int32_t code;     /* the kernel's */
	bool has_chain;
};

extern const struct element_verdict_type element_verdicts[VERDICT_COUNT];

/* Hairpin of IPv6 has the longest key: 16 + 16 + 4 + 4; a slot of IPv6 is 28 and 20 long. */
#define ELEMENT_BYTES 48

struct element {
	uint8_t container;
	uint8_t verdict;
	uint8_t prefix; /* source ranges: length of the prefix that the key ends with */
	uint8_t key_size;
	uint8_t data_size;
	struct chain chain;           /* of a goto or jump */
	const char *comment;          /* NULL: none; borrowed */
	uint8_t bytes[ELEMENT_BYTES]; /* key, then data, as the kernel keeps them */
};

#define ELEMENT_COMMENT_MAX 128 /* so much of a comment is kept; nft takes no more */

typedef void element_fn(void *arg, const struct element *element);

/* Builders: begin, one call for each field of the key, then at most one for the data. */
void element_begin(struct element *element, enum container container);
void element_key_addr(struct element *element, const struct addr *addr);
void element_key_protocol(struct element *element, enum protocol protocol);
void element_key_port(struct element *element, uint16_t port);
void element_key_number(struct element *element, uint32_t number); /* slot */
void element_key_id(struct element *element, uint32_t number);
void element_data_endpoint(struct element *element, const struct addr *addr, uint16_t port);
void element_data_id(struct element *element, uint32_t number);
void element_goto(struct element *element, enum chain_id id, uint32_t number);
void element_jump(struct element *element, enum chain_id id, uint32_t number);
/* The number of an id as it lies in a key or in data. */
uint32_t element_id_number(const uint8_t *bytes);

int element_compare(const struct element *a, const struct element *b);    /* container and key */
bool element_same_data(const struct element *a, const struct element *b); /* comments count too */

/* A list that grows. */
struct element_list {
	struct element *v;
	size_t n, capacity;
};

void element_list_add(void *arg, const struct element *element); /* an element_fn; arg: the list */
void element_list_done(struct element_list *list);
void element_list_sort(struct element_list *list); /* and leaves equal ones out */

#define cleanup_element_list attr_cleanup(element_list_done)

/*
 * From one sorted list to another: what has to go and what has to come. An element with other data
 * is among both.
 */
void element_list_compare(const struct element_list *from, const struct element_list *to,
			  element_fn *remove, element_fn *add, void *arg);

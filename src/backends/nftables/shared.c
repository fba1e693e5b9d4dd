/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/nftables/shared.h"

#include <assert.h>
#include <stdlib.h>

#define KEY_MAX (2 * ELEMENT_BYTES + 4)

void shared_done(struct shared *shared)
{
	map_free_values(&shared->all);
	*shared = (struct shared){0};
}

/* Container and key, as text. */
static void print_key(const struct element *element, char out[static KEY_MAX])
{
	static const char digits[] = "0123456789abcdef";
	char *at = out;

	*at++ = (char)('a' + element->container);
	for (size_t i = 0; i < element->key_size; i++) {
		*at++ = digits[element->bytes[i] >> 4];
		*at++ = digits[element->bytes[i] & 15];
	}
	*at = '\0';
}

/* -- counting */

void shared_count(struct shared *shared, const struct element *element, bool up)
{
	char key[KEY_MAX];
	struct shared_element *one;

	print_key(element, key);
	one = map_ensure(&shared->all, key, sizeof(*one), offsetof(struct shared_element, key));
	one->element = *element;
	assert(up || one->count > 0);
	one->count += up ? 1 : (size_t)-1;
	if (one->touched)
		return;
	one->touched = true;
	one->next_touched = shared->touched;
	shared->touched = one;
}

static void set_lingering(struct shared *shared, struct shared_element *one, bool lingers)
{
	if (one->lingers == lingers)
		return;
	one->lingers = lingers;
	one->aged = false;
	shared->n_lingering += lingers ? 1 : (size_t)-1;
}

static bool may_linger(const struct shared_element *one)
{
	return one->applied && container_types[one->element.container].lingers;
}

static void forget(struct shared *shared, struct shared_element *one)
{
	set_lingering(shared, one, false);
	map_remove(&shared->all, one->key);
	free(one);
}

void shared_restart(struct shared *shared)
{
	struct shared_element *one;
	size_t at = 0;

	shared->touched = NULL;
	while ((one = map_next(&shared->all, &at))) {
		one->touched = false;
		one->count = 0;
		if (may_linger(one))
			set_lingering(shared, one, true);
		else
			forget(shared, one);
	}
}

void shared_settle(struct shared *shared)
{
	while (shared->touched) {
		struct shared_element *one = shared->touched;

		shared->touched = one->next_touched;
		one->touched = false;
		set_lingering(shared, one, one->count == 0 && may_linger(one));
		one->applied = one->count > 0 || one->lingers;
		if (!one->applied)
			forget(shared, one);
	}
}

/* -- telling */

void shared_compare(const struct shared *shared, element_fn *remove, element_fn *add, void *arg)
{
	for (const struct shared_element *one = shared->touched; one; one = one->next_touched) {
		if (one->applied && one->count == 0 && !may_linger(one))
			remove(arg, &one->element);
		else if (!one->applied && one->count > 0)
			add(arg, &one->element);
	}
}

void shared_each(const struct shared *shared, element_fn *fn, void *arg)
{
	const struct shared_element *one;
	size_t at = 0;

	while ((one = map_next(&shared->all, &at)))
		fn(arg, &one->element);
}

void shared_each_unasked(const struct shared *shared, element_fn *fn, void *arg)
{
	const struct shared_element *one;
	size_t at = 0;

	while ((one = map_next(&shared->all, &at)))
		if (one->count == 0)
			fn(arg, &one->element);
}

void shared_age(struct shared *shared, element_fn *remove, void *arg)
{
	struct shared_element *one;
	size_t at = 0;

	assert(!shared->touched);
	while (shared->n_lingering > 0 && (one = map_next(&shared->all, &at))) {
		if (!one->lingers)
			continue;
		if (!one->aged) {
			one->aged = true;
			continue;
		}
		remove(arg, &one->element);
		forget(shared, one);
	}
}

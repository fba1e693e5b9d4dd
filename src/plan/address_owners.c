/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/address_owners.h"

#include <assert.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/siphash.h"

/*
 * Open addressing with linear steps, one entry for each destination. Nearly all have one claim, which is in the entry
 * itself. Those of a crowd are a heap, the owner's on top: thousands of Services may ask for the same, and all of
 * them may come, change or go in one sync. A claim that leaves is looked for, word by word, and there is nothing else
 * whose cost depends on how many ask. Entries that leave close the gap behind them. The key of digests is random,
 * so that no tenant can choose addresses that meet.
 */

/* A Service and how it asks: a pointer, and in its lowest bits EXTERNAL and BALANCER. */
typedef uintptr_t claim_word;

struct crowd {
	size_t n, capacity;
	claim_word *v;
};

struct address_entry {
	uint64_t digest;
	uintptr_t claims; /* a claim_word, or with CROWD a struct crowd of two at least. 0: free */
};

/* A destination whose owner changed, perhaps only until the same Service came again. */
struct address_move {
	struct destination destination;
	uint64_t digest;
	uint64_t before; /* who had it, see owner_id() */
	size_t number;   /* in the order of time */
};

static_assert(sizeof(struct address_entry) == 16, "entries are small");
static_assert(alignof(max_align_t) >= 8, "three bits are free");

#define MIN_SIZE 64
#define EXTERNAL ((uintptr_t)1)
#define BALANCER ((uintptr_t)2)
#define CROWD    ((uintptr_t)4)

static const struct service *service_of(claim_word claim)
{
	/* NOLINTNEXTLINE(performance-no-int-to-ptr): two bits are all that was added to it */
	return (const struct service *)(claim & ~(EXTERNAL | BALANCER));
}

/* NULL: the entry has one claim, or none. */
static struct crowd *crowd_of(const struct address_entry *entry)
{
	/* NOLINTNEXTLINE(performance-no-int-to-ptr): one bit is all that was added to it */
	return entry->claims & CROWD ? (struct crowd *)(entry->claims & ~CROWD) : NULL;
}

static void crowd_free(struct crowd *crowd)
{
	if (crowd)
		free(crowd->v);
	free(crowd);
}

void address_owners_done(struct address_owners *owners)
{
	for (size_t i = 0; i < owners->size; i++)
		crowd_free(crowd_of(&owners->v[i]));
	free(owners->v);
	free(owners->moves);
	*owners = (struct address_owners){0};
}

static uint64_t digest_of(const struct address_owners *owners,
			  const struct destination *destination)
{
	const struct {
		uint8_t kind, protocol;
		uint16_t port;
		struct addr addr;
	} __attribute__((packed)) bytes = {
		.kind = destination->whole ? 2 : destination->node_port,
		.protocol = destination->whole ? 0 : (uint8_t)destination->protocol,
		.port = destination->port,
		.addr = destination->node_port ? (struct addr){0} : destination->addr,
	};

	return siphash(owners->key, &bytes, sizeof(bytes));
}

/* -- the claims of one destination */

static bool comes_before(claim_word a, claim_word b)
{
	return address_owners_compare(service_of(a), a & EXTERNAL, service_of(b), b & EXTERNAL) < 0;
}

static void swap(claim_word *a, claim_word *b)
{
	const claim_word kept = *a;

	*a = *b;
	*b = kept;
}

static void rise(const struct crowd *crowd, size_t at)
{
	for (; at > 0 && comes_before(crowd->v[at], crowd->v[(at - 1) / 2]); at = (at - 1) / 2)
		swap(&crowd->v[at], &crowd->v[(at - 1) / 2]);
}

static void sink(const struct crowd *crowd, size_t at)
{
	for (;;) {
		size_t best = at;

		for (size_t i = 2 * at + 1; i <= 2 * at + 2 && i < crowd->n; i++)
			if (comes_before(crowd->v[i], crowd->v[best]))
				best = i;
		if (best == at)
			return;
		swap(&crowd->v[at], &crowd->v[best]);
		at = best;
	}
}

static void crowd_add(struct crowd *crowd, claim_word claim)
{
	array_grow(&crowd->v, &crowd->capacity, crowd->n, sizeof(*crowd->v));
	crowd->v[crowd->n++] = claim;
	rise(crowd, crowd->n - 1);
}

static void crowd_remove(struct crowd *crowd, claim_word claim)
{
	size_t at = 0;

	while (crowd->v[at] != claim) {
		at++;
		assert(at < crowd->n); /* what was added is there */
	}
	crowd->v[at] = crowd->v[--crowd->n];
	if (at == crowd->n)
		return;
	rise(crowd, at);
	sink(crowd, at);
}

static claim_word first_of(const struct address_entry *entry)
{
	const struct crowd *crowd = crowd_of(entry);

	return crowd ? crowd->v[0] : entry->claims;
}

static void entry_add(struct address_entry *entry, claim_word claim)
{
	struct crowd *crowd = crowd_of(entry);

	if (!entry->claims) {
		entry->claims = claim;
		return;
	}
	if (!crowd) {
		crowd = xcalloc(1, sizeof(*crowd));
		crowd_add(crowd, entry->claims);
		entry->claims = (uintptr_t)crowd | CROWD;
	}
	crowd_add(crowd, claim);
}

static void entry_remove(struct address_entry *entry, claim_word claim)
{
	struct crowd *crowd = crowd_of(entry);

	if (!crowd) {
		assert(entry->claims == claim);
		entry->claims = 0;
		return;
	}
	crowd_remove(crowd, claim);
	if (crowd->n > 1)
		return;
	entry->claims = crowd->v[0];
	crowd_free(crowd);
}

/* -- the table */

/* Where the digest is, or is to be. The table is not full. */
static struct address_entry *find_place(const struct address_owners *owners, uint64_t digest)
{
	size_t at = digest & (owners->size - 1);

	while (owners->v[at].claims && owners->v[at].digest != digest)
		at = (at + 1) & (owners->size - 1);
	return &owners->v[at];
}

/* NULL: there is none. */
static struct address_entry *find(const struct address_owners *owners, uint64_t digest)
{
	struct address_entry *entry = owners->size > 0 ? find_place(owners, digest) : NULL;

	return entry && entry->claims ? entry : NULL;
}

static void grow(struct address_owners *owners)
{
	struct address_entry *old = owners->v;
	size_t old_size = owners->size;

	if (old_size == 0)
		arc4random_buf(owners->key, sizeof(owners->key));
	owners->size = MAX(2 * old_size, MIN_SIZE);
	owners->v = xcalloc(owners->size, sizeof(*owners->v));
	for (size_t i = 0; i < old_size; i++)
		if (old[i].claims)
			*find_place(owners, old[i].digest) = old[i];
	free(old);
}

/* Closes the gap at `at`: an entry behind it that may stand nearer to its home moves there. */
static void close_gap(struct address_owners *owners, size_t at)
{
	size_t mask = owners->size - 1;

	for (size_t next = (at + 1) & mask; owners->v[next].claims; next = (next + 1) & mask) {
		size_t from_home = (next - owners->v[next].digest) & mask;

		if (from_home < ((next - at) & mask))
			continue;
		owners->v[at] = owners->v[next];
		at = next;
	}
	owners->v[at] = (struct address_entry){0};
	owners->count--;
}

/* -- what comes and goes */

/* Says which Service it is, and by which kind of address, also when the object has gone. */
static uint64_t owner_id(const struct address_owners *owners, claim_word claim)
{
	const struct service *service = service_of(claim);
	uint64_t id = siphash(owners->key, service->key, strlen(service->key));

	return (id & ~EXTERNAL) | (claim & EXTERNAL);
}

static void note_move(struct address_owners *owners, const struct destination *destination,
		      uint64_t digest, claim_word before)
{
	array_grow(&owners->moves, &owners->moves_capacity, owners->n_moves,
		   sizeof(*owners->moves));
	owners->moves[owners->n_moves] = (struct address_move){
		.destination = *destination,
		.digest = digest,
		.before = owner_id(owners, before),
		.number = owners->n_moves,
	};
	owners->n_moves++;
}

struct change {
	struct address_owners *owners;
	const struct service *service;
};

static claim_word claim_of(const struct change *change, const struct destination *destination)
{
	return (uintptr_t)change->service | (destination->external ? EXTERNAL : 0) |
	       (destination->balancer ? BALANCER : 0);
}

/* One that was free moves from no Service to another, and none that was there before sees a difference. */
static void add_claim(void *arg, const struct destination *destination)
{
	const struct change *change = arg;
	struct address_owners *owners = change->owners;
	claim_word before, claim = claim_of(change, destination);
	struct address_entry *entry;
	uint64_t digest;

	if (4 * (owners->count + 1) > 3 * owners->size)
		grow(owners);
	digest = digest_of(owners, destination);
	entry = find_place(owners, digest);
	before = first_of(entry);
	entry->digest = digest;
	entry_add(entry, claim);
	if (!before)
		owners->count++;
	else if (first_of(entry) != before)
		note_move(owners, destination, digest, before);
}

static void remove_claim(void *arg, const struct destination *destination)
{
	const struct change *change = arg;
	struct address_owners *owners = change->owners;
	claim_word claim = claim_of(change, destination);
	uint64_t digest = digest_of(owners, destination);
	struct address_entry *entry = find_place(owners, digest);

	if (first_of(entry) == claim)
		note_move(owners, destination, digest, claim);
	entry_remove(entry, claim);
	if (!entry->claims)
		close_gap(owners, (size_t)(entry - owners->v));
}

void address_owners_add(struct address_owners *owners, const struct service_plan *plan)
{
	struct change change = {owners, plan->service};

	destination_each(plan, add_claim, &change);
	destination_each_address(plan, add_claim, &change);
}

void address_owners_remove(struct address_owners *owners, const struct service_plan *plan)
{
	struct change change = {owners, plan->service};

	destination_each(plan, remove_claim, &change);
	destination_each_address(plan, remove_claim, &change);
}

static void show(claim_word claim, address_owners_fn *fn, void *arg)
{
	fn(arg, service_of(claim), claim & EXTERNAL, claim & BALANCER);
}

void address_owners_each(const struct address_owners *owners, const struct destination *destination,
			 address_owners_fn *fn, void *arg)
{
	const struct address_entry *entry = find(owners, digest_of(owners, destination));
	const struct crowd *crowd = entry ? crowd_of(entry) : NULL;

	if (entry && !crowd)
		show(entry->claims, fn, arg);
	for (size_t i = 0; crowd && i < crowd->n; i++)
		show(crowd->v[i], fn, arg);
}

int address_owners_compare(const struct service *a, bool a_external, const struct service *b,
			   bool b_external)
{
	int r = (int)a_external - (int)b_external;

	if (r == 0) /* what does not know its age counts as old */
		r = (a->created_s > b->created_s) - (a->created_s < b->created_s);
	if (r == 0)
		r = strcmp(a->ns, b->ns);
	if (r == 0)
		r = strcmp(a->name, b->name);
	return r;
}

const struct service *address_owners_of(const struct address_owners *owners,
					const struct destination *destination, bool *ret_external)
{
	const struct address_entry *entry = find(owners, digest_of(owners, destination));

	if (!entry)
		return NULL;
	*ret_external = first_of(entry) & EXTERNAL;
	return service_of(first_of(entry));
}

/* -- what has moved */

static int compare_digests(const void *left, const void *right)
{
	const struct address_move *a = left, *b = right;

	if (a->digest != b->digest)
		return a->digest < b->digest ? -1 : 1;
	return (a->number > b->number) - (a->number < b->number);
}

static int compare_numbers(const void *left, const void *right)
{
	const struct address_move *a = left, *b = right;

	return (a->number > b->number) - (a->number < b->number);
}

/* Of each destination only the first, which says whose it was at the beginning. */
static void keep_first_moves(struct address_owners *owners)
{
	struct address_move *v = owners->moves;
	size_t n = 0;

	qsort(v, owners->n_moves, sizeof(*v), compare_digests);
	for (size_t i = 0; i < owners->n_moves; i++)
		if (n == 0 || v[n - 1].digest != v[i].digest)
			v[n++] = v[i];
	owners->n_moves = n;
	qsort(v, n, sizeof(*v), compare_numbers);
	for (size_t i = 0; i < n; i++)
		v[i].number = i;
}

void address_owners_each_moved(struct address_owners *owners, destination_fn *fn, void *arg)
{
	if (owners->n_moves > 1)
		keep_first_moves(owners);
	for (size_t i = 0; i < owners->n_moves; i++) {
		const struct address_move *move = &owners->moves[i];
		const struct address_entry *now = find(owners, move->digest);

		if (now && owner_id(owners, first_of(now)) != move->before)
			fn(arg, &move->destination);
	}
}

void address_owners_settle(struct address_owners *owners)
{
	free(take(owners->moves));
	owners->n_moves = owners->moves_capacity = 0;
}

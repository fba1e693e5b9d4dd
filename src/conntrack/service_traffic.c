/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Flows are remembered in a table of their own, by a hash of tuple, zone and id (the kernel's id
 * alone has 32 bits, which collide at 100,000 flows), with what was last counted of them.
 *
 * What a round reports may be older than an end that was told meanwhile: datagrams wait in the walk's
 * socket. A flow that ends during a round is therefore kept, marked, until the round is over, and is
 * not taken for a new one. A flow that one round does not report may have been missed: it goes when
 * two in a row do not.
 *
 * An object of the kernel's can be used again for the same tuple, with the same id. Its counters are
 * then smaller than before, which makes it another flow. So does a second end.
 */

#include "conntrack/service_traffic.h"

#include <assert.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/siphash.h"

#define LEAST_SIZE    256
#define MISSED_ROUNDS 2
#define LOYALTY       4 /* who is shown stays unless another has a quarter more */

struct port {
	struct service_traffic_port pub; /* totals: of its own, see service_traffic.h */
	char *key;                       /* as front_owner_name() */
	struct service *service;         /* its names; a reference */
	char port[FRONT_PORT_MAX];
	uint64_t weight; /* all that was ever counted, to rank by */
	size_t flows;    /* that refer to it, ended or not */
	bool gone;       /* from the model */
	bool shown;      /* with numbers of its own */
};

struct flow {
	uint64_t hash; /* 0: an empty place */
	struct port *port;
	uint64_t packets[CONNTRACK_DIR_COUNT];
	uint64_t bytes[CONNTRACK_DIR_COUNT];
	uint32_t round; /* that saw it last */
	bool ended;
};

struct service_traffic {
	size_t limit;
	uint64_t key[2];
	struct service_fronts *fronts;
	struct port **owners; /* by number in fronts; NULL: not met since the model changed */
	struct map ports;     /* struct port by key */
	size_t n_shown;
	struct service_totals other;
	struct flow *flows; /* open addressing, linear probing */
	size_t size, used;  /* size: a power of two */
	uint32_t round;     /* from 1 on; 0: none yet */
	bool in_round;
	bool settled;    /* the first round is over */
	size_t sweep_at; /* size: nothing to sweep */
};

/* -- ports */

static struct port *port_free(struct port *port)
{
	service_unref(port->service);
	free(port->key);
	free(port);
	return NULL;
}

static struct port *find_port(struct service_traffic *traffic, const struct front_owner *owner)
{
	cleanup_free char *key = front_owner_name(owner);
	struct port *port = map_get(&traffic->ports, key);

	if (port)
		return port;
	port = xcalloc(1, sizeof(*port));
	front_owner_port(owner, port->port);
	port->service = service_ref(owner->service);
	port->key = take(key);
	port->pub = (struct service_traffic_port){
		.ns = port->service->ns,
		.service = port->service->name,
		.port = port->port,
		.protocol = owner->port->protocol,
	};
	map_set(&traffic->ports, port->key, port);
	return port;
}

static void forget_port(struct service_traffic *traffic, struct port *port)
{
	traffic->n_shown -= port->shown;
	map_remove(&traffic->ports, port->key);
	port_free(port);
}

static bool is_in_model(const struct port *port, const struct model *model)
{
	const struct service *service = model_service(model, port->service->key);

	for (size_t i = 0; service && i < service->n_ports; i++) {
		const struct front_owner owner = {(struct service *)service, &service->ports[i]};
		char name[FRONT_PORT_MAX];

		front_owner_port(&owner, name);
		if (owner.port->protocol == port->pub.protocol && streq(name, port->port))
			return true;
	}
	return false;
}

/* A port that is gone gives up its numbers, and itself with its last flow. */
static void check_ports(struct service_traffic *traffic, const struct model *model)
{
	struct port *port;
	size_t at = 0;

	while ((port = map_next(&traffic->ports, &at))) {
		port->gone = !is_in_model(port, model);
		if (port->gone && port->flows == 0)
			forget_port(traffic, port);
	}
}

/* -- counting */

static void show(struct service_traffic *traffic, struct port *port, bool shown)
{
	if (port->shown == shown)
		return;
	port->shown = shown;
	traffic->n_shown += shown ? 1 : (size_t)-1;
	/* not into the sum: what was told once would be told twice */
	port->pub.totals = (struct service_totals){0};
}

static void add(struct service_traffic *traffic, struct port *port,
		const struct service_totals *more)
{
	uint64_t weight = more->connections + more->packets[CONNTRACK_ORIGINAL] +
			  more->packets[CONNTRACK_REPLY];
	struct service_totals *totals;

	if (weight == 0)
		return;
	if (port->weight == 0 && traffic->n_shown < traffic->limit)
		show(traffic, port, true); /* the first that it has */
	port->weight += weight;
	totals = port->shown ? &port->pub.totals : &traffic->other;
	totals->connections += more->connections;
	for (enum conntrack_dir dir = 0; dir < CONNTRACK_DIR_COUNT; dir++) {
		totals->packets[dir] += more->packets[dir];
		totals->bytes[dir] += more->bytes[dir];
	}
}

static bool went_back(const struct flow *known, const struct conntrack_flow *flow)
{
	for (enum conntrack_dir dir = 0; dir < CONNTRACK_DIR_COUNT; dir++)
		if (flow->packets[dir] < known->packets[dir] ||
		    flow->bytes[dir] < known->bytes[dir])
			return true;
	return false;
}

/* What came since; a flow that went back is another one, and counts from the start. */
static void count_more(struct service_traffic *traffic, struct flow *known,
		       const struct conntrack_flow *flow)
{
	bool again = went_back(known, flow);
	struct service_totals more = {.connections = again};

	for (enum conntrack_dir dir = 0; dir < CONNTRACK_DIR_COUNT; dir++) {
		more.packets[dir] = flow->packets[dir] - (again ? 0 : known->packets[dir]);
		more.bytes[dir] = flow->bytes[dir] - (again ? 0 : known->bytes[dir]);
		known->packets[dir] = flow->packets[dir];
		known->bytes[dir] = flow->bytes[dir];
	}
	add(traffic, known->port, &more);
}

static void count_new(struct service_traffic *traffic, struct port *port,
		      const struct conntrack_flow *flow)
{
	struct service_totals all = {.connections = 1};

	if (!traffic->settled)
		return;
	for (enum conntrack_dir dir = 0; dir < CONNTRACK_DIR_COUNT; dir++) {
		all.packets[dir] = flow->packets[dir];
		all.bytes[dir] = flow->bytes[dir];
	}
	add(traffic, port, &all);
}

/* -- the table of flows */

static uint64_t hash_of(const struct service_traffic *traffic, const struct conntrack_flow *flow)
{
	const struct conntrack_tuple *tuple = &flow->original;
	struct siphash hash;
	uint64_t value;

	siphash_init(&hash, traffic->key);
	siphash_add(&hash, &tuple->src, sizeof(tuple->src));
	siphash_add(&hash, &tuple->dst, sizeof(tuple->dst));
	siphash_add(&hash, &tuple->src_port, sizeof(tuple->src_port));
	siphash_add(&hash, &tuple->dst_port, sizeof(tuple->dst_port));
	siphash_add(&hash, &flow->protocol, sizeof(flow->protocol));
	siphash_add(&hash, &flow->zone, sizeof(flow->zone));
	siphash_add(&hash, &flow->id, sizeof(flow->id));
	value = siphash_end(&hash);
	return value ? value : 1;
}

static struct flow *find_place(const struct service_traffic *traffic, uint64_t hash)
{
	size_t at = hash & (traffic->size - 1);

	while (traffic->flows[at].hash && traffic->flows[at].hash != hash)
		at = (at + 1) & (traffic->size - 1);
	return &traffic->flows[at];
}

static void resize(struct service_traffic *traffic, size_t size)
{
	struct flow *old = traffic->flows;
	size_t n = traffic->size;

	traffic->flows = xcalloc(size, sizeof(*traffic->flows));
	traffic->size = size;
	for (size_t i = 0; i < n; i++)
		if (old[i].hash)
			*find_place(traffic, old[i].hash) = old[i];
	free(old);
	traffic->sweep_at = size;
}

static struct flow *insert(struct service_traffic *traffic, uint64_t hash, struct port *port,
			   const struct conntrack_flow *flow)
{
	struct flow *known;

	if (traffic->used >= traffic->size / 4 * 3)
		resize(traffic, 2 * traffic->size);
	known = find_place(traffic, hash);
	*known = (struct flow){.hash = hash, .port = port, .round = traffic->round};
	memcpy(known->packets, flow->packets, sizeof(known->packets));
	memcpy(known->bytes, flow->bytes, sizeof(known->bytes));
	traffic->used++;
	port->flows++;
	return known;
}

static void mark_ended(struct flow *known)
{
	known->port->pub.tracked -= !known->ended;
	known->ended = true;
}

static void let_go(struct service_traffic *traffic, struct flow *known)
{
	struct port *port = known->port;

	mark_ended(known);
	if (--port->flows == 0 && port->gone)
		forget_port(traffic, port);
}

/* Those behind move up, so that no search ends at the gap before it finds them. */
static void remove_flow(struct service_traffic *traffic, struct flow *known)
{
	size_t mask = traffic->size - 1;
	size_t gap = (size_t)(known - traffic->flows);

	let_go(traffic, known);
	traffic->used--;
	for (size_t at = (gap + 1) & mask; traffic->flows[at].hash; at = (at + 1) & mask) {
		size_t home = traffic->flows[at].hash & mask;

		if (((at - home) & mask) < ((at - gap) & mask))
			continue; /* its home is behind the gap */
		traffic->flows[gap] = traffic->flows[at];
		gap = at;
	}
	traffic->flows[gap] = (struct flow){0};
}

/* -- rounds */

void service_traffic_begin(struct service_traffic *traffic, const struct model *changed)
{
	assert(!traffic->in_round);
	if (changed) {
		service_fronts_free(traffic->fronts);
		free(traffic->owners);
		traffic->fronts = service_fronts_new(changed);
		traffic->owners =
			xcalloc(service_fronts_count(traffic->fronts) + 1, sizeof(struct port *));
		check_ports(traffic, changed);
	}
	traffic->round++;
	traffic->in_round = true;
}

/* NULL: no Service's. */
static struct port *owner_of(struct service_traffic *traffic, const struct conntrack_flow *flow)
{
	const struct front_owner *owner;
	struct port **port;

	if (!traffic->fronts || !(flow->status & IPS_DST_NAT))
		return NULL;
	owner = service_fronts_find(traffic->fronts, flow);
	if (!owner)
		return NULL;
	port = &traffic->owners[service_fronts_number(traffic->fronts, owner)];
	if (!*port)
		*port = find_port(traffic, owner);
	return *port;
}

void service_traffic_see(struct service_traffic *traffic, const struct conntrack_flow *flow)
{
	uint64_t hash = hash_of(traffic, flow);
	struct flow *known = find_place(traffic, hash);
	struct port *port;

	assert(traffic->in_round);
	if (known->hash) {
		known->round = traffic->round;
		if (!known->ended)
			count_more(traffic, known, flow);
		return;
	}
	port = owner_of(traffic, flow);
	if (!port)
		return;
	count_new(traffic, port, flow);
	insert(traffic, hash, port, flow);
	port->pub.tracked++;
}

void service_traffic_ended(struct service_traffic *traffic, const struct conntrack_flow *flow)
{
	uint64_t hash = hash_of(traffic, flow);
	struct flow *known = find_place(traffic, hash);
	struct port *port;

	if (known->hash && !known->ended) {
		count_more(traffic, known, flow);
		mark_ended(known);
		if (!traffic->in_round)
			remove_flow(traffic, known);
		return;
	}
	port = known->hash ? known->port : owner_of(traffic, flow);
	if (!port)
		return;
	count_new(traffic, port, flow);
	if (traffic->in_round && !known->hash)
		insert(traffic, hash, port, flow)->ended = true;
}

/* -- who has numbers of its own */

static uint64_t rank(const struct port *port)
{
	return port->gone ? 0 : port->weight + (port->shown ? port->weight / LOYALTY : 0);
}

static int compare_ranks(const void *a, const void *b)
{
	uint64_t x = rank(*(struct port *const *)a);
	uint64_t y = rank(*(struct port *const *)b);

	return x < y ? 1 : x > y ? -1 : 0;
}

static void rank_ports(struct service_traffic *traffic)
{
	cleanup_free struct port **all = xcalloc(traffic->ports.count + 1, sizeof(struct port *));
	struct port *port;
	size_t at = 0;
	size_t n = 0;

	while ((port = map_next(&traffic->ports, &at)))
		if (port->weight > 0)
			all[n++] = port;
	if (n == traffic->n_shown)
		return; /* all of them */
	qsort(all, n, sizeof(struct port *), compare_ranks);
	for (size_t i = 0; i < n; i++)
		show(traffic, all[i], i < traffic->limit);
}

void service_traffic_end(struct service_traffic *traffic)
{
	service_traffic_give_up(traffic);
	traffic->settled = true;
	traffic->sweep_at = 0;
	rank_ports(traffic);
}

void service_traffic_give_up(struct service_traffic *traffic)
{
	assert(traffic->in_round);
	traffic->in_round = false;
}

static bool is_over(const struct service_traffic *traffic, const struct flow *known)
{
	return known->hash && (known->ended || traffic->round - known->round >= MISSED_ROUNDS);
}

bool service_traffic_sweep(struct service_traffic *traffic, size_t places)
{
	size_t end = MIN(traffic->size, traffic->sweep_at + places);

	while (traffic->sweep_at < end) {
		struct flow *known = &traffic->flows[traffic->sweep_at];

		if (is_over(traffic, known))
			remove_flow(traffic, known); /* and look at who moved up */
		else
			traffic->sweep_at++;
	}
	if (traffic->sweep_at < traffic->size)
		return true;
	if (traffic->size > LEAST_SIZE && traffic->used < traffic->size / 8)
		resize(traffic, traffic->size / 2);
	return false;
}

/* -- reading */

const struct service_traffic_port *service_traffic_next(const struct service_traffic *traffic,
							size_t *at)
{
	const struct port *port;

	while ((port = map_next(&traffic->ports, at)))
		if (port->shown && !port->gone)
			return &port->pub;
	return NULL;
}

const struct service_traffic_port *service_traffic_next_met(const struct service_traffic *traffic,
							    size_t *at)
{
	const struct port *port;

	while ((port = map_next(&traffic->ports, at)))
		if (!port->gone)
			return &port->pub;
	return NULL;
}

struct service_totals service_traffic_other(const struct service_traffic *traffic)
{
	return traffic->other;
}

size_t service_traffic_folded(const struct service_traffic *traffic, size_t *ret_tracked)
{
	const struct port *port;
	size_t at = 0;
	size_t n = 0;

	*ret_tracked = 0;
	while ((port = map_next(&traffic->ports, &at))) {
		if (port->shown || port->gone || port->weight == 0)
			continue;
		n++;
		*ret_tracked += port->pub.tracked;
	}
	return n;
}

/* -- begin and end */

struct service_traffic *service_traffic_new(size_t limit)
{
	struct service_traffic *traffic = xcalloc(1, sizeof(*traffic));

	traffic->limit = limit;
	arc4random_buf(traffic->key, sizeof(traffic->key));
	resize(traffic, LEAST_SIZE);
	return traffic;
}

struct service_traffic *service_traffic_free(struct service_traffic *traffic)
{
	struct port *port;
	size_t at = 0;

	if (!traffic)
		return NULL;
	while ((port = map_next(&traffic->ports, &at)))
		port_free(port);
	map_done(&traffic->ports);
	service_fronts_free(traffic->fronts);
	free(traffic->owners);
	free(traffic->flows);
	free(traffic);
	return NULL;
}

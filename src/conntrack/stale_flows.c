/* SPDX-License-Identifier: Apache-2.0 */
#include "conntrack/stale_flows.h"

#include <linux/netfilter/nf_conntrack_common.h>
#include <netinet/in.h>
#include <stdlib.h>

#include "base/map.h"
#include "kernel/conntrack.h"

/* One dump that copies every UDP flow is cheaper than more filtered ones than this. */
#define FILTERED_DUMPS_MAX 8

/*
 * While flows cannot be deleted: as many endpoints that left a port are remembered, more for one that has many; and of
 * addresses and ports that are gone as many judgements and targets.
 */
#define LEFT_MAX 1024
#define GONE_MAX 100000

/* Where packets come in: an address and port, or (node ports) a port of any address. */
struct front {
	uint8_t protocol; /* IPPROTO_* */
	bool any_addr;
	uint16_t port;
	struct addr addr; /* zero when any */
};

struct target {
	struct addr addr;
	uint16_t port;
};

/* Never changed, so those who refer to the same may share them. None at all may be NULL. */
struct targets {
	size_t refs, n;
	struct target v[]; /* sorted */
};

/* What is remembered of a service port. */
struct known_port {
	char *name;
	uint8_t protocol;
	struct front *fronts;
	size_t n_fronts;
	struct targets *all;     /* endpoints, whatever their state */
	struct targets *serving; /* those that serve */
	struct targets *left;    /* had when flows were last looked for, and has no more */
	bool fresh; /* others may have left it: it was not known then, or too many left */
};

struct known_service {
	char *key;
	struct known_port *ports;
	size_t n_ports;
};

/* How flows to a front are judged. */
enum judgement_kind {
	JUDGE_NOT_IN = 0, /* stale unless they go to one of the targets */
	JUDGE_TRANSLATED, /* stale if they go anywhere */
	JUDGE_IN,         /* stale if they go to one of the targets */
	JUDGE_ELSEWHERE,  /* stale if they go anywhere but to one of the targets */
	JUDGE_KIND_COUNT,
};

struct judgement {
	struct front front;
	enum judgement_kind kind;
	bool gone; /* no Service has the front any more */
	struct targets *targets;
};

struct stale_flows {
	enum family family;
	enum terminate terminate;     /* where a Service says nothing */
	struct map services;          /* known_service by key */
	struct judgement *judgements; /* sorted by front */
	size_t n_judgements, judgements_capacity;
	bool unfinished; /* put off, or not all could be carried out: they count until they are */
};

/* -- small things */

static int compare_targets(const void *a, const void *b)
{
	const struct target *x = a;
	const struct target *y = b;
	int r = addr_compare(&x->addr, &y->addr);

	return r ? r : (int)x->port - (int)y->port;
}

static int compare_fronts(const struct front *a, const struct front *b)
{
	if (a->protocol != b->protocol)
		return (int)a->protocol - (int)b->protocol;
	if (a->port != b->port)
		return (int)a->port - (int)b->port;
	if (a->any_addr != b->any_addr)
		return (int)a->any_addr - (int)b->any_addr;
	return addr_compare(&a->addr, &b->addr);
}

static int compare_judgements(const void *a, const void *b)
{
	return compare_fronts(&((const struct judgement *)a)->front,
			      &((const struct judgement *)b)->front);
}

static struct targets *targets_new(size_t room)
{
	struct targets *targets = xcalloc(1, sizeof(*targets) + room * sizeof(targets->v[0]));

	targets->refs = 1;
	return targets;
}

static struct targets *targets_ref(struct targets *targets)
{
	if (targets)
		targets->refs++;
	return targets;
}

static void targets_unref(struct targets *targets)
{
	if (targets && --targets->refs == 0)
		free(targets);
}

static size_t targets_count(const struct targets *targets)
{
	return targets ? targets->n : 0;
}

static void targets_sort(struct targets *targets)
{
	if (targets->n > 1)
		qsort(targets->v, targets->n, sizeof(targets->v[0]), compare_targets);
}

static bool has_target(const struct targets *targets, const struct target *target)
{
	return targets_count(targets) > 0 &&
	       bsearch(target, targets->v, targets->n, sizeof(*target), compare_targets);
}

/* Those of a that b has not; for the caller to unref. */
static struct targets *without(const struct targets *a, const struct targets *b)
{
	struct targets *left = targets_new(targets_count(a));

	for (size_t i = 0; a && i < a->n; i++)
		if (!has_target(b, &a->v[i]))
			left->v[left->n++] = a->v[i];
	return left;
}

/* Those of both; for the caller to unref. */
static struct targets *together(const struct targets *a, const struct targets *b)
{
	struct targets *all = targets_new(targets_count(a) + targets_count(b));

	for (size_t i = 0; a && i < a->n; i++)
		all->v[all->n++] = a->v[i];
	for (size_t i = 0; b && i < b->n; i++)
		if (!has_target(a, &b->v[i]))
			all->v[all->n++] = b->v[i];
	targets_sort(all);
	return all;
}

/* -- what is remembered of a service */

static struct known_service *known_service_free(struct known_service *service)
{
	if (!service)
		return NULL;
	for (size_t i = 0; i < service->n_ports; i++) {
		free(service->ports[i].name);
		free(service->ports[i].fronts);
		targets_unref(service->ports[i].all);
		targets_unref(service->ports[i].serving);
		targets_unref(service->ports[i].left);
	}
	free(service->ports);
	free(service->key);
	free(service);
	return NULL;
}

/* 0: no flow of this port is ever stale. */
static uint8_t watched_protocol(const struct stale_flows *flows, const struct service *service,
				enum protocol protocol)
{
	enum terminate terminate = service->terminate ? service->terminate : flows->terminate;

	if (protocol == PROTOCOL_UDP)
		return IPPROTO_UDP;
	return protocol == PROTOCOL_TCP && terminate == TERMINATE_ENDPOINT_REMOVED ? IPPROTO_TCP
										   : 0;
}

/* addr NULL: the NodePort. One that is not the Service's is none of its fronts. */
static void add_front(struct known_port *known, const struct stale_flows_rules *rules,
		      const struct service *service, const struct service_port *port,
		      const struct addr *addr)
{
	uint16_t number = addr ? port->port : port->node_port;

	if (rules->owner(rules->arg, port->protocol, addr, number) != service)
		return;
	known->fronts[known->n_fronts++] = (struct front){
		.protocol = known->protocol,
		.any_addr = !addr,
		.port = number,
		.addr = addr ? *addr : (struct addr){0},
	};
}

static void add_fronts(struct known_port *known, const struct stale_flows_rules *rules,
		       const struct service *service, const struct service_port *port,
		       enum family family)
{
	known->fronts =
		xcalloc(service->n_external_ips + service->n_vips + 2, sizeof(*known->fronts));
	add_front(known, rules, service, port, &service->cluster_ip[family]);
	for (size_t i = 0; i < service->n_external_ips; i++)
		if (service->external_ips[i].family == family)
			add_front(known, rules, service, port, &service->external_ips[i]);
	for (size_t i = 0; i < service->n_vips; i++)
		if (service->vips[i].family == family)
			add_front(known, rules, service, port, &service->vips[i]);
	if (port->node_port)
		add_front(known, rules, service, port, NULL);
}

static struct targets *read_targets(const struct endpoints *endpoints, bool only_serving)
{
	size_t n = endpoints ? endpoints->n : 0;
	struct targets *targets = targets_new(n);

	for (size_t i = 0; i < n; i++) {
		const struct endpoint *endpoint = &endpoints->v[i];

		if (!only_serving || endpoint->flags & ENDPOINT_SERVING)
			targets->v[targets->n++] = (struct target){endpoint->addr, endpoint->port};
	}
	targets_sort(targets);
	return targets;
}

/* NULL when the service has nothing that flows could be stale of. */
static struct known_service *read_service(const struct stale_flows *flows,
					  const struct stale_flows_rules *rules, const char *key)
{
	const struct service *service = rules->service(rules->arg, key);
	struct known_service *known;

	if (!service_in_family(service, flows->family))
		return NULL;
	known = xcalloc(1, sizeof(*known));
	known->key = xstrdup(key);
	known->ports = xcalloc(service->n_ports, sizeof(*known->ports));
	for (size_t i = 0; i < service->n_ports; i++) {
		const struct service_port *port = &service->ports[i];
		uint8_t protocol = watched_protocol(flows, service, port->protocol);
		const struct endpoints *endpoints;
		struct known_port *to;

		if (!protocol)
			continue;
		to = &known->ports[known->n_ports++];
		endpoints = model_endpoints(rules->model, flows->family, key, port->name,
					    port->protocol);
		to->name = xstrdup(port->name);
		to->protocol = protocol;
		to->all = read_targets(endpoints, false);
		to->serving = read_targets(endpoints, true);
		add_fronts(to, rules, service, port, flows->family);
	}
	return known->n_ports > 0 ? known : known_service_free(known);
}

static const struct known_port *find_port(const struct known_service *service,
					  const struct known_port *like)
{
	for (size_t i = 0; service && i < service->n_ports; i++)
		if (streq(service->ports[i].name, like->name) &&
		    service->ports[i].protocol == like->protocol)
			return &service->ports[i];
	return NULL;
}

/* -- judgements */

static struct judgement *add_judgement(struct stale_flows *flows, const struct front *front,
				       enum judgement_kind kind, struct targets *targets)
{
	struct judgement *judgement;

	array_grow(&flows->judgements, &flows->judgements_capacity, flows->n_judgements,
		   sizeof(*flows->judgements));
	judgement = &flows->judgements[flows->n_judgements++];
	*judgement = (struct judgement){
		.front = *front,
		.kind = kind,
		.targets = targets_ref(targets),
	};
	return judgement;
}

static void forget_judgements(struct stale_flows *flows)
{
	for (size_t i = 0; i < flows->n_judgements; i++)
		targets_unref(flows->judgements[i].targets);
	flows->n_judgements = 0;
}

static void sort_judgements(struct judgement *judgements, size_t n)
{
	if (n > 1)
		qsort(judgements, n, sizeof(*judgements), compare_judgements);
}

static const struct judgement *find_among(const struct judgement *judgements, size_t n,
					  const struct front *front)
{
	const struct judgement key = {.front = *front};

	return n > 0 ? bsearch(&key, judgements, n, sizeof(key), compare_judgements) : NULL;
}

static const struct judgement *find_judgement(const struct stale_flows *flows,
					      const struct front *front)
{
	return find_among(flows->judgements, flows->n_judgements, front);
}

/* What the judgements of gone fronts hold. */
static size_t count_gone(const struct stale_flows *flows)
{
	size_t n = 0;

	for (size_t i = 0; i < flows->n_judgements; i++)
		if (flows->judgements[i].gone)
			n += 1 + targets_count(flows->judgements[i].targets);
	return n;
}

/*
 * The first n_old are from before; those of them about a front that has a newer one go, and when they are too many all of
 * gone fronts: their flows stay as long as their clients send.
 */
static void join_judgements(struct stale_flows *flows, size_t n_old)
{
	struct judgement *newer = flows->judgements + n_old;
	size_t n_newer = flows->n_judgements - n_old;
	bool too_many = n_old > 0 && count_gone(flows) > GONE_MAX;
	size_t n = 0;

	sort_judgements(newer, n_newer);
	for (size_t i = 0; i < n_old; i++) {
		if ((too_many && flows->judgements[i].gone) ||
		    find_among(newer, n_newer, &flows->judgements[i].front))
			targets_unref(flows->judgements[i].targets);
		else
			flows->judgements[n++] = flows->judgements[i];
	}
	if (n < n_old && n_newer > 0)
		memmove(flows->judgements + n, newer, n_newer * sizeof(*newer));
	flows->n_judgements = n + n_newer;
	if (n > 0)
		sort_judgements(flows->judgements, flows->n_judgements);
}

/*
 * Flows to endpoints that a port has or had. Without any only an earlier judgement is replaced, but not that of an earlier
 * life of the port by one that knows of no endpoint.
 */
static void judge_own(struct stale_flows *flows, const struct known_port *port,
		      const struct front *front, struct targets *targets)
{
	bool knows = !port->fresh || targets_count(port->all) > 0;

	if (targets_count(targets) > 0 || (flows->unfinished && knows))
		add_judgement(flows, front, JUDGE_IN, targets);
}

/*
 * Flows to an address of the Service are its own: whatever goes where no endpoint serves is stale,
 * also when nobody translated it. A NodePort is a port of any address, and other programs translate,
 * too: where no endpoint serves only flows to endpoints that it has or had are known to be its own.
 */
static void judge_udp_front(struct stale_flows *flows, const struct known_port *port,
			    const struct front *front)
{
	struct targets *had;

	if (targets_count(port->serving) > 0 || !front->any_addr) {
		add_judgement(flows, front, JUDGE_NOT_IN, port->serving);
		return;
	}
	had = together(port->all, port->left);
	judge_own(flows, port, front, had);
	targets_unref(had);
}

/*
 * Of a fresh port it is not known which endpoints have left it, but whatever goes elsewhere from an
 * address of the Service was sent there by its rules. Of a NodePort that cannot be said, see above.
 */
static void judge_tcp_front(struct stale_flows *flows, const struct known_port *port,
			    const struct front *front)
{
	if (port->fresh && !front->any_addr)
		add_judgement(flows, front, JUDGE_ELSEWHERE, port->all);
	else
		judge_own(flows, port, front, port->left);
}

static void judge_present_port(struct stale_flows *flows, const struct known_port *port)
{
	for (size_t i = 0; i < port->n_fronts; i++)
		if (port->protocol == IPPROTO_UDP)
			judge_udp_front(flows, port, &port->fronts[i]);
		else
			judge_tcp_front(flows, port, &port->fronts[i]);
}

static enum protocol protocol_of(const struct front *front)
{
	return front->protocol == IPPROTO_UDP ? PROTOCOL_UDP : PROTOCOL_TCP;
}

/* NULL: nobody's. */
static const struct service *front_owner(const struct stale_flows_rules *rules,
					 const struct front *front)
{
	return rules->owner(rules->arg, protocol_of(front), front->any_addr ? NULL : &front->addr,
			    front->port);
}

/* One of UDP that no Service has any more; for NodePorts see judge_udp_front(). */
static void judge_gone_udp(struct stale_flows *flows, const struct known_port *port,
			   const struct front *front)
{
	struct targets *had;

	if (!front->any_addr) {
		add_judgement(flows, front, JUDGE_TRANSLATED, NULL)->gone = true;
		return;
	}
	had = together(port->all, port->left);
	if (had->n > 0)
		add_judgement(flows, front, JUDGE_IN, had)->gone = true;
	targets_unref(had);
}

/*
 * As far as that waits, what left the Service before it went is still cut. Where another Service has the front now, which
 * wants nothing cut, nothing is.
 */
static void judge_gone_tcp(struct stale_flows *flows, const struct known_port *port,
			   const struct front *front, const struct service *owner)
{
	if (flows->unfinished)
		add_judgement(flows, front, JUDGE_IN, owner ? NULL : port->left)->gone = true;
}

/* A front whose owner has its flows judged was looked at with that one, which it may have gone to. */
static void judge_gone(struct stale_flows *flows, const struct stale_flows_rules *rules,
		       const struct known_service *before)
{
	for (size_t i = 0; before && i < before->n_ports; i++) {
		const struct known_port *port = &before->ports[i];

		for (size_t j = 0; j < port->n_fronts; j++) {
			const struct front *front = &port->fronts[j];
			const struct service *owner = front_owner(rules, front);

			if (owner && watched_protocol(flows, owner, protocol_of(front)))
				continue;
			if (port->protocol == IPPROTO_UDP)
				judge_gone_udp(flows, port, front);
			else
				judge_gone_tcp(flows, port, front, owner);
		}
	}
}

/* What a port was before, as far as flows of then were not looked for. */
static void note_past(const struct stale_flows *flows, const struct known_port *before,
		      struct known_port *now)
{
	struct targets *had;

	now->fresh = !before || (flows->unfinished && before->fresh);
	if (!before)
		return;
	had = flows->unfinished ? together(before->all, before->left) : targets_ref(before->all);
	now->left = without(had, now->all);
	targets_unref(had);
	if (now->left->n <= LEFT_MAX + 4 * targets_count(now->all))
		return;
	targets_unref(take(now->left));
	now->fresh = true;
}

static void note_service(struct stale_flows *flows, struct known_service *before,
			 struct known_service *now)
{
	for (size_t i = 0; now && i < now->n_ports; i++) {
		note_past(flows, find_port(before, &now->ports[i]), &now->ports[i]);
		judge_present_port(flows, &now->ports[i]);
	}
	if (before)
		map_remove(&flows->services, before->key);
	if (now)
		map_set(&flows->services, now->key, now);
}

bool stale_flows_prepare(struct stale_flows *flows, const struct stale_flows_rules *rules,
			 const char *const *services, size_t n_services)
{
	cleanup_free struct known_service **before =
		xcalloc(n_services + 1, sizeof(struct known_service *));
	size_t n_old;

	if (!flows->unfinished)
		forget_judgements(flows);
	n_old = flows->n_judgements;
	for (size_t i = 0; i < n_services; i++) {
		before[i] = map_get(&flows->services, services[i]);
		note_service(flows, before[i], read_service(flows, rules, services[i]));
	}
	for (size_t i = 0; i < n_services; i++) {
		judge_gone(flows, rules, before[i]);
		known_service_free(before[i]);
	}
	join_judgements(flows, n_old);
	return flows->n_judgements > 0;
}

static bool judged_stale(const struct judgement *judgement, const struct conntrack_flow *flow)
{
	const struct target target = {flow->reply.src, flow->reply.src_port};
	bool translated = flow->status & IPS_DST_NAT;

	switch (judgement->kind) {
	case JUDGE_NOT_IN:
		return !has_target(judgement->targets, &target);
	case JUDGE_TRANSLATED:
		return translated;
	case JUDGE_IN:
		return translated && has_target(judgement->targets, &target);
	case JUDGE_ELSEWHERE:
		return translated && !has_target(judgement->targets, &target);
	case JUDGE_KIND_COUNT:
		break;
	}
	return false;
}

bool stale_flows_judge(const struct stale_flows *flows, const struct conntrack_flow *flow)
{
	struct front front = {
		.protocol = flow->protocol,
		.port = flow->original.dst_port,
		.addr = flow->original.dst,
	};
	const struct judgement *judgement = find_judgement(flows, &front);

	if (judgement)
		return judged_stale(judgement, flow);
	front.any_addr = true;
	front.addr = (struct addr){0};
	judgement = find_judgement(flows, &front);
	return judgement && judged_stale(judgement, flow);
}

/* -- the kernel */

struct collected {
	const struct stale_flows *flows;
	struct conntrack_flow *v;
	size_t n, capacity;
};

static void collect(void *arg, const struct conntrack_flow *flow)
{
	struct collected *collected = arg;

	if (!stale_flows_judge(collected->flows, flow))
		return;
	array_grow(&collected->v, &collected->capacity, collected->n, sizeof(*collected->v));
	collected->v[collected->n++] = *flow;
}

/* How many judgements from this one on are about the same protocol and port; they stand together. */
static size_t same_port(const struct stale_flows *flows, size_t first)
{
	const struct front *front = &flows->judgements[first].front;
	size_t n = 1;

	while (first + n < flows->n_judgements &&
	       flows->judgements[first + n].front.protocol == front->protocol &&
	       flows->judgements[first + n].front.port == front->port)
		n++;
	return n;
}

static size_t count_ports(const struct stale_flows *flows, uint8_t protocol)
{
	size_t n = 0;

	for (size_t i = 0; i < flows->n_judgements; i += same_port(flows, i))
		n += flows->judgements[i].front.protocol == protocol;
	return n;
}

/*
 * Each dump walks the whole table, so addresses with the same port share one. Few ports: the kernel
 * picks the flows. Many: it hands over all of the protocol.
 */
static int dump_protocol(const struct stale_flows *flows, struct nfnetlink_conn *line,
			 uint8_t protocol, struct collected *collected, struct err *err)
{
	struct conntrack_filter filter = {.family = flows->family, .protocol = protocol};
	size_t n = count_ports(flows, protocol);
	size_t together;
	int r = 0;

	if (n > FILTERED_DUMPS_MAX)
		return conntrack_dump(line, &filter, collect, collected, err);
	for (size_t i = 0; i < flows->n_judgements && r >= 0; i += together) {
		const struct front *front = &flows->judgements[i].front;

		together = same_port(flows, i);
		if (front->protocol != protocol)
			continue;
		filter.dst = together > 1 || front->any_addr ? NULL : &front->addr;
		filter.dst_port = front->port;
		r = conntrack_dump(line, &filter, collect, collected, err);
	}
	return r;
}

void stale_flows_defer(struct stale_flows *flows)
{
	flows->unfinished = true;
}

/* One that cannot be deleted does not keep the others; the first error is told. */
static int delete_collected(const struct collected *collected, struct nfnetlink_conn *line,
			    struct err *err)
{
	struct err ignored;
	int deleted = 0, error = 0;

	for (size_t i = 0; i < collected->n; i++) {
		int r = conntrack_delete(line, &collected->v[i], error ? &ignored : err);

		deleted += r > 0;
		if (r < 0 && error == 0)
			error = r;
	}
	return error ? error : deleted;
}

int stale_flows_delete(struct stale_flows *flows, struct nfnetlink_conn *line, struct err *err)
{
	struct collected collected = {.flows = flows};
	int r = dump_protocol(flows, line, IPPROTO_UDP, &collected, err);

	if (r >= 0)
		r = dump_protocol(flows, line, IPPROTO_TCP, &collected, err);
	if (r >= 0)
		r = delete_collected(&collected, line, err);
	free(collected.v);
	flows->unfinished = r < 0;
	if (r >= 0)
		forget_judgements(flows);
	return r;
}

const char *stale_flows_next(const struct stale_flows *flows, size_t *at)
{
	return map_next_key(&flows->services, at);
}

/* -- begin and end */

struct stale_flows *stale_flows_new(enum family family, enum terminate terminate)
{
	struct stale_flows *flows = xcalloc(1, sizeof(*flows));

	flows->family = family;
	flows->terminate = terminate;
	return flows;
}

struct stale_flows *stale_flows_free(struct stale_flows *flows)
{
	struct known_service *service;
	size_t at = 0;

	if (!flows)
		return NULL;
	while ((service = map_next(&flows->services, &at)))
		known_service_free(service);
	map_done(&flows->services);
	forget_judgements(flows);
	free(flows->judgements);
	free(flows);
	return NULL;
}

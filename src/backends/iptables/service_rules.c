/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/iptables/service_rules.h"

#include <assert.h>
#include <stdlib.h>

#include "plan/withheld.h"

/*
 * The way of a packet through one service port:
 *
 *	KUBE-SERVICES ---- cluster IP ----------------------------> SVC (or SVL) --> SEP... --> DNAT
 *	KUBE-SERVICES ---- external IP -----------> EXT ----------> SVC or SVL
 *	KUBE-SERVICES ---- load balancer IP --> FW --> EXT
 *	KUBE-NODEPORTS --- node port -------------> EXT
 *
 * SVC holds the endpoints for policy Cluster, SVL those for policy Local; FW exists only with
 * source ranges. Destinations that lead nowhere have a rule in the filter table instead. The plan
 * has made every decision; here each becomes a rule. The order is kube-proxy's, rule by rule.
 */

struct port_writer {
	const struct rule_facts *facts;
	struct rule_list *list;
	bool endpoint_comments;
	const struct map *withheld;
	const struct port_plan *plan;
	const struct chain_hash *hashes; /* its own, then those of plan->use.reachable */
	const char *svc, *svl, *ext, *fw;
	const char **seps; /* parallel to plan->use.reachable */
};

static size_t count_hashes(const struct port_plan *port)
{
	return 1 + port->use.reachable.n;
}

static void hash_port(const struct port_plan *plan, struct chain_hash *out)
{
	const struct index_list *reachable = &plan->use.reachable;

	chain_hash_port(plan->id, plan->port->protocol, out++);
	for (size_t i = 0; i < reachable->n; i++) {
		const struct endpoint *endpoint = &plan->endpoints->v[reachable->v[i]];

		chain_hash_endpoint(plan->id, plan->port->protocol, &endpoint->addr, endpoint->port,
				    out++);
	}
}

struct service_rules *service_rules_new(struct service_plan *plan, bool endpoint_comments)
{
	struct service_rules *service;
	struct chain_hash *hash;
	size_t n = 0;

	for (size_t i = 0; i < plan->n_ports; i++)
		n += count_hashes(&plan->ports[i]);
	service = xmalloc(sizeof(*service) + n * sizeof(service->hashes[0]));
	*service = (struct service_rules){.plan = service_plan_ref(plan),
					  .endpoint_comments = endpoint_comments};
	hash = service->hashes;
	for (size_t i = 0; i < plan->n_ports; i++) {
		hash_port(&plan->ports[i], hash);
		hash += count_hashes(&plan->ports[i]);
	}
	return service;
}

struct service_rules *service_rules_free(struct service_rules *service)
{
	if (!service)
		return NULL;
	service_plan_unref(service->plan);
	free(service);
	return NULL;
}

size_t service_rules_count_hashes(const struct service_rules *service)
{
	size_t n = 0;

	for (size_t i = 0; i < service->plan->n_ports; i++)
		n += count_hashes(&service->plan->ports[i]);
	return n;
}

static void each_port_chain(const struct port_plan *plan, const struct chain_hash *hash,
			    service_rules_chain_fn *fn, void *arg)
{
	if (plan->use_external)
		fn(arg, CHAIN_KIND_EXT, hash);
	if (plan->use_firewall)
		fn(arg, CHAIN_KIND_FW, hash);
	if (plan->use_cluster_group)
		fn(arg, CHAIN_KIND_SVC, hash);
	if (plan->use_local_group)
		fn(arg, CHAIN_KIND_SVL, hash);
	for (size_t i = 0; i < plan->use.reachable.n; i++)
		fn(arg, CHAIN_KIND_SEP, hash + 1 + i);
}

void service_rules_each_chain(const struct service_rules *service, service_rules_chain_fn *fn,
			      void *arg)
{
	const struct chain_hash *hash = service->hashes;

	for (size_t i = 0; i < service->plan->n_ports; i++) {
		each_port_chain(&service->plan->ports[i], hash, fn, arg);
		hash += count_hashes(&service->plan->ports[i]);
	}
}

/* The comment "<before>ID<after>", cut where the kernel would refuse it. */
static const char *comment(struct port_writer *w, const char *before, const char *after)
{
	const char *const parts[] = {before, w->plan->id, after};
	size_t lengths[ARRAY_SIZE(parts)], n = 0;
	char *text, *at;

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		lengths[i] = strnlen(parts[i], RULE_COMMENT_MAX - n);
		n += lengths[i];
	}
	text = at = arena_alloc(w->list->arena, n + 1);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		memcpy(at, parts[i], lengths[i]);
		at += lengths[i];
	}
	return text;
}

static bool is_entry(const struct rule *rule)
{
	return rule->table == TABLE_NAT && streq(rule->chain, CHAIN_SERVICES);
}

static void add(struct port_writer *w, struct rule *rule)
{
	const struct rule_facts *facts = w->facts;

	if (facts->indexed && !facts->only && is_entry(rule))
		return;
	if (facts->only && (!is_entry(rule) || !addr_equal(rule_address(rule), facts->only)))
		return;
	if (facts->only)
		rule->chain = facts->into;
	rule_list_add(w->list, rule);
}

/* Begins a rule for packets to addr and this service's port. */
static void begin_destination(struct port_writer *w, struct rule *rule, enum table table,
			      const char *chain, const char *text, const struct addr *addr)
{
	rule_init(rule, table, chain);
	rule_comment(rule, text);
	rule_protocol(rule, w->plan->port->protocol);
	rule_destination_addr(rule, addr);
	rule_port(rule, w->plan->port->port);
}

static void add_entry(struct port_writer *w, const char *what, const struct addr *addr,
		      const char *target)
{
	struct rule rule;

	begin_destination(w, &rule, TABLE_NAT, CHAIN_SERVICES, comment(w, "", what), addr);
	rule.leading = addr == w->plan->cluster_ip;
	rule_jump(&rule, target);
	add(w, &rule);
}

static const char *refusal_comment(struct port_writer *w, enum plan_refusal refusal)
{
	return comment(w, "",
		       refusal == PLAN_REJECT ? " has no endpoints" : " has no local endpoints");
}

static enum target_kind refusal_target(enum plan_refusal refusal)
{
	return refusal == PLAN_REJECT ? TARGET_REJECT : TARGET_DROP;
}

static void add_refusal(struct port_writer *w, const char *chain, enum plan_refusal refusal,
			const struct addr *addr)
{
	struct rule rule;

	begin_destination(w, &rule, TABLE_FILTER, chain, refusal_comment(w, refusal), addr);
	rule.leading = addr == w->plan->cluster_ip;
	rule_verdict(&rule, refusal_target(refusal));
	add(w, &rule);
}

static const char *internal_chain(const struct port_writer *w)
{
	return w->plan->service->internal_local ? w->svl : w->svc;
}

/* Is its entry for the address left out, because another Service owns that? */
static bool is_withheld(const struct port_writer *w, const struct addr *addr)
{
	return withheld_has(w->withheld, &(struct destination){
						 .protocol = w->plan->port->protocol,
						 .port = w->plan->port->port,
						 .addr = *addr,
					 });
}

static bool is_node_port_withheld(const struct port_writer *w)
{
	return withheld_has(w->withheld, &(struct destination){
						 .node_port = true,
						 .protocol = w->plan->port->protocol,
						 .port = w->plan->port->node_port,
					 });
}

static void add_cluster_ip(struct port_writer *w)
{
	const struct port_plan *plan = w->plan;

	if (is_withheld(w, plan->cluster_ip))
		return;
	if (plan->internal == PLAN_SERVED)
		add_entry(w, " cluster IP", plan->cluster_ip, internal_chain(w));
	else
		add_refusal(w, CHAIN_SERVICES, plan->internal, plan->cluster_ip);
}

static void add_external_ips(struct port_writer *w)
{
	const struct port_plan *plan = w->plan;

	for (size_t i = 0; i < plan->n_external_ips; i++) {
		const struct addr *addr = &plan->external_ips[i];

		if (is_withheld(w, addr))
			continue;
		if (plan->use.has_endpoints)
			add_entry(w, " external IP", addr, w->ext);
		if (plan->external != PLAN_SERVED)
			add_refusal(w, CHAIN_EXTERNAL_SERVICES, plan->external, addr);
	}
}

/* What FW did not accept goes on untranslated and ends here. */
static void add_firewall_drop(struct port_writer *w, const struct addr *addr)
{
	char after[64] = " traffic not accepted by ";
	struct rule rule;

	strcat(after, w->fw);
	begin_destination(w, &rule, TABLE_FILTER, CHAIN_PROXY_FIREWALL, comment(w, "", after),
			  addr);
	rule_verdict(&rule, TARGET_DROP);
	add(w, &rule);
}

static void add_vips(struct port_writer *w)
{
	const struct port_plan *plan = w->plan;

	for (size_t i = 0; i < plan->n_vips && plan->use.has_endpoints; i++) {
		if (is_withheld(w, &plan->vips[i]))
			continue;
		add_entry(w, " loadbalancer IP", &plan->vips[i],
			  plan->use_firewall ? w->fw : w->ext);
		if (plan->use_firewall)
			add_firewall_drop(w, &plan->vips[i]);
	}
	for (size_t i = 0; i < plan->n_vips && plan->external != PLAN_SERVED; i++)
		if (!is_withheld(w, &plan->vips[i]))
			add_refusal(w, CHAIN_EXTERNAL_SERVICES, plan->external, &plan->vips[i]);
}

/* Begins a rule of nat KUBE-NODEPORTS; the bare identity is its comment. */
static void begin_node_port(struct port_writer *w, struct rule *rule)
{
	rule_init(rule, TABLE_NAT, CHAIN_NODEPORTS);
	rule_comment(rule, comment(w, "", ""));
	rule_protocol(rule, w->plan->port->protocol);
}

/* The same as the rule behind it, but it counts who still uses NodePorts on localhost. */
static void add_node_port_localhost(struct port_writer *w)
{
	struct rule rule;

	begin_node_port(w, &rule);
	rule_destination(&rule, false, &rule_loopback_ipv4);
	rule_port(&rule, w->plan->port->node_port);
	rule_nfacct(&rule, NFACCT_LOCALHOST);
	rule_jump(&rule, w->ext);
	add(w, &rule);
}

static void add_node_port_refusal(struct port_writer *w)
{
	enum plan_refusal refusal = w->plan->external;
	struct rule rule;

	rule_init(&rule, TABLE_FILTER, CHAIN_EXTERNAL_SERVICES);
	rule_comment(&rule, refusal_comment(w, refusal));
	rule_destination_local(&rule);
	rule_protocol(&rule, w->plan->port->protocol);
	rule_port(&rule, w->plan->port->node_port);
	rule_verdict(&rule, refusal_target(refusal));
	add(w, &rule);
}

static void add_node_port(struct port_writer *w)
{
	struct rule rule;

	if (w->plan->use.has_endpoints) {
		if (w->facts->localhost_node_ports && w->facts->host->nfacct_localhost)
			add_node_port_localhost(w);
		begin_node_port(w, &rule);
		rule_port(&rule, w->plan->port->node_port);
		rule_jump(&rule, w->ext);
		add(w, &rule);
	}
	if (w->plan->external != PLAN_SERVED)
		add_node_port_refusal(w);
}

/* Health checks must be answered whatever the firewall of the host thinks; always TCP. */
static void add_health_check(struct port_writer *w)
{
	struct rule rule;

	rule_init(&rule, TABLE_FILTER, CHAIN_NODEPORTS);
	rule_comment(&rule, comment(w, "", " health check node port"));
	rule_protocol(&rule, PROTOCOL_TCP);
	rule_port(&rule, w->plan->service->health_check_node_port);
	rule_verdict(&rule, TARGET_ACCEPT);
	add(w, &rule);
}

/* Group one, rules in shared chains: add_cluster_ip(), and those that follow. */
static void add_followers(struct port_writer *w)
{
	add_external_ips(w);
	add_vips(w);
	if (w->plan->port->node_port && !is_node_port_withheld(w))
		add_node_port(w);
	if (w->plan->service->health_check_node_port)
		add_health_check(w);
}

static void match_local(const struct port_writer *w, bool invert, struct rule *rule)
{
	const struct detector *detector = &w->facts->settings->detector;

	if (detector->kind == DETECTOR_CIDR)
		rule_source(rule, invert, &detector->cidr);
	else
		rule_interface(rule, invert,
			       arena_printf(w->list->arena, "%s%s", detector->interface,
					    detector->kind == DETECTOR_INTERFACE ? "+" : ""));
}

/* Who is not a pod may have come by a route through this node: answers must come back here. */
static void add_cluster_ip_masquerade(struct port_writer *w)
{
	const struct settings *settings = w->facts->settings;
	struct rule rule;

	if (!settings->masquerade_all && (settings->detector.kind == DETECTOR_NONE ||
					  detector_local_match_all(&settings->detector)))
		return;
	begin_destination(w, &rule, TABLE_NAT, internal_chain(w), comment(w, "", " cluster IP"),
			  w->plan->cluster_ip);
	if (!settings->masquerade_all)
		match_local(w, true, &rule);
	rule_jump(&rule, CHAIN_MARK_MASQ);
	add(w, &rule);
}

static void add_pod_short_cut(struct port_writer *w)
{
	struct rule rule;

	if (w->facts->settings->detector.kind == DETECTOR_NONE)
		return;
	rule_init(&rule, TABLE_NAT, w->ext);
	rule_comment(&rule, comment(w, "pod traffic for ", " external destinations"));
	match_local(w, false, &rule);
	rule_jump(&rule, w->svc);
	add(w, &rule);
}

static void add_node_short_cut(struct port_writer *w, const char *what, const char *target)
{
	struct rule rule;

	rule_init(&rule, TABLE_NAT, w->ext);
	rule_comment(&rule, comment(w, what, " external destinations"));
	rule_source_local(&rule);
	rule_jump(&rule, target);
	add(w, &rule);
}

/* Policy Cluster masquerades; policy Local does not, but lets pods and the node use them all. */
static void add_external(struct port_writer *w)
{
	struct rule rule;

	if (w->plan->service->external_local) {
		add_pod_short_cut(w);
		add_node_short_cut(w, "masquerade LOCAL traffic for ", CHAIN_MARK_MASQ);
		add_node_short_cut(w, "route LOCAL traffic for ", w->svc);
	} else {
		rule_init(&rule, TABLE_NAT, w->ext);
		rule_comment(&rule,
			     comment(w, "masquerade traffic for ", " external destinations"));
		rule_jump(&rule, CHAIN_MARK_MASQ);
		add(w, &rule);
	}
	if (w->plan->external != PLAN_SERVED)
		return;
	rule_init(&rule, TABLE_NAT, w->ext);
	rule_jump(&rule, w->plan->service->external_local ? w->svl : w->svc);
	add(w, &rule);
}

static void begin_firewall(struct port_writer *w, struct rule *rule)
{
	rule_init(rule, TABLE_NAT, w->fw);
	rule_comment(rule, comment(w, "", " loadbalancer IP"));
}

static void add_firewall(struct port_writer *w)
{
	const struct port_plan *plan = w->plan;
	struct rule rule;

	for (size_t i = 0; i < plan->n_source_ranges; i++) {
		begin_firewall(w, &rule);
		rule_source(&rule, false, &plan->source_ranges[i]);
		rule_jump(&rule, w->ext);
		add(w, &rule);
	}
	/* a node with the VIP on an interface of its own calls from that address */
	for (size_t i = 0; i < plan->n_vips && plan->node_in_ranges; i++) {
		begin_firewall(w, &rule);
		rule_source_addr(&rule, &plan->vips[i]);
		rule_jump(&rule, w->ext);
		add(w, &rule);
	}
	rule_init(&rule, TABLE_NAT, w->fw);
	rule_comment(&rule,
		     comment(w, "other traffic to ", " will be dropped by " CHAIN_PROXY_FIREWALL));
	add(w, &rule);
}

/*
 * Walks one of the plan's lists beside use.reachable, which holds all of it in the same order,
 * because the names are made for that one.
 */
struct endpoint_walk {
	size_t at; /* in use.reachable */
	const struct endpoint *endpoint;
	const char *sep;
};

static void walk_to(struct port_writer *w, struct endpoint_walk *walk, uint32_t index)
{
	const struct index_list *reachable = &w->plan->use.reachable;

	while (reachable->v[walk->at] != index) {
		walk->at++;
		assert(walk->at < reachable->n);
	}
	walk->endpoint = &w->plan->endpoints->v[index];
	walk->sep = w->seps[walk->at];
}

/* "ID -> ip:port" */
static void add_endpoint_comment(struct port_writer *w, const struct endpoint *endpoint,
				 struct rule *rule)
{
	char after[ADDR_PORT_TEXT_MAX + 4] = " -> ";

	if (!w->endpoint_comments)
		return;
	addr_port_print(&endpoint->addr, endpoint->port, after + 4);
	rule_comment(rule, comment(w, "", after));
}

/*
 * A rule for each endpoint of the list. With affinity: clients that were here before go where they
 * went. Without: each takes its share of what those before it left, 1/n, 1/(n-1), ... and the last
 * one all.
 */
static void add_choices(struct port_writer *w, const char *chain, const struct index_list *list,
			bool affinity)
{
	struct endpoint_walk walk = {0};
	struct rule rule;

	for (size_t i = 0; i < list->n; i++) {
		walk_to(w, &walk, list->v[i]);
		rule_init(&rule, TABLE_NAT, chain);
		add_endpoint_comment(w, walk.endpoint, &rule);
		if (affinity)
			rule_recent_check(&rule, walk.sep, w->plan->service->sticky_seconds);
		else if (i + 1 < list->n)
			rule_statistic(&rule, (unsigned int)(list->n - i));
		rule_jump(&rule, walk.sep);
		add(w, &rule);
	}
}

static void add_group(struct port_writer *w, const char *chain, const struct index_list *list)
{
	if (w->plan->service->sticky_seconds)
		add_choices(w, chain, list, true);
	add_choices(w, chain, list, false);
}

static void begin_endpoint(struct port_writer *w, struct rule *rule, const char *sep)
{
	rule_init(rule, TABLE_NAT, sep);
	if (w->endpoint_comments)
		rule_comment(rule, comment(w, "", ""));
}

/* A pod that reaches itself through the service is masqueraded: it would refuse its own address. */
static void add_endpoint(struct port_writer *w, const struct endpoint *endpoint, const char *sep)
{
	struct rule rule;

	begin_endpoint(w, &rule, sep);
	rule_source_addr(&rule, &endpoint->addr);
	rule_jump(&rule, CHAIN_MARK_MASQ);
	add(w, &rule);

	begin_endpoint(w, &rule, sep);
	if (w->plan->service->sticky_seconds)
		rule_recent_set(&rule, sep);
	rule_protocol(&rule, w->plan->port->protocol);
	rule_dnat(&rule, &endpoint->addr, endpoint->port);
	add(w, &rule);
}

/* Group two: rules in chains of its own. */
static void write_own_chains(struct port_writer *w)
{
	const struct port_plan *plan = w->plan;
	struct endpoint_walk walk = {0};

	if (plan->internal == PLAN_SERVED)
		add_cluster_ip_masquerade(w);
	if (plan->use_external)
		add_external(w);
	if (plan->use_firewall)
		add_firewall(w);
	if (plan->use_cluster_group)
		add_group(w, w->svc, &plan->use.cluster);
	if (plan->use_local_group)
		add_group(w, w->svl, &plan->use.local);
	for (size_t i = 0; i < plan->use.reachable.n; i++) {
		walk_to(w, &walk, plan->use.reachable.v[i]);
		add_endpoint(w, walk.endpoint, walk.sep);
	}
}

static const char *make_name(struct rule_list *list, enum chain_kind kind,
			     const struct chain_hash *hash)
{
	struct chain_name *name = arena_alloc(list->arena, sizeof(*name));

	chain_name_make(kind, hash, name);
	return name->text;
}

static void port_writer_init(struct port_writer *w, const struct rule_facts *facts,
			     struct rule_list *list, const struct service_rules *service,
			     const struct port_plan *plan, const struct chain_hash *hash)
{
	*w = (struct port_writer){
		.facts = facts,
		.list = list,
		.endpoint_comments = service->endpoint_comments,
		.withheld = service->plan->withheld,
		.plan = plan,
		.hashes = hash,
		.svc = make_name(list, CHAIN_KIND_SVC, hash),
		.svl = make_name(list, CHAIN_KIND_SVL, hash),
		.ext = make_name(list, CHAIN_KIND_EXT, hash),
		.fw = make_name(list, CHAIN_KIND_FW, hash),
	};
}

/* Names are made once: a rule finds its chain by the same pointer. */
static void declare_chain(void *arg, enum chain_kind kind, const struct chain_hash *hash)
{
	struct port_writer *w = arg;
	const char *const names[CHAIN_KIND_COUNT] = {
		[CHAIN_KIND_SVC] = w->svc,
		[CHAIN_KIND_SVL] = w->svl,
		[CHAIN_KIND_EXT] = w->ext,
		[CHAIN_KIND_FW] = w->fw,
	};
	const char *name = names[kind];

	if (kind == CHAIN_KIND_SEP)
		name = w->seps[hash - w->hashes - 1] = make_name(w->list, kind, hash);
	rule_list_declare(w->list, TABLE_NAT, name, true);
}

static void make_port(struct port_writer *w, unsigned int parts)
{
	if (parts & RULESET_OWN) {
		w->seps = arena_array(w->list->arena, w->plan->use.reachable.n + 1,
				      sizeof(const char *));
		each_port_chain(w->plan, w->hashes, declare_chain, w);
	}
	if (parts & RULESET_LEADING)
		add_cluster_ip(w);
	if (parts & RULESET_FOLLOWING)
		add_followers(w);
	if (parts & RULESET_OWN_RULES) {
		assert(w->seps);
		write_own_chains(w);
	}
}

void service_rules_make(const struct service_rules *service, const struct rule_facts *facts,
			unsigned int parts, struct rule_list *list)
{
	const struct chain_hash *hash = service->hashes;

	list->subject = service->plan->key;
	for (size_t i = 0; i < service->plan->n_ports; i++) {
		struct port_writer w;

		list->group = (unsigned int)i;
		port_writer_init(&w, facts, list, service, &service->plan->ports[i], hash);
		make_port(&w, parts);
		hash += count_hashes(&service->plan->ports[i]);
	}
}

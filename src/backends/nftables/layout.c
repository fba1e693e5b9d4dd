/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/nftables/layout.h"

#include <assert.h>

#include "backends/nftables/localhost/localhost_policy.h"

/*
 * The way of a packet (names without "nodeport-", which has the same once more):
 *
 *	services ── @service-ips ──▶ pick-n ──────────────────────────────▶ DNAT by slot
 *	                         ├─▶ masq-pick-n ──▶ pick-n
 *	                         ├─▶ external-local ──┬─ pods, node ──▶ to-cluster ── @cluster-picks ──▶ pick-n
 *	                         │                    └─ others ──────▶ to-local ── @local-picks ──▶ local-pick-n
 *	                         └─▶ sticky ── @recalls ──▶ recall-n ── known client ──▶ DNAT
 *	                                    └─ others ──▶ to-cluster
 *
 * A packet reads its verdict and its slot at different moments, and a commit may fall between them.
 * If the group shrank, the slot may be gone: therefore pick-n ends in pick-1, since slot 0 is there
 * as long as there is an endpoint. If affinity ended, the second verdict may be gone: therefore
 * to-cluster and to-local end in slot 0 too. tests/nftables/test_torn.py tries every such moment.
 *
 * Two things are avoided because nft cannot list them and gives up: a map's result inside a key, and
 * a verdict looked up by a map's result. Hence an affinity's id travels in the packet's priority.
 */

#define DESTINATION_KEY .key = {OPERAND_DADDR, OPERAND_PROTOCOL, OPERAND_DPORT}
#define NODEPORT_KEY    .key = {OPERAND_PROTOCOL, OPERAND_DPORT}

static void put_rule(struct writer *writer, struct chain chain, const char *comment,
		     const struct statement *v)
{
	struct nft_rule rule = {.chain = chain, .comment = comment};

	for (; v->kind; v++) {
		assert(rule.n < STATEMENTS_MAX);
		rule.v[rule.n++] = *v;
	}
	writer->ops->rule(writer, &rule);
}

/* RULE(id, comment, {.kind = ...}, ...): a rule of a fixed chain */
#define RULE(id_, comment_, ...)                                  \
	put_rule(writer, (struct chain){.id = (id_)}, (comment_), \
		 (const struct statement[]){__VA_ARGS__, {.kind = STATEMENT_END}})

#define JUMP(id_)                                         \
	{                                                 \
		.kind = STATEMENT_JUMP, .chain.id = (id_) \
	}
#define GOTO(id_)                                         \
	{                                                 \
		.kind = STATEMENT_GOTO, .chain.id = (id_) \
	}
#define NEW                           \
	{                             \
		.kind = STATEMENT_NEW \
	}
#define MARK(s)                                                            \
	{                                                                  \
		.kind = STATEMENT_SET_MARK, .number = (s)->masquerade_mark \
	}

static bool is_localhost_chain(enum chain_id id)
{
	return id >= CHAIN_LOCALHOST_REJECT && id <= CHAIN_LOCALHOST_REJECT_SCTP;
}

static enum protocol localhost_protocol(enum chain_id id)
{
	return (enum protocol)(id - CHAIN_LOCALHOST_REJECT);
}

static_assert(CHAIN_LOCALHOST_REJECT_SCTP - CHAIN_LOCALHOST_REJECT == PROTOCOL_SCTP,
	      "a chain for each protocol, in their order");

bool layout_has_container(const struct settings *settings, enum container container)
{
	return container != CONTAINER_LOCALHOST_REJECTS || localhost_is_on(settings);
}

bool layout_has_chain(const struct settings *settings, enum chain_id id)
{
	return !is_localhost_chain(id) || localhost_is_refused(settings, localhost_protocol(id));
}

void layout_containers(struct writer *writer, const struct settings *settings)
{
	for (enum container i = 0; i < CONTAINER_FIXED_COUNT; i++)
		if (layout_has_container(settings, i))
			writer->ops->container(writer, i);
	for (enum protocol i = 0; i < PROTOCOL_COUNT; i++)
		if (localhost_is_refused(settings, i))
			writer->ops->counter(writer, i);
}

void layout_fixed_chains(struct writer *writer, const struct settings *settings)
{
	for (enum chain_id id = 0; id < CHAIN_FIXED_COUNT; id++)
		if (layout_has_chain(settings, id))
			writer->ops->chain(writer, (struct chain){.id = id});
}

/* -- conditions that depend on settings */

static struct statement detected(const struct detector *detector, bool local)
{
	if (detector->kind == DETECTOR_CIDR)
		return (struct statement){
			.kind = STATEMENT_SOURCE, .not = !local, .prefix = detector->cidr};
	return (struct statement){.kind = STATEMENT_INTERFACE,
				  .not = !local,
				  .is_prefix = detector->kind == DETECTOR_INTERFACE,
				  .interface = detector->interface};
}

/* -- chains at hooks */

static void base_rules(struct writer *writer, const struct layout_facts *facts, enum chain_id id)
{
	switch (id) {
	case CHAIN_FILTER_PREROUTING_PRE_DNAT:
	case CHAIN_FILTER_OUTPUT_PRE_DNAT:
		RULE(id, NULL, NEW, JUMP(CHAIN_FIREWALL_CHECK));
		return;
	case CHAIN_NAT_PREROUTING:
	case CHAIN_NAT_OUTPUT:
		RULE(id, NULL, JUMP(CHAIN_SERVICES));
		return;
	case CHAIN_NAT_POSTROUTING:
		RULE(id, NULL, JUMP(CHAIN_MASQUERADING));
		return;
	case CHAIN_FILTER_INPUT:
		RULE(id, NULL, NEW, JUMP(CHAIN_NODEPORT_ENDPOINTS_CHECK));
		break;
	default:
		break;
	}
	RULE(id, NULL, NEW, JUMP(CHAIN_SERVICE_ENDPOINTS_CHECK));
	if (id != CHAIN_FILTER_INPUT)
		RULE(id, NULL, NEW, JUMP(CHAIN_CLUSTER_IPS_CHECK));
	if (facts->affinity)
		RULE(id, NULL, NEW, {.kind = STATEMENT_TRANSLATED}, JUMP(CHAIN_REMEMBER));
}

/* -- the first step, and refusals */

static void masquerade_rule(struct writer *writer, const struct settings *settings)
{
	const struct detector *detector = &settings->detector;
	const struct statement to_cluster_ip = {
		.kind = STATEMENT_IN, .container = CONTAINER_CLUSTER_IPS, .key = {OPERAND_DADDR}};

	if (settings->masquerade_all)
		RULE(CHAIN_SERVICES, "masquerade all clusterIP traffic", to_cluster_ip,
		     MARK(settings));
	else if (detector->kind != DETECTOR_NONE && !detector_local_match_all(detector))
		RULE(CHAIN_SERVICES, "masquerade clusterIP traffic from outside cluster",
		     to_cluster_ip, detected(detector, false), MARK(settings));
}

/* Traffic to a node port, if the address is one that has them; `map` says what becomes of it. */
static void node_port_rule(struct writer *writer, const struct settings *settings, enum chain_id id,
			   enum container map)
{
	const struct statement vmap = {.kind = STATEMENT_VMAP, .container = map, NODEPORT_KEY};

	if (settings->node_ports.match_all && id == CHAIN_SERVICES)
		RULE(id, NULL, {.kind = STATEMENT_TO_NODE},
		     {.kind = STATEMENT_DESTINATION,
		      .not = true,
		      .prefix = localhost_prefix(settings->family)},
		     vmap);
	else if (settings->node_ports.match_all) /* input: it is for this node */
		RULE(id, NULL,
		     {.kind = STATEMENT_DESTINATION,
		      .not = true,
		      .prefix = localhost_prefix(settings->family)},
		     vmap);
	else
		RULE(id, NULL,
		     {.kind = STATEMENT_IN,
		      .container = CONTAINER_NODEPORT_IPS,
		      .key = {OPERAND_DADDR}},
		     vmap);
}

/*
 * What is sent to localhost is answered nowhere above. Refused here it is before a program of this node sees it that
 * listens on the same port, as far as the protocol is one that is refused.
 */
static void node_port_check_rules(struct writer *writer, const struct settings *settings)
{
	enum chain_id id = CHAIN_NODEPORT_ENDPOINTS_CHECK;

	node_port_rule(writer, settings, id, CONTAINER_NO_ENDPOINT_NODEPORTS);
	if (localhost_is_on(settings))
		RULE(id, NULL,
		     {.kind = STATEMENT_DESTINATION, .prefix = localhost_prefix(settings->family)},
		     {.kind = STATEMENT_VMAP,
		      .container = CONTAINER_LOCALHOST_REJECTS,
		      NODEPORT_KEY});
}

/*
 * A connect() over the loopback does not heed an ICMP error, because it has its socket locked while the packet is on its
 * way: with `reject` alone, which kube-proxy has, a TCP client hears of the refusal a second later, from its second SYN.
 */
static void localhost_rules(struct writer *writer, const struct settings *settings,
			    enum chain_id id)
{
	const struct statement count = {.kind = STATEMENT_NAMED_COUNTER,
					.protocol = localhost_protocol(id)};

	if (!layout_has_chain(settings, id))
		return;
	if (count.protocol == PROTOCOL_TCP)
		RULE(id, NULL, {.kind = STATEMENT_PROTOCOL, .protocol = PROTOCOL_TCP}, count,
		     {.kind = STATEMENT_RESET});
	else
		RULE(id, NULL, count, {.kind = STATEMENT_REJECT});
}

static void services_rules(struct writer *writer, const struct settings *settings)
{
	masquerade_rule(writer, settings);
	RULE(CHAIN_SERVICES, NULL,
	     {.kind = STATEMENT_VMAP, .container = CONTAINER_SERVICE_IPS, DESTINATION_KEY});
	node_port_rule(writer, settings, CHAIN_SERVICES, CONTAINER_SERVICE_NODEPORTS);
}

static void cluster_ips_check_rules(struct writer *writer, const struct layout_facts *facts)
{
	RULE(CHAIN_CLUSTER_IPS_CHECK, "Reject traffic to invalid ports of ClusterIPs",
	     {.kind = STATEMENT_IN, .container = CONTAINER_CLUSTER_IPS, .key = {OPERAND_DADDR}},
	     {.kind = STATEMENT_REJECT});
	for (size_t i = 0; i < facts->n_service_cidrs; i++)
		RULE(CHAIN_CLUSTER_IPS_CHECK, "Drop traffic to unallocated ClusterIPs",
		     {.kind = STATEMENT_DESTINATION, .prefix = facts->service_cidrs[i]},
		     {.kind = STATEMENT_DROP});
}

static void masquerading_rules(struct writer *writer, const struct settings *settings)
{
	RULE(CHAIN_MASQUERADING, NULL,
	     {.kind = STATEMENT_MARKED, .number = settings->masquerade_mark},
	     {.kind = STATEMENT_TOGGLE_MARK, .number = settings->masquerade_mark},
	     {.kind = STATEMENT_MASQUERADE});
	RULE(CHAIN_MASQUERADING, NULL, {.kind = STATEMENT_TRANSLATED},
	     {.kind = STATEMENT_IN,
	      .container = CONTAINER_HAIRPIN_CONNECTIONS,
	      .key = {OPERAND_SADDR, OPERAND_DADDR, OPERAND_PROTOCOL, OPERAND_DPORT}},
	     {.kind = STATEMENT_MASQUERADE});
}

static void firewall_rules(struct writer *writer)
{
	RULE(CHAIN_FIREWALL_CHECK, NULL,
	     {.kind = STATEMENT_IN, .container = CONTAINER_FIREWALLED, DESTINATION_KEY},
	     {.kind = STATEMENT_IN,
	      .not = true,
	      .container = CONTAINER_SOURCE_RANGES,
	      .key = {OPERAND_DADDR, OPERAND_PROTOCOL, OPERAND_DPORT, OPERAND_SADDR}},
	     {.kind = STATEMENT_DROP});
}

/* -- policies and affinity, for destinations and for node ports */

/* pods and the node itself reach any endpoint, others go on to `local` */
static void external_local_rules(struct writer *writer, const struct settings *settings,
				 enum chain_id id, enum chain_id cluster, enum chain_id local)
{
	const struct detector *detector = &settings->detector;

	if (detector_local_match_all(detector))
		RULE(id, "short-circuit pod traffic", GOTO(cluster));
	else if (detector->kind != DETECTOR_NONE)
		RULE(id, "short-circuit pod traffic", detected(detector, true), GOTO(cluster));
	RULE(id, "masquerade local traffic", {.kind = STATEMENT_FROM_NODE}, MARK(settings));
	RULE(id, "short-circuit local traffic", {.kind = STATEMENT_FROM_NODE}, GOTO(cluster));
	RULE(id, NULL, GOTO(local));
}

static struct statement by_destination(struct statement statement, bool node_port,
				       enum container map, enum container node_port_map)
{
	static const enum operand key[] = {OPERAND_DADDR, OPERAND_PROTOCOL, OPERAND_DPORT};

	statement.container = node_port ? node_port_map : map;
	memcpy(statement.key, key + node_port, sizeof(key) - node_port * sizeof(*key));
	return statement;
}

/* DNAT to one of the first `number` slots of the destination. */
static struct statement pick(uint32_t number, bool node_port, bool local)
{
	struct statement dnat = {.kind = STATEMENT_DNAT, .number = number};

	dnat = local ? by_destination(dnat, node_port, CONTAINER_LOCAL_ENDPOINTS,
				      CONTAINER_NODEPORT_LOCAL_ENDPOINTS)
		     : by_destination(dnat, node_port, CONTAINER_ENDPOINTS,
				      CONTAINER_NODEPORT_ENDPOINTS);
	dnat.key[node_port ? 2 : 3] = OPERAND_RANDOM;
	return dnat;
}

/* The second rule is for a packet that was led here by what a commit has just removed. */
static void to_rules(struct writer *writer, enum chain_id id, bool node_port, bool local)
{
	const struct statement vmap = {.kind = STATEMENT_VMAP};

	RULE(id, NULL,
	     local ? by_destination(vmap, node_port, CONTAINER_LOCAL_PICKS,
				    CONTAINER_NODEPORT_LOCAL_PICKS)
		   : by_destination(vmap, node_port, CONTAINER_CLUSTER_PICKS,
				    CONTAINER_NODEPORT_CLUSTER_PICKS));
	RULE(id, NULL, pick(1, node_port, local));
}

/* What the service port does about a client that it knows ends here; else an endpoint is picked. */
static void sticky_rules(struct writer *writer, enum chain_id id, bool node_port, bool local)
{
	const struct statement take_id = {.kind = STATEMENT_TAKE_ID};

	RULE(id, NULL,
	     by_destination(take_id, node_port, CONTAINER_AFFINITY_IDS,
			    CONTAINER_NODEPORT_AFFINITY_IDS));
	RULE(id, NULL,
	     {.kind = STATEMENT_VMAP,
	      .container = local ? CONTAINER_LOCAL_RECALLS : CONTAINER_RECALLS,
	      .key = {OPERAND_PRIORITY}});
	RULE(id, NULL, GOTO(chain_for(node_port, local ? CHAIN_TO_LOCAL : CHAIN_TO_CLUSTER)));
}

/*
 * What a translated packet was sent to, before: a node port first, so that an address, which says
 * more, has the last word. nft wants to know that there are ports before it reads one.
 */
static void remember_rules(struct writer *writer)
{
	for (enum protocol i = 0; i < PROTOCOL_COUNT; i++)
		RULE(CHAIN_REMEMBER, NULL, {.kind = STATEMENT_PROTOCOL, .protocol = i},
		     {.kind = STATEMENT_TAKE_ID,
		      .container = CONTAINER_NODEPORT_AFFINITY_IDS,
		      .key = {OPERAND_PROTOCOL, OPERAND_ORIGINAL_DPORT}});
	for (enum protocol i = 0; i < PROTOCOL_COUNT; i++)
		RULE(CHAIN_REMEMBER, NULL, {.kind = STATEMENT_PROTOCOL, .protocol = i},
		     {.kind = STATEMENT_TAKE_ID,
		      .container = CONTAINER_AFFINITY_IDS,
		      .key = {OPERAND_ORIGINAL_DADDR, OPERAND_PROTOCOL, OPERAND_ORIGINAL_DPORT}});
	RULE(CHAIN_REMEMBER, NULL,
	     {.kind = STATEMENT_VMAP, .container = CONTAINER_REMEMBERS, .key = {OPERAND_PRIORITY}});
}

static void way_rules(struct writer *writer, const struct settings *settings, enum chain_id id)
{
	bool node_port = (id - CHAIN_TO_CLUSTER) % 2 == 1;
	enum chain_id plain = (enum chain_id)(id - node_port);

	switch (plain) {
	case CHAIN_TO_CLUSTER:
	case CHAIN_TO_LOCAL:
		to_rules(writer, id, node_port, plain == CHAIN_TO_LOCAL);
		break;
	case CHAIN_EXTERNAL_LOCAL:
		external_local_rules(writer, settings, id, chain_for(node_port, CHAIN_TO_CLUSTER),
				     chain_for(node_port, CHAIN_TO_LOCAL));
		break;
	case CHAIN_STICKY:
	case CHAIN_STICKY_LOCAL:
		sticky_rules(writer, id, node_port, plain == CHAIN_STICKY_LOCAL);
		break;
	case CHAIN_MASQ_STICKY:
		RULE(id, NULL, MARK(settings));
		RULE(id, NULL, GOTO(chain_for(node_port, CHAIN_STICKY)));
		break;
	default:
		assert(plain == CHAIN_EXTERNAL_LOCAL_STICKY);
		external_local_rules(writer, settings, id, chain_for(node_port, CHAIN_STICKY),
				     chain_for(node_port, CHAIN_STICKY_LOCAL));
		break;
	}
}

void layout_rules(struct writer *writer, const struct layout_facts *facts, enum chain_id id)
{
	const struct settings *settings = facts->settings;

	if (id < CHAIN_BASE_COUNT) {
		base_rules(writer, facts, id);
		return;
	}
	switch (id) {
	case CHAIN_SERVICES:
		services_rules(writer, settings);
		break;
	case CHAIN_MASQUERADING:
		masquerading_rules(writer, settings);
		break;
	case CHAIN_FIREWALL_CHECK:
		firewall_rules(writer);
		break;
	case CHAIN_SERVICE_ENDPOINTS_CHECK:
		RULE(id, NULL,
		     {.kind = STATEMENT_VMAP,
		      .container = CONTAINER_NO_ENDPOINT_SERVICES,
		      DESTINATION_KEY});
		break;
	case CHAIN_NODEPORT_ENDPOINTS_CHECK:
		node_port_check_rules(writer, settings);
		break;
	case CHAIN_LOCALHOST_REJECT:
	case CHAIN_LOCALHOST_REJECT_UDP:
	case CHAIN_LOCALHOST_REJECT_SCTP:
		localhost_rules(writer, settings, id);
		break;
	case CHAIN_CLUSTER_IPS_CHECK:
		cluster_ips_check_rules(writer, facts);
		break;
	case CHAIN_REJECT:
		RULE(id, NULL, {.kind = STATEMENT_REJECT});
		break;
	case CHAIN_REMEMBER:
		remember_rules(writer);
		break;
	default:
		way_rules(writer, settings, id);
		break;
	}
}

/* -- chains with a number */

#define NUMBERED_RULE(chain_, ...)       \
	put_rule(writer, (chain_), NULL, \
		 (const struct statement[]){__VA_ARGS__, {.kind = STATEMENT_END}})

static void pick_rules(struct writer *writer, struct chain chain, bool node_port, bool local)
{
	NUMBERED_RULE(chain, pick(chain.number, node_port, local));
	if (chain.number > 1)
		NUMBERED_RULE(chain,
			      {.kind = STATEMENT_GOTO, .chain = {.id = chain.id, .number = 1}});
}

void layout_numbered(struct writer *writer, const struct settings *settings, struct chain chain)
{
	bool node_port = (chain.id - CHAIN_PICK) % 2 == 1;

	writer->ops->chain(writer, chain);
	if (chain.id == CHAIN_MASQ_PICK || chain.id == CHAIN_NODEPORT_MASQ_PICK) {
		NUMBERED_RULE(chain, MARK(settings));
		NUMBERED_RULE(chain, {.kind = STATEMENT_GOTO,
				      .chain = {.id = chain_for(node_port, CHAIN_PICK),
						.number = chain.number}});
	} else {
		pick_rules(writer, chain, node_port, chain.id >= CHAIN_LOCAL_PICK);
	}
}

/* -- a service port with affinity */

void layout_affinity_maps(struct writer *writer, const struct layout_affinity *affinity)
{
	struct clients_map map = {
		.container = CONTAINER_CLIENTS,
		.number = affinity->number,
		.size = affinity->clients,
		.comment = affinity->comment,
	};

	writer->ops->clients(writer, &map);
	map.container = CONTAINER_LOCAL_CLIENTS;
	if (affinity->local)
		writer->ops->clients(writer, &map);
}

/*
 * A client's endpoint is known by its id. One that is no longer led to has taken its id along: the client is forgotten,
 * by the packet itself, and gets another endpoint.
 */
static void recall_rules(struct writer *writer, const struct layout_affinity *affinity,
			 struct chain chain, bool local)
{
	enum container map = local ? CONTAINER_LOCAL_CLIENTS : CONTAINER_CLIENTS;

	NUMBERED_RULE(chain, {.kind = STATEMENT_TAKE_ID,
			      .container = map,
			      .map = affinity->number,
			      .key = {OPERAND_SADDR}});
	NUMBERED_RULE(chain, {.kind = STATEMENT_PROTOCOL, .protocol = affinity->protocol},
		      {.kind = STATEMENT_DNAT,
		       .container = local ? CONTAINER_LOCAL_AFFINITY_ENDPOINTS
					  : CONTAINER_AFFINITY_ENDPOINTS,
		       .key = {OPERAND_PRIORITY}});
	NUMBERED_RULE(chain, {.kind = STATEMENT_ID, .not = true, .number = affinity->number},
		      {.kind = STATEMENT_FORGET, .container = map, .map = affinity->number});
}

static struct statement note_client(const struct layout_affinity *affinity, enum container map)
{
	return (struct statement){.kind = STATEMENT_UPDATE,
				  .container = map,
				  .map = affinity->number,
				  .number = affinity->seconds};
}

/*
 * Only an endpoint that the service port still has is noted. Where the map has no room the rule ends early, and the next
 * one says so by the port's own id, so that a port takes one place among the full ones, however many endpoints it
 * has; the packet goes on all the same. Both maps hold the same clients, so one of them is enough to ask.
 */
static void remember_port_rules(struct writer *writer, const struct layout_affinity *affinity,
				struct chain chain)
{
	NUMBERED_RULE(chain, {.kind = STATEMENT_TAKE_ID,
			      .container = CONTAINER_AFFINITY_MEMBERS,
			      .key = {OPERAND_PRIORITY, OPERAND_DADDR, OPERAND_DPORT}});
	NUMBERED_RULE(chain, {.kind = STATEMENT_ID, .number = affinity->number},
		      {.kind = STATEMENT_SET_ID}, {.kind = STATEMENT_RETURN});
	if (affinity->local)
		NUMBERED_RULE(chain, note_client(affinity, CONTAINER_LOCAL_CLIENTS));
	NUMBERED_RULE(chain, note_client(affinity, CONTAINER_CLIENTS), {.kind = STATEMENT_SET_ID},
		      {.kind = STATEMENT_RETURN});
	NUMBERED_RULE(chain, {.kind = STATEMENT_SET_ID, .number = affinity->number},
		      {.kind = STATEMENT_NOTE_FULL,
		       .container = CONTAINER_FULL_CLIENTS,
		       .number = LAYOUT_FULL_SECONDS});
	NUMBERED_RULE(chain, {.kind = STATEMENT_SET_ID});
}

void layout_affinity_rules(struct writer *writer, const struct layout_affinity *affinity,
			   enum chain_id id)
{
	const struct chain chain = {.id = id, .number = affinity->number};

	if (id == CHAIN_REMEMBER_PORT)
		remember_port_rules(writer, affinity, chain);
	else
		recall_rules(writer, affinity, chain, id == CHAIN_LOCAL_RECALL);
}

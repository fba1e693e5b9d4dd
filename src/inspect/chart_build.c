/* SPDX-License-Identifier: Apache-2.0 */

/* From model and plan to boxes and links. Every decision is the plan's; here it only gets words. */

#include <stdlib.h>

#include "inspect/chart_parts.h"
#include "xtables/chains.h"

#define MAX_USED     20 /* endpoints of a port that get a box each; the rest share one */
#define MAX_LEFT_OUT 6
#define NO_BOX       SIZE_MAX

struct builder {
	const struct chart_input *input;
	struct chart *chart;
	size_t frames_room, boxes_room, links_room;
	bool dual; /* the service at hand has both families: boxes say which */
};

/* One service port in one family, while it is drawn. */
struct port_part {
	const struct port_plan *plan;
	enum family family;
	size_t cluster, local; /* boxes of its groups; NO_BOX */
};

static size_t add_box(struct builder *b, enum chart_kind kind, const char *text, const char *note,
		      const char *detail)
{
	struct chart *chart = b->chart;

	array_grow(&chart->boxes, &b->boxes_room, chart->n_boxes, sizeof(*chart->boxes));
	chart->boxes[chart->n_boxes] = (struct chart_box){
		.kind = kind,
		.text = text,
		.note = note,
		.detail = detail,
		.frame = chart->n_frames - 1,
	};
	chart->frames[chart->n_frames - 1].n_boxes++;
	return chart->n_boxes++;
}

static void add_link(struct builder *b, size_t from, size_t to, const char *label)
{
	struct chart *chart = b->chart;

	array_grow(&chart->links, &b->links_room, chart->n_links, sizeof(*chart->links));
	chart->links[chart->n_links++] =
		(struct chart_link){.from = from, .to = to, .label = label};
	chart->frames[chart->n_frames - 1].n_links++;
}

static void add_frame(struct builder *b, const char *ns, const char *title, const char *note)
{
	struct chart *chart = b->chart;

	array_grow(&chart->frames, &b->frames_room, chart->n_frames, sizeof(*chart->frames));
	chart->frames[chart->n_frames++] = (struct chart_frame){
		.ns = arena_strdup(chart->arena, ns),
		.title = title,
		.note = note,
		.first_box = chart->n_boxes,
		.first_link = chart->n_links,
	};
}

/* The name of one of the port's chains; "" outside iptables mode. */
static const char *port_chain(struct builder *b, const struct port_plan *plan, enum chain_kind kind)
{
	struct chain_hash hash;
	struct chain_name name;

	if (!b->input->chain_names)
		return "";
	chain_hash_port(plan->id, plan->port->protocol, &hash);
	chain_name_make(kind, &hash, &name);
	return arena_strdup(b->chart->arena, name.text);
}

static const char *endpoint_chain(struct builder *b, const struct port_plan *plan,
				  const struct endpoint *endpoint)
{
	struct chain_hash hash;
	struct chain_name name;

	if (!b->input->chain_names)
		return "";
	chain_hash_endpoint(plan->id, plan->port->protocol, &endpoint->addr, endpoint->port, &hash);
	chain_name_make(CHAIN_KIND_SEP, &hash, &name);
	return arena_strdup(b->chart->arena, name.text);
}

static bool in_cluster(const struct port_part *part, size_t i)
{
	return part->cluster != NO_BOX && index_list_has(&part->plan->use.cluster, i);
}

static bool in_local(const struct port_part *part, size_t i)
{
	return part->local != NO_BOX && index_list_has(&part->plan->use.local, i);
}

/* Why an endpoint that is in no group gets nothing. */
static const char *left_out_because(const struct builder *b, const struct port_part *part,
				    uint8_t flags)
{
	if (flags & ENDPOINT_TERMINATING)
		return "terminating";
	if (!(flags & ENDPOINT_READY))
		return "not ready";
	if (part->plan->use.mode == TOPOLOGY_SAME_NODE)
		return "meant for another node";
	if (part->plan->use.mode == TOPOLOGY_SAME_ZONE)
		return arena_printf(b->chart->arena, "not meant for zone %s",
				    model_zone(b->input->model));
	return "not on this node";
}

static const char *endpoint_note(uint8_t flags)
{
	bool local = flags & ENDPOINT_LOCAL;

	if (flags & ENDPOINT_TERMINATING)
		return local ? "on this node, terminating" : "terminating";
	return local ? "on this node" : "";
}

static const char *share(struct builder *b, const struct port_plan *plan,
			 const struct index_list *list, size_t i)
{
	unsigned int all = 0;

	if (!plan->weights)
		return arena_printf(b->chart->arena, "1/%zu", list->n);
	for (size_t k = 0; k < list->n; k++)
		all += plan->weights[list->v[k]];
	return arena_printf(b->chart->arena, "%u/%u", plan->weights[i], all);
}

static void link_endpoint(struct builder *b, const struct port_part *part, size_t i, size_t box)
{
	if (in_cluster(part, i))
		add_link(b, part->cluster, box, share(b, part->plan, &part->plan->use.cluster, i));
	if (in_local(part, i))
		add_link(b, part->local, box, share(b, part->plan, &part->plan->use.local, i));
}

static void add_endpoint(struct builder *b, const struct port_part *part, size_t i)
{
	const struct endpoint *endpoint = &part->plan->endpoints->v[i];
	char address[ADDR_PORT_TEXT_MAX];
	size_t box;

	addr_port_print(&endpoint->addr, endpoint->port, address);
	box = add_box(b, CHART_ENDPOINT, arena_strdup(b->chart->arena, address),
		      endpoint_note(endpoint->flags), endpoint_chain(b, part->plan, endpoint));
	link_endpoint(b, part, i, box);
}

/* The endpoints beyond those that are drawn, as one box. */
static void add_more(struct builder *b, const struct port_part *part, size_t n_cluster,
		     size_t n_local, size_t n)
{
	struct arena *arena = b->chart->arena;
	size_t box =
		add_box(b, CHART_ENDPOINT, arena_printf(arena, "%zu more endpoints", n), "", "");

	if (n_cluster > 0)
		add_link(b, part->cluster, box,
			 arena_printf(arena, "%zu/%zu", n_cluster, part->plan->use.cluster.n));
	if (n_local > 0)
		add_link(b, part->local, box,
			 arena_printf(arena, "%zu/%zu", n_local, part->plan->use.local.n));
}

static void add_left_out(struct builder *b, const struct port_part *part, size_t i)
{
	const struct endpoint *endpoint = &part->plan->endpoints->v[i];
	char address[ADDR_PORT_TEXT_MAX];

	addr_port_print(&endpoint->addr, endpoint->port, address);
	add_box(b, CHART_LEFT_OUT, arena_strdup(b->chart->arena, address),
		left_out_because(b, part, endpoint->flags), "");
}

static void add_endpoints(struct builder *b, const struct port_part *part)
{
	const struct endpoints *endpoints = part->plan->endpoints;
	size_t used = 0, left_out = 0, more_cluster = 0, more_local = 0;

	for (size_t i = 0; endpoints && i < endpoints->n; i++) {
		bool cluster = in_cluster(part, i);
		bool local = in_local(part, i);

		if (!cluster && !local)
			continue;
		if (used++ < MAX_USED) {
			add_endpoint(b, part, i);
			continue;
		}
		more_cluster += cluster;
		more_local += local;
	}
	if (used > MAX_USED)
		add_more(b, part, more_cluster, more_local, used - MAX_USED);
	for (size_t i = 0; endpoints && i < endpoints->n; i++)
		if (!in_cluster(part, i) && !in_local(part, i) && left_out++ < MAX_LEFT_OUT)
			add_left_out(b, part, i);
	if (left_out > MAX_LEFT_OUT)
		add_box(b, CHART_LEFT_OUT,
			arena_printf(b->chart->arena, "%zu more", left_out - MAX_LEFT_OUT),
			"get nothing here", "");
	b->chart->n_endpoints += used;
}

static const char *with_family(struct builder *b, enum family family, const char *text)
{
	return b->dual ? arena_printf(b->chart->arena, "%s: %s", family_name(family), text) : text;
}

static void add_groups(struct builder *b, struct port_part *part)
{
	const struct port_plan *plan = part->plan;
	static const char *const words[] = {
		[TOPOLOGY_NONE] = "all endpoints",
		[TOPOLOGY_SAME_NODE] = "endpoints meant for this node",
		[TOPOLOGY_SAME_ZONE] = "endpoints meant for this zone",
	};

	part->cluster = part->local = NO_BOX;
	if (plan->use_cluster_group)
		part->cluster =
			add_box(b, CHART_GROUP, with_family(b, part->family, words[plan->use.mode]),
				"", port_chain(b, plan, CHAIN_KIND_SVC));
	if (plan->use_local_group)
		part->local = add_box(b, CHART_GROUP,
				      with_family(b, part->family, "endpoints on this node"), "",
				      port_chain(b, plan, CHAIN_KIND_SVL));
}

static const char *refusal_words(enum plan_refusal refusal)
{
	return refusal == PLAN_REJECT ? "refused: no endpoints"
				      : "dropped: no endpoint on this node";
}

static void add_entry(struct builder *b, const struct port_part *part, const char *text,
		      const char *note, enum plan_refusal refusal, bool local, const char *chain)
{
	size_t group = local ? part->local : part->cluster;
	size_t box;

	if (refusal != PLAN_SERVED || group == NO_BOX) {
		add_box(b, CHART_REFUSED, text,
			arena_printf(b->chart->arena, "%s, %s", note, refusal_words(refusal)), "");
		return;
	}
	box = add_box(b, CHART_ENTRY, text, note, chain);
	add_link(b, box, group, "");
}

static void add_address(struct builder *b, const struct port_part *part, const struct addr *addr,
			const char *note, bool external)
{
	const struct port_plan *plan = part->plan;
	char text[ADDR_PORT_TEXT_MAX];

	addr_port_print(addr, plan->port->port, text);
	add_entry(b, part, arena_strdup(b->chart->arena, text), note,
		  external ? plan->external : plan->internal,
		  external ? plan->service->external_local : plan->service->internal_local,
		  external ? port_chain(b, plan, CHAIN_KIND_EXT) : "");
}

static const char *vip_note(struct builder *b, const struct port_plan *plan)
{
	if (plan->n_source_ranges == 0)
		return "load balancer";
	return arena_printf(b->chart->arena, "load balancer, from %u source range%s only",
			    plan->n_source_ranges, plan->n_source_ranges == 1 ? "" : "s");
}

static void add_entries(struct builder *b, const struct port_part *part)
{
	const struct port_plan *plan = part->plan;

	add_address(b, part, plan->cluster_ip, "cluster IP", false);
	for (size_t i = 0; i < plan->n_external_ips; i++)
		add_address(b, part, &plan->external_ips[i], "external IP", true);
	for (size_t i = 0; i < plan->n_vips; i++)
		add_address(b, part, &plan->vips[i], vip_note(b, plan), true);
	if (plan->port->node_port)
		add_entry(b, part, arena_printf(b->chart->arena, "node:%u", plan->port->node_port),
			  with_family(b, part->family, "node port"), plan->external,
			  plan->service->external_local, port_chain(b, plan, CHAIN_KIND_EXT));
}

static const char *port_title(struct builder *b, const struct port_plan *plan)
{
	const struct service_port *port = plan->port;

	return arena_printf(b->chart->arena, "%s%s%s  %u/%s", plan->service->key,
			    *port->name ? ":" : "", port->name, port->port,
			    protocol_api_name(port->protocol));
}

static const char *port_note(struct builder *b, const struct service *service)
{
	cleanup_text struct text note;
	cleanup_free char *copy = NULL;

	text_init(&note);
	if (service->internal_local)
		text_str(&note, ", internalTrafficPolicy Local");
	if (service->external_local)
		text_str(&note, ", externalTrafficPolicy Local");
	if (service->sticky_seconds)
		text_printf(&note, ", a client keeps its endpoint for %u s",
			    service->sticky_seconds);
	copy = text_dup(&note);
	return arena_strdup(b->chart->arena, *copy ? copy + 2 : copy);
}

static void add_port(struct builder *b, struct service_plan *const *plans, size_t i)
{
	const struct service_plan *any =
		plans[FAMILY_IPV4] ? plans[FAMILY_IPV4] : plans[FAMILY_IPV6];

	add_frame(b, any->service->ns, port_title(b, &any->ports[i]), port_note(b, any->service));
	for (enum family family = 0; family < FAMILY_COUNT; family++) {
		struct port_part part = {.family = family};

		if (!plans[family])
			continue;
		part.plan = &plans[family]->ports[i];
		add_groups(b, &part);
		add_entries(b, &part);
		add_endpoints(b, &part);
	}
}

/* The plans of a Service in the families asked for; false: there is nothing to draw. */
static bool plan_both(const struct chart_input *input, const char *key, struct service_plan **ret)
{
	for (enum family family = 0; family < FAMILY_COUNT; family++)
		ret[family] = input->settings[family]
				      ? plan_service(input->settings[family], input->model, key)
				      : NULL;
	return ret[FAMILY_IPV4] || ret[FAMILY_IPV6];
}

static void free_both(struct service_plan **plans)
{
	for (enum family family = 0; family < FAMILY_COUNT; family++)
		plans[family] = service_plan_unref(plans[family]);
}

static void add_service(struct builder *b, const char *key)
{
	struct service_plan *plans[FAMILY_COUNT];
	const struct service_plan *any;

	if (!plan_both(b->input, key, plans))
		return;
	/* both have the same ports: those of one Service, in one order */
	any = plans[FAMILY_IPV4] ? plans[FAMILY_IPV4] : plans[FAMILY_IPV6];
	b->dual = plans[FAMILY_IPV4] && plans[FAMILY_IPV6];
	for (size_t i = 0; i < any->n_ports; i++)
		add_port(b, plans, i);
	b->chart->n_services++;
	free_both(plans);
}

/* What a folded namespace says. */
struct tally {
	size_t services, ports, endpoints, refused;
};

static void count_ports(const struct service_plan *plan, struct tally *tally)
{
	for (size_t i = 0; i < plan->n_ports; i++) {
		const struct port_plan *port = &plan->ports[i];

		tally->ports++;
		tally->endpoints += port->use.reachable.n;
		tally->refused += port->internal != PLAN_SERVED;
	}
}

static void count_service(struct builder *b, const char *key, struct tally *tally)
{
	struct service_plan *plans[FAMILY_COUNT];

	if (!plan_both(b->input, key, plans))
		return;
	for (enum family family = 0; family < FAMILY_COUNT; family++)
		if (plans[family])
			count_ports(plans[family], tally);
	tally->services++;
	free_both(plans);
}

static void add_namespace(struct builder *b, const char *ns, const struct tally *tally)
{
	struct arena *arena = b->chart->arena;

	if (tally->services == 0)
		return;
	add_frame(b, ns, arena_strdup(arena, ns), "");
	add_box(b, CHART_NAMESPACE,
		arena_printf(arena, "%zu service%s", tally->services,
			     tally->services == 1 ? "" : "s"),
		arena_printf(arena, "%zu ports, %zu endpoints", tally->ports, tally->endpoints),
		tally->refused ? arena_printf(arena, "%zu without an endpoint", tally->refused)
			       : "");
	b->chart->n_services += tally->services;
	b->chart->n_endpoints += tally->endpoints;
}

static void add_folded(struct builder *b, const char *const *keys, size_t n)
{
	struct tally tally = {0};
	const char *ns = NULL;

	for (size_t i = 0; i < n; i++) {
		const struct service *service = model_service(b->input->model, keys[i]);

		if (ns && !streq(ns, service->ns)) {
			add_namespace(b, ns, &tally);
			tally = (struct tally){0};
		}
		ns = service->ns;
		count_service(b, keys[i], &tally);
	}
	if (ns)
		add_namespace(b, ns, &tally);
	b->chart->folded = true;
}

static bool wanted(const struct chart_input *input, const char *key)
{
	for (size_t i = 0; i < input->n_services; i++)
		if (streq(input->services[i], key))
			return true;
	return input->n_services == 0;
}

static int compare_keys(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Sorted; the array is the caller's, the keys are the model's. */
static const char **collect(const struct chart_input *input, size_t *ret_n)
{
	const char **keys = NULL;
	size_t room = 0, n = 0, at = 0;
	const struct service *service;

	while ((service = model_next_service(input->model, &at))) {
		if (!wanted(input, service->key))
			continue;
		array_grow(&keys, &room, n, sizeof(*keys));
		keys[n++] = service->key;
	}
	if (n > 0)
		qsort(keys, n, sizeof(*keys), compare_keys);
	*ret_n = n;
	return keys;
}

struct chart *chart_new(const struct chart_input *input)
{
	struct builder b = {.input = input, .chart = xcalloc(1, sizeof(struct chart))};
	size_t limit = input->max_services ? input->max_services : CHART_MAX_SERVICES;
	size_t n;
	cleanup_free const char **keys = collect(input, &n);

	b.chart->arena = arena_new(16 * 1024);
	b.chart->node_name = arena_strdup(b.chart->arena, model_node_name(input->model));
	if (n > limit) {
		add_folded(&b, keys, n);
	} else {
		for (size_t i = 0; i < n; i++)
			add_service(&b, keys[i]);
	}
	return b.chart;
}

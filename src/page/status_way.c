/* SPDX-License-Identifier: Apache-2.0 */

#include "page/status_way.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/doc.h"
#include "inspect/explain_doc.h"
#include "inspect/packet_destination.h"
#include "plan/plan_store.h"

/* -- the question */

static int read_protocol(const char *text, enum protocol *ret, struct err *err)
{
	*ret = PROTOCOL_COUNT;
	if (!text)
		return 0;
	for (enum protocol protocol = 0; protocol < PROTOCOL_COUNT; protocol++)
		if (streq(text, protocol_name(protocol)))
			*ret = protocol;
	if (*ret == PROTOCOL_COUNT)
		return err_set(err, -EINVAL, "proto: \"%s\" is not tcp, udp or sctp", text);
	return 0;
}

/* The packet but for its sender. */
static int read_destination(const struct status_source *source,
			    const struct status_way_question *question, struct packet *packet,
			    struct err *err)
{
	cleanup_packet_destination struct packet_destination destination = {0};
	const struct settings *settings;
	enum protocol protocol = PROTOCOL_COUNT;
	int r;

	if (!question->destination || !*question->destination)
		return err_set(err, -EINVAL,
			       "dest: give ADDRESS:PORT, service/NAMESPACE/NAME[:PORT] or "
			       ":NODEPORT");
	r = packet_destination_parse(question->destination, &destination, err);
	if (r == 0)
		r = read_protocol(question->protocol, &protocol, err);
	if (r == 0)
		r = packet_destination_family(&destination, source->model, FAMILY_IPV4,
					      &packet->family, err);
	if (r < 0)
		return r;
	settings = source->settings(source->arg, packet->family);
	if (!settings)
		return err_set(err, -ENOENT, "%s is not proxied on this node",
			       family_name(packet->family));
	return packet_destination_resolve(&destination, source->model, settings, protocol, packet,
					  err);
}

static int read_sender(const char *from, const struct sender_input *sender, struct packet *packet,
		       struct err *err)
{
	enum origin origin = ORIGIN_POD;
	struct addr addr;

	if (!from || !*from || origin_parse(from, &origin)) {
		packet_from(packet, sender, origin);
		return 0;
	}
	if (addr_parse(from, &addr) < 0)
		return err_set(err, -EINVAL,
			       "from: \"%s\" is not pod, node, outside or an IP address", from);
	if (addr.family != packet->family)
		return err_set(err, -EINVAL,
			       "from: %s is of another IP family than the destination", from);
	packet_from_address(packet, sender, &addr);
	return 0;
}

/* -- whom it concerns */

/* A cluster IP counts whatever the port: some rules ask for the address alone. */
static bool concerns(const struct service *service, const struct packet *packet)
{
	const struct addr *to = &packet->destination;
	bool outer;

	if (service->has_cluster_ip[packet->family] &&
	    addr_equal(&service->cluster_ip[packet->family], to))
		return true;
	outer = addr_among(service->external_ips, service->n_external_ips, to) ||
		addr_among(service->vips, service->n_vips, to);
	for (size_t i = 0; i < service->n_ports; i++)
		if (service->ports[i].node_port == packet->port ||
		    (outer && service->ports[i].port == packet->port))
			return true;
	return false;
}

static size_t count_endpoints(const struct model *model, const struct service *service,
			      enum family family)
{
	size_t most = 0;

	for (size_t i = 0; i < service->n_ports; i++) {
		const struct endpoints *list =
			model_endpoints(model, family, service->key, service->ports[i].name,
					service->ports[i].protocol);

		most = MAX(most, list ? list->n : 0);
	}
	return most;
}

static int find_services(const struct model *model, const struct packet *packet, const char ***ret,
			 size_t *ret_n, struct err *err)
{
	cleanup_free const char **keys = NULL;
	const struct service *service;
	size_t n = 0, capacity = 0, at = 0;

	while ((service = model_next_service(model, &at))) {
		if (!concerns(service, packet))
			continue;
		if (count_endpoints(model, service, packet->family) > STATUS_WAY_ENDPOINTS)
			return err_set(err, -E2BIG,
				       "Service %s has more than %d endpoints, whose rules are not "
				       "walked inside the daemon; run portolan explain on the node",
				       service->key, STATUS_WAY_ENDPOINTS);
		array_grow(&keys, &capacity, n, sizeof(*keys));
		keys[n++] = service->key;
	}
	*ret = take(keys);
	*ret_n = n;
	return 0;
}

/* -- the answer */

static void put_packet(struct doc *doc, const struct packet *packet)
{
	char source[ADDR_TEXT_MAX];
	char destination[ADDR_PORT_TEXT_MAX];

	addr_print(&packet->source, source);
	addr_port_print(&packet->destination, packet->port, destination);
	doc_open_map(doc, "packet");
	doc_string(doc, "protocol", protocol_name(packet->protocol));
	doc_string(doc, "source", source);
	doc_string(doc, "from", origin_name(packet->origin));
	doc_string(doc, "destination", destination);
	doc_close(doc);
}

static void put_step(struct doc *doc, const struct step *step, bool common)
{
	doc_open_map(doc, NULL);
	doc_bool(doc, "common", common);
	doc_string(doc, "hook", hook_name(step->hook));
	doc_string(doc, "table", step->table);
	doc_string(doc, "chain", step->chain);
	doc_string(doc, "effect", effect_name(step->effect));
	doc_string(doc, "rule", step->rule);
	doc_optional(doc, "target", step->target);
	doc_optional(doc, "element", step->element);
	doc_optional(doc, "note", step->note);
	doc_close(doc);
}

/* The steps of the first outcome, without rules that did not match; those that all share are marked. */
static void put_steps(struct doc *doc, const struct packet_path *path)
{
	const struct outcome *first = &path->outcomes[0];

	doc_open_list(doc, "steps");
	for (size_t i = 0; i < first->n_steps; i++)
		if (first->steps[i].effect != EFFECT_MISS)
			put_step(doc, &first->steps[i],
				 path->n_outcomes == 1 || i < path->n_common);
	doc_close(doc);
}

static void put_backend(struct doc *doc, const struct outcome *outcome)
{
	bool masqueraded = outcome->masquerade != MASQUERADE_NONE;
	char address[ADDR_PORT_TEXT_MAX];

	addr_port_print(&outcome->backend, outcome->backend_port, address);
	doc_open_map(doc, NULL);
	doc_string(doc, "address",
		   outcome->verdict == PACKET_VERDICT_BACKEND
			   ? address
			   : packet_verdict_name(outcome->verdict));
	explain_doc_share(doc, outcome->share);
	doc_string(doc, "remark", masqueraded ? masquerade_words(outcome->masquerade) : "");
	doc_close(doc);
}

static void put_left_out(struct doc *doc, const struct left_out *left_out)
{
	char address[ADDR_PORT_TEXT_MAX];

	addr_port_print(&left_out->addr, left_out->port, address);
	doc_open_map(doc, NULL);
	doc_string(doc, "address", address);
	doc_string(doc, "reason", left_out_words(left_out->reason));
	doc_close(doc);
}

static void put_explanation(struct text *text, const struct explanation *found)
{
	struct doc doc;

	doc_init(&doc, text, DOC_JSON);
	doc_open_map(&doc, NULL);
	doc_string(&doc, "summary", found->summary);
	put_packet(&doc, &found->path->packet);
	put_steps(&doc, found->path);
	doc_open_list(&doc, "backends");
	for (size_t i = 0; i < found->path->n_outcomes; i++)
		put_backend(&doc, &found->path->outcomes[i]);
	doc_close(&doc);
	doc_open_list(&doc, "left_out");
	for (size_t i = 0; i < found->n_left_out; i++)
		put_left_out(&doc, &found->left_out[i]);
	doc_close(&doc);
	doc_close(&doc);
}

static void walk(const struct status_source *source, struct model *excerpt,
		 const struct packet *packet, const struct host *host, struct text *ret)
{
	const struct explain_input input = {
		.backend = source->backend,
		.settings = source->settings(source->arg, packet->family),
		.model = excerpt,
		.host = *host,
	};
	struct explanation *found;
	struct explain *explain;

	/* endpoints of the other family are told as left out, so their lists have to be there */
	plan_store_take_only(excerpt, packet->family == FAMILY_IPV4 ? FAMILY_IPV6 : FAMILY_IPV4);
	explain = explain_new(&input);
	found = explain_packet(explain, packet);
	put_explanation(ret, found);
	explanation_free(found); /* first: it borrows from the rules */
	explain_free(explain);
}

int status_way_print(const struct status_source *source, const struct status_way_question *question,
		     struct text *ret, struct err *err)
{
	cleanup_free struct addr *addresses = NULL;
	cleanup_free const char **keys = NULL;
	struct packet packet = {0};
	struct host host = {0};
	struct sender_input sender;
	struct model *excerpt;
	size_t n_keys = 0;
	int r = read_destination(source, question, &packet, err);

	if (r == 0)
		r = source->addresses(source->arg, packet.family, &addresses, &host.n_addresses,
				      err);
	if (r < 0)
		return r;
	host.addresses = addresses;
	sender = (struct sender_input){source->settings(source->arg, packet.family),
				       model_node(source->model), &host};
	r = read_sender(question->from, &sender, &packet, err);
	if (r == 0)
		r = find_services(source->model, &packet, &keys, &n_keys, err);
	if (r < 0)
		return r;
	excerpt = model_excerpt(source->model, keys, n_keys);
	walk(source, excerpt, &packet, &host, ret);
	model_free(excerpt);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <stdio.h>

#include "base/doc.h"
#include "base/text.h"
#include "commands/command.h"
#include "commands/flows_print.h"
#include "commands/output.h"
#include "commands/snapshot.h"
#include "inspect/packet_destination.h"
#include "kernel/nfnetlink.h"

struct conntrack_job {
	struct packet_destination destination;
	enum protocol protocol; /* PROTOCOL_COUNT: any */
	enum output output;
	bool each;
};

/* As explain's destination, and a Service by its name alone: "web", "default/web:http". */
static int parse_service(const char *text, struct packet_destination *ret, struct err *err)
{
	cleanup_free char *name =
		xasprintf("service/%s%s", strchr(text, '/') ? "" : "default/", text);
	int r = packet_destination_parse(text, ret, err);

	if (r == 0 || has_prefix(text, "service/") || has_prefix(text, "svc/"))
		return r;
	packet_destination_done(ret);
	r = packet_destination_parse(name, ret, err);
	return r < 0 ? err_set(err, r,
			       "\"%s\" is not NAMESPACE/NAME[:PORT], ADDRESS:PORT or :NODEPORT",
			       text)
		     : 0;
}

static void check_job(const struct options *options, struct conntrack_job *job,
		      struct problems *problems)
{
	struct err err;

	if (!options->argument)
		problems_add(problems, "whose connections? Give NAMESPACE/NAME[:PORT], "
				       "ADDRESS:PORT or :NODEPORT");
	else if (parse_service(options->argument, &job->destination, &err) < 0)
		problems_add(problems, "%s", err.text);
	output_protocol(options->proto, &job->protocol, problems);
	output_parse(options->output, &job->output, problems);
	job->each = options->flows;
}

/* -- what was meant */

static bool has_address(const struct service *service, const struct addr *addr)
{
	for (enum family family = 0; family < FAMILY_COUNT; family++)
		if (service->has_cluster_ip[family] &&
		    addr_equal(&service->cluster_ip[family], addr))
			return true;
	return addr_among(service->external_ips, service->n_external_ips, addr) ||
	       addr_among(service->vips, service->n_vips, addr);
}

static bool is_meant(const struct conntrack_job *job, const struct service *service,
		     const struct service_port *port)
{
	const struct packet_destination *destination = &job->destination;

	if (job->protocol != PROTOCOL_COUNT && port->protocol != job->protocol)
		return false;
	if (destination->kind == PACKET_DESTINATION_NODE_PORT)
		return port->node_port == destination->port;
	if (destination->kind == PACKET_DESTINATION_ADDRESS)
		return port->port == destination->port && has_address(service, &destination->addr);
	if (!streq(service->key, destination->service))
		return false;
	if (destination->port_name)
		return streq(port->name, destination->port_name);
	return destination->port == 0 || port->port == destination->port;
}

/* Flags for the ports of a Service, for the caller to free; NULL: none is meant. */
static bool *meant_ports(const struct conntrack_job *job, const struct service *service)
{
	cleanup_free bool *wanted = xcalloc(MAX(service->n_ports, 1), sizeof(*wanted));
	bool any = false;

	for (size_t i = 0; i < service->n_ports; i++) {
		wanted[i] = is_meant(job, service, &service->ports[i]);
		any = any || wanted[i];
	}
	return any ? take(wanted) : NULL;
}

static const struct service *find_service(const struct conntrack_job *job,
					  const struct model *model, bool **ret_wanted,
					  struct err *err)
{
	const struct service *service;
	size_t at = 0;

	while ((service = model_next_service(model, &at))) {
		*ret_wanted = meant_ports(job, service);
		if (*ret_wanted)
			return service;
	}
	if (job->destination.kind != PACKET_DESTINATION_SERVICE)
		err_set(err, -ENOENT, "no Service has this address and port");
	else if (model_service(model, job->destination.service))
		err_set(err, -ENOENT, "service %s has no such port", job->destination.service);
	else
		err_set(err, -ENOENT, "there is no service %s with a cluster IP",
			job->destination.service);
	return NULL;
}

/* -- */

static int read_flows(struct service_flows *flows, bool *ret_incomplete, struct err *err)
{
	struct nfnetlink_conn line = {0};
	int r = 0;

	for (size_t i = 0; r >= 0 && i < flows->n_fronts; i++) {
		r = conntrack_dump(&line, service_flows_filter(flows, i), service_flows_see, flows,
				   err);
		*ret_incomplete = *ret_incomplete || r > 0;
	}
	nfnetlink_conn_done(&line);
	service_flows_finish(flows);
	return r < 0 ? r : 0;
}

static void print(const struct conntrack_job *job, const struct service *service,
		  const struct service_flows *flows, bool incomplete, struct text *text)
{
	struct doc doc;

	if (job->output == OUTPUT_HUMAN) {
		flows_print_human(flows, job->each, text);
		return;
	}
	doc_init(&doc, text, job->output == OUTPUT_JSON ? DOC_JSON : DOC_YAML);
	doc_open_map(&doc, NULL);
	doc_string(&doc, "kind", "FlowList");
	doc_number(&doc, "version", 1);
	doc_string(&doc, "namespace", service->ns);
	doc_string(&doc, "name", service->name);
	doc_bool(&doc, "complete", !incomplete);
	flows_print_doc(flows, job->each, &doc);
	doc_close(&doc);
}

DEFINE_CLEANUP(service_flows)

static int count(const struct conntrack_job *job, const struct call *call)
{
	cleanup_snapshot struct snapshot snapshot = {0};
	attr_cleanup(service_flows_cleanup) struct service_flows *flows = NULL;
	cleanup_text struct text text = {0};
	cleanup_free bool *wanted = NULL;
	const struct service *service;
	bool incomplete = false;
	struct err err;

	if (snapshot_load(call, false, &snapshot, &err) < 0)
		return call_fail(call, &err, EXIT_NO_STATE);
	service = find_service(job, snapshot.model, &wanted, &err);
	if (!service)
		return call_fail(call, &err, EXIT_NO_STATE);
	flows = service_flows_new(snapshot.model, service, wanted, job->each);
	if (read_flows(flows, &incomplete, &err) < 0)
		return call_fail(call, &err, EXIT_NO_STATE);
	if (incomplete)
		fprintf(stderr,
			"portolan conntrack: the table was rearranged meanwhile, some flows "
			"may be missing\n");
	print(job, service, flows, incomplete, &text);
	if (snapshot_print(&text, &err) < 0)
		return call_fail(call, &err, EXIT_NO_STATE);
	return flows_print_strays(flows) > 0 ? EXIT_FAILED : EXIT_DONE;
}

int cmd_conntrack(struct call *call)
{
	struct conntrack_job job = {0};
	int r;

	check_job(&call->options, &job, &call->problems);
	r = call_is_wrong(call) ? EXIT_USAGE : count(&job, call);
	packet_destination_done(&job.destination);
	return r;
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From parsed objects to the restore text, for a cluster of a given size: bench-render SERVICES
 * ENDPOINTS.
 *
 * Services and EndpointSlices are made as the messages that a source parses, one at a time, as an
 * API server's watch sends them: nothing ever holds the whole list. The clock runs while a message
 * is converted and taken into the model, while the first sync plans, and while it writes the text;
 * it stands still while a message is made. Then one endpoint changes, and the partial sync is timed
 * too.
 *
 * Prints one JSON object: milliseconds for each stage, sizes, and the peak of resident memory
 * (VmHWM).
 */

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "backends/iptables/restore/restore_stream.h"
#include "backends/iptables/ruleset.h"
#include "sources/convert.h"
#include "xtables/restore_writer.h"

#define NAMESPACES    100 /* the services are spread over so many */
#define ENDPOINTS_MAX 1000

struct cluster {
	unsigned int services;
	unsigned int endpoints; /* a service */
};

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static double ms(int64_t ns)
{
	return (double)ns / 1e6;
}

/* Ends the program: a benchmark that cannot do its work has nothing to say. */
static void must(int r, const struct err *err)
{
	if (r >= 0)
		return;
	fprintf(stderr, "bench-render: %s\n", err->text);
	exit(1);
}

/* The strings of one service; each number has addresses and names of its own. */
struct names {
	char ns[32], name[32], slice[32], cluster_ip[32];
};

static void names_make(unsigned int number, struct names *ret)
{
	snprintf(ret->ns, sizeof(ret->ns), "namespace-%u", number % NAMESPACES);
	snprintf(ret->name, sizeof(ret->name), "service-%u", number);
	snprintf(ret->slice, sizeof(ret->slice), "service-%u-x7k2p", number);
	snprintf(ret->cluster_ip, sizeof(ret->cluster_ip), "10.96.%u.%u", number / 250 % 250,
		 number % 250 + 1);
}

static void add_service(struct model *model, unsigned int number, int64_t *ns)
{
	struct names names;
	K8s__ObjectMeta metadata = K8S__OBJECT_META__INIT;
	K8s__ServicePort port = K8S__SERVICE_PORT__INIT;
	K8s__ServicePort *ports[] = {&port};
	K8s__ServiceSpec spec = K8S__SERVICE_SPEC__INIT;
	K8s__Service message = K8S__SERVICE__INIT;
	struct service *service = NULL;
	enum convert_skip skip;
	struct err err;
	int64_t start;

	names_make(number, &names);
	metadata.namespace_ = names.ns;
	metadata.name = names.name;
	port.name = (char *)"http";
	port.protocol = (char *)"TCP";
	port.has_port = true;
	port.port = 80;
	spec.clusterip = names.cluster_ip;
	spec.ports = ports;
	spec.n_ports = ARRAY_SIZE(ports);
	message.metadata = &metadata;
	message.spec = &spec;

	start = now_ns();
	must(convert_service(&message, &(struct convert_notes){0}, &service, &skip, &err), &err);
	model_set_service(model, service);
	*ns += now_ns() - start;
}

struct slice_endpoints {
	K8s__SliceEndpoint endpoints[ENDPOINTS_MAX];
	K8s__SliceEndpoint *pointers[ENDPOINTS_MAX];
	char *addresses[ENDPOINTS_MAX];
	char text[ENDPOINTS_MAX][32];
};

static void fill_endpoints(struct slice_endpoints *all, unsigned int number, unsigned int n,
			   unsigned int salt)
{
	for (unsigned int i = 0; i < n; i++) {
		unsigned int at = number * n + i + salt;

		all->endpoints[i] = (K8s__SliceEndpoint)K8S__SLICE_ENDPOINT__INIT;
		snprintf(all->text[i], sizeof(all->text[i]), "10.%u.%u.%u", 128 + at / 62500 % 100,
			 at / 250 % 250, at % 250 + 1);
		all->addresses[i] = all->text[i];
		all->endpoints[i].addresses = &all->addresses[i];
		all->endpoints[i].n_addresses = 1;
		all->endpoints[i].nodename = (char *)"worker";
		all->pointers[i] = &all->endpoints[i];
	}
}

static void add_slice(struct model *model, unsigned int number, unsigned int n, unsigned int salt,
		      int64_t *ns)
{
	static struct slice_endpoints all;
	struct names names;
	K8s__ObjectMeta metadata = K8S__OBJECT_META__INIT;
	K8s__MapEntry label = K8S__MAP_ENTRY__INIT;
	K8s__MapEntry *labels[] = {&label};
	K8s__SlicePort port = K8S__SLICE_PORT__INIT;
	K8s__SlicePort *ports[] = {&port};
	K8s__EndpointSlice message = K8S__ENDPOINT_SLICE__INIT;
	struct slice *slice = NULL;
	enum convert_skip skip;
	struct err err;
	int64_t start;

	names_make(number, &names);
	fill_endpoints(&all, number, n, salt);
	label.key = (char *)LABEL_SERVICE_NAME;
	label.value = names.name;
	metadata.namespace_ = names.ns;
	metadata.name = names.slice;
	metadata.labels = labels;
	metadata.n_labels = ARRAY_SIZE(labels);
	port.name = (char *)"http";
	port.protocol = (char *)"TCP";
	port.has_port = true;
	port.port = 8080;
	message.metadata = &metadata;
	message.addresstype = (char *)"IPv4";
	message.ports = ports;
	message.n_ports = ARRAY_SIZE(ports);
	message.endpoints = all.pointers;
	message.n_endpoints = n;

	start = now_ns();
	must(convert_slice(&message, "", NULL, &slice, &skip, &err), &err);
	model_set_slice(model, slice);
	*ns += now_ns() - start;
}

struct measured {
	int64_t plan_ns, text_ns;
	size_t bytes, rules;
};

/* As it goes down the pipe: a piece at a time, and each is released. */
static void write_stream(struct ruleset *ruleset, const struct ruleset_input *input,
			 struct measured *ret)
{
	struct restore_stream *stream = restore_stream_new(ruleset, input);
	struct ruleset_stats stats;
	struct text text;

	text_init(&text);
	while (restore_stream_more(stream, &text)) {
		ret->bytes += text.size;
		text_done(&text);
	}
	restore_stream_free(stream);
	ruleset_count(ruleset, &stats);
	ret->rules = stats.rules_total[TABLE_FILTER] + stats.rules_total[TABLE_NAT];
}

static void write_delta(struct ruleset *ruleset, const struct ruleset_input *input,
			struct measured *ret)
{
	struct restore_writer writer;
	struct ruleset_stats stats;
	struct text text;

	text_init(&text);
	restore_writer_init(&writer);
	ruleset_write(ruleset, input, &writer.txn, &stats);
	restore_writer_finish(&writer, &text);
	ret->bytes = text.size;
	ret->rules = stats.rules_written[TABLE_FILTER] + stats.rules_written[TABLE_NAT];
	restore_writer_done(&writer);
	text_done(&text);
}

/* One sync, up to the text for iptables-restore. */
static void sync_once(struct ruleset *ruleset, struct plan_store *store, struct plan_reader *reader,
		      struct measured *ret)
{
	struct ruleset_input input = {0};
	struct ruleset_begun begun;
	struct model_changes changes;
	int64_t start = now_ns();

	plan_store_update(store, &changes);
	model_changes_done(&changes);
	ruleset_begin(ruleset, plan_reader_take(reader, false), start, &begun);
	ret->plan_ns = now_ns() - start;

	start = now_ns();
	input.now_ns = start;
	if (begun.full)
		write_stream(ruleset, &input, ret);
	else
		write_delta(ruleset, &input, ret);
	ret->text_ns = now_ns() - start;
	ruleset_end(ruleset, true, start);
	plan_reader_commit(reader);
}

static long peak_kib(void)
{
	FILE *status = fopen("/proc/self/status", "re");
	char line[256];
	long kib = -1;

	while (status && fgets(line, sizeof(line), status))
		if (has_prefix(line, "VmHWM:"))
			kib = strtol(line + strlen("VmHWM:"), NULL, 10);
	if (status)
		fclose(status);
	return kib;
}

static void settings_make(struct settings *ret)
{
	struct addr pods;

	*ret = (struct settings){
		.family = FAMILY_IPV4,
		.node_name = "node",
		.masquerade_mark = 1U << 14,
		.localhost_node_ports = true,
		.allow_external_ips = true,
		.sync_period_ns = 30 * 1000000000LL,
		.min_sync_period_ns = 1000000000LL,
	};
	addr_parse("127.0.0.1", &ret->node_ip);
	addr_parse("10.128.0.0", &pods);
	ret->detector =
		(struct detector){.kind = DETECTOR_CIDR, .cidr = {.addr = pods, .length = 9}};
	node_ports_init(&ret->node_ports, FAMILY_IPV4, NULL, 0);
}

static void run(const struct cluster *cluster)
{
	static const struct ruleset_host host = {
		.nfacct_invalid = true,
		.nfacct_localhost = true,
	};
	struct model *model = model_new("node", 0);
	struct settings settings;
	struct ruleset *ruleset;
	struct plan_store *store;
	struct plan_reader *reader;
	struct measured full = {0}, partial = {0};
	int64_t objects_ns = 0, change_ns = 0;
	long peak;

	settings_make(&settings);
	for (unsigned int i = 0; i < cluster->services; i++) {
		add_service(model, i, &objects_ns);
		add_slice(model, i, cluster->endpoints, 0, &objects_ns);
	}
	ruleset = ruleset_new(&settings, &host);
	store = plan_store_new(&settings, model, 1);
	reader = plan_reader_new(store);
	sync_once(ruleset, store, reader, &full);
	peak = peak_kib();
	add_slice(model, 0, cluster->endpoints, 7, &change_ns);
	sync_once(ruleset, store, reader, &partial);

	printf("{\"services\": %u, \"endpoints\": %u, \"objects_ms\": %.2f, \"plan_ms\": %.2f, "
	       "\"text_ms\": %.2f, \"total_ms\": %.2f, \"change_ms\": %.2f, \"peak_kib\": %ld, "
	       "\"text_bytes\": %zu, \"rules\": %zu, \"change_bytes\": %zu}\n",
	       cluster->services, cluster->services * cluster->endpoints, ms(objects_ns),
	       ms(full.plan_ns), ms(full.text_ns), ms(objects_ns + full.plan_ns + full.text_ns),
	       ms(change_ns + partial.plan_ns + partial.text_ns), peak, full.bytes, full.rules,
	       partial.bytes);

	ruleset_free(ruleset);
	plan_reader_free(reader);
	plan_store_free(store);
	node_ports_done(&settings.node_ports);
	model_free(model);
}

int main(int argc, char **argv)
{
	struct cluster cluster = {
		.services = argc > 1 ? (unsigned int)strtoul(argv[1], NULL, 10) : 10000,
		.endpoints = argc > 2 ? (unsigned int)strtoul(argv[2], NULL, 10) : 5,
	};

	if (cluster.services == 0 || cluster.services > 60000 || cluster.endpoints == 0 ||
	    cluster.endpoints > ENDPOINTS_MAX) {
		fprintf(stderr, "usage: bench-render [SERVICES (1-60000)] [ENDPOINTS (1-%d)]\n",
			ENDPOINTS_MAX);
		return 2;
	}
	run(&cluster);
	return 0;
}

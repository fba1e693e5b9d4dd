/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A small cluster around one ruleset, for tests: a model, settings, a clock that stands still until
 * it is moved, and a nat table that knows only the names of its chains.
 *
 *	struct cluster c;
 *	cluster_init(&c, FAMILY_IPV4);
 *	cluster_serve(&c, build_service("ns1/svc1", "172.30.0.41"), "p80", 80, 0);
 *	cluster_slice(&c, "ns1/svc1", "p80", 80, "10.0.1.1 10.0.1.2@node-a");
 *	cluster_sync(&c);
 *	assert_string_equal(c.text, ...);
 *	cluster_done(&c);
 */

#include "backends/iptables/ruleset.h"
#include "build.h"
#include "plan_feed.h"
#include "xtables/restore_writer.h"

#define CLUSTER_NODE    "node-a"
#define CLUSTER_NODE_IP "192.168.0.2"
#define SECOND          1000000000LL

struct cluster {
	struct settings settings;
	struct ruleset_host host;
	struct model *model;
	struct plan_feed feed;
	struct ruleset *ruleset;
	int64_t now_ns;

	bool fail;  /* the next syncs do not reach the kernel */
	char **nat; /* names of chains in the kernel */
	size_t n_nat;
	size_t nat_capacity;

	/* of the last sync */
	char *text;
	struct ruleset_begun begun;
	struct ruleset_stats stats;
};

attr_unused static void cluster_init(struct cluster *c, enum family family)
{
	*c = (struct cluster){
		.settings =
			{
				.family = family,
				.node_name = CLUSTER_NODE,
				.node_ip = build_addr(family == FAMILY_IPV4 ? CLUSTER_NODE_IP
									    : "2001:db8::2"),
				.masquerade_mark = 0x4000,
				.localhost_node_ports = true,
				.allow_external_ips = true,
				.detector = {.kind = DETECTOR_CIDR},
				.sync_period_ns = 30 * SECOND,
				.min_sync_period_ns = SECOND,
			},
		.host = {.nfacct_invalid = true, .nfacct_localhost = true},
		.model = model_new(CLUSTER_NODE, 0),
		.now_ns = 1000 * SECOND,
	};
	c->settings.detector.cidr =
		build_prefix(family == FAMILY_IPV4 ? "10.0.0.0/8" : "fd00:10::/64");
	node_ports_init(&c->settings.node_ports, family, NULL, 0);
	c->ruleset = ruleset_new(&c->settings, &c->host);
	plan_feed_open(&c->feed, &c->settings, c->model);
}

attr_unused static void cluster_done(struct cluster *c)
{
	ruleset_free(c->ruleset);
	plan_feed_close(&c->feed);
	model_free(c->model);
	node_ports_done(&c->settings.node_ports);
	for (size_t i = 0; i < c->n_nat; i++)
		free(c->nat[i]);
	free(c->nat);
	free(c->text);
}

/* Replaces the node port addresses; a list that NULL ends. */
attr_unused static void cluster_node_ports(struct cluster *c, const char *const *cidrs)
{
	struct prefix prefixes[8];
	size_t n = 0;

	for (; cidrs[n]; n++)
		prefixes[n] = build_prefix(cidrs[n]);
	node_ports_done(&c->settings.node_ports);
	node_ports_init(&c->settings.node_ports, c->settings.family, prefixes, n);
}

/* Adds a TCP port and hands the service over. */
attr_unused static void cluster_serve(struct cluster *c, struct service *service, const char *name,
				      uint16_t port, uint16_t node_port)
{
	build_port(service, name, PROTOCOL_TCP, port, node_port);
	model_set_service(c->model, service);
}

/* "10.0.1.2@node-a": an address and, optionally, its node. */
attr_unused static void cluster_add_endpoint(struct draft *slice, char *word)
{
	char *node = strchr(word, '@');

	if (node)
		*node++ = '\0';
	build_endpoint(slice, word, node, BUILD_READY);
}

/* The only slice of a service: one TCP port, ready endpoints; addresses with blanks between. */
attr_unused static void cluster_slice(struct cluster *c, const char *service, const char *port_name,
				      uint16_t port, const char *addresses)
{
	struct draft *slice = build_slice(service, strchr(service, '/') + 1, c->settings.family);
	cleanup_free char *copy = xstrdup(addresses);
	char *rest = copy, *word;

	build_slice_port(slice, port_name, PROTOCOL_TCP, port);
	while ((word = strsep(&rest, " ")))
		if (*word)
			cluster_add_endpoint(slice, word);
	build_set_slice(c->model, slice);
}

static size_t cluster_find_chain(const struct cluster *c, const char *name)
{
	size_t i = 0;

	while (i < c->n_nat && !streq(c->nat[i], name))
		i++;
	return i;
}

attr_unused static bool cluster_has_chain(const struct cluster *c, const char *name)
{
	return cluster_find_chain(c, name) < c->n_nat;
}

static void cluster_apply_line(struct cluster *c, const char *line)
{
	cleanup_free char *name = NULL;

	if (line[0] == ':') {
		name = strndup(line + 1, strcspn(line + 1, " "));
		if (cluster_has_chain(c, name))
			return;
		array_grow(&c->nat, &c->nat_capacity, c->n_nat, sizeof(char *));
		c->nat[c->n_nat++] = take(name);
	} else if (has_prefix(line, "-X ")) {
		size_t at;

		name = strndup(line + 3, strcspn(line + 3, "\n"));
		at = cluster_find_chain(c, name);
		assert_true(at < c->n_nat);
		free(c->nat[at]);
		c->nat[at] = c->nat[--c->n_nat];
	}
}

/* The lines of the nat table, or what is left behind everything when there is none. */
static const char *cluster_nat(const struct cluster *c)
{
	const char *at = strstr(c->text, "*nat\n");

	return at ? at + strlen("*nat\n") : strchr(c->text, '\0');
}

static void cluster_apply(struct cluster *c)
{
	const char *line = cluster_nat(c);

	for (; *line && *line != 'C'; line = strchr(line, '\n') + 1)
		cluster_apply_line(c, line);
}

/* One sync; its text is in c->text afterwards. addresses: of the node's interfaces. */
attr_unused static void cluster_sync_on(struct cluster *c, const struct addr *addresses, size_t n)
{
	cleanup_text struct text text = {0};
	struct restore_writer writer;
	struct ruleset_input input = {
		.now_ns = c->now_ns,
		.addresses_known = addresses != NULL,
		.addresses = addresses,
		.n_addresses = n,
	};
	static const char *const none[1];

	ruleset_begin(c->ruleset, plan_feed_next(&c->feed), c->now_ns, &c->begun);
	if (c->begun.wants_nat_chains) {
		input.nat_chains = c->n_nat ? (const char *const *)c->nat : none;
		input.n_nat_chains = c->n_nat;
	}
	restore_writer_init(&writer);
	ruleset_write(c->ruleset, &input, &writer.txn, &c->stats);
	restore_writer_finish(&writer, &text);
	restore_writer_done(&writer);
	free(c->text);
	c->text = text_dup(&text);
	if (!c->fail)
		cluster_apply(c);
	ruleset_end(c->ruleset, !c->fail, c->now_ns);
	plan_feed_end(&c->feed, !c->fail);
}

attr_unused static void cluster_sync(struct cluster *c)
{
	cluster_sync_on(c, NULL, 0);
}

/* Is the line somewhere in the text, as a whole? */
attr_unused static bool cluster_wrote(const struct cluster *c, const char *line)
{
	size_t n = strlen(line);

	for (const char *at = c->text; (at = strstr(at, line)); at += n)
		if ((at == c->text || at[-1] == '\n') && at[n] == '\n')
			return true;
	return false;
}

/* Lines that begin with `start` and hold `part`. */
attr_unused static size_t cluster_count_lines(const struct cluster *c, const char *start,
					      const char *part)
{
	size_t n = 0;

	for (const char *line = c->text; *line; line = strchr(line, '\n') + 1) {
		size_t length = strcspn(line, "\n");

		n += has_prefix(line, start) && memmem(line, length, part, strlen(part));
	}
	return n;
}

/* Rules (-A lines) of one table. */
attr_unused static size_t cluster_count_rules(const struct cluster *c, enum table table)
{
	size_t in_nat = 0;

	for (const char *line = cluster_nat(c); *line; line = strchr(line, '\n') + 1)
		in_nat += has_prefix(line, "-A ") || has_prefix(line, "-I ");
	if (table == TABLE_NAT)
		return in_nat;
	return cluster_count_lines(c, "-A ", "") + cluster_count_lines(c, "-I ", "") - in_nat;
}

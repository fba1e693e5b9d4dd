/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A node for tests of the netlink writer: a network namespace of its own, a cluster (cluster.h) and
 * an engine that writes it. What came of it is read back with iptables-save.
 *
 *	struct host host;
 *	host_init(&host, FAMILY_IPV4);
 *	host_serve(&host, "ns1/a", 1, "10.0.1.1 10.0.1.2");
 *	host_sync(&host);
 *	host_expect(&host);
 *	host_done(&host);
 */

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/iptables/netlink/nft_sync.h"
#include "backends/iptables/render.h"
#include "base/clock.h"
#include "base/text.h"
#include "cluster.h"
#include "kernel/nft_socket.h"
#include "shell.h"

struct host {
	struct cluster cluster;
	struct event_base *loop;
	struct nft_sync *sync;
	bool synced, flushed;
	char flushed_what[512];
	size_t n_repaired;
	size_t n_refused; /* times that it was told */
	char refused[64]; /* the last */
	struct backend_result result;
	struct backend_events events;
	const struct backend_events *told;
	size_t n_wanted;
	struct nft_socket *socket; /* to look with */
};

attr_unused static void host_on_done(void *arg, const struct backend_result *result)
{
	struct host *host = arg;

	host->result = *result;
	host->synced = true;
	plan_feed_end(&host->cluster.feed, result->error == 0);
}

attr_unused static void host_on_flushed(void *arg, const char *what)
{
	struct host *host = arg;

	host->flushed = true;
	snprintf(host->flushed_what, sizeof(host->flushed_what), "%s", what);
}

attr_unused static void host_on_repaired(void *arg)
{
	struct host *host = arg;

	host->n_repaired++;
}

attr_unused static void host_on_refused(void *arg, const struct backend_refusal *refusal)
{
	struct host *host = arg;

	host->n_refused++;
	snprintf(host->refused, sizeof(host->refused), "%s", refusal->service);
	assert_true(refusal->kept && refusal->port && refusal->reason[0]);
}

attr_unused static void host_on_wanted(void *arg)
{
	struct host *host = arg;

	host->n_wanted++;
}

attr_unused static void host_start(struct host *host)
{
	struct err err;
	const struct nft_sync_input input = {
		.loop = host->loop,
		.ruleset = host->cluster.ruleset,
		.host = &host->cluster.host,
		.settings = &host->cluster.settings,
		.events = &host->told,
	};

	host->events = (struct backend_events){
		.synced = host_on_done,
		.flushed = host_on_flushed,
		.repaired = host_on_repaired,
		.refused = host_on_refused,
		.wanted = host_on_wanted,
		.arg = host,
	};
	host->told = &host->events;
	if (nft_sync_new(&input, &host->sync, &err) < 0)
		fail_msg("%s", err.text);
}

/* An empty host. Needs root, or a user namespace. */
attr_unused static void host_init(struct host *host, enum family family)
{
	struct err err;

	*host = (struct host){0};
	if (unshare(CLONE_NEWNET) < 0)
		fail_msg("no private network namespace: %s", strerror(errno));
	cluster_init(&host->cluster, family);
	host->cluster.host = (struct ruleset_host){0};
	host->loop = event_base_new();
	assert_int_equal(nft_socket_open(&host->socket, &err), 0);
	host_start(host);
}

attr_unused static void host_done(struct host *host)
{
	nft_sync_free(host->sync);
	nft_socket_free(host->socket);
	cluster_done(&host->cluster);
	event_base_free(host->loop);
}

/* The program ends and another one starts: all that was known is gone, rules stay. */
attr_unused static void host_restart(struct host *host)
{
	host->sync = nft_sync_free(host->sync);
	plan_feed_end(&host->cluster.feed, false);
	ruleset_free(host->cluster.ruleset);
	host->cluster.ruleset = ruleset_new(&host->cluster.settings, &host->cluster.host);
	host_start(host);
}

/* -- what it serves */

attr_unused static struct service *host_service(struct host *host, const char *key, unsigned int n)
{
	cleanup_free char *ip = xasprintf(
		host->cluster.settings.family == FAMILY_IPV4 ? "172.30.%u.%u" : "fd00:172::%x:%x",
		n / 256, n % 256);

	return build_service(key, ip);
}

/* Addresses of endpoints are written as IPv4; in IPv6 they come behind a prefix. */
attr_unused static void host_endpoints(struct host *host, const char *key, const char *addresses)
{
	cleanup_free char *copy = xstrdup(addresses);
	cleanup_text struct text text = {0};
	char *rest = copy, *word, *mapped;

	text_init(&text);
	while ((word = strsep(&rest, " ")))
		if (*word && host->cluster.settings.family == FAMILY_IPV4)
			text_printf(&text, "%s ", word);
		else if (*word)
			text_printf(&text, "fd00:10::%u ",
				    (unsigned int)strtoul(strrchr(word, '.') + 1, NULL, 10));
	mapped = text_dup(&text);
	cluster_slice(&host->cluster, key, "p80", 80, mapped);
	free(mapped);
}

/* A TCP service with the n-th cluster IP. */
attr_unused static void host_serve(struct host *host, const char *key, unsigned int n,
				   const char *addresses)
{
	cluster_serve(&host->cluster, host_service(host, key, n), "p80", 80, 0);
	host_endpoints(host, key, addresses);
}

attr_unused static void host_serve_many(struct host *host, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		cleanup_free char *key = xasprintf("many/svc%04u", i);

		host_serve(host, key, 256 + i, "10.0.9.1 10.0.9.2 10.0.9.3 10.0.9.4 10.0.9.5");
	}
}

attr_unused static void host_remove(struct host *host, const char *key)
{
	model_remove_service(host->cluster.model, key);
	model_remove_slice(host->cluster.model, key);
}

/* -- running */

static void host_too_late(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	*(bool *)arg = true;
}

/* Turns the loop until something is so, for longer where PORTOLAN_LAB_SLOWNESS says that all takes longer. */
attr_unused static void host_wait(struct host *host, bool (*is)(struct host *host))
{
	const char *slowness = getenv("PORTOLAN_LAB_SLOWNESS");
	const struct timeval limit = {.tv_sec = 20 * (slowness ? strtol(slowness, NULL, 10) : 1)};
	bool late = false;
	struct event *timer = evtimer_new(host->loop, host_too_late, &late);

	evtimer_add(timer, &limit);
	while (!is(host) && !late)
		event_base_loop(host->loop, EVLOOP_ONCE);
	event_free(timer);
	assert_false(late);
}

attr_unused static bool host_is_synced(struct host *host)
{
	return host->synced;
}

attr_unused static bool host_is_flushed(struct host *host)
{
	return host->flushed;
}

attr_unused static int host_try_sync(struct host *host)
{
	host->synced = false;
	nft_sync_start(host->sync, plan_feed_next(&host->cluster.feed));
	host_wait(host, host_is_synced);
	return host->result.error;
}

attr_unused static void host_sync(struct host *host)
{
	if (host_try_sync(host) < 0)
		fail_msg("%s", host->result.err.text);
}

attr_unused static void host_sync_full(struct host *host)
{
	ruleset_need_full_sync(host->cluster.ruleset);
	host_sync(host);
	assert_true(host->result.full);
}

attr_unused static uint32_t host_generation(struct host *host)
{
	uint32_t generation;
	struct err err;

	assert_int_equal(nft_generation(host->socket, &generation, &err), 0);
	return generation;
}

/* -- the kernel, as the tools see it */

/* %s in the command becomes iptables or ip6tables. */
attr_unused static void host_run(const struct host *host, const char *format)
{
	const char *tool = host->cluster.settings.family == FAMILY_IPV4 ? "iptables" : "ip6tables";
	cleanup_text struct text text = {0};
	cleanup_free char *command = NULL;

	text_init(&text);
	for (const char *at = format; *at; at++) {
		if (at[0] == '%' && at[1] == 's') {
			text_str(&text, tool);
			at++;
		} else {
			text_add(&text, at, 1);
		}
	}
	command = text_dup(&text);
	if (system(command) != 0)
		fail_msg("%s", command);
}

/* Without comments and counters. */
attr_unused static char *host_save(const struct host *host)
{
	const char *command = host->cluster.settings.family == FAMILY_IPV4
				      ? "iptables-save | sed '/^#/d; s/ \\[[0-9]*:[0-9]*\\]$//'"
				      : "ip6tables-save | sed '/^#/d; s/ \\[[0-9]*:[0-9]*\\]$//'";

	return shell_output(command);
}

static int host_compare_lines(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The lines of a listing in an order of their own: that of Services in shared chains is free. */
static char *host_sorted(char *listing)
{
	char **lines = NULL;
	size_t n = 0, capacity = 0;
	cleanup_text struct text text = {0};
	char *rest = listing, *line;

	text_init(&text);
	while ((line = strsep(&rest, "\n"))) {
		char *counters = strstr(line, " [0:0]");

		if (!*line || *line == '#' || strchr("*C", *line))
			continue;
		if (*line == ':' && counters)
			*counters = '\0';
		array_grow(&lines, &capacity, n, sizeof(char *));
		lines[n++] = line;
	}
	if (n > 1)
		qsort(lines, n, sizeof(char *), host_compare_lines);
	for (size_t i = 0; i < n; i++)
		text_printf(&text, "%s\n", lines[i]);
	free(lines);
	free(listing);
	return text_dup(&text);
}

/* What a dry run foretells for the model as it is now. */
attr_unused static char *host_foretold(struct host *host, enum render_format format)
{
	const struct render_input input = {
		.settings = &host->cluster.settings,
		.host = &host->cluster.host,
	};
	cleanup_text struct text text = {0};
	struct plan_once once;

	text_init(&text);
	plan_once_take(&once, &host->cluster.settings, host->cluster.model);
	render(&input, once.delta, format, &text);
	plan_once_done(&once);
	return text_dup(&text);
}

attr_unused static bool host_is_right(struct host *host)
{
	cleanup_free char *there = host_sorted(host_save(host));
	cleanup_free char *foretold = host_sorted(host_foretold(host, RENDER_SAVE));

	return streq(there, foretold);
}

/* In nat KUBE-SERVICES no entry of a cluster IP stands behind that of another address. */
attr_unused static void host_expect_leading(struct host *host)
{
	cleanup_free char *listing = host_save(host);
	char *rest = listing, *line;
	bool followed = false;

	while ((line = strsep(&rest, "\n"))) {
		bool leads = strstr(line, " cluster IP\"");

		if (!has_prefix(line, "-A KUBE-SERVICES "))
			continue;
		if (leads && followed)
			fail_msg("too late: %s", line);
		followed = !leads && !strstr(line, " endpoints\"");
	}
}

attr_unused static void host_expect(struct host *host)
{
	cleanup_free char *there = host_sorted(host_save(host));
	cleanup_free char *foretold = host_sorted(host_foretold(host, RENDER_SAVE));

	assert_string_equal(there, foretold);
}

/* Is a line in the listing? */
attr_unused static bool host_has(const struct host *host, const char *part)
{
	cleanup_free char *there = host_save(host);

	return strstr(there, part) != NULL;
}

/* The name of the first chain that begins so. */
attr_unused static char *host_chain(const struct host *host, const char *start)
{
	cleanup_free char *there = host_save(host);
	cleanup_free char *prefix = xasprintf("\n:%s", start);
	char *at = strstr(there, prefix);

	assert_non_null(at);
	return strndup(at + 2, strcspn(at + 2, " \n"));
}

/* A chain with the name of that of the only endpoint, "10.0.5.1", of a Service to come, which no rule can jump to. */
attr_unused static char *host_spoil(struct host *host, const char *key)
{
	cleanup_free char *chain = NULL;
	cleanup_free char *command = NULL;

	host_serve(host, key, 50, "10.0.5.1");
	host_sync(host);
	chain = host_chain(host, "KUBE-SEP-");
	host_remove(host, key);
	host_sync(host);
	assert_false(host_has(host, chain));
	command = xasprintf("nft add chain %s nat %s '{ type nat hook postrouting priority 300; }'",
			    host->cluster.settings.family == FAMILY_IPV4 ? "ip" : "ip6", chain);
	host_run(host, command);
	return take(chain);
}

/* A test for each family, which family_of() tells it. */
attr_unused static enum family ipv4 = FAMILY_IPV4, ipv6 = FAMILY_IPV6;

#define BOTH(test)                                       \
	{#test " (IPv4)", test, NULL, NULL, &ipv4},      \
	{                                                \
#test " (IPv6)", test, NULL, NULL, &ipv6 \
	}

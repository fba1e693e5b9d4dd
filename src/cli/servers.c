/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/servers.h"

#include <assert.h>
#include <event2/event.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "cli/config.h"
#include "cli/kubeproxy_config.h"
#include "cli/pages.h"
#include "serving/http_server.h"

#define RETRY_NS (5 * CLOCK_NS_PER_SECOND)

struct one_server {
	struct servers *servers;
	enum servers_kind kind;
	struct config_server where;
	struct http_server *http; /* NULL: not open */
	struct event *retry;
	bool told; /* that it cannot be opened */
};

struct servers {
	struct servers_config input;
	struct pages pages;
	bool hard_fail;
	struct one_server all[SERVERS_KIND_COUNT];
};

static const char *const names[] = {
	[SERVERS_HEALTH] = "health",
	[SERVERS_METRICS] = "metrics",
};
static_assert(ARRAY_SIZE(names) == SERVERS_KIND_COUNT, "a name for each server");

static void try_again(struct one_server *server)
{
	struct timeval delay;

	clock_to_timeval(RETRY_NS, &delay);
	if (event_add(server->retry, &delay) < 0)
		abort(); /* out of memory, as in util.c */
}

static void open_server(struct one_server *server)
{
	struct servers *servers = server->servers;
	const struct http_config config = {
		.addr = server->where.addr,
		.port = server->where.port,
		.limits = http_limits_default,
		.handler = server->kind == SERVERS_HEALTH ? pages_health : pages_metrics,
		.arg = &servers->pages,
	};
	char where[ADDR_PORT_TEXT_MAX];
	struct err err;

	if (http_server_open(servers->input.loop, &config, &server->http, &err) == 0) {
		addr_port_print(&server->where.addr, server->where.port, where);
		log_debug(server->told ? 0 : 1, "Listening",
			  KV("server", LOG_STR(names[server->kind])),
			  KV("address", LOG_STR(where)));
		return;
	}
	if (!server->told)
		log_error(servers->hard_fail ? "A server cannot start"
					     : "A server cannot start, trying again every 5 s",
			  KV("server", LOG_STR(names[server->kind])), KV("err", LOG_STR(err.text)));
	server->told = true;
	if (servers->hard_fail)
		servers->input.failed(servers->input.arg, server->kind, &err);
	else
		try_again(server);
}

static void on_retry(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	open_server(arg);
}

void servers_set_config(struct servers *servers, const struct config *config)
{
	servers->pages.config = config;
}

struct servers *servers_new(const struct servers_config *input, const struct config *config)
{
	const struct config_server where[] = {
		[SERVERS_HEALTH] = config->healthz,
		[SERVERS_METRICS] = config->metrics,
	};
	struct servers *servers = xcalloc(1, sizeof(*servers));

	servers->input = *input;
	servers->hard_fail = config->effective->message->bindaddresshardfail;
	servers->pages = (struct pages){
		.telemetry = input->telemetry,
		.options = input->options,
		.config = config,
		.status = input->page,
	};
	for (enum servers_kind kind = 0; kind < SERVERS_KIND_COUNT; kind++) {
		struct one_server *server = &servers->all[kind];

		*server =
			(struct one_server){.servers = servers, .kind = kind, .where = where[kind]};
		server->retry = evtimer_new(input->loop, on_retry, server);
		if (!server->retry)
			abort(); /* out of memory, as in util.c */
		if (server->where.on)
			open_server(server);
	}
	return servers;
}

struct servers *servers_free(struct servers *servers)
{
	if (!servers)
		return NULL;
	for (enum servers_kind kind = 0; kind < SERVERS_KIND_COUNT; kind++) {
		http_server_close(servers->all[kind].http);
		event_free(servers->all[kind].retry);
	}
	pages_done(&servers->pages);
	free(servers);
	return NULL;
}

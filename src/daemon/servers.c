/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/servers.h"

#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/loop.h"
#include "config/config.h"
#include "config/kubeproxy_config.h"
#include "daemon/pages.h"
#include "serving/http_server.h"

#define RETRY_FIRST_NS (20 * CLOCK_NS_PER_MS) /* each time twice as long, up to: */
#define RETRY_NS       (5 * CLOCK_NS_PER_SECOND)
#define TELL_FROM_NS   (100 * CLOCK_NS_PER_MS) /* when the next pause would be as long as that */

struct one_server {
	struct servers *servers;
	enum servers_kind kind;
	struct config_server where;
	struct http_server *http; /* NULL: not open */
	struct event *retry;
	int64_t pause_ns; /* before the next try */
	bool told;        /* that it cannot be opened */
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
	loop_arm(server->retry, server->pause_ns);
	server->pause_ns = MIN(2 * server->pause_ns, RETRY_NS);
}

static int listen_on(struct one_server *server, struct err *err)
{
	struct servers *servers = server->servers;
	const struct http_config config = {
		.addr = server->where.addr,
		.port = server->where.port,
		.limits = http_limits_default,
		.budget = servers->input.budget,
		.kind = server->kind == SERVERS_HEALTH ? CONNECTION_HEALTH : CONNECTION_METRICS,
		.handler = server->kind == SERVERS_HEALTH ? pages_health : pages_metrics,
		.arg = &servers->pages,
	};

	return http_server_open(servers->input.loop, &config, &server->http, err);
}

static void open_server(struct one_server *server)
{
	const struct servers *servers = server->servers;
	char where[ADDR_PORT_TEXT_MAX];
	struct err err;

	if (listen_on(server, &err) == 0) {
		addr_port_print(&server->where.addr, server->where.port, where);
		log_debug(server->told ? 0 : 1, "Listening",
			  KV("server", LOG_STR(names[server->kind])),
			  KV("address", LOG_STR(where)));
		return;
	}
	if (server->pause_ns < TELL_FROM_NS) {
		try_again(server);
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
		server->retry = loop_timer(input->loop, on_retry, server);
	}
	return servers;
}

void servers_open(struct servers *servers, bool after_another)
{
	for (enum servers_kind kind = 0; kind < SERVERS_KIND_COUNT; kind++) {
		struct one_server *server = &servers->all[kind];

		server->pause_ns = after_another ? RETRY_FIRST_NS : RETRY_NS;
		if (server->where.on && !server->http)
			open_server(server);
	}
}

void servers_offer_health(struct servers *servers)
{
	struct one_server *health = &servers->all[SERVERS_HEALTH];
	struct err ignored;

	if (health->where.on)
		listen_on(health, &ignored);
}

struct servers *servers_free(struct servers *servers)
{
	if (!servers)
		return NULL;
	for (enum servers_kind kind = 0; kind < SERVERS_KIND_COUNT; kind++) {
		http_server_close(servers->all[kind].http);
		loop_free(servers->all[kind].retry);
	}
	pages_done(&servers->pages);
	free(servers);
	return NULL;
}

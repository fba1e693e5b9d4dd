/* SPDX-License-Identifier: Apache-2.0 */
#include "serving/service_health.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/map.h"
#include "serving/http_server.h"

#define CONNECTIONS_PER_PORT 32 /* those who check connect, ask and leave */
#define COUNT_TEXT_MAX       24

/* A Service with a health check port. */
struct checked_service {
	struct service_health *health;
	char *key; /* "namespace/name" */
	char *ns;
	char *name;
	uint16_t port;
	size_t local_endpoints;
	struct http_server **servers; /* one for each address; NULL: not open */
	bool reported;                /* that it could not be opened */
};

struct service_health {
	struct event_base *loop;
	struct service_health_config config;
	struct addr *addresses;
	struct map services; /* by key */
	size_t n_closed;     /* of them, those that are not open */
};

struct service_health *service_health_new(struct event_base *loop,
					  const struct service_health_config *config)
{
	struct service_health *health = xcalloc(1, sizeof(*health));
	size_t n = config->limited ? config->n_addresses : 1;

	health->loop = loop;
	health->config = *config;
	health->addresses = xcalloc(MAX(n, 1), sizeof(*health->addresses));
	health->addresses[0].family = (uint8_t)config->family; /* all zero: any */
	if (config->limited && n > 0)
		memcpy(health->addresses, config->addresses, n * sizeof(*health->addresses));
	health->config.addresses = health->addresses;
	health->config.n_addresses = n;
	return health;
}

/* -- answers */

static void answer(void *arg, struct http_exchange *exchange,
		   const struct http_request *request attr_unused)
{
	const struct checked_service *service = arg;
	const struct service_health_config *config = &service->health->config;
	bool good = config->proxy_is_good(config->arg);
	cleanup_text struct text body = {0};
	char count[COUNT_TEXT_MAX];
	const struct http_header headers[] = {
		{"Content-Type", "application/json"},
		{"X-Content-Type-Options", "nosniff"},
		{"X-Load-Balancing-Endpoint-Weight", count},
	};

	snprintf(count, sizeof(count), "%zu", service->local_endpoints);
	/* names of Kubernetes objects need no escapes */
	text_printf(&body,
		    "{\n\t\"service\": {\n\t\t\"namespace\": \"%s\",\n\t\t\"name\": \"%s\"\n\t},\n"
		    "\t\"localEndpoints\": %s,\n\t\"serviceProxyHealthy\": %s\n}",
		    service->ns, service->name, count, good ? "true" : "false");
	http_reply(exchange, service->local_endpoints > 0 && good ? 200 : 503, headers,
		   ARRAY_SIZE(headers), &body);
}

/* -- ports */

static void close_port(struct checked_service *service)
{
	for (size_t i = 0; service->servers && i < service->health->config.n_addresses; i++)
		http_server_close(service->servers[i]);
	free(take(service->servers));
}

static int open_servers(struct checked_service *service, struct err *err)
{
	struct service_health *health = service->health;
	struct http_config config = {
		.one_family = true,
		.port = service->port,
		.limits = http_limits_default,
		.budget = health->config.budget,
		.kind = CONNECTION_SERVICE,
		.handler = answer,
		.arg = service,
	};

	config.limits.connections = CONNECTIONS_PER_PORT;
	service->servers =
		xcalloc(MAX(health->config.n_addresses, 1), sizeof(struct http_server *));
	for (size_t i = 0; i < health->config.n_addresses; i++) {
		int r;

		config.addr = health->addresses[i];
		r = http_server_open(health->loop, &config, &service->servers[i], err);
		if (r < 0)
			return r;
	}
	return 0;
}

static void open_port(struct checked_service *service)
{
	struct service_health_config *config = &service->health->config;
	struct err err;

	if (open_servers(service, &err) == 0) {
		log_debug(2, "Opened a health check port", KV("service", LOG_STR(service->key)),
			  KV("port", LOG_INT(service->port)));
		service->reported = false;
		service->health->n_closed--;
		return;
	}
	close_port(service);
	if (!service->reported)
		config->failed(config->arg, service->ns, service->name, service->port, &err);
	service->reported = true;
}

static void forget(struct checked_service *service)
{
	service->health->n_closed -= !service->servers;
	map_remove(&service->health->services, service->key);
	close_port(service);
	free(service->key);
	free(service->ns);
	free(service->name);
	free(service);
}

static void add(struct service_health *health, char *key, const char *ns, const char *name,
		uint16_t port, size_t local_endpoints)
{
	struct checked_service *service = xcalloc(1, sizeof(*service));

	*service = (struct checked_service){
		.health = health,
		.key = key,
		.ns = xstrdup(ns),
		.name = xstrdup(name),
		.port = port,
		.local_endpoints = local_endpoints,
	};
	map_set(&health->services, key, service);
	health->n_closed++;
}

void service_health_set(struct service_health *health, const char *ns, const char *name,
			uint16_t port, size_t local_endpoints)
{
	cleanup_free char *key = xasprintf("%s/%s", ns, name);
	struct checked_service *service = map_get(&health->services, key);

	if (service && service->port != port) {
		log_debug(2, "Closing a health check port", KV("service", LOG_STR(key)),
			  KV("port", LOG_INT(service->port)));
		forget(service);
		service = NULL;
	}
	if (service)
		service->local_endpoints = local_endpoints;
	else if (port != 0)
		add(health, take(key), ns, name, port, local_endpoints);
}

void service_health_open(struct service_health *health)
{
	struct checked_service *service;
	size_t at = 0;

	if (health->n_closed == 0)
		return;
	while ((service = map_next(&health->services, &at)))
		if (!service->servers)
			open_port(service);
}

const char *service_health_next(const struct service_health *health, size_t *at)
{
	return map_next_key(&health->services, at);
}

size_t service_health_count(const struct service_health *health)
{
	return health->services.count - health->n_closed;
}

struct service_health *service_health_free(struct service_health *health)
{
	struct checked_service *service;
	size_t at = 0;

	if (!health)
		return NULL;
	while ((service = map_next(&health->services, &at)))
		forget(service);
	map_done(&health->services);
	free(health->addresses);
	free(health);
	return NULL;
}

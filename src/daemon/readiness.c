/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/readiness.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/text.h"
#include "model/model.h"
#include "serving/vip_probe.h"

#define CONNECT_TIMEOUT_NS (2 * CLOCK_NS_PER_SECOND)
#define CONNECT_AGAIN_NS   CLOCK_NS_PER_SECOND
#define CONNECT_FAILURES   3 /* in a row, and it counts */

struct family_readiness {
	struct readiness *readiness;
	enum family family;
	bool on;
	char *rules;   /* what is wrong with them; NULL: nothing */
	char *connect; /* why the last connection failed; NULL: it did not, or was not tried */
	unsigned int n_failures;
	struct vip_probe *probe;
	struct event *again;
};

struct readiness {
	struct readiness_config config;
	char *key;        /* of the target */
	const char *port; /* behind it; NULL: not said */
	struct event *timer;
	struct family_readiness families[FAMILY_COUNT];
};

/* -- rules */

static void set_rules(struct family_readiness *f, const char *why)
{
	const char *family = family_name(f->family);

	if (why && !(f->rules && streq(f->rules, why)))
		log_warning("Not ready: rules are missing", KV("ipFamily", LOG_STR(family)),
			    KV("err", LOG_STR(why)));
	else if (!why && f->rules)
		log_info("Ready: all rules are there", KV("ipFamily", LOG_STR(family)));
	free(f->rules);
	f->rules = why ? xstrdup(why) : NULL;
}

/* What is not known does not make a node bad that was good, nor the other way round. */
void readiness_checked(struct readiness *readiness, enum family family, int r,
		       const struct err *err)
{
	struct family_readiness *f = &readiness->families[family];

	if (r < 0) {
		log_debug(2, "Could not look whether the rules are there",
			  KV("ipFamily", LOG_STR(family_name(family))),
			  KV("err", LOG_STR(err->text)));
		return;
	}
	if (r == 0)
		readiness->config.failed(readiness->config.arg, "rules");
	set_rules(f, r > 0 ? NULL : err->text);
}

void readiness_damaged(struct readiness *readiness, enum family family)
{
	if (readiness->config.probe != READINESS_OFF)
		set_rules(&readiness->families[family],
			  "rules that another program changed are not repaired yet");
}

/* The next look may be far off, and what was wrong is right now. */
void readiness_synced(struct readiness *readiness, enum family family)
{
	if (readiness->config.probe != READINESS_OFF && readiness->families[family].rules)
		loop_arm(readiness->timer, 0);
}

/* -- connections */

static void on_connected(void *arg, const struct err *err)
{
	struct family_readiness *f = arg;
	struct readiness *readiness = f->readiness;
	const char *family = family_name(f->family);

	if (!err) {
		if (f->n_failures >= CONNECT_FAILURES)
			log_info("Ready: connections come about again",
				 KV("ipFamily", LOG_STR(family)),
				 KV("target", LOG_STR(readiness->config.target)));
		f->n_failures = 0;
		free(take(f->connect));
		return;
	}
	readiness->config.failed(readiness->config.arg, "connect");
	free(f->connect);
	f->connect = xstrdup(err->text);
	if (++f->n_failures == CONNECT_FAILURES)
		log_warning("Not ready: a connection through a cluster IP does not come about",
			    KV("ipFamily", LOG_STR(family)),
			    KV("target", LOG_STR(readiness->config.target)),
			    KV("err", LOG_STR(err->text)));
	loop_arm(f->again, MIN(CONNECT_AGAIN_NS, readiness->config.interval_ns));
}

static const struct service_port *find_port(const struct readiness *readiness,
					    const struct service *service)
{
	for (size_t i = 0; i < service->n_ports; i++) {
		const struct service_port *port = &service->ports[i];
		char number[8];

		snprintf(number, sizeof(number), "%u", port->port);
		if (port->protocol == PROTOCOL_TCP &&
		    (!readiness->port || streq(readiness->port, port->name) ||
		     streq(readiness->port, number)))
			return port;
	}
	return NULL;
}

static bool has_ready_endpoint(const struct readiness *readiness, enum family family,
			       const struct service_port *port)
{
	const struct endpoints *endpoints = model_endpoints(
		readiness->config.model, family, readiness->key, port->name, port->protocol);

	for (size_t i = 0; endpoints && i < endpoints->n; i++)
		if (endpoints->v[i].flags & ENDPOINT_READY)
			return true;
	return false;
}

static void try_connection(struct family_readiness *f)
{
	const struct readiness *readiness = f->readiness;
	const struct service *service = model_service(readiness->config.model, readiness->key);
	const struct service_port *port =
		service_in_family(service, f->family) ? find_port(readiness, service) : NULL;

	if (!f->on || vip_probe_running(f->probe))
		return;
	if (port && has_ready_endpoint(readiness, f->family, port)) {
		vip_probe_start(f->probe, &service->cluster_ip[f->family], port->port);
		return;
	}
	f->n_failures = 0;
	free(take(f->connect));
}

static void on_again(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	try_connection(arg);
}

/* -- the look, and the answer */

static void on_timer(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	struct readiness *readiness = arg;

	loop_arm(readiness->timer, readiness->config.interval_ns);
	readiness->config.check(readiness->config.arg);
	if (readiness->config.probe != READINESS_CONNECT)
		return;
	for (enum family family = 0; family < FAMILY_COUNT; family++)
		try_connection(&readiness->families[family]);
}

static void add_reason(struct text *text, const struct family_readiness *f, const char *reason)
{
	text_printf(text, "%s%s: %s", text->size > 0 ? "; " : "", family_name(f->family), reason);
}

char *readiness_why_not(const struct readiness *readiness)
{
	cleanup_text struct text text = {0};

	for (enum family family = 0; family < FAMILY_COUNT; family++) {
		const struct family_readiness *f = &readiness->families[family];

		if (f->on && f->rules)
			add_reason(&text, f, f->rules);
		if (f->on && f->n_failures >= CONNECT_FAILURES)
			add_reason(&text, f, f->connect);
	}
	return text.size > 0 ? text_dup(&text) : NULL;
}

/* -- begin and end */

void readiness_add_family(struct readiness *readiness, enum family family)
{
	struct family_readiness *f = &readiness->families[family];

	if (readiness->config.probe == READINESS_OFF || f->on)
		return;
	f->on = true;
	f->rules = xstrdup("no sync has succeeded yet");
	loop_arm(readiness->timer, readiness->config.interval_ns);
}

struct readiness *readiness_new(const struct readiness_config *config)
{
	struct readiness *readiness = xcalloc(1, sizeof(*readiness));
	char *colon;

	readiness->config = *config;
	readiness->key = xstrdup(config->target);
	colon = strchr(readiness->key, ':');
	if (colon) {
		*colon = '\0';
		readiness->port = colon + 1;
	}
	readiness->timer = loop_timer(config->loop, on_timer, readiness);
	for (enum family family = 0; family < FAMILY_COUNT; family++) {
		struct family_readiness *f = &readiness->families[family];

		f->readiness = readiness;
		f->family = family;
		f->probe = vip_probe_new(config->loop, CONNECT_TIMEOUT_NS, on_connected, f);
		f->again = loop_timer(config->loop, on_again, f);
	}
	return readiness;
}

struct readiness *readiness_free(struct readiness *readiness)
{
	if (!readiness)
		return NULL;
	for (enum family family = 0; family < FAMILY_COUNT; family++) {
		struct family_readiness *f = &readiness->families[family];

		vip_probe_free(f->probe);
		loop_free(f->again);
		free(f->rules);
		free(f->connect);
	}
	loop_free(readiness->timer);
	free(readiness->key);
	free(readiness);
	return NULL;
}

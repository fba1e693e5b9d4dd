/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/node_wait.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/loop.h"
#include "config/config.h"

enum phase {
	PHASE_READING = 0, /* it is not known whether there is one */
	PHASE_ADDRESSES,
	PHASE_POD_CIDRS,
	PHASE_OVER,
};

struct node_wait {
	struct node_wait_config input;
	struct event *timer;
	enum phase phase;
	bool pod_cidrs; /* are needed */
};

static const char *node_name(const struct node_wait *wait)
{
	return model_node_name(wait->input.model);
}

static bool has_addresses(const struct node_wait *wait)
{
	const struct node *node = model_node(wait->input.model);

	return node && node->n_addresses > 0;
}

static bool has_pod_cidrs(const struct node_wait *wait)
{
	const struct node *node = model_node(wait->input.model);

	return node && node->n_pod_cidrs > 0;
}

static void wait_for(struct node_wait *wait, enum phase phase, int64_t ms)
{
	wait->phase = phase;
	loop_arm(wait->timer, ms * CLOCK_NS_PER_MS);
}

static void wait_for_addresses(struct node_wait *wait)
{
	int64_t ms = wait->input.addresses_ms ? wait->input.addresses_ms : NODE_WAIT_ADDRESSES_MS;

	log_warning("Waiting for the Node's addresses", KV("node", LOG_STR(node_name(wait))),
		    KV("seconds", LOG_INT(ms / 1000)));
	wait_for(wait, PHASE_ADDRESSES, ms);
}

static void wait_for_pod_cidrs(struct node_wait *wait)
{
	int64_t ms = wait->input.pod_cidrs_ms ? wait->input.pod_cidrs_ms : NODE_WAIT_POD_CIDRS_MS;

	log_warning("Waiting for the Node's podCIDRs", KV("node", LOG_STR(node_name(wait))),
		    KV("seconds", LOG_INT(ms / 1000)));
	wait_for(wait, PHASE_POD_CIDRS, ms);
}

static void end(struct node_wait *wait)
{
	wait->phase = PHASE_OVER;
	event_del(wait->timer);
	if (!model_node(wait->input.model))
		log_warning("The Node is not known, going on without its addresses and zone",
			    KV("node", LOG_STR(node_name(wait))));
	else if (!has_addresses(wait))
		log_warning("The Node has no addresses, going on without",
			    KV("node", LOG_STR(node_name(wait))));
	wait->input.over(wait->input.arg);
}

/* Addresses are there, or are not waited for any more. */
static void go_on(struct node_wait *wait)
{
	if (!wait->pod_cidrs || has_pod_cidrs(wait))
		end(wait);
	else if (wait->phase != PHASE_POD_CIDRS)
		wait_for_pod_cidrs(wait);
}

void node_wait_begin(struct node_wait *wait, const struct config *config, bool hope)
{
	wait->pod_cidrs = config->detect_mode == DETECT_NODE_CIDR;
	if (hope && !has_addresses(wait))
		wait_for_addresses(wait);
	else
		go_on(wait);
}

void node_wait_look(struct node_wait *wait, const struct config *config)
{
	wait->pod_cidrs = config->detect_mode == DETECT_NODE_CIDR;
	if (wait->phase == PHASE_POD_CIDRS ||
	    (wait->phase == PHASE_ADDRESSES && has_addresses(wait)))
		go_on(wait);
}

static void on_timer(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	struct node_wait *wait = arg;

	if (wait->phase == PHASE_ADDRESSES) {
		go_on(wait);
		return;
	}
	wait->phase = PHASE_OVER;
	wait->input.failed(wait->input.arg, model_node(wait->input.model)
						    ? "the Node was given no podCIDRs in time"
						    : "the Node did not appear in time");
}

struct node_wait *node_wait_new(const struct node_wait_config *input)
{
	struct node_wait *wait = xcalloc(1, sizeof(*wait));

	wait->input = *input;
	wait->timer = loop_timer(input->loop, on_timer, wait);
	return wait;
}

struct node_wait *node_wait_free(struct node_wait *wait)
{
	if (!wait)
		return NULL;
	loop_free(wait->timer);
	free(wait);
	return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the rules of all families are made with: settings by one configuration and the Node as it is
 * at that time, and a proxier for each family. A new configuration brings a new one; rules stay
 * when one goes.
 */

#include "base/addr.h"
#include "base/err.h"
#include "base/variant.h"

struct backend_conflict;
struct backend_refusal;
struct config;
struct event_base;
struct model;
struct node;
struct proxying;
struct settings;
struct telemetry;

/* All is borrowed and must outlive what is made with it. */
struct proxying_input {
	struct event_base *loop;
	struct model *model;
	enum iptables_variant variant;
	bool usable[FAMILY_COUNT];
	struct telemetry *telemetry; /* is told of all that happens */
	/* Two Services ask for the same, after it has been logged; may be NULL */
	void (*conflict)(void *arg, const struct backend_conflict *conflict);
	void (*refused)(void *arg, const struct backend_refusal *refusal);
	void *arg;
};

/*
 * The variant of iptables that a configuration asks for, or else the node's. Which and why is logged
 * from this level on, and in any case when the answer is doubtful.
 */
enum iptables_variant proxying_find_variant(const struct config *config, int level);
/*
 * Sets which families this host can proxy, with the variant that is there; an error when the
 * primary one is not among them.
 */
int proxying_find_families(const struct config *config, const struct node *node,
			   struct proxying_input *input, struct err *err);

/* Opens the backend for each usable family. Nothing is written before proxying_start(). */
int proxying_new(const struct proxying_input *input, const struct config *config,
		 struct proxying **ret, struct err *err);
struct proxying *proxying_free(struct proxying *proxying); /* accepts NULL, returns NULL */

/* The Node that the settings are made from; NULL: it was not known. */
const struct node *proxying_node(const struct proxying *proxying);

/* Of a family that is proxied; else, and for NULL, NULL. Good as long as the proxying is. */
const struct settings *proxying_settings(const struct proxying *proxying, enum family family);

/* As the functions of proxier.h, for all families or for a set of bits; NULL: nothing to do. */
void proxying_start(const struct proxying *proxying);
void proxying_request(const struct proxying *proxying, unsigned int families);
void proxying_request_full(const struct proxying *proxying);
void proxying_audit(const struct proxying *proxying);
void proxying_check(const struct proxying *proxying);

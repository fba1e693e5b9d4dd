/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the rules of all families are made with: settings by one configuration and the Node as it is
 * at that time, and a family_sync for each family. A new configuration brings a new one; rules stay
 * when one goes.
 */

#include "backends/backend.h"
#include "base/addr.h"
#include "base/err.h"

struct backend_full;
struct conflict;
struct backend_refusal;
struct config;
struct event_base;
struct model;
struct node;
struct other_modes_leftovers;
struct family_set;
struct settings;
struct telemetry;

/* All is borrowed and must outlive what is made with it. */
struct family_set_input {
	struct event_base *loop;
	struct model *model;
	struct backend_host *host; /* what the mode's families share; NULL: nothing */
	bool usable[FAMILY_COUNT];
	struct telemetry *telemetry;             /* is told of all that happens */
	struct other_modes_leftovers *leftovers; /* removed after the first syncs */
	/* Two Services ask for the same, after it has been logged; may be NULL */
	void (*conflict)(void *arg, const struct conflict *conflict);
	void (*refused)(void *arg, const struct backend_refusal *refusal);
	void (*clients_full)(void *arg, const struct backend_full *full);
	void *arg;
};

/*
 * Sets which families this host can proxy, with the host that is there; an error when the
 * primary one is not among them.
 */
int family_set_find_families(const struct config *config, const struct node *node,
			     struct family_set_input *input, struct err *err);

/* Opens the backend for each usable family. Nothing is written before family_set_start(). */
int family_set_new(const struct family_set_input *input, const struct config *config,
		   struct family_set **ret, struct err *err);
struct family_set *family_set_free(struct family_set *family_set); /* accepts NULL, returns NULL */

/* Of a family that is proxied; else, and for NULL, NULL. Good as long as the set is. */
const struct settings *family_set_settings(const struct family_set *family_set, enum family family);

/* All that a family needs: enum backend_needs. */
unsigned int family_set_needs(const struct family_set *family_set);

/* As the functions of family_sync.h, for all families or for a set of bits; NULL: nothing to do. */
void family_set_start(const struct family_set *family_set);
void family_set_request(const struct family_set *family_set, unsigned int families);
void family_set_request_full(const struct family_set *family_set);
void family_set_audit(const struct family_set *family_set);
void family_set_check(const struct family_set *family_set);
/* Of one family; false also: it is not proxied. */
bool family_set_localhost(const struct family_set *family_set, enum family family,
			  struct backend_localhost *ret);

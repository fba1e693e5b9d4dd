/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a daemon has recorded as Events: of its Node, and of the Services that something is wrong with, where
 * their owners look. Whether anyone hears it changes nothing: every call accepts NULL, which is a
 * daemon without an API server.
 */

#include "backends/backend.h"
#include "conntrack/table_watch.h"

struct announcer;
struct api_client;

struct announcer *announcer_new(struct api_client *client, const char *node_name);
struct announcer *announcer_free(struct announcer *announcer); /* accepts NULL, returns NULL */

/* note: what is wrong; "": nothing is. */
void announcer_tell_node(struct announcer *announcer, const char *reason, const char *action,
			 const char *note);
void announcer_tell_table(struct announcer *announcer, enum table_level level, const char *note);
/* A health check port that cannot be opened. */
void announcer_tell_port(struct announcer *announcer, const char *ns, const char *name,
			 const char *reason);
/* To the owner of the Service that it is about, or else the object itself. */
struct source_misread;
void announcer_tell_misread(struct announcer *announcer, const struct source_misread *misread);
void announcer_tell_conflict(struct announcer *announcer, const struct conflict *conflict);
void announcer_tell_refusal(struct announcer *announcer, const struct backend_refusal *refusal);
void announcer_tell_clients_full(struct announcer *announcer, const struct backend_full *full);

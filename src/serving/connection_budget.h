/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * File descriptors for all HTTP servers together. Every client that reaches the node can ask for connections, and
 * every tenant that may create Services for listeners; neither may take what the program itself lives on.
 *
 *   - BUDGET_PROGRAM descriptors are not given away here: they are for the API server, netlink, files and pipes;
 *   - each kind of server is sure of a few connections, whatever the others do, and has a ceiling;
 *   - the rest goes to listeners and connections as they come.
 *
 * Where there is no place left for a connection, another one of its kind gives way, on whatever port it
 * is: the one that has waited longest for a request, if that is a second or more, else the oldest. So a client that
 * connects and asks at once is served, whatever others do to look busy. Streams stay.
 */

#include <sys/queue.h>

#include "base/err.h"

enum connection_kind {
	CONNECTION_HEALTH = 0, /* /healthz and /livez */
	CONNECTION_METRICS,    /* and the status page */
	CONNECTION_SERVICE,    /* health check ports of Services */
	CONNECTION_KIND_COUNT,
};

const char *connection_kind_name(enum connection_kind kind); /* "health", "metrics", "service" */

#define BUDGET_PROGRAM 128 /* or half of all, if that is less */

struct connection_budget;
struct http_server;

struct connection_budget_config {
	size_t descriptors; /* that the process may have */
	/* Connections cannot be accepted; told once until that has not happened for a minute. */
	void (*cannot_accept)(void *arg, const struct err *err);
	void *arg;
};

struct connection_budget *connection_budget_new(const struct connection_budget_config *config);
/* Accepts NULL, returns NULL. All servers are closed before. */
struct connection_budget *connection_budget_free(struct connection_budget *budget);

/* A listener. The servers of the program itself are always allowed theirs; -EMFILE says what to do. */
int connection_budget_listen(struct connection_budget *budget, enum connection_kind kind,
			     struct err *err);
void connection_budget_unlisten(struct connection_budget *budget);
/* accept() failed for another reason than that no client is there. */
void connection_budget_cannot_accept(struct connection_budget *budget, int code);

enum place_state {
	PLACE_WAITING = 0, /* for a request */
	PLACE_REPLYING,    /* until the answer is taken */
	PLACE_STREAMING,
	PLACE_STATE_COUNT,
};

/* A connection's, in memory of its own. Its server says in it what it does, and since when. */
struct connection_place {
	TAILQ_ENTRY(connection_place) list;
	const struct http_server *server;
	enum connection_kind kind;
	enum place_state state;
	int64_t since_ns;
};

bool connection_budget_has_room(const struct connection_budget *budget, enum connection_kind kind);
/* Who gives way to one more, of this server, or of all (NULL); NULL: none can. */
struct connection_place *connection_budget_victim(const struct connection_budget *budget,
						  enum connection_kind kind,
						  const struct http_server *server);
/* The place has its server, its kind and what it does. */
void connection_budget_take(struct connection_budget *budget, struct connection_place *place);
void connection_budget_give(struct connection_budget *budget, struct connection_place *place);

/* A connection was closed for lack of room, before a word or to let another one in. */
void connection_budget_count_refused(struct connection_budget *budget, enum connection_kind kind);
uint64_t connection_budget_refused(const struct connection_budget *budget,
				   enum connection_kind kind);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * TCP connections that this process carries on to an endpoint. Bytes go from socket to pipe to socket by splice(2) and
 * never through memory of ours.
 *
 * What is kept true of each:
 *
 *   - a side is read only when all that was read before is written: who reads slowly slows down who writes, and
 *     nothing piles up but a pipe and the buffers of the sockets;
 *   - the end of one direction is passed on, and the other one goes on for as long as it likes;
 *   - what was read is written, also when the side that it came from broke meanwhile;
 *   - what breaks is told as such: both sides are reset, unless one has not had the room for all bytes yet, which then
 *     arrive and are followed by an end.
 *
 * And of all: in one turn of the loop they take RELAY_TURN_NS at most, however many are busy, and each in turn moves
 * RELAY_QUANTUM at most. An idle one has two descriptors; pipes are lent to those that have bytes in hand.
 *
 * Sides that vanish are found by TCP's keepalive, so a connection may be idle for as long as both live. Only where one
 * direction has ended is there a limit: many programs forget such a connection.
 */

#include "base/addr.h"

struct event_base;
struct relay;
struct relays;

#define RELAY_TURN_NS     (2 * INT64_C(1000000))
#define RELAY_QUANTUM     ((size_t)256 * 1024)
#define RELAY_DESCRIPTORS 6 /* two sockets, two pipes: the most that one can have */
#define RELAY_TARGETS     2

struct relay_target {
	struct addr addr;
	uint16_t port;
};

enum relay_end {
	RELAY_CLOSED = 0,  /* both directions came to their end */
	RELAY_BROKEN,      /* by one of its sides */
	RELAY_UNREACHABLE, /* no endpoint took it */
	RELAY_FORGOTTEN,   /* half closed, and silent for too long */
	RELAY_END_COUNT,
};

struct relays_config {
	struct event_base *loop;
	int64_t dial_ns;        /* for all targets of a connection together */
	int64_t half_closed_ns; /* without a byte, when one direction has ended */
	int64_t (*now_ns)(void *arg);
	/* A connection ended by itself, with the errno that tells why, or 0. It is gone when this returns. */
	void (*ended)(void *arg, void *owner, enum relay_end end, int code);
	void *arg;
};

struct relays *relays_new(const struct relays_config *config); /* copied */
struct relays *
relays_free(struct relays *relays); /* accepts NULL, returns NULL; cuts what is left */

/*
 * Carries a client's connection, whose descriptor it takes over and which does not block. Targets are tried in turn, each for its
 * share of dial_ns; if none takes it the client is reset. ended() is never called from inside.
 */
void relay_start(struct relays *relays, int client, const struct relay_target *targets,
		 size_t n_targets, void *owner);
/* Cuts all connections of the owner; ended() is not called. */
void relays_cut(struct relays *relays, const void *owner);

/* A socket that is told to reset its peer when it is closed, and closed. */
void relay_reset(int fd);

/* Ends those that have been half closed and silent for too long; called by itself now and then. */
void relays_sweep(struct relays *relays);

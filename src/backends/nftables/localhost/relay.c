/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/nftables/localhost/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/loop.h"

/*
 * Events are edges: the loop tells once that a socket became readable or writable, which is noted and holds until a
 * call says EAGAIN. So a socket that nobody can use right now costs nothing, and what there is to do is in a queue
 * of ours, which is worked off for RELAY_TURN_NS in each turn of the loop. Level-triggered events would have to be
 * taken out of epoll and put back with each change of who waits for whom, and would give the loop no bound.
 *
 * A pipe is filled only when it is empty. Then EAGAIN can only mean that the socket has nothing, or that an urgent byte
 * is next, where splice(2) stops for ever: that one is read, and goes on like any other.
 */

#define PIPE_BYTES     ((size_t)64 * 1024) /* of a pipe, as the kernel makes them */
#define SPARE_PIPES    16
#define SWEEP_NS       (60 * CLOCK_NS_PER_SECOND)
#define KEEPALIVE_IDLE 15 /* seconds, and between probes: as Go has it, and so kube-proxy */
#define KEEPALIVE_MISS 9  /* probes without an answer */

enum side {
	CLIENT = 0,
	ENDPOINT,
	SIDE_COUNT,
};

struct end {
	struct relay *relay;
	int fd;
	struct event *event;
	bool readable, writable; /* as far as is known */
	int code;                /* why it takes nothing any more; 0: it does */
};

/* From one side to the other. */
struct flow {
	int pipe[2]; /* -1: none, because nothing is in hand */
	size_t held; /* bytes in it */
	bool ended;  /* nothing more can be read */
	bool done;   /* and nothing is left to write */
};

struct relay {
	TAILQ_ENTRY(relay) all, ready;
	struct relays *relays;
	void *owner;
	bool is_open; /* the endpoint has taken the connection */
	bool queued;
	struct end ends[SIDE_COUNT];
	struct flow flows[SIDE_COUNT]; /* by the side that they come from */
	struct relay_target targets[RELAY_TARGETS];
	size_t n_targets, next_target;
	int64_t deadline_ns; /* for reaching one of them */
	int64_t moved_ns;    /* when a byte last went through */
	int code;            /* of what broke it */
};

TAILQ_HEAD(relay_list, relay);

struct relays {
	struct relays_config config;
	struct relay_list all, ready;
	struct event *turn, *sweep;
	int spare[SPARE_PIPES][2];
	size_t n_spare;
};

static int64_t now_of(const struct relays *relays)
{
	return relays->config.now_ns(relays->config.arg);
}

/* -- pipes */

static bool lend_pipe(struct relays *relays, struct flow *flow)
{
	if (flow->pipe[0] >= 0)
		return true;
	if (relays->n_spare == 0)
		return pipe2(flow->pipe, O_NONBLOCK | O_CLOEXEC) == 0;
	memcpy(flow->pipe, relays->spare[--relays->n_spare], sizeof(flow->pipe));
	return true;
}

static void close_pipe(int pipe[static 2])
{
	close(pipe[0]);
	close(pipe[1]);
	pipe[0] = pipe[1] = -1;
}

/* One that has bytes in it is nobody else's. */
static void return_pipe(struct relays *relays, struct flow *flow)
{
	if (flow->pipe[0] < 0)
		return;
	if (flow->held > 0 || relays->n_spare == SPARE_PIPES) {
		close_pipe(flow->pipe);
		flow->held = 0;
		return;
	}
	memcpy(relays->spare[relays->n_spare++], flow->pipe, sizeof(flow->pipe));
	flow->pipe[0] = flow->pipe[1] = -1;
}

/* -- ending */

void relay_reset(int fd)
{
	const struct linger at_once = {.l_onoff = 1, .l_linger = 0};

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	close(fd);
}

/* Bytes that the peer had no room for yet; an end that was passed on counts as one of them. */
static bool has_unsent(const struct relay *relay, enum side side)
{
	int unsent = 0;

	return ioctl(relay->ends[side].fd, SIOCOUTQNSD, &unsent) == 0 &&
	       unsent > (relay->flows[!side].done ? 1 : 0);
}

/* A reset would throw away what is not sent yet. */
static void close_end(struct relay *relay, enum side side, bool cut)
{
	struct end *end = &relay->ends[side];

	end->event = loop_free(end->event);
	if (end->fd < 0)
		return;
	if (cut && !has_unsent(relay, side))
		relay_reset(end->fd);
	else
		close(end->fd);
	end->fd = -1;
}

static void free_relay(struct relay *relay, bool cut)
{
	struct relays *relays = relay->relays;

	for (enum side side = 0; side < SIDE_COUNT; side++) {
		close_end(relay, side, cut);
		return_pipe(relays, &relay->flows[side]);
	}
	if (relay->queued)
		TAILQ_REMOVE(&relays->ready, relay, ready);
	TAILQ_REMOVE(&relays->all, relay, all);
	free(relay);
}

static void end_relay(struct relay *relay, enum relay_end end)
{
	const struct relays_config *config = &relay->relays->config;
	void *owner = relay->owner;
	int code = relay->code;

	free_relay(relay, end != RELAY_CLOSED);
	config->ended(config->arg, owner, end, code);
}

/* -- moving bytes */

/* The other direction has nobody left to go to. */
static void break_reading(struct relay *relay, struct flow *flow, int code)
{
	relay->code = code;
	flow->ended = flow->done = true;
}

/* One byte by hand: an urgent one, or one that came just now. False: there is none. */
static bool carry_byte(const struct end *in, struct flow *flow)
{
	char byte;
	int n = 0;

	if (ioctl(in->fd, FIONREAD, &n) < 0 || n == 0 || recv(in->fd, &byte, 1, MSG_DONTWAIT) != 1)
		return false;
	flow->held = write(flow->pipe[1], &byte, 1) == 1;
	return flow->held > 0;
}

/* A side that failed as it was written to has told why: its next read looks like an ordinary end. */
static void end_reading(struct relay *relay, struct flow *flow, const struct end *in)
{
	if (in->code)
		break_reading(relay, flow, in->code);
	else
		flow->ended = true;
}

/* True: the pipe holds something. */
static bool fill(struct relay *relay, enum side from)
{
	struct flow *flow = &relay->flows[from];
	struct end *in = &relay->ends[from];
	ssize_t n;

	if (flow->ended || !in->readable)
		return false;
	if (!lend_pipe(relay->relays, flow)) {
		break_reading(relay, flow, errno);
		return false;
	}
	n = splice(in->fd, NULL, flow->pipe[1], NULL, PIPE_BYTES,
		   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	if (n > 0)
		flow->held = (size_t)n;
	else if (n < 0 && errno != EAGAIN)
		break_reading(relay, flow, errno);
	else if (carry_byte(in, flow))
		return true;
	else if (n == 0)
		end_reading(relay, flow, in);
	else
		in->readable = false;
	return n > 0;
}

/* Bytes that the other side took. If it takes none any more, it may still have sent some: those are read to their end. */
static size_t drain(struct relay *relay, enum side from)
{
	struct flow *flow = &relay->flows[from];
	struct end *out = &relay->ends[!from];
	ssize_t n;

	if (!out->writable)
		return 0;
	n = splice(flow->pipe[0], NULL, out->fd, NULL, flow->held,
		   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	if (n > 0) {
		flow->held -= (size_t)n;
		return (size_t)n;
	}
	if (n < 0 && errno == EAGAIN) {
		out->writable = false;
		return 0;
	}
	out->code = n < 0 ? errno : EPIPE;
	flow->ended = flow->done = true;
	return 0;
}

/* All that was read is written: what now? */
static void pass_end(struct relay *relay, enum side from)
{
	struct flow *flow = &relay->flows[from];

	if (!flow->ended || flow->held > 0 || flow->done)
		return;
	flow->done = true;
	relay->moved_ns = now_of(relay->relays);
	shutdown(relay->ends[!from].fd, SHUT_WR); /* if that fails it has gone already */
}

/* True: it could go on at once. */
static bool move(struct relay *relay, enum side from)
{
	struct flow *flow = &relay->flows[from];
	size_t left = RELAY_QUANTUM, n;

	while (!flow->done && left > 0 && (flow->held > 0 || fill(relay, from))) {
		n = drain(relay, from);
		if (n == 0)
			break;
		left -= MIN(n, left);
	}
	pass_end(relay, from);
	if (flow->held == 0 || flow->done)
		return_pipe(relay->relays, flow);
	if (left < RELAY_QUANTUM)
		relay->moved_ns = now_of(relay->relays);
	return !flow->done && left == 0;
}

/* -- turns */

static void queue(struct relay *relay)
{
	struct relays *relays = relay->relays;

	if (relay->queued)
		return;
	if (TAILQ_EMPTY(&relays->ready))
		loop_arm(relays->turn, 0);
	relay->queued = true;
	TAILQ_INSERT_TAIL(&relays->ready, relay, ready);
}

static void dial_next(struct relay *relay);

static void work_on(struct relay *relay)
{
	bool more;

	if (!relay->is_open) {
		dial_next(relay);
		return;
	}
	more = move(relay, CLIENT);
	more |= move(relay, ENDPOINT);
	if (relay->code)
		end_relay(relay, RELAY_BROKEN);
	else if (relay->flows[CLIENT].done && relay->flows[ENDPOINT].done)
		end_relay(relay, RELAY_CLOSED);
	else if (more)
		queue(relay);
}

static void on_turn(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	struct relays *relays = arg;
	int64_t until = now_of(relays) + RELAY_TURN_NS;
	struct relay *relay;

	while ((relay = TAILQ_FIRST(&relays->ready))) {
		TAILQ_REMOVE(&relays->ready, relay, ready);
		relay->queued = false;
		work_on(relay);
		if (now_of(relays) >= until)
			break;
	}
	if (!TAILQ_EMPTY(&relays->ready))
		loop_arm(relays->turn, 0);
}

/* -- reaching an endpoint */

/* Both sides: no delay for small pieces, and a question now and then whether the peer is still there. */
static void set_options(int fd)
{
	static const struct {
		int level, name, value;
	} options[] = {
		{IPPROTO_TCP, TCP_NODELAY, 1},
		{SOL_SOCKET, SO_KEEPALIVE, 1},
		{SOL_SOCKET, SO_OOBINLINE, 1}, /* see carry_byte() */
		{IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE},
		{IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_IDLE},
		{IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_MISS},
	};

	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		setsockopt(fd, options[i].level, options[i].name, &options[i].value,
			   sizeof(options[i].value)); /* it works without, no more */
}

static int error_of(int fd)
{
	socklen_t size = sizeof(int);
	int code = 0;

	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &size) < 0 ? errno : code;
}

static void on_dialled(struct relay *relay, short what)
{
	struct end *end = &relay->ends[ENDPOINT];

	relay->code = what & EV_TIMEOUT ? ETIMEDOUT : error_of(end->fd);
	if (relay->code) {
		close_end(relay, ENDPOINT, false);
		dial_next(relay);
		return;
	}
	event_remove_timer(end->event);
	set_options(end->fd);
	relay->is_open = true;
	relay->moved_ns = now_of(relay->relays);
	queue(relay);
}

/* A side that was read to its end has nothing more to say, but that it broke. */
static bool broke_behind_end(struct relay *relay, const struct end *end)
{
	enum side side = (enum side)(end - relay->ends);

	if (relay->flows[side].ended)
		relay->code = error_of(end->fd);
	return relay->code != 0;
}

static void on_ready(evutil_socket_t fd attr_unused, short what, void *arg)
{
	struct end *end = arg;
	struct relay *relay = end->relay;

	end->readable |= (what & EV_READ) != 0;
	end->writable |= (what & EV_WRITE) != 0;
	if (relay->is_open && broke_behind_end(relay, end))
		end_relay(relay, RELAY_BROKEN);
	else if (relay->is_open)
		queue(relay);
	else if (end == &relay->ends[ENDPOINT])
		on_dialled(relay, what);
	/* else the client speaks first, and is heard when somebody is there to listen */
}

static void watch(struct relay *relay, enum side side, int fd)
{
	struct end *end = &relay->ends[side];

	*end = (struct end){.relay = relay, .fd = fd};
	end->event = loop_watch(relay->relays->config.loop, fd,
				EV_READ | EV_WRITE | EV_ET | EV_PERSIST, on_ready, end);
}

/* 0; or the errno of what fails at once, as where there is no route. */
static int dial(struct relay *relay, const struct relay_target *target, int64_t limit_ns)
{
	struct sockaddr_storage to;
	socklen_t size = addr_socket(&target->addr, target->port, &to);
	int fd = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return errno;
	if (connect(fd, (const struct sockaddr *)&to, size) < 0 && errno != EINPROGRESS) {
		int code = errno;

		close(fd);
		return code;
	}
	watch(relay, ENDPOINT, fd);
	loop_arm(relay->ends[ENDPOINT].event, limit_ns);
	return 0;
}

static void dial_next(struct relay *relay)
{
	while (relay->next_target < relay->n_targets) {
		int64_t left_ns = MAX(relay->deadline_ns - now_of(relay->relays), 0);
		size_t left = relay->n_targets - relay->next_target;

		relay->code =
			dial(relay, &relay->targets[relay->next_target++], left_ns / (int64_t)left);
		if (relay->code == 0)
			return;
	}
	end_relay(relay, RELAY_UNREACHABLE);
}

/* -- all of them */

static bool is_forgotten(const struct relay *relay, int64_t now_ns)
{
	return relay->is_open && (relay->flows[CLIENT].done || relay->flows[ENDPOINT].done) &&
	       now_ns - relay->moved_ns >= relay->relays->config.half_closed_ns;
}

void relays_sweep(struct relays *relays)
{
	int64_t now_ns = now_of(relays);
	struct relay *relay, *next;

	for (relay = TAILQ_FIRST(&relays->all); relay; relay = next) {
		next = TAILQ_NEXT(relay, all);
		if (is_forgotten(relay, now_ns))
			end_relay(relay, RELAY_FORGOTTEN);
	}
	if (!TAILQ_EMPTY(&relays->all))
		loop_arm(relays->sweep, SWEEP_NS);
}

static void on_sweep(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	relays_sweep(arg);
}

/* Dialling begins with the next turn, so that a crowd of clients has no more of the loop than a crowd of bytes. */
void relay_start(struct relays *relays, int client, const struct relay_target *targets,
		 size_t n_targets, void *owner)
{
	struct relay *relay = xcalloc(1, sizeof(*relay));

	relay->relays = relays;
	relay->owner = owner;
	relay->n_targets = MIN(n_targets, RELAY_TARGETS);
	memcpy(relay->targets, targets, relay->n_targets * sizeof(*targets));
	relay->deadline_ns = now_of(relays) + relays->config.dial_ns;
	relay->ends[ENDPOINT].fd = -1;
	for (enum side side = 0; side < SIDE_COUNT; side++)
		relay->flows[side] = (struct flow){.pipe = {-1, -1}};
	if (TAILQ_EMPTY(&relays->all))
		loop_arm(relays->sweep, SWEEP_NS);
	TAILQ_INSERT_TAIL(&relays->all, relay, all);
	set_options(client);
	watch(relay, CLIENT, client);
	queue(relay);
}

void relays_cut(struct relays *relays, const void *owner)
{
	struct relay *relay, *next;

	for (relay = TAILQ_FIRST(&relays->all); relay; relay = next) {
		next = TAILQ_NEXT(relay, all);
		if (relay->owner == owner)
			free_relay(relay, true);
	}
}

struct relays *relays_new(const struct relays_config *config)
{
	struct relays *relays = xcalloc(1, sizeof(*relays));

	relays->config = *config;
	TAILQ_INIT(&relays->all);
	TAILQ_INIT(&relays->ready);
	relays->turn = loop_timer(config->loop, on_turn, relays);
	relays->sweep = loop_timer(config->loop, on_sweep, relays);
	return relays;
}

struct relays *relays_free(struct relays *relays)
{
	struct relay *relay, *next;

	if (!relays)
		return NULL;
	for (relay = TAILQ_FIRST(&relays->all); relay; relay = next) {
		next = TAILQ_NEXT(relay, all);
		free_relay(relay, true);
	}
	while (relays->n_spare > 0)
		close_pipe(relays->spare[--relays->n_spare]);
	loop_free(relays->turn);
	loop_free(relays->sweep);
	free(relays);
	return NULL;
}

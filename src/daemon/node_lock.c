/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/node_lock.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/oom.h"
#include "kernel/sandbox.h"

/* The first wait after a holder that hung up; twice as long each time, until one keeps the connection. */
#define RETRY_NS     (20 * CLOCK_NS_PER_MS)
#define RETRY_MAX_NS (1 * CLOCK_NS_PER_SECOND)
/* A name that is bound, but answers no connection for so long, is not held by one of us. */
#define SILENCE_NS (2 * CLOCK_NS_PER_SECOND)
/* One that listens may be, and other users keep its queue full. */
#define QUEUE_NS  (60 * CLOCK_NS_PER_SECOND)
#define PAUSE_NS  (1 * CLOCK_NS_PER_SECOND) /* after a connection that could not be accepted */
#define PEERS     8                         /* of each kind */
#define TAKE_OVER "takeover\n"

/* Places for each kind of user, so that none can take another's. */
enum peer_kind {
	PEER_OBEYED = 0, /* may ask to take over */
	PEER_SANDBOXED,
	PEER_OTHER,
	PEER_KINDS,
};

struct peer {
	struct node_lock *lock;
	enum peer_kind kind;
	int fd; /* -1: a free place */
	struct event *readable;
};

struct node_lock {
	struct node_lock_config config;
	uid_t uid; /* at the start: it may become another one later */
	bool waiting, mine, take_over;
	bool named, asking, refused;               /* what the log was told */
	int64_t refused_since_ns, queued_since_ns; /* of connections; 0: they are not */
	int64_t retry_ns;
	struct event *timer; /* to try again; when held, to listen again */

	int fd; /* listening, or connected to the holder; -1: none */
	uid_t holder;
	int64_t met_ns; /* since when it is connected */
	struct event *readable;
	struct peer peers[PEER_KINDS][PEERS];
};

static socklen_t make_address(const char *name, struct sockaddr_un *ret)
{
	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	assert(strlen(name) < sizeof(ret->sun_path));
	memcpy(ret->sun_path + 1, name, strlen(name)); /* behind a NUL: an abstract one */
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
}

static bool is_waited_for(uid_t holder, uid_t own)
{
	return holder == 0 || holder == own || holder == SANDBOX_USER;
}

static bool is_obeyed(uid_t who, uid_t holder)
{
	return who == 0 || who == holder;
}

static enum peer_kind kind_of(uid_t who, uid_t holder)
{
	if (is_obeyed(who, holder))
		return PEER_OBEYED;
	return who == SANDBOX_USER ? PEER_SANDBOXED : PEER_OTHER;
}

static int peer_of(int fd, struct ucred *ret)
{
	socklen_t size = sizeof(*ret);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, ret, &size) < 0 ? -errno : 0;
}

/* A connection to who has the name; negative errno. */
static int connect_to(const char *name)
{
	struct sockaddr_un address;
	socklen_t size = make_address(name, &address);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int r;

	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)&address, size) == 0)
		return fd;
	r = -errno;
	close(fd);
	return r;
}

static struct event *watch(struct node_lock *lock, int fd, event_callback_fn fn, void *arg)
{
	return loop_watch(lock->config.loop, fd, EV_READ | EV_PERSIST, fn, arg);
}

static void drop_socket(struct node_lock *lock)
{
	lock->readable = loop_free(lock->readable);
	util_close_fd(&lock->fd);
	lock->fd = -1;
}

static void have(struct node_lock *lock)
{
	lock->mine = true;
	lock->config.mine(lock->config.arg);
}

/* -- held */

static void drop_peer(struct peer *peer)
{
	peer->readable = loop_free(peer->readable);
	util_close_fd(&peer->fd);
	peer->fd = -1;
}

static void on_peer(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	struct peer *peer = arg;
	struct node_lock *lock = peer->lock;
	char text[sizeof(TAKE_OVER)] = "";
	ssize_t n = recv(peer->fd, text, sizeof(text) - 1, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0 && peer->kind == PEER_OBEYED && streq(text, TAKE_OVER))
		lock->config.asked(lock->config.arg);
	else
		drop_peer(peer); /* it has gone, or says what it should not */
}

static struct peer *free_place(struct node_lock *lock, enum peer_kind kind)
{
	for (size_t i = 0; i < PEERS; i++)
		if (lock->peers[kind][i].fd < 0)
			return &lock->peers[kind][i];
	return NULL;
}

/* One that has no place sees the end of its connection, and tries again. */
static void let_in(struct node_lock *lock, int fd)
{
	struct ucred who;
	struct peer *place =
		peer_of(fd, &who) < 0 ? NULL : free_place(lock, kind_of(who.uid, lock->uid));

	if (!place) {
		close(fd);
		return;
	}
	place->fd = fd;
	place->readable = watch(lock, fd, on_peer, place);
}

static void on_connection(evutil_socket_t listener, short what attr_unused, void *arg)
{
	struct node_lock *lock = arg;
	int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd >= 0) {
		let_in(lock, fd);
	} else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
		event_del(lock->readable); /* descriptors are short: not again at once */
		loop_arm(lock->timer, PAUSE_NS);
	}
}

static int bind_name(struct node_lock *lock)
{
	struct sockaddr_un address;
	socklen_t size = make_address(lock->config.name, &address);

	lock->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (lock->fd < 0 || bind(lock->fd, (const struct sockaddr *)&address, size) < 0 ||
	    listen(lock->fd, SOMAXCONN) < 0) {
		int r = -errno;

		drop_socket(lock);
		return r;
	}
	lock->readable = watch(lock, lock->fd, on_connection, lock);
	return 0;
}

/* -- waiting */

static bool try_to_bind(struct node_lock *lock)
{
	if (bind_name(lock) < 0)
		return false;
	if (lock->waiting)
		log_info("The other instance has ended, taking over");
	have(lock);
	return true;
}

/* The holder would hang up on a user that it does not obey, so that its end would be seen late. */
static void ask_to_end(struct node_lock *lock)
{
	if (!is_obeyed(lock->uid, lock->holder)) {
		if (!lock->refused)
			log_warning("Cannot ask the other instance to end, it obeys root and "
				    "its own user only; waiting for it to end",
				    KV("itsUid", LOG_INT(lock->holder)),
				    KV("uid", LOG_INT(lock->uid)));
		lock->refused = true;
		return;
	}
	/* what it does not read is its own loss: it is asked again with the next connection */
	if (send(lock->fd, TAKE_OVER, strlen(TAKE_OVER), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return;
	if (!lock->asking)
		log_info("Asking the other instance to end");
	lock->asking = true;
}

/* Another one was faster, the holder is still ending, or it has no place for us. */
static void come_back(struct node_lock *lock)
{
	if (clock_now_ns() - lock->met_ns >= RETRY_MAX_NS)
		lock->retry_ns = RETRY_NS;
	loop_arm(lock->timer, lock->retry_ns);
	lock->retry_ns = MIN(2 * lock->retry_ns, RETRY_MAX_NS);
}

static void on_holder(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	struct node_lock *lock = arg;
	char ignored[64];
	ssize_t n = recv(lock->fd, ignored, sizeof(ignored), MSG_DONTWAIT);

	if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
		return;
	drop_socket(lock);
	if (!try_to_bind(lock))
		come_back(lock);
}

static void do_without(struct node_lock *lock, const char *reason, const struct ucred *who)
{
	drop_socket(lock);
	log_error("Another program has the name that instances lock, going on without a lock",
		  KV("name", LOG_STR(lock->config.name)), KV("pid", LOG_INT(who ? who->pid : 0)),
		  KV("uid", LOG_INT(who ? (long long)who->uid : -1)),
		  KV("reason", LOG_STR(reason)));
	have(lock);
}

static void tell_waiting(struct node_lock *lock)
{
	if (lock->waiting)
		return;
	lock->waiting = true;
	lock->config.waiting(lock->config.arg);
}

static void wait_for(struct node_lock *lock, const struct ucred *who)
{
	lock->refused_since_ns = lock->queued_since_ns = 0;
	lock->holder = who->uid;
	lock->met_ns = clock_now_ns();
	lock->readable = watch(lock, lock->fd, on_holder, lock);
	if (!lock->named)
		log_warning("Another instance runs on this node, waiting for it to end",
			    KV("pid", LOG_INT(who->pid)), KV("uid", LOG_INT(who->uid)));
	lock->named = true;
	tell_waiting(lock);
	if (lock->take_over)
		ask_to_end(lock);
}

static void try_for(struct node_lock *lock, int64_t *since_ns, int64_t patience_ns, int error)
{
	int64_t now_ns = clock_now_ns();

	if (*since_ns == 0)
		*since_ns = now_ns;
	if (now_ns - *since_ns < patience_ns)
		loop_arm(lock->timer, RETRY_NS);
	else
		do_without(lock, strerrordesc_np(-error), NULL);
}

/*
 * Between its bind(2) and listen(2), and in its last moment, a holder refuses; but not for long. One
 * whose queue is full listens, so that it may be one of us.
 */
static void try_again(struct node_lock *lock, int error)
{
	drop_socket(lock);
	if (error != -EAGAIN) {
		try_for(lock, &lock->refused_since_ns, SILENCE_NS, error);
		return;
	}
	if (lock->queued_since_ns == 0)
		log_warning("Too many processes want to connect to the name that instances lock, "
			    "waiting in the queue",
			    KV("name", LOG_STR(lock->config.name)));
	tell_waiting(lock);
	try_for(lock, &lock->queued_since_ns,
		lock->config.queue_ns > 0 ? lock->config.queue_ns : QUEUE_NS, error);
}

static void meet_holder(struct node_lock *lock)
{
	struct ucred who;
	int fd = connect_to(lock->config.name);

	if (fd < 0) {
		try_again(lock, fd);
		return;
	}
	lock->fd = fd;
	if (peer_of(fd, &who) < 0)
		try_again(lock, -errno);
	else if (!is_waited_for(who.uid, lock->uid))
		do_without(lock, "it is another user's", &who);
	else
		wait_for(lock, &who);
}

static void try_to_have(struct node_lock *lock)
{
	if (!try_to_bind(lock))
		meet_holder(lock);
}

static void on_timer(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	struct node_lock *lock = arg;

	if (!lock->mine)
		try_to_have(lock);
	else if (event_add(lock->readable, NULL) < 0)
		oom("an event", 0);
}

/* -- */

struct node_lock *node_lock_new(const struct node_lock_config *config)
{
	struct node_lock *lock = xcalloc(1, sizeof(*lock));

	lock->config = *config;
	lock->uid = geteuid();
	lock->fd = -1;
	lock->retry_ns = RETRY_NS;
	for (size_t kind = 0; kind < PEER_KINDS; kind++)
		for (size_t i = 0; i < PEERS; i++)
			lock->peers[kind][i] = (struct peer){lock, kind, -1, NULL};
	lock->timer = loop_timer(config->loop, on_timer, lock);
	try_to_have(lock);
	return lock;
}

struct node_lock *node_lock_free(struct node_lock *lock)
{
	if (!lock)
		return NULL;
	drop_socket(lock); /* first: whose connection ends finds the name free */
	for (size_t kind = 0; kind < PEER_KINDS; kind++)
		for (size_t i = 0; i < PEERS; i++)
			drop_peer(&lock->peers[kind][i]);
	loop_free(lock->timer);
	free(lock);
	return NULL;
}

void node_lock_take_over(struct node_lock *lock)
{
	if (lock->take_over)
		return;
	lock->take_over = true;
	if (!lock->mine && lock->fd >= 0)
		ask_to_end(lock);
}

bool node_lock_is_held(const char *name)
{
	cleanup_fd int fd = connect_to(name);
	struct ucred who;

	if (fd < 0)
		return fd == -EAGAIN;
	return peer_of(fd, &who) == 0 && is_waited_for(who.uid, geteuid());
}

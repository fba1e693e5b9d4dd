/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The other family of the process: a session that has its turn in front of the kernel until may_end is set.
 *
 *	neighbour_open(&neighbour, loop);
 *	neighbour_run(&neighbour);
 *	...; neighbour.may_end = true; ...
 *	nft_session_free(neighbour.session);
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/fiber.h"
#include "kernel/nft_session.h"
#include "kernel/nft_socket.h"

struct neighbour {
	struct nft_session *session;
	struct nft_task task;
	bool pauses, may_end, done;
};

static void neighbour_on_message(void *arg attr_unused, const struct nlmsghdr *message attr_unused)
{
}

static void neighbour_on_generation(void *arg attr_unused, uint32_t id attr_unused,
				    uint32_t pid attr_unused, const char *process attr_unused)
{
}

static void neighbour_on_own_generation(void *arg attr_unused, uint32_t id attr_unused)
{
}

static void neighbour_on_loss(void *arg attr_unused)
{
}

static void neighbour_have_turn(void *arg)
{
	struct neighbour *neighbour = arg;
	struct nft_socket *socket = nft_session_socket(neighbour->session);
	struct nft_listener *listener = nft_session_listener(neighbour->session);

	assert_int_equal(nft_socket_begin(socket), 0);
	if (neighbour->pauses)
		assert_true(nft_listener_pause(listener));
	while (!neighbour->may_end)
		fiber_breathe();
	if (neighbour->pauses)
		nft_listener_resume(listener, socket, NFT_PAUSE_SAME);
	nft_socket_end(socket);
}

static void neighbour_on_done(void *arg)
{
	struct neighbour *neighbour = arg;

	neighbour->done = true;
}

attr_unused static void neighbour_open(struct neighbour *neighbour, struct event_base *loop)
{
	static const struct nft_listener_events events = {
		neighbour_on_message, neighbour_on_generation, neighbour_on_own_generation,
		neighbour_on_loss};
	struct err err;

	*neighbour =
		(struct neighbour){.task = {neighbour_have_turn, neighbour_on_done, neighbour}};
	if (nft_session_open(loop, &events, neighbour, &neighbour->session, &err) < 0)
		fail_msg("%s", err.text);
}

attr_unused static void neighbour_run(struct neighbour *neighbour)
{
	nft_session_run(neighbour->session, &neighbour->task);
}

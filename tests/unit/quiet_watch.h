/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A watch (kernel/nft_watch.h) that hears nothing: no notification is about its rules. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernel/nft_watch.h"

static void quiet_message(void *arg attr_unused, const struct nlmsghdr *message attr_unused,
			  struct foreign_changes *changes attr_unused)
{
}

static void quiet_loss(void *arg attr_unused, struct foreign_changes *changes attr_unused)
{
}

static bool quiet_damaged(void *arg attr_unused)
{
	return false;
}

static void quiet_repair(void *arg attr_unused)
{
}

attr_unused static struct nft_watch *quiet_watch(struct event_base *loop)
{
	static const struct nft_watch_ops ops = {quiet_message, quiet_loss, quiet_damaged,
						 quiet_repair};
	struct nft_watch *watch;
	struct err err;

	if (nft_watch_open(loop, FAMILY_IPV4, &ops, NULL, &watch, &err) < 0)
		fail_msg("%s", err.text);
	return watch;
}

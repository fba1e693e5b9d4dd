/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Giving up, for good, what a process does not need: its user, capabilities, the gain of privileges
 * by programs, writing files (landlock) and system calls (seccomp).
 *
 * Each is done as far as the kernel lets it be done. What is not is told in `missing`, and nothing
 * fails for it: a container or a user namespace may have taken the means already.
 *
 * The user. 65534 ("nobody") owns nothing, so the kernel itself keeps this process from all files
 * that others may not read, and from signals to all processes but its own kind. Files that it will
 * read again later must therefore be readable to all: where one is not, a kubeconfig that only root
 * can read for instance, the process stays root, without root's capabilities. The other ways were to
 * keep CAP_DAC_READ_SEARCH, which reads every file of the machine, and to have them read by a helper,
 * which would have to be told of every file that a rotated kubeconfig may name.
 *
 * Threads that run at that moment, which resolve a name for instance, are held by the filter and become the
 * other user as well, and then have no capabilities at all. Where the user stays they keep theirs, until
 * they end.
 *
 * Root without capabilities still owns files and is believed by other programs of the machine. So one that
 * stays root opens no sockets of AF_UNIX, over which containers and services are started, and without
 * landlock no file for writing.
 */

#include "base/err.h"

#define SANDBOX_USER 65534

enum sandbox_mode {
	SANDBOX_OFF = 0,
	SANDBOX_LOG, /* as on, but system calls are only reported, by the kernel's audit log */
	SANDBOX_ON,
	SANDBOX_MODE_COUNT,
};

const char *sandbox_mode_name(enum sandbox_mode mode);
bool sandbox_mode_parse(const char *s, enum sandbox_mode *ret);

struct sandbox_spec {
	enum sandbox_mode mode;      /* not SANDBOX_OFF */
	uint64_t capabilities;       /* those to keep, where they are there */
	bool other_user;             /* become SANDBOX_USER; only when we are root */
	const char *const *writable; /* as landlock_enter() has it */
};

struct sandbox_state {
	uint64_t capabilities; /* that are left */
	unsigned int user;
	int landlock; /* version; 0: the kernel has none */
	bool filtered;
	char missing[256]; /* what could not be done, in words; "": nothing */
};

/*
 * Would it do to become SANDBOX_USER? 1: yes. 0: it could not read the file *ret_unreadable, which is the
 * first such one of n; those that are not there do not count. -EPERM: we cannot become another user here.
 */
int sandbox_try_user(const char *const *paths, size_t n, size_t *ret_unreadable);

/*
 * For the start of another user than root, whose capabilities come from the program's file: makes use of
 * them, and lets programs that are started have them.
 */
void sandbox_prepare(void);
void sandbox_enter(const struct sandbox_spec *spec, struct sandbox_state *ret);

/* For the process that starts programs (launcher.h), which keeps its user; as far as it can be done. */
void sandbox_enter_launcher(uint64_t capabilities);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * iptables programs that only pretend, in a folder of their own in front of PATH.
 *
 * Each writes its command line to a log. Chains and rules that were "created" are remembered, so
 * that -N, -C, -I, -D, -S and -X answer as the real ones would; iptables-save prints what the test
 * put there, and iptables-restore keeps its input. fake_answer() makes the next call, or every
 * call, that matches a pattern of the shell end in another way.
 */

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/text.h"
#include "base/util.h"

struct fake {
	char *folder;
	char *path; /* PATH as it was */
	int answers;
};

/* Few processes: a full sync calls it fifty times. */
static const char fake_script[] =
	"#!/bin/sh\n"
	"fake=${0%/bin/*}\n"
	"line=\"${0##*/} $*\"\n"
	"echo \"$line\" >>$fake/log\n"
	"case $line in *restore*) cat >$fake/input; cat $fake/input >>$fake/inputs;; esac\n"
	"for answer in $fake/answers/*; do\n"
	"  { read -r pattern && read -r status && read -r once && text=$(cat); } 2>/dev/null "
	"<$answer || continue\n"
	"  case $line in $pattern) ;; *) continue;; esac\n"
	"  [ $once = once ] && rm $answer\n"
	"  if [ $status = 0 ]; then echo \"$text\"; else echo \"$text\" >&2; fi\n"
	"  exit $status\n"
	"done\n"
	"case ${0##*/} in\n"
	"*save) cat $fake/save.$2 2>/dev/null; exit 0;;\n"
	"*restore) exit 0;;\n"
	"esac\n"
	"[ \"$1\" = --version ] && { cat $fake/version; exit 0; }\n"
	"[ \"$1\" = -w ] && shift\n"
	"[ \"$1\" = 5 ] && shift\n"
	"op=$1 chain=$2 table=$4; shift 4\n"
	"name=$fake/state/${0##*/}.$table.$chain\n"
	"rule=\"$name.$*\"\n"
	"case $op in\n"
	"-N) [ -e $name ] && exit 1; : >$name;;\n"
	"-S) [ -e $name ] || [ $chain = POSTROUTING ] || exit 1;;\n"
	"-X) [ -e $name ] || exit 1; rm $name;;\n"
	"-C) [ -e \"$rule\" ] || exit 1;;\n"
	"-I) : >\"$rule\";;\n"
	"-D) rm \"$rule\";;\n"
	"esac\n"
	"exit 0\n";

static inline char *fake_file(const struct fake *fake, const char *name)
{
	return xasprintf("%s/%s", fake->folder, name);
}

/* Writes a file of the folder, in one piece for those who read it; programs can be run. */
attr_unused static void fake_write(const struct fake *fake, const char *name, const char *content)
{
	cleanup_free char *path = fake_file(fake, name);
	cleanup_free char *temporary = fake_file(fake, "temporary");
	mode_t mode = has_prefix(name, "bin/") ? 0755 : 0644;
	int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, content, strlen(content)), strlen(content));
	close(fd);
	assert_int_equal(rename(temporary, path), 0);
}

/* A whole file, "" when there is none; for the caller to free. */
attr_unused static char *fake_read(const struct fake *fake, const char *name)
{
	cleanup_free char *path = fake_file(fake, name);
	cleanup_text struct text text = {0};
	char part[4096];
	size_t n;
	FILE *file = fopen(path, "re");

	while (file && (n = fread(part, 1, sizeof(part), file)) > 0)
		text_add(&text, part, n);
	if (file)
		fclose(file);
	return text_dup(&text);
}

attr_unused static void fake_remove(const struct fake *fake, const char *name)
{
	cleanup_free char *path = fake_file(fake, name);

	unlink(path);
}

attr_unused static bool fake_has(const struct fake *fake, const char *name)
{
	cleanup_free char *path = fake_file(fake, name);

	return access(path, F_OK) == 0;
}

/* Calls that match end with this status and text (on stdout when 0, else on stderr). The first
 * answer that matches counts. */
attr_unused static void fake_answer(struct fake *fake, const char *pattern, int status, bool once,
				    const char *text)
{
	cleanup_free char *name = xasprintf("answers/%03d", fake->answers++);
	cleanup_free char *content =
		xasprintf("%s\n%d\n%s\n%s\n", pattern, status, once ? "once" : "always", text);

	fake_write(fake, name, content);
}

attr_unused static void fake_no_answers(struct fake *fake)
{
	for (int i = 0; i < fake->answers; i++) {
		cleanup_free char *name = xasprintf("answers/%03d", i);

		fake_remove(fake, name);
	}
	fake->answers = 0;
}

attr_unused static void fake_start(struct fake *fake)
{
	static const char *const folders[] = {"bin", "answers", "state"};
	static const char *const programs[] = {
		"bin/iptables",  "bin/iptables-save",  "bin/iptables-restore",
		"bin/ip6tables", "bin/ip6tables-save", "bin/ip6tables-restore",
	};
	cleanup_free char *path = NULL;
	char template[] = "/tmp/portolan-test-XXXXXX";

	fake->answers = 0;
	fake->folder = xstrdup(mkdtemp(template));
	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		cleanup_free char *folder = fake_file(fake, folders[i]);

		assert_int_equal(mkdir(folder, 0755), 0);
	}
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++)
		fake_write(fake, programs[i], fake_script);
	fake_write(fake, "version", "iptables v1.8.9 (nf_tables)\n");
	fake->path = xstrdup(getenv("PATH"));
	path = xasprintf("%s/bin:%s", fake->folder, fake->path);
	setenv("PATH", path, 1);
}

attr_unused static void fake_stop(struct fake *fake)
{
	cleanup_free char *command = xasprintf("rm -rf '%s'", fake->folder);

	setenv("PATH", fake->path, 1);
	assert_int_equal(system(command), 0);
	free(fake->folder);
	free(fake->path);
}

/* What was called since the last time, one command line a line; for the caller to free. */
attr_unused static char *fake_log(const struct fake *fake)
{
	char *log = fake_read(fake, "log");

	fake_remove(fake, "log");
	return log;
}

attr_unused static void fake_expect_log(const struct fake *fake, const char *expected)
{
	cleanup_free char *log = fake_log(fake);

	assert_string_equal(log, expected);
}

static inline void fake_too_late(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	*(bool *)arg = true;
}

/* Turns the loop until *done; a test that waits longer than half a minute has failed. */
attr_unused static void fake_wait(struct event_base *loop, const bool *done)
{
	const struct timeval limit = {.tv_sec = 30};
	bool late = false;
	struct event *timer = evtimer_new(loop, fake_too_late, &late);

	evtimer_add(timer, &limit);
	while (!*done && !late)
		event_base_loop(loop, EVLOOP_ONCE);
	event_free(timer);
	assert_true(*done);
}

/* Moves this process into a network namespace of its own, or skips the test. */
attr_unused static void private_network(void)
{
	static bool moved;

	if (!moved && unshare(CLONE_NEWNET) < 0) {
		print_message("no private network namespace: %s\n", strerror(errno));
		skip();
	}
	moved = true;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Newer than the headers of the oldest system that this is built on (Linux 6.1). */
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif
#define SCOPE_SIGNAL (1ULL << 1) /* no signal to a process outside */

/* struct landlock_ruleset_attr as of version 6; an older kernel is given as much as it knows. */
struct ruleset {
	uint64_t handled_fs;
	uint64_t handled_net;
	uint64_t scoped;
};

/* What each version brought, of that which is forbidden here. */
static const struct {
	int version;
	uint64_t fs;
	uint64_t scoped;
	size_t size;
} versions[] = {
	{1,
	 LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE |
		 LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
		 LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR |
		 LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |
		 LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |
		 LANDLOCK_ACCESS_FS_MAKE_SYM,
	 0, 8},
	{2, LANDLOCK_ACCESS_FS_REFER, 0, 8},
	{3, LANDLOCK_ACCESS_FS_TRUNCATE, 0, 8},
	{6, 0, SCOPE_SIGNAL, 24},
};

static int allow_writing(int ruleset, const char *path, uint64_t handled)
{
	cleanup_fd int fd = open(path, O_PATH | O_CLOEXEC);
	struct landlock_path_beneath_attr rule = {
		.allowed_access =
			handled & (LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_TRUNCATE),
		.parent_fd = fd,
	};

	if (fd < 0)
		return 0; /* it is not there */
	return syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0
		       ? -errno
		       : 0;
}

static int enter(int version, const char *const *writable)
{
	struct ruleset all = {0};
	size_t size = 0;
	cleanup_fd int ruleset = -1;
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(versions) && versions[i].version <= version; i++) {
		all.handled_fs |= versions[i].fs;
		all.scoped |= versions[i].scoped;
		size = versions[i].size;
	}
	ruleset = (int)syscall(SYS_landlock_create_ruleset, &all, size, 0);
	if (ruleset < 0)
		return -errno;
	for (; *writable && r == 0; writable++)
		r = allow_writing(ruleset, *writable, all.handled_fs);
	if (r == 0 && syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
		r = -errno;
	return r;
}

int landlock_enter(const char *const *writable, struct err *err)
{
	long version =
		syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	int r;

	if (version < 0)
		return errno == ENOSYS || errno == EOPNOTSUPP
			       ? 0
			       : err_sys(err, -errno, "asking for landlock");
	r = enter((int)version, writable);
	return r < 0 ? err_sys(err, r, "entering landlock") : (int)version;
}

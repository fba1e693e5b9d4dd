/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/xtables_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Closes what could not be locked. */
static int refused(int fd, int code, int held, const char *name, struct err *err)
{
	close(fd);
	if (code == held)
		return err_set(err, -EAGAIN, "the iptables lock %s is held by another program",
			       name);
	return err_sys(err, -code, "taking the iptables lock %s", name);
}

static int lock_file(const char *path, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT)
		fd = open(path, O_RDONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_sys(err, -errno, "opening the iptables lock %s", path);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return refused(fd, errno, EWOULDBLOCK, path, err);
	return fd;
}

static int lock_socket(const char *name, struct err *err)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t n = MIN(strlen(name), sizeof(address.sun_path) - 2);
	char shown[sizeof(address.sun_path)] = "@";
	int fd;

	memcpy(address.sun_path + 1, name, n);
	memcpy(shown + 1, name, n);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_sys(err, -errno, "opening the iptables lock %s", shown);
	if (bind(fd, (const struct sockaddr *)&address,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n)) < 0)
		return refused(fd, errno, EADDRINUSE, shown, err);
	return fd;
}

int xtables_lock_try(struct xtables_lock *lock, const char *file, const char *socket_name,
		     struct err *err)
{
	int fd;

	if (lock->file < 0) {
		fd = lock_file(file, err);
		if (fd < 0)
			return fd;
		lock->file = fd;
	}
	if (lock->socket < 0) {
		fd = lock_socket(socket_name, err);
		if (fd < 0)
			return fd;
		lock->socket = fd;
	}
	return 0;
}

void xtables_lock_release(struct xtables_lock *lock)
{
	util_close_fd(&lock->socket);
	util_close_fd(&lock->file);
	lock->file = lock->socket = -1;
}

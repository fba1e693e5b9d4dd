/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/sysctl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define DISABLE_IPV6 "net/ipv6/conf/all/disable_ipv6"

static const char *proc = "/proc";

void sysctl_set_proc(const char *path)
{
	proc = path ? path : "/proc";
}

bool sysctl_proc_exists(const char *name)
{
	cleanup_free char *path = xasprintf("%s/%s", proc, name);

	return access(path, F_OK) == 0;
}

static int sysctl_open(const char *name, int flags)
{
	cleanup_free char *path = xasprintf("%s/sys/%s", proc, name);
	int fd = open(path, flags | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int sysctl_read(const char *name, int64_t *ret, struct err *err)
{
	cleanup_fd int fd = sysctl_open(name, O_RDONLY);
	char text[64];
	char *end;
	long long value;
	ssize_t n;

	if (fd < 0)
		return err_sys(err, fd, "reading sysctl '%s'", name);
	n = read(fd, text, sizeof(text) - 1);
	if (n < 0)
		return err_sys(err, -errno, "reading sysctl '%s'", name);
	text[n] = '\0';
	errno = 0;
	value = strtoll(text, &end, 10);
	if (end == text || errno != 0 || (*end != '\0' && *end != '\n'))
		return err_set(err, -EINVAL, "sysctl '%s' is not a number", name);
	*ret = value;
	return 0;
}

int sysctl_write(const char *name, int64_t value, struct err *err)
{
	cleanup_fd int fd = sysctl_open(name, O_WRONLY);
	char text[32];
	int n = snprintf(text, sizeof(text), "%lld", (long long)value);
	ssize_t written;

	if (fd < 0)
		return err_sys(err, fd, "setting sysctl '%s' to %s", name, text);
	written = write(fd, text, (size_t)n);
	if (written != n)
		return err_sys(err, written < 0 ? -errno : -EIO, "setting sysctl '%s' to %s", name,
			       text);
	return 0;
}

int sysctl_ensure(const char *name, int64_t value, struct err *err)
{
	int64_t now = 0;
	int r = sysctl_read(name, &now, err);

	if (r < 0)
		return r;
	if (now == value)
		return 0;
	r = sysctl_write(name, value, err);
	return r < 0 ? r : 1;
}

bool sysctl_has_ipv6(struct err *err)
{
	struct err ignored;
	int64_t disabled = 0;

	if (!sysctl_proc_exists("net/if_inet6")) {
		err_set(err, -EAFNOSUPPORT, "the kernel has no IPv6");
		return false;
	}
	if (sysctl_read(DISABLE_IPV6, &disabled, &ignored) >= 0 && disabled == 1) {
		err_set(err, -EAFNOSUPPORT, "IPv6 is turned off (sysctl %s)", DISABLE_IPV6);
		return false;
	}
	return true;
}

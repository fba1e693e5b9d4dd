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

int sysctl_read_file(const char *path, int64_t *ret)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[64];
	char *end;
	long long value;
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (n < 0)
		return -errno;
	text[n] = '\0';
	errno = 0;
	value = strtoll(text, &end, 10);
	if (end == text || errno != 0 || (*end != '\0' && *end != '\n'))
		return -EINVAL;
	*ret = value;
	return 0;
}

int sysctl_write_file(const char *path, int64_t value)
{
	cleanup_fd int fd = open(path, O_WRONLY | O_CLOEXEC);
	char text[32];
	int n = snprintf(text, sizeof(text), "%lld", (long long)value);
	ssize_t written = fd < 0 ? -1 : write(fd, text, (size_t)n);

	if (written < 0)
		return -errno;
	return written == n ? 0 : -EIO;
}

int sysctl_read(const char *name, int64_t *ret, struct err *err)
{
	cleanup_free char *path = xasprintf("%s/sys/%s", proc, name);
	int r = sysctl_read_file(path, ret);

	if (r == -EINVAL)
		return err_set(err, r, "sysctl '%s' is not a number", name);
	return r < 0 ? err_sys(err, r, "reading sysctl '%s'", name) : 0;
}

int sysctl_write(const char *name, int64_t value, struct err *err)
{
	cleanup_free char *path = xasprintf("%s/sys/%s", proc, name);
	int r = sysctl_write_file(path, value);

	return r < 0 ? err_sys(err, r, "setting sysctl '%s' to %lld", name, (long long)value) : 0;
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

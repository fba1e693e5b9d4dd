/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/capabilities.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
	int number;
	const char *name;
} names[] = {
	{CAP_NET_ADMIN, "NET_ADMIN"},
	{CAP_NET_RAW, "NET_RAW"},
	{CAP_NET_BIND_SERVICE, "NET_BIND_SERVICE"},
};

/* Two halves: a kernel of today has more than 32 capabilities. */
static int get(struct __user_cap_data_struct data[static 2])
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};

	return syscall(SYS_capget, &header, data) < 0 ? -errno : 0;
}

uint64_t capabilities_permitted(void)
{
	struct __user_cap_data_struct data[2] = {0};

	if (get(data) < 0)
		return 0;
	return data[0].permitted | (uint64_t)data[1].permitted << 32;
}

int capabilities_bound(uint64_t keep, struct err *err)
{
	/* those that the kernel does not have end the loop with EINVAL */
	for (int number = 0; number < 64 && prctl(PR_CAPBSET_READ, number) >= 0; number++) {
		if (keep & capability_bit(number) || prctl(PR_CAPBSET_READ, number) == 0)
			continue;
		if (prctl(PR_CAPBSET_DROP, number, 0, 0, 0) < 0)
			return err_sys(err, -errno, "capability %d cannot be given up for good",
				       number);
	}
	return 0;
}

static int set_capabilities(uint64_t set, bool inheritable)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {0};

	for (int half = 0; half < 2; half++) {
		data[half].permitted = data[half].effective = (uint32_t)(set >> (32 * half));
		data[half].inheritable = inheritable ? data[half].permitted : 0;
	}
	return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

int capabilities_keep(uint64_t keep, bool pass_on, struct err *err)
{
	uint64_t set = capabilities_permitted() & keep;
	int r = set_capabilities(set, pass_on); /* what is not inheritable is not ambient either */

	if (r < 0)
		return err_sys(err, r, "changing capabilities");
	for (int number = 0; number < 64 && pass_on; number++)
		if (set & capability_bit(number))
			prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, number, 0, 0);
	return 0;
}

const char *capabilities_print(uint64_t set, char text[static CAPABILITIES_TEXT_MAX])
{
	size_t n = 0;

	snprintf(text, CAPABILITIES_TEXT_MAX, "none");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (!(set & capability_bit(names[i].number)))
			continue;
		set &= ~capability_bit(names[i].number);
		n += (size_t)snprintf(text + n, CAPABILITIES_TEXT_MAX - n, "%s%s", n > 0 ? "," : "",
				      names[i].name);
	}
	if (set)
		snprintf(text + n, CAPABILITIES_TEXT_MAX - n, "%s+%d others", n > 0 ? "," : "",
			 __builtin_popcountll(set));
	return text;
}

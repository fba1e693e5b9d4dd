/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/detector.h"

#include <ctype.h>
#include <errno.h>

static const char *const mode_names[] = {
	[DETECT_CLUSTER_CIDR] = "ClusterCIDR",
	[DETECT_NODE_CIDR] = "NodeCIDR",
	[DETECT_BRIDGE_INTERFACE] = "BridgeInterface",
	[DETECT_INTERFACE_NAME_PREFIX] = "InterfaceNamePrefix",
};
_Static_assert(ARRAY_SIZE(mode_names) == DETECT_MODE_COUNT, "each mode has a name");

int detect_mode_parse(const char *name, enum detect_mode *ret)
{
	return word_parse(name, mode_names, ret) ? 0 : -EINVAL;
}

const char *detect_mode_name(enum detect_mode mode)
{
	return mode < DETECT_MODE_COUNT ? mode_names[mode] : "unknown";
}

static void from_cidrs(enum family family, const struct prefix *cidrs, size_t n_cidrs,
		       struct detector *ret)
{
	*ret = (struct detector){.kind = DETECTOR_NONE};
	for (size_t i = 0; i < n_cidrs; i++) {
		if (cidrs[i].addr.family == family) {
			ret->kind = DETECTOR_CIDR;
			ret->cidr = cidrs[i];
			return;
		}
	}
}

/* No interface can have these in its name, or iptables-restore could not read it back. */
static bool name_is_plain(const char *name)
{
	for (const char *c = name; *c; c++)
		if (!isgraph((unsigned char)*c) || strchr("/:\"'\\!", *c))
			return false;
	return true;
}

static int from_interface(enum detect_mode mode, const char *name, struct detector *ret,
			  struct err *err)
{
	bool prefix = mode == DETECT_INTERFACE_NAME_PREFIX;
	const char *what = prefix ? "interface name prefix" : "bridge interface name";
	size_t max =
		sizeof(ret->interface) - 1 - prefix; /* rules write a prefix with a '+' behind */

	if (!name || !*name)
		return err_set(err, -EINVAL, "local traffic detection by %s needs a %s",
			       detect_mode_name(mode), what);
	if (strlen(name) > max)
		return err_set(err, -ENAMETOOLONG, "%s \"%s\" is longer than %zu characters", what,
			       name, max);
	if (!name_is_plain(name))
		return err_set(err, -EINVAL,
			       "%s \"%s\" has a character that no interface name can have", what,
			       name);
	*ret = (struct detector){.kind = prefix ? DETECTOR_INTERFACE : DETECTOR_BRIDGE};
	memcpy(ret->interface, name, strlen(name) + 1);
	return 0;
}

int detector_make(enum detect_mode mode, enum family family, const struct prefix *cidrs,
		  size_t n_cidrs, const char *interface, struct detector *ret, struct err *err)
{
	switch (mode) {
	case DETECT_CLUSTER_CIDR:
	case DETECT_NODE_CIDR:
		from_cidrs(family, cidrs, n_cidrs, ret);
		return 0;
	case DETECT_BRIDGE_INTERFACE:
	case DETECT_INTERFACE_NAME_PREFIX:
		return from_interface(mode, interface, ret, err);
	default:
		return err_set(err, -EINVAL, "unknown mode of local traffic detection");
	}
}

bool detector_local_match_all(const struct detector *detector)
{
	return detector->kind == DETECTOR_CIDR && detector->cidr.length == 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How traffic of this node's own pods is told from other traffic. */

#include "base/addr.h"
#include "base/err.h"

enum detector_kind {
	DETECTOR_NONE = 0,
	DETECTOR_CIDR,      /* source address within a prefix (ClusterCIDR and NodeCIDR) */
	DETECTOR_BRIDGE,    /* input interface by name */
	DETECTOR_INTERFACE, /* input interface by the start of its name */
	DETECTOR_COUNT,
};

struct detector {
	enum detector_kind kind;
	struct prefix cidr;
	char interface[16]; /* name or start of name; the kernel's IFNAMSIZ */
};

enum detect_mode {
	DETECT_CLUSTER_CIDR = 0,
	DETECT_NODE_CIDR,
	DETECT_BRIDGE_INTERFACE,
	DETECT_INTERFACE_NAME_PREFIX,
	DETECT_MODE_COUNT,
};

int detect_mode_parse(const char *name, enum detect_mode *ret); /* "ClusterCIDR", ...; -EINVAL */
const char *detect_mode_name(enum detect_mode mode);

/*
 * The detector of one family. CIDR modes take the first prefix of that family from `cidrs` (none:
 * no detector); interface modes take `interface` for both families: a name has at most 15
 * characters, a prefix 14. -EINVAL or -ENAMETOOLONG for one that no interface can have.
 */
int detector_make(enum detect_mode mode, enum family family, const struct prefix *cidrs,
		  size_t n_cidrs, const char *interface, struct detector *ret, struct err *err);

/*
 * Is everything local: a CIDR of length 0? Then a rule for local traffic needs no match (-s
 * 0.0.0.0/0 is one that always holds), and a rule for traffic that is not local must be left out:
 * nothing could meet it, and the kernel refuses the zero-length match that "! -s 0.0.0.0/0"
 * becomes, and with it everything written in the same transaction. kube-proxy has that failure;
 * Portolan does not.
 */
bool detector_local_match_all(const struct detector *detector);

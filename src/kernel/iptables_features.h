/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a version of the iptables programs can do. */

#include "base/util.h"

enum iptables_wait {
	IPTABLES_WAIT_NONE = 0, /* no flag: a restore takes the locks itself */
	IPTABLES_WAIT_PLAIN,    /* -w */
	IPTABLES_WAIT_SECONDS,  /* -w 5 */
	IPTABLES_WAIT_COUNT,
};

struct iptables_features {
	bool check; /* -C; without it a rule is looked for in the output of iptables-save */
	bool random_fully;
	enum iptables_wait wait;
	enum iptables_wait restore_wait;
};

/*
 * version: output of "iptables --version"; restore_version: that of "iptables-restore --version",
 * asked for only below 1.6.2 (NULL: not asked, or failed). Output without a version means: no
 * feature at all.
 */
void iptables_features_init(struct iptables_features *features, const char *version,
			    const char *restore_version);

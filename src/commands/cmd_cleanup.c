/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <stdio.h>

#include "backends/backend.h"
#include "commands/command.h"
#include "daemon/node_lock.h"

/* 1: cleaned, 0: a mode is not usable for the family on this host (reason in *err), negative: failed. */
static int clean_family(enum family family, struct backend_host *const *hosts, struct err *err)
{
	int all = 1;

	for (size_t i = 0; backend_modes[i]; i++) {
		struct err reason;
		int r = backend_modes[i]->cleanup(hosts[i], family, 0, &reason);

		if (r >= 0)
			continue;
		if (all > 0 || r != -EOPNOTSUPP)
			*err = reason;
		all = r == -EOPNOTSUPP ? MIN(all, 0) : r;
	}
	return all;
}

static void open_hosts(const struct config *config, struct backend_host **hosts)
{
	for (size_t i = 0; backend_modes[i]; i++)
		if (backend_modes[i]->open_host)
			hosts[i] = backend_modes[i]->open_host(&config->mode, 2);
}

static void close_hosts(struct backend_host **hosts)
{
	for (size_t i = 0; backend_modes[i]; i++)
		if (hosts[i])
			backend_modes[i]->close_host(hosts[i]);
}

/* A family that the host does not have is said and no failure, for it can hold no rules that work;
 * but one of them it must have. */
int cmd_cleanup_all(const struct call *call)
{
	const char *who = commands[call->id].name;
	struct backend_host *hosts[BACKEND_MODES_MAX] = {0};
	int exit_code = EXIT_DONE;
	size_t n_usable = 0;
	bool usable[FAMILY_COUNT];
	struct err errors[FAMILY_COUNT];

	if (node_lock_is_held(NODE_LOCK_NAME))
		fprintf(stderr,
			"portolan %s: an instance of Portolan runs on this node and may write the "
			"rules "
			"again: end it first\n",
			who);
	open_hosts(&call->config, hosts);
	for (enum family family = 0; family < FAMILY_COUNT; family++) {
		int r = clean_family(family, hosts, &errors[family]);

		usable[family] = r != 0;
		n_usable += r != 0;
		if (r < 0) {
			fprintf(stderr, "portolan %s: removing the %s rules: %s\n", who,
				family_name(family), errors[family].text);
			exit_code = EXIT_FAILED;
		}
	}
	close_hosts(hosts);
	if (n_usable == 0) {
		fprintf(stderr, "portolan %s: no rules can be read on this host: %s\n", who,
			errors[FAMILY_IPV4].text);
		exit_code = EXIT_FAILED;
	}
	for (enum family family = 0; n_usable > 0 && family < FAMILY_COUNT; family++)
		if (!usable[family])
			fprintf(stderr, "portolan %s: no %s rules can be read on this host: %s\n",
				who, family_name(family), errors[family].text);
	return exit_code;
}

int cmd_cleanup(struct call *call)
{
	return call_is_wrong(call) ? EXIT_USAGE : cmd_cleanup_all(call);
}

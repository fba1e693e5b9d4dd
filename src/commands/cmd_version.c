/* SPDX-License-Identifier: Apache-2.0 */

#include <event2/event.h>
#include <stdio.h>

#include "commands/command.h"

void cmd_version_print(bool raw)
{
	if (!raw) {
		printf("Portolan v%s (kube-proxy of Kubernetes %s)\n", PORTOLAN_VERSION,
		       KUBERNETES_VERSION);
		return;
	}
	printf("version: v%s\nkubernetes: %s\ncompiler: %s\nlibevent: %s\n", PORTOLAN_VERSION,
	       KUBERNETES_VERSION, __VERSION__, event_get_version());
}

int cmd_version(struct call *call)
{
	int r = command_parse(call);

	if (r != EXIT_DONE)
		return r == COMMAND_ANSWERED ? EXIT_DONE : r;
	cmd_version_print(false);
	return EXIT_DONE;
}

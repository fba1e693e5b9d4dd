/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bytes as the lines of iptables-save, compared with an explanation.
 *
 *	meson setup -Dfuzz=true build-fuzz && ninja -C build-fuzz fuzz_saved_rules
 *	build-fuzz/tests/fuzz/fuzz_saved_rules tests/fuzz/corpus/saved_rules
 */

#include <assert.h>
#include <stdlib.h>

#include "inspect/diff_explanation.h"
#include "inspect/diff_iptables.h"
#include "inspect/kernel_rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A path of one jump, from PREROUTING to a chain of ours. */
static void compare(struct kernel_rules *saved)
{
	struct rule_store *rules = rule_store_new(FAMILY_IPV4);
	struct explanation *explanation = xcalloc(1, sizeof(*explanation));
	cleanup_diff struct diff diff = {0};
	const struct host host = {0};
	struct packet packet = {.port = 80, .interface = "eth0"};

	assert(addr_parse("192.0.2.1", &packet.source) == 0);
	assert(addr_parse("10.96.0.10", &packet.destination) == 0);
	iptables_rules_jumps(rules);
	explanation->path = iptables_rules_walk(rules, &packet, &host);
	explanation->summary = xstrdup("");
	diff_iptables_compare(&diff, rules, saved);
	diff_explanation_tell(&diff, explanation);
	assert((diff.n > 0) == (explanation->kernel == KERNEL_DIFFERS));
	explanation_free(explanation);
	rule_store_free(rules);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_free char *text = xasprintf("%.*s", (int)size, (const char *)data);
	struct kernel_rules *saved = kernel_rules_new(FAMILY_IPV4);
	char *rest = text, *line;

	while ((line = strsep(&rest, "\n")))
		kernel_rules_line(saved, line);
	compare(saved);
	kernel_rules_free(saved);
	return 0;
}

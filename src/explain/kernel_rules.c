/* SPDX-License-Identifier: Apache-2.0 */
#include "explain/kernel_rules.h"

#include <stdlib.h>

void kernel_rules_note(struct explanation *explanation, char *words)
{
	array_grow(&explanation->kernel_notes, &explanation->kernel_notes_capacity,
		   explanation->n_kernel_notes, sizeof(char *));
	explanation->kernel_notes[explanation->n_kernel_notes++] = words;
}

static bool any_step_differs(const struct way *way)
{
	for (size_t i = 0; i < way->n_outcomes; i++)
		for (size_t j = 0; j < way->outcomes[i].n_steps; j++)
			if (way->outcomes[i].steps[j].kernel)
				return true;
	return false;
}

/* What was said is what should be, and a person must not take it for what is. */
static void set_differs(struct explanation *explanation)
{
	char *summary = xasprintf("As planned: %s But the kernel's rules differ, so it may not be "
				  "so.",
				  explanation->summary);

	free(explanation->summary);
	explanation->summary = summary;
	explanation->kernel = KERNEL_DIFFERS;
}

int kernel_rules_compare(struct explain *explain, struct explanation *explanation,
			 enum iptables_variant variant, struct err *err)
{
	int r = explain_iptables(explain)
			? kernel_iptables_compare(explain, explanation, variant, err)
			: kernel_nftables_compare(explain, explanation, err);

	if (r < 0)
		return err_wrap(err, r, "reading the kernel's rules");
	explanation->kernel = KERNEL_SAME;
	if (explanation->n_kernel_notes > 0 || any_step_differs(explanation->way))
		set_differs(explanation);
	return 0;
}

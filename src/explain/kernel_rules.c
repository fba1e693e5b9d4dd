/* SPDX-License-Identifier: Apache-2.0 */
#include "explain/kernel_rules.h"

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

int kernel_rules_compare(struct explain *explain, struct explanation *explanation,
			 enum iptables_variant variant, struct err *err)
{
	int r = explain_iptables(explain)
			? kernel_iptables_compare(explain, explanation, variant, err)
			: kernel_nftables_compare(explain, explanation, err);

	if (r < 0)
		return err_wrap(err, r, "reading the kernel's rules");
	explanation->kernel = explanation->n_kernel_notes > 0 || any_step_differs(explanation->way)
				      ? KERNEL_DIFFERS
				      : KERNEL_SAME;
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/diff_explanation.h"

#include <stdlib.h>

#include "backends/backend.h"
#include "inspect/inspect_ops.h"

/* -- where a difference is told */

static bool is_chain(const struct diff_hunk *hunk)
{
	return streq(hunk->place.kind, "chain");
}

/* NULL: the step is about something else. */
static const char *words_at(const struct step *step, const struct diff_hunk *hunk, const char *line,
			    bool declaration)
{
	if (!is_chain(hunk))
		return step->map && step->element && streq(step->map, hunk->place.name) &&
				       (declaration || streq(step->element, line))
			       ? "this element is missing"
			       : NULL;
	if (!streq(step->table, hunk->place.table) || !streq(step->chain, hunk->place.name))
		return NULL;
	if (declaration)
		return "there is no such chain";
	return step->rule && streq(step->rule, line) ? "this rule is missing" : NULL;
}

static bool tell_steps(struct packet_path *path, const struct diff_hunk *hunk, const char *line,
		       bool declaration)
{
	bool told = false;

	for (size_t i = 0; i < path->n_outcomes; i++) {
		for (size_t j = 0; j < path->outcomes[i].n_steps; j++) {
			struct step *step = &path->outcomes[i].steps[j];
			const char *words = words_at(step, hunk, line, declaration);

			if (!words)
				continue;
			step->kernel = words;
			told = true;
		}
	}
	return told;
}

static void add_note(struct explanation *explanation, char *words)
{
	array_grow(&explanation->kernel_notes, &explanation->kernel_notes_capacity,
		   explanation->n_kernel_notes, sizeof(char *));
	explanation->kernel_notes[explanation->n_kernel_notes++] = words;
}

/* -- in words */

static void tell_line(struct explanation *explanation, const struct diff_hunk *hunk,
		      const struct diff_line *line)
{
	const struct diff_place *place = &hunk->place;
	const char *what = is_chain(hunk) ? "a rule" : "an element";

	if (line->sign == '+')
		add_note(explanation, xasprintf("%s %s has %s that is not planned: %s", place->kind,
						place->name, what, line->text));
	else if (line->sign == '-' && !tell_steps(explanation->path, hunk, line->text, false))
		add_note(explanation, xasprintf("%s %s lacks %s: %s", place->kind, place->name,
						what, line->text));
}

/* A chain, map or set as a whole. */
static void tell_declaration(struct explanation *explanation, const struct diff_hunk *hunk,
			     const struct diff_line *line)
{
	const struct diff_place *place = &hunk->place;

	if (line->sign == '+')
		add_note(explanation, xasprintf("there is a %s %s that is not planned: %s",
						place->kind, place->name, line->text));
	else if (!tell_steps(explanation->path, hunk, line->text, true))
		add_note(explanation, xasprintf("there is no %s %s", place->kind, place->name));
}

/* A base chain that hangs elsewhere: both declarations, and maybe rules behind them. */
static bool is_moved(const struct diff_hunk *hunk)
{
	return hunk->n_lines > 1 && hunk->v[0].sign == '-' && hunk->v[1].sign == '+';
}

static void tell_hunk(struct explanation *explanation, const struct diff_hunk *hunk)
{
	bool declaration = hunk->first[DIFF_WANTED] == 0 && hunk->first[DIFF_KERNEL] == 0;
	size_t from = 0;

	if (declaration && !is_moved(hunk)) {
		tell_declaration(explanation, hunk, &hunk->v[0]);
		return;
	}
	if (declaration) {
		add_note(explanation,
			 xasprintf("%s %s hangs elsewhere than planned: %s", hunk->place.kind,
				   hunk->place.name, hunk->v[1].text));
		from = 2;
	}
	for (size_t i = from; i < hunk->n_lines; i++)
		tell_line(explanation, hunk, &hunk->v[i]);
}

/* Whether the packet matches it is not looked at. */
static bool tell_obstacle(struct explanation *explanation, const struct diff_obstacle *obstacle)
{
	add_note(explanation,
		 xasprintf("a rule of another program stands before ours in %s%s: %s",
			   obstacle->chain, obstacle->ends ? " and may take the packet away" : "",
			   obstacle->text));
	return obstacle->ends;
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

void diff_explanation_tell(const struct diff *diff, struct explanation *explanation)
{
	bool differs = diff->n > 0;

	explanation->kernel = KERNEL_SAME;
	for (size_t i = 0; i < diff->n; i++)
		tell_hunk(explanation, &diff->v[i]);
	for (size_t i = 0; i < diff->n_obstacles; i++)
		differs |= tell_obstacle(explanation, &diff->obstacles[i]);
	if (differs)
		set_differs(explanation);
}

int diff_explanation(struct explanation *explanation, const struct backend_host *backend_host,
		     struct err *err)
{
	const struct explain_input *input = explanation->input;
	struct inspect_question question = {
		.settings = input->settings,
		.host = &input->host,
		.backend_host = backend_host,
		.packet = &explanation->path->packet,
	};
	cleanup_plan_once struct plan_once once;
	cleanup_diff struct diff diff = {0};
	int r;

	plan_once_take(&once, input->settings, input->model);
	question.delta = once.delta;
	r = input->backend->inspect->diff(&diff, &question, err);
	if (r < 0)
		return err_wrap(err, r, "reading the kernel's rules");
	diff_explanation_tell(&diff, explanation);
	return 0;
}

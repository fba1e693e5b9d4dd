/* SPDX-License-Identifier: Apache-2.0 */
#include "base/doc.h"
#include "inspect/diff.h"

#define RED   "\033[31m"
#define GREEN "\033[32m"
#define CYAN  "\033[36m"
#define BOLD  "\033[1m"
#define PLAIN "\033[0m"

static const char *family_word(enum family family)
{
	return family == FAMILY_IPV4 ? "ipv4" : "ipv6";
}

/* -- for people */

struct painter {
	struct text *text;
	bool colour;
};

static void begin(const struct painter *painter, const char *colour)
{
	if (painter->colour)
		text_str(painter->text, colour);
}

static void end(const struct painter *painter)
{
	text_str(painter->text, painter->colour ? PLAIN "\n" : "\n");
}

static void put_table(const struct painter *painter, const struct diff_place *place)
{
	begin(painter, BOLD);
	text_printf(painter->text, "--- wanted/%s/%s", family_word(place->family), place->table);
	end(painter);
	begin(painter, BOLD);
	text_printf(painter->text, "+++ kernel/%s/%s", family_word(place->family), place->table);
	end(painter);
}

/* Of no lines at all a diff names the line before. */
static size_t shown_first(const struct diff_hunk *hunk, enum diff_side side)
{
	size_t first = hunk->first[side];

	return hunk->n[side] == 0 && first > 0 ? first - 1 : first;
}

static void put_heading(const struct painter *painter, const struct diff_hunk *hunk)
{
	begin(painter, CYAN);
	text_printf(painter->text, "@@ -%zu,%zu +%zu,%zu @@ %s %s", shown_first(hunk, DIFF_WANTED),
		    hunk->n[DIFF_WANTED], shown_first(hunk, DIFF_KERNEL), hunk->n[DIFF_KERNEL],
		    hunk->place.kind, hunk->place.name);
	if (hunk->service)
		text_printf(painter->text, ", service %s", hunk->service);
	end(painter);
}

static void put_line(const struct painter *painter, const struct diff_line *line)
{
	if (line->sign != ' ')
		begin(painter, line->sign == '-' ? RED : GREEN);
	text_printf(painter->text, "%c%s", line->sign, line->text);
	if (line->sign != ' ')
		end(painter);
	else
		text_str(painter->text, "\n");
}

static bool same_table(const struct diff_place *a, const struct diff_place *b)
{
	return a->family == b->family && streq(a->table, b->table);
}

void diff_human(const struct diff *diff, bool colour, struct text *ret)
{
	const struct painter painter = {ret, colour};

	for (size_t i = 0; i < diff->n; i++) {
		const struct diff_hunk *hunk = &diff->v[i];

		if (i == 0 || !same_table(&hunk->place, &diff->v[i - 1].place))
			put_table(&painter, &hunk->place);
		put_heading(&painter, hunk);
		for (size_t j = 0; j < hunk->n_lines; j++)
			put_line(&painter, &hunk->v[j]);
	}
}

/* -- for programs */

static void put_lines(struct doc *doc, const char *key, const struct diff_hunk *hunk, char sign)
{
	doc_open_list(doc, key);
	for (size_t i = 0; i < hunk->n_lines; i++)
		if (hunk->v[i].sign == sign)
			doc_string(doc, NULL, hunk->v[i].text);
	doc_close(doc);
}

void diff_doc(const struct diff *diff, struct doc *doc)
{
	doc_open_list(doc, "differences");
	for (size_t i = 0; i < diff->n; i++) {
		const struct diff_hunk *hunk = &diff->v[i];

		doc_open_map(doc, NULL);
		doc_string(doc, "family", family_word(hunk->place.family));
		doc_string(doc, "table", hunk->place.table);
		doc_string(doc, "kind", hunk->place.kind);
		doc_string(doc, "name", hunk->place.name);
		doc_string(doc, "service", hunk->service);
		doc_number(doc, "wantedLine", hunk->first[DIFF_WANTED]);
		doc_number(doc, "kernelLine", hunk->first[DIFF_KERNEL]);
		put_lines(doc, "missing", hunk, '-');
		put_lines(doc, "unwanted", hunk, '+');
		doc_close(doc);
	}
	doc_close(doc);
}

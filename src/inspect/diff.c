/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/diff.h"

#include <stdlib.h>

#include "base/map.h"

#define CONTEXT 3
/* Most comparisons of lines with lines; what is larger, behind what both sides begin and end with,
 * counts as replaced. Some 16 MiB. */
#define TABLE_MOST (4u << 20)

static void hunk_done(struct diff_hunk *hunk)
{
	for (size_t i = 0; i < hunk->n_lines; i++)
		free(hunk->v[i].text);
	free(hunk->v);
	free((char *)hunk->place.table);
	free((char *)hunk->place.kind);
	free((char *)hunk->place.name);
	free(hunk->service);
}

void diff_done(struct diff *diff)
{
	for (size_t i = 0; i < diff->n; i++)
		hunk_done(&diff->v[i]);
	free(diff->v);
	for (size_t i = 0; i < diff->n_obstacles; i++) {
		free(diff->obstacles[i].chain);
		free(diff->obstacles[i].text);
	}
	free(diff->obstacles);
	*diff = (struct diff){0};
}

void diff_move(struct diff *diff, struct diff *from)
{
	for (size_t i = 0; i < from->n; i++) {
		array_grow(&diff->v, &diff->capacity, diff->n, sizeof(*diff->v));
		diff->v[diff->n++] = from->v[i];
	}
	for (size_t i = 0; i < from->n_obstacles; i++) {
		array_grow(&diff->obstacles, &diff->obstacles_capacity, diff->n_obstacles,
			   sizeof(*diff->obstacles));
		diff->obstacles[diff->n_obstacles++] = from->obstacles[i];
	}
	from->n = from->n_obstacles = 0;
	diff_done(from);
}

struct diff_text *diff_texts_add(struct diff_texts *texts, const char *key, const char *text,
				 const char *service)
{
	array_grow(&texts->v, &texts->capacity, texts->n, sizeof(*texts->v));
	texts->v[texts->n] = (struct diff_text){.key = key, .text = text, .service = service};
	return &texts->v[texts->n++];
}

void diff_texts_done(struct diff_texts *texts)
{
	free(texts->v);
	*texts = (struct diff_texts){0};
}

/* -- hunks */

/* A copy that cannot tell a terminal anything: names and comments in the kernel may have any byte. */
static char *printable(const char *text)
{
	char *copy = xstrdup(text);

	for (char *at = copy; *at; at++)
		if ((unsigned char)*at < ' ' || *at == '\177')
			*at = '?';
	return copy;
}

static bool same_place(const struct diff_place *a, const struct diff_place *b)
{
	return a->family == b->family && streq(a->table, b->table) && streq(a->kind, b->kind) &&
	       streq(a->name, b->name);
}

static bool goes_on(const struct diff_hunk *hunk, const struct diff_place *place,
		    const size_t at[DIFF_SIDES], const char *service)
{
	for (size_t i = 0; i < DIFF_SIDES; i++)
		if (at[i] != hunk->first[i] + hunk->n[i])
			return false;
	return same_place(&hunk->place, place) &&
	       (!service || !hunk->service || streq(service, hunk->service));
}

static struct diff_hunk *open_hunk(struct diff *diff, const struct diff_place *place,
				   const size_t at[DIFF_SIDES])
{
	struct diff_hunk *hunk;

	array_grow(&diff->v, &diff->capacity, diff->n, sizeof(*diff->v));
	hunk = &diff->v[diff->n++];
	*hunk = (struct diff_hunk){
		.place = {place->family, printable(place->table), printable(place->kind),
			  printable(place->name)},
		.first = {at[DIFF_WANTED], at[DIFF_KERNEL]},
	};
	return hunk;
}

void diff_put(struct diff *diff, const struct diff_place *place, char sign,
	      const size_t at[DIFF_SIDES], const char *text, const char *service)
{
	struct diff_hunk *hunk = diff->n > 0 ? &diff->v[diff->n - 1] : NULL;

	if (!hunk || !goes_on(hunk, place, at, service))
		hunk = open_hunk(diff, place, at);
	if (service && !hunk->service)
		hunk->service = printable(service);
	array_grow(&hunk->v, &hunk->capacity, hunk->n_lines, sizeof(*hunk->v));
	hunk->v[hunk->n_lines++] = (struct diff_line){sign, printable(text)};
	hunk->n[DIFF_WANTED] += sign != '+';
	hunk->n[DIFF_KERNEL] += sign != '-';
}

void diff_put_obstacle(struct diff *diff, const char *table, const char *chain, const char *text,
		       bool ends)
{
	array_grow(&diff->obstacles, &diff->obstacles_capacity, diff->n_obstacles,
		   sizeof(*diff->obstacles));
	diff->obstacles[diff->n_obstacles++] =
		(struct diff_obstacle){xasprintf("%s %s", table, chain), printable(text), ends};
}

/* -- a script: what is taken from which side, in the order of a diff */

struct edit {
	char sign;
	const struct diff_text *line;
	size_t at[DIFF_SIDES];
};

struct script {
	struct edit *v;
	size_t n, capacity;
	size_t next[DIFF_SIDES]; /* numbers of the next lines */
};

static void add_edit(struct script *script, char sign, const struct diff_text *line)
{
	array_grow(&script->v, &script->capacity, script->n, sizeof(*script->v));
	script->v[script->n++] =
		(struct edit){sign, line, {script->next[DIFF_WANTED], script->next[DIFF_KERNEL]}};
	script->next[DIFF_WANTED] += sign != '+';
	script->next[DIFF_KERNEL] += sign != '-';
}

static bool is_near_change(const struct script *script, size_t at, size_t context)
{
	size_t from = at > context ? at - context : 0;

	for (size_t i = from; i < script->n && i <= at + context; i++)
		if (script->v[i].sign != ' ')
			return true;
	return false;
}

static void put_script(struct diff *diff, const struct diff_place *place, struct script *script,
		       size_t context)
{
	for (size_t i = 0; i < script->n; i++) {
		const struct edit *edit = &script->v[i];

		if (is_near_change(script, i, context))
			diff_put(diff, place, edit->sign, edit->at, edit->line->text,
				 edit->line->service);
	}
	free(script->v);
}

/* -- in order */

static bool same_key(const struct diff_text *a, const struct diff_text *b)
{
	return streq(a->key, b->key);
}

/* Lengths of the longest common subsequences of all ends of a and b. */
static uint32_t *common_lengths(const struct diff_text *a, size_t n, const struct diff_text *b,
				size_t m)
{
	uint32_t *table = xcalloc((n + 1) * (m + 1), sizeof(*table));

	for (size_t i = n; i-- > 0;) {
		for (size_t j = m; j-- > 0;) {
			uint32_t *here = &table[i * (m + 1) + j];

			*here = same_key(&a[i], &b[j]) ? here[m + 2] + 1
						       : MAX(here[m + 1], here[1]);
		}
	}
	return table;
}

static void add_middle(struct script *script, const struct diff_text *a, size_t n,
		       const struct diff_text *b, size_t m)
{
	bool small = (n + 1) <= TABLE_MOST / (m + 1);
	cleanup_free uint32_t *table = small ? common_lengths(a, n, b, m) : NULL;
	size_t i = 0, j = 0;

	while (i < n || j < m) {
		const uint32_t *here = table ? &table[i * (m + 1) + j] : NULL;

		if (here && i < n && j < m && same_key(&a[i], &b[j])) {
			add_edit(script, ' ', &b[j++]);
			i++;
		} else if (j == m || (i < n && (!here || here[m + 1] >= here[1]))) {
			add_edit(script, '-', &a[i++]);
		} else {
			add_edit(script, '+', &b[j++]);
		}
	}
}

static const struct diff_text *from(const struct diff_texts *texts, size_t at)
{
	return texts->v ? texts->v + at : NULL;
}

void diff_ordered(struct diff *diff, const struct diff_place *place,
		  const struct diff_texts *wanted, const struct diff_texts *kernel)
{
	struct script script = {.next = {1, 1}};
	size_t most = MIN(wanted->n, kernel->n), head = 0, tail = 0;

	while (head < most && same_key(&wanted->v[head], &kernel->v[head]))
		add_edit(&script, ' ', &kernel->v[head++]);
	while (tail < most - head &&
	       same_key(&wanted->v[wanted->n - 1 - tail], &kernel->v[kernel->n - 1 - tail]))
		tail++;
	add_middle(&script, from(wanted, head), wanted->n - head - tail, from(kernel, head),
		   kernel->n - head - tail);
	for (size_t i = tail; i-- > 0;)
		add_edit(&script, ' ', &kernel->v[kernel->n - 1 - i]);
	put_script(diff, place, &script, CONTEXT);
}

/* -- in any order */

/* All that have the same key. */
struct same {
	size_t wanted, there; /* how many are left to meet */
	size_t run;           /* of missing lines, that begins behind one of these; 0: none */
	char key[];
};

enum line_state {
	LINE_THERE = 0,
	LINE_MISSING,
	LINE_TOLD, /* it is missing, and that is in the script */
};

struct search {
	struct map same; /* by key */
	const struct diff_texts *wanted, *kernel;
	uint8_t *states; /* enum line_state of each line that is wanted */
	struct script script;
};

static struct same *same_of(struct search *search, const char *key)
{
	return map_ensure(&search->same, key, sizeof(struct same), offsetof(struct same, key));
}

/* Must it stand at the end, and does not? */
static bool is_misplaced(const struct search *search, const struct diff_text *line)
{
	return line->last && (search->kernel->n == 0 ||
			      !same_key(line, &search->kernel->v[search->kernel->n - 1]));
}

static void count_lines(struct search *search)
{
	for (size_t i = 0; i < search->kernel->n; i++)
		same_of(search, search->kernel->v[i].key)->there++;
	for (size_t i = 0; i < search->wanted->n; i++)
		if (!is_misplaced(search, &search->wanted->v[i]))
			same_of(search, search->wanted->v[i].key)->wanted++;
}

static void find_missing(struct search *search)
{
	struct same *before = NULL;

	for (size_t i = 0; i < search->wanted->n; i++) {
		struct same *same = same_of(search, search->wanted->v[i].key);

		if (same->there > 0 && !is_misplaced(search, &search->wanted->v[i])) {
			same->there--;
			before = same;
			continue;
		}
		if (search->wanted->v[i].unmet)
			continue;
		search->states[i] = LINE_MISSING;
		if (before && before->run == 0)
			before->run = i;
	}
}

static void tell_missing(struct search *search, size_t at)
{
	if (search->states[at] != LINE_MISSING)
		return;
	add_edit(&search->script, '-', &search->wanted->v[at]);
	search->states[at] = LINE_TOLD;
}

/* Those that are missing from this one on, up to the next that is there or must be the last. */
static void tell_run(struct search *search, size_t at)
{
	for (; at < search->wanted->n && search->states[at] == LINE_MISSING; at++)
		if (!search->wanted->v[at].last)
			tell_missing(search, at);
}

static void tell_line(struct search *search, const struct diff_text *line)
{
	struct same *same = same_of(search, line->key);
	bool wanted = same->wanted > 0;

	same->wanted -= wanted;
	add_edit(&search->script, wanted || line->foreign ? ' ' : '+', line);
	if (same->run > 0)
		tell_run(search, same->run);
}

/*
 * In the kernel's order. A line that is missing stands behind the one that it follows in what is
 * wanted, as far as that is there.
 */
void diff_unordered(struct diff *diff, const struct diff_place *place,
		    const struct diff_texts *wanted, const struct diff_texts *kernel)
{
	cleanup_free uint8_t *states = xcalloc(wanted->n + 1, sizeof(*states));
	struct search search = {
		.wanted = wanted,
		.kernel = kernel,
		.states = states,
		.script.next = {1, 1},
	};

	count_lines(&search);
	find_missing(&search);
	tell_run(&search, 0);
	for (size_t i = 0; i < kernel->n; i++)
		tell_line(&search, &kernel->v[i]);
	for (size_t i = 0; i < wanted->n; i++)
		tell_missing(&search, i);
	map_free_values(&search.same);
	put_script(diff, place, &search.script, 0);
}

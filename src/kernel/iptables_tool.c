/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/iptables_tool.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/time.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/loop.h"
#include "kernel/iptables_programs.h"
#include "kernel/process.h"
#include "kernel/restore_error.h"

/*
 * Jobs wait in a list; the first one runs. Every job is started, and every callback made, from the
 * loop (on_next and the process's end), so that a caller never meets its own callback inside a
 * call.
 */

#define WAIT_SECONDS    "5"
#define COMMAND_TIMEOUT (300 * CLOCK_NS_PER_SECOND)
#define RESTORE_GRACE   (2 * CLOCK_NS_PER_SECOND)
#define COMMAND_OUTPUT  ((size_t)64 * 1024 * 1024)
#define SAVE_OUTPUT     ((size_t)256 * 1024 * 1024)
#define RUNNING_LOG     4 /* --v from which command lines are logged */

static const char *const op_flags[] = {"-N", "-C", "-I", "-D", "-S", "-X"};
_Static_assert(ARRAY_SIZE(op_flags) == IPTABLES_OP_COUNT, "an operation without its flag");

struct iptables_job {
	struct iptables_job *next;
	struct iptables_tool *tool;
	struct arena *arena; /* holds argv and what it points to */
	enum iptables_program program;
	const char **argv;
	size_t n_argv;
	bool is_command;
	enum iptables_op op;
	struct text input;
	iptables_more_fn *more; /* NULL: input is all */
	struct restore_tail tail;
	struct process *process; /* NULL: not running */

	iptables_line_fn *line;
	iptables_done_fn *done;
	void *arg;
};

struct iptables_tool {
	struct event_base *loop;
	struct event_base *own_loop; /* NULL: the loop is the caller's */
	struct iptables_programs programs;
	struct iptables_job *first, **last;
	struct event *next; /* time to look at the first job */
};

/* -- jobs */

static void job_free(struct iptables_job *job)
{
	process_cancel(job->process);
	text_done(&job->input);
	restore_tail_done(&job->tail);
	arena_free(job->arena);
	free(job);
}

static void unlink_job(struct iptables_job *job)
{
	struct iptables_job **at = &job->tool->first;

	while (*at != job)
		at = &(*at)->next;
	*at = job->next;
	if (job->tool->last == &job->next)
		job->tool->last = at;
}

static void job_finish(struct iptables_job *job, int r, struct err *err)
{
	struct iptables_tool *tool = job->tool;

	unlink_job(job);
	job->process = NULL; /* frees itself behind its callback */
	if (tool->first)
		loop_arm(tool->next, 0);
	job->done(job->arg, r, err); /* the tool may be gone after this */
	job_free(job);
}

static void job_what(const struct iptables_job *job, struct text *ret)
{
	for (size_t i = 0; i < job->n_argv; i++)
		text_printf(ret, "%s%s", i > 0 ? " " : "", job->argv[i]);
}

/* What the end of the program means: see the table in the header. */
static int outcome(struct iptables_job *job, const struct process_result *result, struct err *err)
{
	cleanup_text struct text text = {0};
	cleanup_free char *what = NULL;
	bool ended = result->error == 0 && result->exit_code >= 0;

	if (ended && result->exit_code == 0)
		return 1;
	if (ended && job->is_command && result->exit_code == 1 &&
	    (job->op == IPTABLES_NEW_CHAIN || job->op == IPTABLES_CHECK))
		return 0;
	job_what(job, &text);
	what = text_dup(&text);
	return restore_error_check(what, result, &job->tail, err);
}

static void on_done(void *arg, const struct process_result *result)
{
	struct iptables_job *job = arg;
	struct err err;
	int r = outcome(job, result, &err);

	job_finish(job, r, &err);
}

static void on_line(void *arg, const char *line, size_t length)
{
	struct iptables_job *job = arg;

	job->line(job->arg, line, length);
}

static bool on_more(void *arg, struct text *input)
{
	struct iptables_job *job = arg;

	return job->more(job->arg, input);
}

static void on_sent(void *arg, const char *data, size_t n)
{
	struct iptables_job *job = arg;

	restore_tail_add(&job->tail, data, n);
}

static int job_run(struct iptables_job *job, struct err *err)
{
	bool restore = job->program == IPTABLES_PROGRAM_RESTORE;
	const struct process_spec spec = {
		.path = job->tool->programs.paths[job->program],
		.argv = job->argv,
		.input = restore ? &job->input : NULL,
		.output_max = job->program == IPTABLES_PROGRAM_SAVE ? SAVE_OUTPUT : COMMAND_OUTPUT,
		.timeout_ns = restore ? 0 : COMMAND_TIMEOUT, /* a large restore has its time */
		.grace_ns = restore ? RESTORE_GRACE : 0,
		.line = job->line ? on_line : NULL,
		.more = job->more ? on_more : NULL,
		.sent = restore ? on_sent : NULL,
		.done = on_done,
		.arg = job,
	};

	if (log_enabled(RUNNING_LOG)) {
		cleanup_text struct text text = {0};
		cleanup_free char *what = NULL;

		job_what(job, &text);
		what = text_dup(&text);
		log_debug(RUNNING_LOG, "Running", KV("command", LOG_STR(what)));
	}
	return process_start(job->tool->loop, &spec, &job->process, err);
}

static void on_next(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	struct iptables_tool *tool = arg;
	struct iptables_job *job = tool->first;
	struct err err;
	int r;

	if (!job || job->process)
		return;
	if (job->program == IPTABLES_PROGRAM_RESTORE && job->input.size == 0 && !job->more) {
		job_finish(job, 1, &err);
		return;
	}
	r = job_run(job, &err);
	if (r < 0)
		job_finish(job, r, &err);
}

static void add_word(struct iptables_job *job, const char *word)
{
	job->argv[job->n_argv++] = arena_strdup(job->arena, word);
}

/* For the lock that all iptables programs share. */
static void add_wait(struct iptables_job *job)
{
	add_word(job, "-w");
	add_word(job, WAIT_SECONDS);
}

static struct iptables_job *job_new(struct iptables_tool *tool, enum iptables_program program,
				    size_t n_words, iptables_done_fn *done, void *arg)
{
	struct iptables_job *job = xcalloc(1, sizeof(*job));

	job->tool = tool;
	job->arena = arena_new(512);
	job->program = program;
	/* the name, two for waiting, six for the rest of the longest form, NULL */
	job->argv = arena_array(job->arena, n_words + 10, sizeof(*job->argv));
	job->done = done;
	job->arg = arg;
	add_word(job, tool->programs.names[program]);
	return job;
}

static struct iptables_job *job_queue(struct iptables_job *job)
{
	struct iptables_tool *tool = job->tool;

	*tool->last = job;
	tool->last = &job->next;
	if (tool->first == job)
		loop_arm(tool->next, 0);
	return job;
}

struct iptables_job *iptables_tool_start(struct iptables_tool *tool,
					 const struct iptables_command *command,
					 iptables_done_fn *done, void *arg)
{
	size_t n_words = util_count_words(command->words);
	struct iptables_job *job = job_new(tool, IPTABLES_PROGRAM_COMMAND, n_words, done, arg);

	job->is_command = true;
	job->op = command->op;
	add_wait(job);
	add_word(job, op_flags[command->op]);
	add_word(job, command->chain);
	add_word(job, "-t");
	add_word(job, command->table);
	for (const char *const *word = command->words; word && *word; word++)
		add_word(job, *word);
	return job_queue(job);
}

struct iptables_job *iptables_tool_save(struct iptables_tool *tool, const char *table,
					iptables_line_fn *line, iptables_done_fn *done, void *arg)
{
	struct iptables_job *job = job_new(tool, IPTABLES_PROGRAM_SAVE, 0, done, arg);

	add_word(job, "-t");
	add_word(job, table);
	job->line = line;
	return job_queue(job);
}

static struct iptables_job *new_restore(struct iptables_tool *tool, const char *table,
					iptables_done_fn *done, void *arg)
{
	struct iptables_job *job = job_new(tool, IPTABLES_PROGRAM_RESTORE, 0, done, arg);

	add_wait(job);
	if (table) {
		add_word(job, "-T");
		add_word(job, table);
	}
	add_word(job, "--noflush");
	add_word(job, "--counters");
	return job;
}

struct iptables_job *iptables_tool_restore(struct iptables_tool *tool, const char *table,
					   struct text *input, iptables_done_fn *done, void *arg)
{
	struct iptables_job *job = new_restore(tool, table, done, arg);

	text_move(&job->input, input);
	return job_queue(job);
}

struct iptables_job *iptables_tool_restore_pieces(struct iptables_tool *tool, const char *table,
						  iptables_more_fn *more, iptables_done_fn *done,
						  void *arg)
{
	struct iptables_job *job = new_restore(tool, table, done, arg);

	job->more = more;
	return job_queue(job);
}

void iptables_tool_cancel(struct iptables_tool *tool, struct iptables_job *job)
{
	bool first = tool->first == job;

	assert(job->tool == tool);
	unlink_job(job);
	job_free(job);
	if (first && tool->first)
		loop_arm(tool->next, 0);
}

/* -- the tool */

static int set_up(struct iptables_tool *tool, enum family family, enum iptables_variant variant,
		  struct err *err)
{
	int r = iptables_programs_find(family, variant, &tool->programs, err);

	if (r < 0)
		return r;
	if (!tool->loop)
		tool->loop = tool->own_loop = event_base_new();
	if (tool->loop)
		tool->next = evtimer_new(tool->loop, on_next, tool);
	if (!tool->next)
		return err_set(err, -ENOMEM, "no event loop for iptables");
	return 0;
}

int iptables_tool_open(struct event_base *loop, enum family family, enum iptables_variant variant,
		       struct iptables_tool **ret, struct err *err)
{
	struct iptables_tool *tool = xcalloc(1, sizeof(*tool));
	int r;

	tool->loop = loop;
	tool->last = &tool->first;
	r = set_up(tool, family, variant, err);
	if (r < 0) {
		iptables_tool_close(tool);
		return r;
	}
	*ret = tool;
	return 0;
}

struct iptables_tool *iptables_tool_close(struct iptables_tool *tool)
{
	if (!tool)
		return NULL;
	while (tool->first) {
		struct iptables_job *job = tool->first;

		tool->first = job->next;
		job_free(job);
	}
	loop_free(tool->next);
	if (tool->own_loop)
		event_base_free(tool->own_loop);
	iptables_programs_done(&tool->programs);
	free(tool);
	return NULL;
}

void iptables_tool_finish(struct iptables_tool *tool)
{
	assert(tool->own_loop);
	while (tool->first)
		event_base_loop(tool->own_loop, EVLOOP_ONCE);
}

struct call {
	int r;
	struct err *err;
};

static void call_done(void *arg, int r, struct err *err)
{
	struct call *call = arg;

	call->r = r;
	if (r < 0)
		*call->err = *err;
}

int iptables_tool_call(struct iptables_tool *tool, const struct iptables_command *command,
		       struct err *err)
{
	struct call call = {.err = err};

	iptables_tool_start(tool, command, call_done, &call);
	iptables_tool_finish(tool);
	return call.r;
}

/* -- the words of a chain's rules */

struct listing {
	struct arena *arena;
	const char **lines;
	size_t n, capacity;
	bool failed;
};

/* -P and -N come first, and are no rules. */
static void on_listed_line(void *arg, const char *line, size_t length attr_unused)
{
	struct listing *listing = arg;

	if (!has_prefix(line, "-A "))
		return;
	if (listing->n < listing->capacity)
		listing->lines[listing->n] = arena_strdup(listing->arena, line);
	listing->n++;
}

static void on_listed(void *arg, int r, struct err *err attr_unused)
{
	((struct listing *)arg)->failed = r < 0;
}

const char **iptables_tool_words(enum family family, const char *table, const char *chain, size_t n,
				 struct arena *arena)
{
	const struct iptables_command command = {
		.op = IPTABLES_LIST, .table = table, .chain = chain};
	struct listing listing = {.arena = arena, .capacity = n};
	struct iptables_tool *tool = NULL;
	struct err ignored;

	if (iptables_tool_open(NULL, family, IPTABLES_VARIANT_NFT, &tool, &ignored) < 0)
		return NULL;
	listing.lines = arena_array(arena, n, sizeof(*listing.lines));
	iptables_tool_start(tool, &command, on_listed, &listing)->line = on_listed_line;
	iptables_tool_finish(tool);
	iptables_tool_close(tool);
	return listing.failed || listing.n != n ? NULL : listing.lines;
}

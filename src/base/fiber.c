/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fiber.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/oom.h"

/* Address space: the kernel gives memory for the pages that are touched. */
#define STACK_SIZE (1 << 20)

#if defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN 1
#elif defined(__SANITIZE_THREAD__)
#define WITH_TSAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN 1
#elif __has_feature(thread_sanitizer)
#define WITH_TSAN 1
#endif
#endif

#ifdef WITH_ASAN
#include <dlfcn.h>
#include <sanitizer/common_interface_defs.h>

/* ASan's own swapcontext() warns on stderr that it knows no fibers, and waits where nothing reads that: libc's is used. */
static void swap(ucontext_t *from, const ucontext_t *to)
{
	static __typeof__(swapcontext) *libc;

	if (!libc)
		libc = (__typeof__(libc))dlsym(dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD),
					       "swapcontext");
	libc(from, to);
}
#else
#define swap swapcontext
#endif
#ifdef WITH_TSAN
#include <sanitizer/tsan_interface.h>
#endif

/* One side of a change of stacks, with what sanitizers want to know of it. */
struct side {
	ucontext_t context;
	const void *stack;
	size_t size;
	void *sanitizer; /* ASan: its own stack for this one; TSan: its name */
};

struct fiber {
	struct side own, caller;
	char *memory; /* the lowest page is a guard */
	void (*breathe)(void *arg);
	void *breathe_arg;
	void (*fn)(void *arg);
	void *arg;
	bool busy;
};

static struct fiber *current;

/* -- a change of stacks */

static void announce(struct side *from attr_unused, const struct side *to attr_unused)
{
#ifdef WITH_ASAN
	__sanitizer_start_switch_fiber(&from->sanitizer, to->stack, to->size);
#endif
#ifdef WITH_TSAN
	__tsan_switch_to_fiber(to->sanitizer, 0);
#endif
}

/* The first thing on the other side. */
static void arrive(struct side *here attr_unused, struct side *from attr_unused)
{
#ifdef WITH_ASAN
	__sanitizer_finish_switch_fiber(here->sanitizer, &from->stack, &from->size);
#endif
}

static void change(struct side *from, struct side *to)
{
	announce(from, to);
	swap(&from->context, &to->context);
	arrive(from, to);
}

/* -- a fiber's life */

/* Where every fiber begins; after the end of a function it waits for the next one. */
static void begin(void)
{
	struct fiber *fiber = current;

	arrive(&fiber->own, &fiber->caller);
	for (;;) {
		fiber->fn(fiber->arg);
		fiber->busy = false;
		change(&fiber->own, &fiber->caller);
	}
}

struct fiber *fiber_new(void (*breathe)(void *arg), void *arg)
{
	struct fiber *fiber = xcalloc(1, sizeof(*fiber));
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	fiber->breathe = breathe;
	fiber->breathe_arg = arg;
	fiber->memory = mmap(NULL, STACK_SIZE + page, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
	if (fiber->memory == MAP_FAILED || mprotect(fiber->memory, page, PROT_NONE) < 0)
		oom("a stack", STACK_SIZE);
	fiber->own.stack = fiber->memory + page;
	fiber->own.size = STACK_SIZE;
	getcontext(&fiber->own.context);
	fiber->own.context.uc_stack.ss_sp = fiber->memory + page;
	fiber->own.context.uc_stack.ss_size = STACK_SIZE;
	makecontext(&fiber->own.context, begin, 0);
#ifdef WITH_TSAN
	fiber->own.sanitizer = __tsan_create_fiber(0);
#endif
	return fiber;
}

struct fiber *fiber_free(struct fiber *fiber)
{
	if (!fiber)
		return NULL;
	assert(!fiber->busy);
#ifdef WITH_TSAN
	__tsan_destroy_fiber(fiber->own.sanitizer);
#endif
	munmap(fiber->memory, STACK_SIZE + (size_t)sysconf(_SC_PAGESIZE));
	free(fiber);
	return NULL;
}

static void enter(struct fiber *fiber)
{
	struct fiber *outer = current;

#ifdef WITH_TSAN
	fiber->caller.sanitizer = __tsan_get_current_fiber();
#endif
	current = fiber;
	change(&fiber->caller, &fiber->own);
	current = outer;
}

void fiber_start(struct fiber *fiber, void (*fn)(void *arg), void *arg)
{
	assert(!fiber->busy);
	fiber->busy = true;
	fiber->fn = fn;
	fiber->arg = arg;
	enter(fiber);
}

void fiber_resume(struct fiber *fiber)
{
	assert(fiber->busy && fiber != current);
	enter(fiber);
}

void fiber_wait(void)
{
	struct fiber *fiber = current;

	assert(fiber);
	change(&fiber->own, &fiber->caller);
}

void fiber_breathe(void)
{
	if (current && current->breathe)
		current->breathe(current->breathe_arg);
}

bool fiber_is_busy(const struct fiber *fiber)
{
	return fiber->busy;
}

const struct fiber *fiber_current(void)
{
	return current;
}

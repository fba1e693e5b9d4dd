/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/seccomp_filter.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * A filter is a row for each system call, tried from the top, and an action for those without a row.
 * Calls that have no such number on this machine (open on arm64) have no row there: numbers are
 * taken from the kernel's own names, in the blocks with #ifdef.
 *
 * Arguments are compared by their lower half: all that are looked at are of type int, or flags that
 * the kernel defines below bit 32.
 */

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#elif defined(__s390x__)
#define ARCHITECTURE AUDIT_ARCH_S390X
#elif defined(__riscv) && __riscv_xlen == 64
#define ARCHITECTURE AUDIT_ARCH_RISCV64
#endif

/* mseal (Linux 6.10); from 424 on all architectures have the same numbers. */
#define NEWEST_KNOWN 462
#define X32_BIT      0x40000000u /* calls of another ABI of x86_64 */

/* Which argument of clone has the flags. */
#ifdef __s390x__
#define CLONE_FLAGS 1
#else
#define CLONE_FLAGS 0
#endif

#define NAMESPACES                                                                                \
	((uint32_t)(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | \
		    CLONE_NEWPID | CLONE_NEWNET))
/* O_TRUNC empties a file that is opened for reading, too; landlock sees that only since Linux 6.2. */
#define MAKES_FILES ((uint32_t)(O_RDWR | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY)))

#define ALLOW        SECCOMP_RET_ALLOW
#define REFUSE       (SECCOMP_RET_ERRNO | EPERM)
#define IS_NOT_THERE (SECCOMP_RET_ERRNO | ENOSYS)

struct rule {
	uint32_t number;
	uint32_t action;    /* when the argument passes, or is not asked for */
	uint8_t argument;   /* 1 + which */
	uint32_t forbidden; /* bits that it must not have */
	uint32_t values[4]; /* or: one of these, up to a 0 */
};

#define CALL(name)                                     \
	{                                              \
		.number = __NR_##name, .action = ALLOW \
	}
#define NO_CALL(name)                                   \
	{                                               \
		.number = __NR_##name, .action = REFUSE \
	}
#define MISSING_CALL(name)                                    \
	{                                                     \
		.number = __NR_##name, .action = IS_NOT_THERE \
	}
#define WITHOUT(name, n, bits)                                                                   \
	{                                                                                        \
		.number = __NR_##name, .action = ALLOW, .argument = 1 + (n), .forbidden = (bits) \
	}
#define ONE_OF(name, n, ...)                                                             \
	{                                                                                \
		.number = __NR_##name, .action = ALLOW, .argument = 1 + (n), .values = { \
			__VA_ARGS__                                                      \
		}                                                                        \
	}

/* clang-format off */
static const struct rule daemon_rules[] = {
	/* the loop */
	CALL(epoll_pwait), CALL(epoll_ctl), CALL(epoll_create1), CALL(epoll_pwait2), CALL(ppoll), CALL(pselect6),
	CALL(eventfd2), CALL(timerfd_create), CALL(timerfd_settime), CALL(timerfd_gettime), CALL(signalfd4),
	CALL(inotify_init1), CALL(inotify_add_watch), CALL(inotify_rm_watch),
	/* descriptors, and files that are there */
	CALL(read), CALL(readv), CALL(pread64), CALL(preadv), CALL(preadv2), CALL(write), CALL(writev), CALL(pwrite64),
	CALL(pwritev), CALL(lseek), CALL(close), CALL(close_range), CALL(dup), CALL(dup3), CALL(pipe2), CALL(fcntl),
	CALL(flock), CALL(ioctl), CALL(fstat), CALL(newfstatat), CALL(statx), CALL(faccessat), CALL(faccessat2), CALL(readlinkat),
	CALL(getdents64), CALL(getcwd), CALL(statfs), CALL(fstatfs), CALL(fadvise64), CALL(readahead), CALL(umask),
	/* sockets */
	CALL(socketpair), CALL(bind), CALL(listen), CALL(accept4), CALL(connect), CALL(getsockname),
	CALL(getpeername), CALL(sendto), CALL(recvfrom), CALL(sendmsg), CALL(recvmsg), CALL(sendmmsg), CALL(recvmmsg),
	CALL(setsockopt), CALL(getsockopt), CALL(shutdown), CALL(splice),
	/* memory */
	CALL(brk), CALL(mmap), CALL(munmap), CALL(mremap), CALL(mprotect), CALL(madvise), CALL(mincore), CALL(msync),
	CALL(mlock), CALL(munlock), CALL(membarrier),
	/* time */
	CALL(clock_gettime), CALL(clock_getres), CALL(clock_nanosleep), CALL(nanosleep), CALL(gettimeofday), CALL(times),
	/* signals, to itself alone */
	CALL(rt_sigaction), CALL(rt_sigprocmask), CALL(rt_sigreturn), CALL(rt_sigpending), CALL(rt_sigsuspend),
	CALL(rt_sigtimedwait), CALL(sigaltstack), CALL(restart_syscall),
	/* threads and copies of the process; children are ended through what pidfd_open gives */
	WITHOUT(clone, CLONE_FLAGS, NAMESPACES),
	CALL(futex), CALL(futex_waitv), CALL(set_robust_list), CALL(get_robust_list), CALL(rseq), CALL(set_tid_address),
	CALL(exit), CALL(exit_group), CALL(wait4), CALL(waitid), CALL(pidfd_open), CALL(pidfd_send_signal),
	CALL(sched_yield), CALL(sched_getaffinity), CALL(sched_getparam), CALL(sched_getscheduler), CALL(prctl),
	/* who and where */
	CALL(getpid), CALL(gettid), CALL(getppid), CALL(getpgid), CALL(getsid), CALL(getuid), CALL(geteuid), CALL(getgid),
	CALL(getegid), CALL(getresuid), CALL(getresgid), CALL(getgroups), CALL(capget), CALL(prlimit64), CALL(getrusage),
	CALL(getpriority), CALL(sysinfo), CALL(uname), CALL(getcpu), CALL(getrandom),
	/* the other filter's */
	CALL(clone3), CALL(openat2), CALL(io_uring_setup),
#ifdef __NR_open /* machines that had Linux before 2012 */
	CALL(epoll_wait), CALL(epoll_create), CALL(poll), CALL(select), CALL(eventfd), CALL(inotify_init), CALL(pipe),
	CALL(dup2), CALL(stat), CALL(lstat), CALL(access), CALL(readlink), CALL(getdents), CALL(fork), CALL(vfork),
	CALL(getpgrp), CALL(getrlimit), CALL(pause), CALL(alarm),
#endif
#ifdef __NR_accept
	CALL(accept),
#endif
#ifdef __s390x__ /* glibc makes all calls of sockets through it, so families are not looked at there */
	CALL(socketcall),
#endif
#ifdef __x86_64__
	CALL(arch_prctl), CALL(time),
#endif
#ifdef __NR_map_shadow_stack
	CALL(map_shadow_stack),
#endif
#ifdef __NR_riscv_flush_icache
	CALL(riscv_flush_icache),
#endif
};

static const struct rule program_rules[] = {
	/* other processes */
	NO_CALL(ptrace), NO_CALL(process_vm_readv), NO_CALL(process_vm_writev), NO_CALL(pidfd_getfd), NO_CALL(kcmp),
	/* the kernel */
	NO_CALL(init_module), NO_CALL(finit_module), NO_CALL(delete_module), NO_CALL(kexec_load), NO_CALL(bpf),
	NO_CALL(perf_event_open), NO_CALL(userfaultfd), NO_CALL(reboot), NO_CALL(syslog),
	NO_CALL(io_uring_enter), NO_CALL(io_uring_register),
	/* namespaces and mounts */
	WITHOUT(clone, CLONE_FLAGS, NAMESPACES), NO_CALL(unshare), NO_CALL(setns), NO_CALL(mount),
	NO_CALL(umount2), NO_CALL(pivot_root), NO_CALL(chroot), NO_CALL(move_mount), NO_CALL(open_tree), NO_CALL(fsopen),
	NO_CALL(fsmount), NO_CALL(fsconfig), NO_CALL(fspick), NO_CALL(mount_setattr), NO_CALL(open_by_handle_at),
	/* the machine */
	NO_CALL(swapon), NO_CALL(swapoff), NO_CALL(settimeofday), NO_CALL(clock_settime), NO_CALL(clock_adjtime),
	NO_CALL(adjtimex), NO_CALL(acct), NO_CALL(quotactl), NO_CALL(sethostname), NO_CALL(setdomainname),
};

/*
 * Libraries try these first, for each thread that they start, and do without them. A filter of their own, whose
 * refusals are not logged, keeps the audit log for what matters.
 */
static const struct rule missing_rules[] = {
	MISSING_CALL(clone3), MISSING_CALL(openat2), MISSING_CALL(io_uring_setup),
};

static const struct rule no_children_rules[] = {
	NO_CALL(clone), MISSING_CALL(clone3),
#ifdef __NR_fork
	NO_CALL(fork), NO_CALL(vfork),
#endif
};
/* clang-format on */

/* -- from rules to a program of the kernel's small machine */

struct code {
	struct sock_filter v[1024];
	size_t n;
	uint32_t refuse; /* what takes the place of each refusal; 0: nothing does */
};

static void add(struct code *code, uint16_t op, uint32_t k, uint8_t if_true, uint8_t if_false)
{
	if (code->n < ARRAY_SIZE(code->v))
		code->v[code->n] = (struct sock_filter){op, if_true, if_false, k};
	code->n++;
}

static void add_load(struct code *code, size_t offset)
{
	add(code, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void add_return(struct code *code, uint32_t action)
{
	add(code, BPF_RET | BPF_K, code->refuse && action != ALLOW ? code->refuse : action, 0, 0);
}

/* Returns the action where the accumulator compares so with k. */
static void add_case(struct code *code, uint16_t comparison, uint32_t k, bool wanted,
		     uint32_t action)
{
	add(code, BPF_JMP | comparison | BPF_K, k, wanted ? 0 : 1, wanted ? 1 : 0);
	add_return(code, action);
}

static size_t argument_offset(unsigned int argument)
{
	bool big_endian = __BYTE_ORDER == __BIG_ENDIAN;

	return offsetof(struct seccomp_data, args) + 8 * (size_t)argument + (big_endian ? 4 : 0);
}

/* Once the number is known to be this rule's. */
static void add_judgement(struct code *code, const struct rule *rule)
{
	if (rule->argument == 0) {
		add_return(code, rule->action);
		return;
	}
	add_load(code, argument_offset(rule->argument - 1u));
	if (rule->forbidden)
		add_case(code, BPF_JSET, rule->forbidden, false, rule->action);
	for (size_t i = 0; i < ARRAY_SIZE(rule->values) && rule->values[i]; i++)
		add_case(code, BPF_JEQ, rule->values[i], true, rule->action);
	add_return(code, REFUSE);
}

static void add_rule(struct code *code, const struct rule *rule)
{
	size_t start = code->n;

	add(code, BPF_JMP | BPF_JEQ | BPF_K, rule->number, 0, 0);
	add_judgement(code, rule);
	if (code->n <= ARRAY_SIZE(code->v)) /* the next rule begins here */
		code->v[start].jf = (uint8_t)(code->n - start - 1);
}

static void code_init(struct code *code, uint32_t refuse)
{
	code->n = 0;
	code->refuse = refuse;
#ifdef ARCHITECTURE
	add_load(code, offsetof(struct seccomp_data, arch));
	add_case(code, BPF_JEQ, ARCHITECTURE, false, IS_NOT_THERE);
#endif
	add_load(code, offsetof(struct seccomp_data, nr));
#ifdef __x86_64__
	add_case(code, BPF_JGE, X32_BIT, true, IS_NOT_THERE);
#endif
}

static int install(const struct code *code, unsigned int log, struct err *err)
{
	struct sock_fprog program = {(unsigned short)code->n, (struct sock_filter *)code->v};
	unsigned int flags = SECCOMP_FILTER_FLAG_TSYNC | log;
	long r;

#ifndef ARCHITECTURE
	return err_set(err, -ENOSYS, "system calls cannot be filtered on this kind of machine");
#endif
	if (code->n > ARRAY_SIZE(code->v))
		return err_set(err, -E2BIG, "the filter of system calls is too long");
	r = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
	if (r > 0)
		return err_set(err, -EBUSY, "thread %ld has a filter of its own", r);
	return r < 0 ? err_sys(err, -errno, "filtering system calls") : 0;
}

static int install_rules(struct code *code, const struct rule *rules, size_t n, uint32_t other,
			 struct err *err)
{
	for (size_t i = 0; i < n; i++)
		add_rule(code, &rules[i]);
	if (other != ALLOW)
		add_case(code, BPF_JGT, NEWEST_KNOWN, true, IS_NOT_THERE);
	add_return(code, other);
	return install(code, SECCOMP_FILTER_FLAG_LOG, err);
}

static int install_missing(struct err *err)
{
	struct code code;

	code_init(&code, 0);
	for (size_t i = 0; i < ARRAY_SIZE(missing_rules); i++)
		add_rule(&code, &missing_rules[i]);
	add_return(&code, ALLOW);
	return install(&code, 0, err);
}

int seccomp_filter_daemon(const struct seccomp_filter_choice *choice, struct err *err)
{
	const uint32_t forbidden = choice->writes ? MAKES_FILES : MAKES_FILES | O_WRONLY;
	const struct rule chosen[] = {
		WITHOUT(openat, 2, forbidden),
#ifdef __NR_open
		WITHOUT(open, 1, forbidden),
#endif
		ONE_OF(socket, 0, AF_NETLINK, AF_INET, AF_INET6,
		       choice->local_sockets ? AF_UNIX : AF_NETLINK),
		ONE_OF(tgkill, 0, (uint32_t)getpid()), /* abort() */
	};
	struct code code;
	int r = choice->log_only ? 0 : install_missing(err);

	if (r < 0)
		return r;
	code_init(&code, choice->log_only ? SECCOMP_RET_LOG : 0);
	for (size_t i = 0; i < ARRAY_SIZE(chosen); i++)
		add_rule(&code, &chosen[i]);
	return install_rules(&code, daemon_rules, ARRAY_SIZE(daemon_rules), REFUSE, err);
}

int seccomp_filter_programs(struct err *err)
{
	struct code code;
	int r = install_missing(err);

	if (r < 0)
		return r;
	code_init(&code, 0);
	return install_rules(&code, program_rules, ARRAY_SIZE(program_rules), ALLOW, err);
}

int seccomp_filter_no_children(struct err *err)
{
	struct code code;

	code_init(&code, 0);
	return install_rules(&code, no_children_rules, ARRAY_SIZE(no_children_rules), ALLOW, err);
}

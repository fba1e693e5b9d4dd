/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel/capabilities.h"
#include "kernel/sandbox.h"
#include "kernel/seccomp_filter.h"
#include "kernel/spawn.h"

#define MESSAGE_MAX  (128UL * 1024)
#define WORDS_MAX    1024u
#define PROGRAMS_MAX 64u
#define RUNNERS_MAX  64
#define PATIENCE_MS  10000 /* for a program to be loaded */
#define END_MS       1000  /* for the launcher to end; it dies with us in any case */

enum kind {
	KIND_ALLOW = 1, /* a program; only before KIND_BEGIN */
	KIND_BEGIN,     /* give up all else */
	KIND_RUN,
};

/* A message: this, then path, argv and env, each with its NUL. */
struct head {
	uint32_t kind;
	uint32_t n_argv;
	uint32_t n_env;
	uint32_t is_plugin;
	uint64_t capabilities;
};

/* How a program ended. */
struct ending {
	int32_t exit_code;
	int32_t signal;
};

struct launcher {
	int socket;
	pid_t pid;
	int pidfd;
};

/* -- the daemon's side */

static size_t add(char *message, size_t n, const char *word)
{
	size_t length = strlen(word) + 1;

	if (n + length <= MESSAGE_MAX)
		memcpy(message + n, word, length);
	return n + length;
}

/* The message's length, which is more than MESSAGE_MAX when it does not fit. */
static size_t encode(char *message, struct head head, const char *path, const char *const *argv,
		     const char *const *env)
{
	size_t n = sizeof(head);

	head.n_argv = (uint32_t)util_count_words(argv);
	head.n_env = (uint32_t)util_count_words(env);
	memcpy(message, &head, sizeof(head));
	n = add(message, n, path);
	for (uint32_t i = 0; i < head.n_argv; i++)
		n = add(message, n, argv[i]);
	for (uint32_t i = 0; i < head.n_env; i++)
		n = add(message, n, env[i]);
	return head.n_argv > WORDS_MAX || head.n_env > WORDS_MAX ? SIZE_MAX : n;
}

union descriptors {
	char space[CMSG_SPACE(4 * sizeof(int))];
	struct cmsghdr head;
};

static int send_message(int socket, char *message, size_t n, const int fds[4])
{
	struct iovec part = {message, n};
	union descriptors control = {0};
	struct msghdr envelope = {.msg_iov = &part, .msg_iovlen = 1};

	if (n > MESSAGE_MAX)
		return -E2BIG;
	if (fds) {
		envelope.msg_control = control.space;
		envelope.msg_controllen = sizeof(control.space);
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(4 * sizeof(int));
		memcpy(CMSG_DATA(&control.head), fds, 4 * sizeof(int));
	}
	return sendmsg(socket, &envelope, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* The first word on a socket: an error, or 0. */
static int receive_answer(int socket)
{
	struct pollfd answer = {.fd = socket, .events = POLLIN};
	int32_t r;
	int n;

	do
		n = poll(&answer, 1, PATIENCE_MS);
	while (n < 0 && errno == EINTR);
	if (n == 0)
		return -ETIMEDOUT;
	if (n < 0 || recv(socket, &r, sizeof(r), 0) != sizeof(r))
		return -ECHILD; /* the other side is gone */
	return MIN(r, 0);
}

static int introduce(int socket, const struct launcher_program *programs, size_t n,
		     uint64_t capabilities)
{
	cleanup_free char *message = xmalloc(MESSAGE_MAX);
	const struct head begin = {.kind = KIND_BEGIN, .capabilities = capabilities};
	int r = n > PROGRAMS_MAX ? -E2BIG : 0;

	for (size_t i = 0; i < n && r >= 0; i++) {
		const struct launcher_program *program = &programs[i];
		const struct head head = {.kind = KIND_ALLOW, .is_plugin = program->argv != NULL};

		r = send_message(socket, message,
				 encode(message, head, program->path, program->argv, program->env),
				 NULL);
	}
	if (r >= 0)
		r = send_message(socket, message, encode(message, begin, "", NULL, NULL), NULL);
	return r < 0 ? r : receive_answer(socket);
}

static int start_copy(struct launcher *launcher, int socket)
{
	const char *const argv[] = {LAUNCHER_NAME, NULL};
	cleanup_fd int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	const struct spawn_spec spec = {
		.path = "/proc/self/exe",
		.argv = argv,
		.fds = {socket, null, STDERR_FILENO},
	};

	return null < 0 ? -errno : spawn_start(&spec, &launcher->pid, &launcher->pidfd);
}

int launcher_start(const struct launcher_program *programs, size_t n, uint64_t capabilities,
		   struct launcher **ret, struct err *err)
{
	struct launcher *launcher = xcalloc(1, sizeof(*launcher));
	int sockets[2] = {-1, -1};
	int r;

	*launcher = (struct launcher){.socket = -1, .pidfd = -1};
	r = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0 ? -errno : 0;
	launcher->socket = sockets[0];
	if (r >= 0)
		r = start_copy(launcher, sockets[1]);
	util_close_fd(&sockets[1]);
	if (r >= 0)
		r = introduce(launcher->socket, programs, n, capabilities);
	if (r < 0) {
		launcher_free(launcher);
		return err_sys(err, r, "starting the launcher of programs");
	}
	*ret = launcher;
	return 0;
}

struct launcher *launcher_free(struct launcher *launcher)
{
	struct pollfd end = {.events = POLLIN};

	if (!launcher)
		return NULL;
	end.fd = launcher->pidfd;
	util_close_fd(&launcher->socket);
	if (launcher->pid > 0 && poll(&end, 1, END_MS) > 0)
		waitpid(launcher->pid, NULL, 0);
	util_close_fd(&launcher->pidfd);
	free(launcher);
	return NULL;
}

int launcher_fd(const struct launcher *launcher)
{
	return launcher->socket;
}

pid_t launcher_pid(const struct launcher *launcher)
{
	return launcher->pid;
}

int launcher_run(const struct launcher *launcher, const char *path, const char *const *argv,
		 const char *const *env, const int fds[static 3], int *ret_end)
{
	cleanup_free char *message = xmalloc(MESSAGE_MAX);
	const struct head head = {.kind = KIND_RUN};
	int ends[2];
	int r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	r = send_message(launcher->socket, message, encode(message, head, path, argv, env),
			 (const int[]){fds[0], fds[1], fds[2], ends[1]});
	util_close_fd(&ends[1]);
	if (r >= 0)
		r = receive_answer(ends[0]);
	if (r < 0)
		util_close_fd(&ends[0]);
	else
		*ret_end = ends[0];
	return r;
}

void launcher_kill(int end)
{
	shutdown(end, SHUT_WR);
}

void launcher_wait(int end, int *ret_exit_code, int *ret_signal)
{
	struct ending ending;
	ssize_t n;

	do
		n = recv(end, &ending, sizeof(ending), 0);
	while (n < 0 && errno == EINTR);
	if (n != sizeof(ending))
		ending = (struct ending){.exit_code = -1, .signal = SIGKILL}; /* with its runner */
	*ret_exit_code = ending.exit_code;
	*ret_signal = ending.signal;
}

/* -- the launcher's side: everything that comes is doubted */

struct message {
	char data[MESSAGE_MAX];
	struct head head;
	char *path;
	char *argv[WORDS_MAX + 1];
	char *env[WORDS_MAX + 1];
	int fds[4]; /* -1: none came */
};

struct program {
	bool is_plugin;
	bool is_script;
	char *path;
	char **argv, **env;
};

struct programs {
	struct program v[PROGRAMS_MAX];
	size_t n;
};

/* Takes n words from *at on; false when there are fewer. */
static bool take_words(char **at, const char *end, char **words, uint32_t n)
{
	if (n > WORDS_MAX)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		if (*at == end)
			return false;
		words[i] = *at;
		*at += strlen(*at) + 1; /* the last byte of all is a NUL */
	}
	words[n] = NULL;
	return true;
}

static bool decode(struct message *message, size_t n)
{
	char *at = message->data + sizeof(message->head);
	const char *end = message->data + n;
	char *path[2];

	if (n <= sizeof(message->head) || end[-1] != '\0')
		return false;
	memcpy(&message->head, message->data, sizeof(message->head));
	if (!take_words(&at, end, path, 1))
		return false;
	message->path = path[0];
	return take_words(&at, end, message->argv, message->head.n_argv) &&
	       take_words(&at, end, message->env, message->head.n_env) && at == end;
}

static void close_descriptors(struct message *message)
{
	for (size_t i = 0; i < ARRAY_SIZE(message->fds); i++) {
		util_close_fd(&message->fds[i]);
		message->fds[i] = -1;
	}
}

/* The number of bytes; 0 or less: the daemon is gone. Descriptors that do not fit are the kernel's to
 * close. */
static ssize_t receive(int socket, struct message *message)
{
	struct iovec part = {message->data, sizeof(message->data)};
	union descriptors control = {0};
	struct msghdr envelope = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control.space,
		.msg_controllen = sizeof(control.space),
	};
	const struct cmsghdr *head;
	ssize_t n;

	for (size_t i = 0; i < ARRAY_SIZE(message->fds); i++)
		message->fds[i] = -1;
	do
		n = recvmsg(socket, &envelope, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	head = n > 0 ? CMSG_FIRSTHDR(&envelope) : NULL;
	if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS)
		memcpy(message->fds, CMSG_DATA(head),
		       MIN(head->cmsg_len - CMSG_LEN(0), sizeof(message->fds)));
	return n;
}

static bool starts_with_elf(const char *path)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	char magic[4];

	return fd >= 0 && read(fd, magic, sizeof(magic)) == sizeof(magic) &&
	       memcmp(magic, "\177ELF", sizeof(magic)) == 0;
}

static void learn(struct programs *programs, const struct message *message)
{
	if (programs->n == ARRAY_SIZE(programs->v))
		return;
	programs->v[programs->n++] = (struct program){
		.is_plugin = message->head.is_plugin,
		.is_script = !starts_with_elf(message->path),
		.path = xstrdup(message->path),
		.argv = util_copy_words((const char *const *)message->argv),
		.env = util_copy_words((const char *const *)message->env),
	};
}

static bool same_words(char *const *a, char *const *b)
{
	for (; *a && *b; a++, b++)
		if (!streq(*a, *b) && !(has_prefix(*a, LAUNCHER_FREE_VARIABLE "=") &&
					has_prefix(*b, LAUNCHER_FREE_VARIABLE "=")))
			return false;
	return !*a && !*b;
}

/*
 * The tools that save and restore would read and write any file of root's that is named to them. A plain word,
 * the name of a table or a number, names none: the folder that they start in is the root.
 */
static bool names_no_file(const struct message *message)
{
	static const char *const flags[] = {"-w",        "-t",         "-T",
					    "--noflush", "--counters", "--version"};
	const char *path = message->path;

	if (!has_suffix(path, "-save") && !has_suffix(path, "-restore"))
		return true;
	for (uint32_t i = 1; i < message->head.n_argv; i++) {
		const char *word = message->argv[i];
		bool known = word[strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789")] == '\0';

		if (!known && !word_among(word, flags))
			return false;
	}
	return true;
}

/* One file may be several programs, and asks its first word which. */
static bool goes_by_its_name(const struct message *message)
{
	const char *slash = strrchr(message->path, '/');

	return streq(message->argv[0], slash ? slash + 1 : message->path);
}

static bool fits(const struct program *program, const struct message *message)
{
	if (!streq(program->path, message->path) || message->head.n_argv == 0)
		return false;
	if (!program->is_plugin)
		return message->head.n_env == 0 && goes_by_its_name(message) &&
		       names_no_file(message);
	return same_words(program->argv, message->argv) && same_words(program->env, message->env);
}

static const struct program *find(const struct programs *programs, const struct message *message)
{
	for (size_t i = 0; i < programs->n; i++)
		if (fits(&programs->v[i], message))
			return &programs->v[i];
	return NULL;
}

static void prepare_plugin(void)
{
	struct err ignored; /* what it had to give up could only be less already */

	(void)capabilities_keep(0, false, &ignored);
}

static void prepare_script(void)
{
	if (chdir("/") < 0)
		_exit(EXIT_FAILURE);
}

static void prepare_tool(void)
{
	struct err ignored;

	prepare_script();
	(void)seccomp_filter_no_children(&ignored);
}

static int start(const struct program *program, struct message *message, pid_t *ret_pid,
		 int *ret_pidfd)
{
	struct spawn_spec spec = {
		.path = message->path,
		.argv = (const char *const *)message->argv,
		.env = (const char *const *)message->env,
		.fds = {message->fds[0], message->fds[1], message->fds[2]},
	};

	if (!program)
		return -EPERM;
	if (program->is_plugin)
		spec.prepare = prepare_plugin;
	else
		spec.prepare = program->is_script ? prepare_script : prepare_tool;
	return spawn_start(&spec, ret_pid, ret_pidfd);
}

/* Waits for the program's end, or for the daemon's wish that it end. */
static void follow(int end, pid_t pid, int pidfd)
{
	struct pollfd fds[] = {{.fd = pidfd, .events = POLLIN}, {.fd = end, .events = POLLIN}};
	struct ending ending = {.exit_code = -1, .signal = SIGKILL};
	siginfo_t info = {0};

	while (poll(fds, ARRAY_SIZE(fds), -1) < 0 && errno == EINTR)
		;
	if (fds[0].revents == 0)
		kill(pid, SIGKILL);
	while (waitid(P_PID, (id_t)pid, &info, WEXITED) < 0 && errno == EINTR)
		;
	if (info.si_code == CLD_EXITED)
		ending = (struct ending){.exit_code = info.si_status};
	else if (info.si_status > 0)
		ending.signal = info.si_status;
	send(end, &ending, sizeof(ending), MSG_NOSIGNAL);
}

static void runner_main(const struct program *program, struct message *message)
{
	int end = message->fds[3];
	int pidfd = -1;
	pid_t pid = 0;
	int32_t r = start(program, message, &pid, &pidfd);

	for (int i = 0; i < 3; i++)
		util_close_fd(&message->fds[i]);
	send(end, &r, sizeof(r), MSG_NOSIGNAL);
	if (r >= 0)
		follow(end, pid, pidfd);
}

/* In a copy of the launcher, which dies with it. */
static bool run(const struct programs *programs, struct message *message)
{
	pid_t parent = getpid();
	pid_t pid;

	if (message->fds[3] < 0)
		return false;
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(STDIN_FILENO); /* the socket is the launcher's alone */
		if (getppid() == parent)
			runner_main(find(programs, message), message);
		_exit(EXIT_SUCCESS);
	}
	return pid > 0;
}

static void serve(const struct programs *programs, struct message *message)
{
	int runners = 0;
	ssize_t n;

	while ((n = receive(STDIN_FILENO, message)) > 0) {
		while (runners > 0 && waitpid(-1, NULL, runners < RUNNERS_MAX ? WNOHANG : 0) > 0)
			runners--;
		if (decode(message, (size_t)n) && message->head.kind == KIND_RUN &&
		    run(programs, message))
			runners++;
		close_descriptors(message);
	}
}

/* What it may do, in the daemon's last word that counts. */
static bool prepare(struct programs *programs, struct message *message)
{
	const int32_t ready = 0;
	ssize_t n;

	while ((n = receive(STDIN_FILENO, message)) > 0 && decode(message, (size_t)n) &&
	       message->head.kind == KIND_ALLOW)
		learn(programs, message);
	if (n <= 0 || message->head.kind != KIND_BEGIN)
		return false;
	sandbox_enter_launcher(message->head.capabilities);
	return send(STDIN_FILENO, &ready, sizeof(ready), MSG_NOSIGNAL) == sizeof(ready);
}

void launcher_main(void)
{
	static struct programs programs;
	static struct message message;
	static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGPIPE};

	prctl(PR_SET_NAME, LAUNCHER_NAME); /* as far as it fits; else it is called "exe" */
	/* a terminal sends some to all of us; the daemon decides, and its end is ours */
	for (size_t i = 0; i < ARRAY_SIZE(ignored); i++)
		signal(ignored[i], SIG_IGN);
	if (!prepare(&programs, &message))
		_exit(EXIT_FAILURE);
	serve(&programs, &message);
	_exit(EXIT_SUCCESS);
}

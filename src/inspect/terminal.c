/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/terminal.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

/* The other buffer, no cursor, no wrapping; and the way back. */
#define ENTER "\033[?1049h\033[?25l\033[?7l\033[2J"
#define LEAVE "\033[?7h\033[?25h\033[?1049l"

#define LINE_END "\033[K\r\n" /* what was right of it goes */
#define REVERSED "\033[7m"
#define PLAIN    "\033[0m"

/* Those that end a process and come from our own mistakes, or from others who do not ask. */
static const int deadly[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGQUIT, SIGHUP, SIGXCPU};

static struct termios before;
static struct sigaction handlers[ARRAY_SIZE(deadly)];
static volatile sig_atomic_t taken;

/* Only what a signal handler may do. */
static void put_back(void)
{
	ssize_t ignored;

	if (!taken)
		return;
	taken = 0;
	ignored = write(STDOUT_FILENO, LEAVE, strlen(LEAVE));
	(void)ignored;
	tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

/* Then what would have happened without us. */
static void on_deadly(int number)
{
	put_back();
	signal(number, SIG_DFL);
	raise(number);
}

bool terminal_usable(void)
{
	const char *type = getenv("TERM");

	return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && type && *type &&
	       !streq(type, "dumb");
}

static void catch_deadly(void)
{
	struct sigaction action = {.sa_handler = on_deadly, .sa_flags = (int)SA_RESETHAND};

	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < ARRAY_SIZE(deadly); i++)
		sigaction(deadly[i], &action, &handlers[i]);
}

int terminal_open(struct err *err)
{
	struct termios raw;

	if (taken)
		return 0;
	if (tcgetattr(STDIN_FILENO, &before) < 0)
		return err_sys(err, -errno, "reading the settings of the terminal");
	raw = before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_iflag &= ~(tcflag_t)(IXON | ICRNL);
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	catch_deadly();
	taken = 1;
	if (tcsetattr(STDIN_FILENO, TCSANOW, &raw) < 0 ||
	    write(STDOUT_FILENO, ENTER, strlen(ENTER)) < 0) {
		int r = err_sys(err, -errno, "taking over the terminal");

		terminal_close();
		return r;
	}
	return 0;
}

void terminal_close(void)
{
	if (!taken)
		return;
	put_back();
	for (size_t i = 0; i < ARRAY_SIZE(deadly); i++)
		sigaction(deadly[i], &handlers[i], NULL);
}

void terminal_size(size_t *ret_width, size_t *ret_height)
{
	struct winsize size = {0};

	*ret_width = 80;
	*ret_height = 24;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0)
		return;
	if (size.ws_col > 0)
		*ret_width = size.ws_col;
	if (size.ws_row > 0)
		*ret_height = size.ws_row;
}

static int write_all(const char *data, size_t n, struct err *err)
{
	while (n > 0) {
		ssize_t done = write(STDOUT_FILENO, data, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return err_sys(err, -errno, "writing to the terminal");
		data += done;
		n -= (size_t)done;
	}
	return 0;
}

int terminal_draw(struct text *lines, size_t title, struct err *err)
{
	cleanup_free char *plain = text_dup(lines), *screen = NULL;
	cleanup_text struct text all = {0};
	char *rest = plain, *line;

	text_str(&all, "\033[H");
	for (size_t i = 0; (line = strsep(&rest, "\n")); i++) {
		text_printf(&all, "%s%s%s", i == title ? REVERSED : "", line,
			    i == title ? PLAIN : "");
		text_str(&all, rest ? LINE_END : "\033[K");
	}
	screen = text_dup(&all);
	return write_all(screen, all.size, err);
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/confinement.h"

#include <dirent.h>
#include <event2/event.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "config/config.h"
#include "config/problems.h"
#include "daemon/plugin.h"
#include "kernel/capabilities.h"
#include "kernel/iptables_programs.h"
#include "kernel/launcher.h"
#include "kernel/process.h"
#include "sources/credentials.h"

#define PRIVILEGED_PORTS 1024
#define FILES_MAX        250

/* LeakSanitizer traces the process at its end, which the filter would refuse. */
#if defined(__SANITIZE_ADDRESS__)
#define TRACES_ITSELF true
#elif defined(__has_feature)
#define TRACES_ITSELF __has_feature(address_sanitizer)
#else
#define TRACES_ITSELF false
#endif

struct confinement {
	struct launcher *launcher; /* NULL: no program is needed */
	struct event *gone;
	void (*launcher_gone)(void *arg);
	void *arg;
};

/* -- the launcher */

static void add_word(void *arg, const char *word)
{
	problems_add(arg, "%s", word);
}

static void on_gone(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	const struct confinement *confinement = arg;

	confinement->launcher_gone(confinement->arg);
}

static int start_launcher(const struct confinement_input *input, struct launcher **ret,
			  struct err *err)
{
	cleanup_problems struct problems paths = {0};
	cleanup_free struct launcher_program *programs = NULL;
	const struct plugin *plugin = input->plugin;
	uint64_t capabilities = input->programs ? capability_bit(CAP_NET_ADMIN) : 0;
	size_t n = 0;

	if (input->raw)
		capabilities |= capability_bit(CAP_NET_RAW);
	if (input->programs)
		iptables_programs_each(add_word, &paths);
	programs = xcalloc(paths.n + 1, sizeof(*programs));
	for (; n < paths.n; n++)
		programs[n].path = paths.v[n];
	if (plugin->path)
		programs[n++] = (struct launcher_program){
			.path = plugin->path,
			.argv = (const char *const *)plugin->argv,
			.env = (const char *const *)plugin->env,
		};
	return n > 0 ? launcher_start(programs, n, capabilities, ret, err) : 0;
}

static int use_launcher(struct confinement *confinement, const struct confinement_input *input,
			struct err *err)
{
	int r = start_launcher(input, &confinement->launcher, err);

	if (r < 0 || !confinement->launcher)
		return r;
	confinement->launcher_gone = input->launcher_gone;
	confinement->arg = input->arg;
	confinement->gone = event_new(input->loop, launcher_fd(confinement->launcher), EV_READ,
				      on_gone, confinement);
	event_add(confinement->gone, NULL);
	process_use_launcher(confinement->launcher);
	return 0;
}

/* -- files that are read again */

static void add_files_of(struct problems *files, const char *folder)
{
	DIR *dir = opendir(folder);
	const struct dirent *entry;

	add_word(files, folder);
	while (dir && (entry = readdir(dir)) && files->n < FILES_MAX)
		if (entry->d_name[0] != '.')
			problems_add(files, "%s/%s", folder, entry->d_name);
	if (dir)
		closedir(dir);
}

static bool given(const char *s)
{
	return s && *s;
}

static void list_files(const struct confinement_input *input, struct problems *files)
{
	if (given(input->config_file))
		add_word(files, input->config_file);
	if (input->credentials)
		credentials_each_file(input->credentials, add_word, files);
	if (given(input->manifests))
		add_files_of(files, input->manifests);
}

/* Why to stay root, for the caller to free; NULL: no reason. */
static char *find_reason(const struct confinement_input *input)
{
	cleanup_problems struct problems files = {0};
	size_t unreadable;
	int r;

	if (input->plugin->process)
		return xstrdup("a credential plugin is running, which only root could end");
	list_files(input, &files);
	r = sandbox_try_user((const char *const *)files.v, files.n, &unreadable);
	if (r == 0)
		return xasprintf("%s can be read by root alone",
				 unreadable < files.n ? files.v[unreadable] : "");
	return r < 0 ? xasprintf("user %d cannot be taken on here", SANDBOX_USER) : NULL;
}

/* -- */

static bool is_privileged(const struct config_server *server)
{
	return server->on && server->port > 0 && server->port < PRIVILEGED_PORTS;
}

static uint64_t needed_capabilities(const struct config *config)
{
	uint64_t needed = capability_bit(CAP_NET_ADMIN);

	if (is_privileged(&config->healthz) || is_privileged(&config->metrics))
		needed |= capability_bit(CAP_NET_BIND_SERVICE);
	return needed;
}

static enum sandbox_mode mode_of(const struct confinement_input *input)
{
	return TRACES_ITSELF ? SANDBOX_LOG : input->mode;
}

static void report(const struct confinement_input *input, const struct confinement *confinement,
		   const struct sandbox_state *state, const char *reason)
{
	char kept[CAPABILITIES_TEXT_MAX];
	const char *filter = state->filtered ? sandbox_mode_name(mode_of(input)) : "off";
	pid_t pid = confinement->launcher ? launcher_pid(confinement->launcher) : 0;

	log_info("Entered the sandbox", KV("user", LOG_INT(state->user)),
		 KV("capabilities", LOG_STR(capabilities_print(state->capabilities, kept))),
		 KV("seccomp", LOG_STR(filter)), KV("landlock", LOG_INT(state->landlock)),
		 KV("launcher", LOG_INT(pid)));
	if (state->user == 0 && reason)
		log_info("Stays root in the sandbox", KV("reason", LOG_STR(reason)));
	if (state->missing[0])
		log_warning("The sandbox is not complete", KV("missing", LOG_STR(state->missing)));
}

struct confinement *confinement_enter(const struct confinement_input *input)
{
	static const char *const writable[] = {"/proc/sys/net", NULL};
	struct confinement *confinement;
	cleanup_free char *reason = NULL;
	struct sandbox_state state;
	struct err err;

	if (input->mode == SANDBOX_OFF)
		return NULL;
	confinement = xcalloc(1, sizeof(*confinement));
	if (use_launcher(confinement, input, &err) < 0) {
		log_warning("Going on without the sandbox", KV("err", LOG_STR(err.text)));
		return confinement_free(confinement);
	}
	reason = geteuid() == 0 ? find_reason(input) : NULL;
	sandbox_enter(&(struct sandbox_spec){.mode = mode_of(input),
					     .capabilities = needed_capabilities(input->config),
					     .other_user = !reason,
					     .writable = writable},
		      &state);
	report(input, confinement, &state, reason);
	return confinement;
}

struct confinement *confinement_free(struct confinement *confinement)
{
	if (!confinement)
		return NULL;
	if (confinement->gone)
		event_free(confinement->gone);
	if (confinement->launcher)
		process_use_launcher(NULL);
	launcher_free(confinement->launcher);
	free(confinement);
	return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */

/* A mode is a row: one that nothing in src/ knows runs through the daemon and every question. */

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/text.h"
#include "build.h"
#include "daemon/daemon.h"
#include "inspect/diff_explanation.h"
#include "inspect/inspect_ops.h"
#include "null_backend.h"
#include "page/status_json.h"
#include "status_world.h"

static void a_row_is_found_by_its_name(void **state attr_unused)
{
	assert_ptr_equal(backend_find("null"), &backend_null);
	assert_ptr_equal(backend_find("iptables"), &backend_iptables);
	assert_null(backend_find("ipvs"));
}

/* -- questions */

static struct status_world *new_world(void)
{
	struct status_world *world = status_world_new(&backend_null);
	struct service *service = build_service("default/web", "10.96.0.1");

	build_port(service, "", PROTOCOL_TCP, 80, 0);
	model_set_service(world->model, service);
	status_settle(world);
	return world;
}

static void explain_and_diff_ask_the_row(void **state attr_unused)
{
	struct status_world *world = new_world();
	const struct explain_input input = {
		.backend = &backend_null, .settings = &world->settings, .model = world->model};
	const struct packet packet = {
		.family = FAMILY_IPV4,
		.source = build_addr("10.244.1.1"),
		.destination = build_addr("10.96.0.1"),
		.port = 80,
	};
	struct explain *explain = explain_new(&input);
	cleanup_explanation struct explanation *found = explain_packet(explain, &packet);
	const struct human_style style = {0};
	cleanup_text struct text text = {0};
	cleanup_free char *words = NULL;
	struct err err;

	assert_false(explanation_reaches(found));
	assert_int_equal(diff_explanation(found, NULL, &err), 0);
	assert_int_equal(found->kernel, KERNEL_SAME);
	explanation_human(found, &style, &text);
	words = text_dup(&text);
	assert_non_null(strstr(words, "in null mode"));
	explain_free(explain);
	status_world_free(world);
}

static void render_asks_the_row(void **state attr_unused)
{
	struct status_world *world = new_world();
	const struct backend_render input = {.settings = &world->settings};
	cleanup_text struct text text = {0};
	cleanup_free char *words = NULL;

	backend_find("null")->render(&input, &text);
	words = text_dup(&text);
	assert_string_equal(words, "# nothing for IPv4\n");
	status_world_free(world);
}

static void the_page_says_which_mode_it_is(void **state attr_unused)
{
	struct status_world *world = new_world();
	cleanup_text struct text text = {0};
	cleanup_free char *words = NULL;

	status_json_hello(&world->source, &text);
	words = text_dup(&text);
	assert_non_null(strstr(words, "\"mode\":\"null\""));
	status_world_free(world);
}

/* -- the daemon */

static void write_file(const char *folder, const char *name, const char *text)
{
	cleanup_free char *path = xasprintf("%s/%s", folder, name);
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

/* The first sync ends the daemon, as an operator would. */
static void end_daemon(void)
{
	raise(SIGTERM);
}

static int run_daemon(const char *folder)
{
	cleanup_free char *manifests = xasprintf("--manifests=%s", folder);
	char name[] = "--hostname-override=node-a", sandbox[] = "--no-sandbox",
	     conntrack[] = "--conntrack-max-per-core=0", oom[] = "--oom-score-adj=0";
	char *words[] = {name, sandbox, conntrack, oom, manifests, NULL};
	cleanup_options struct options options = {0};
	cleanup_config struct config config = {0};
	cleanup_problems struct problems problems = {0};
	struct err err;

	assert_int_equal(options_parse(COMMAND_RUN, 5, words, &options, &err), 0);
	assert_int_equal(options_config(&options, &config, &problems), 0);
	config.backend = &backend_null;
	return daemon_run(&(struct daemon_input){
		.options = &options,
		.config = &config,
		.manifests = folder,
		.sandbox = SANDBOX_OFF,
	});
}

static void the_daemon_syncs_by_the_row(void **state attr_unused)
{
	char folder[] = "/tmp/portolan-test-XXXXXX";
	cleanup_free char *command = NULL;

	if (unshare(CLONE_NEWNET) < 0) {
		print_message("no private network namespace: %s\n", strerror(errno));
		skip();
	}
	assert_non_null(mkdtemp(folder));
	write_file(folder, "objects.yaml",
		   "apiVersion: v1\nkind: Node\nmetadata: {name: node-a}\n"
		   "status: {addresses: [{type: InternalIP, address: 192.0.2.1}]}\n"
		   "---\n"
		   "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: default}\n"
		   "spec: {clusterIP: 10.96.0.1, ports: [{port: 80}]}\n");
	null_backend_counts = (struct null_backend_counts){.synced = end_daemon};
	assert_int_equal(run_daemon(folder), 0);
	assert_int_equal(null_backend_counts.syncs, 1);
	assert_int_equal(null_backend_counts.services, 1);
	command = xasprintf("rm -r %s", folder);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_row_is_found_by_its_name),
		cmocka_unit_test(explain_and_diff_ask_the_row),
		cmocka_unit_test(render_asks_the_row),
		cmocka_unit_test(the_page_says_which_mode_it_is),
		cmocka_unit_test(the_daemon_syncs_by_the_row),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A folder of manifests under $TMPDIR, a sink that writes down what it is told ("+svc default/web",
 * "-slice default/web-1"), and, for the tests that follow the folder, a real event loop with real
 * inotify. A wait ends with the awaited state; ten seconds without it fail the test.
 */

#include <dirent.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/text.h"
#include "sources/manifest_file.h"
#include "sources/manifests.h"

#define DEADLINE_S 10

static char *root; /* the test's own */
static char *dir;  /* the folder of manifests in it */
static struct text told, said;
static struct event_base *loop;
static struct manifests *manifests;
static int errors; /* reports of that severity */

/* The sink */

static void on_set(void *arg attr_unused, struct object object)
{
	char range[PREFIX_TEXT_MAX];

	switch (object.kind) {
	case OBJECT_SERVICE:
		text_printf(&told, "+svc %s:%u\n", object.service->key,
			    object.service->ports[0].port);
		break;
	case OBJECT_SLICE:
		text_printf(&told, "+slice %s:%u\n", slice_key(object.slice),
			    object.slice->n_endpoints);
		break;
	case OBJECT_NODE:
		text_printf(&told, "+node %s\n", object.node->zone);
		break;
	default:
		prefix_print(&object.cidr->cidrs[0], range);
		text_printf(&told, "+cidr %s %s\n", object.cidr->name, range);
	}
	object_unref(object);
}

static void on_remove(void *arg attr_unused, enum object_kind kind, const char *key)
{
	static const char *const names[] = {"svc", "slice", "node", "cidr"};

	_Static_assert(ARRAY_SIZE(names) == OBJECT_KIND_COUNT, "a name for each");
	text_printf(&told, "-%s%s%s\n", names[kind], kind == OBJECT_NODE ? "" : " ",
		    kind == OBJECT_NODE ? "" : key);
}

static void on_synced(void *arg attr_unused)
{
	text_str(&told, "synced\n");
}

static const struct source_sink sink = {
	.set = on_set,
	.remove = on_remove,
	.service_cidrs = true,
	.synced = on_synced,
};

/* Each line of a report: its severity and the text, without the folder's path. */
static void on_report(void *arg attr_unused, enum log_severity severity, const char *text)
{
	text_printf(&said, "%c ", "IWE"[severity]);
	errors += severity == LOG_SEVERITY_ERROR;
	while (*text) {
		const char *at = strstr(text, root);

		text_add(&said, text, at ? (size_t)(at - text) : strlen(text));
		text = at ? at + strlen(root) + 1 : text + strlen(text);
	}
	text_str(&said, "\n");
}

/* Compares what was told (or said) since the last time, and forgets it. */
static void assert_text(struct text *text, const char *expected, int line)
{
	char *copy = text_dup(text);

	text_done(text);
	text_init(text);
	if (!streq(copy, expected))
		fail_msg("line %d: expected\n%sgot\n%s", line, expected, copy);
	free(copy);
}

#define assert_told(expected) assert_text(&told, (expected), __LINE__)
#define assert_said(expected) assert_text(&said, (expected), __LINE__)

/* The folder */

static char *path_of(const char *name)
{
	return xasprintf("%s/%s", dir, name);
}

static void write_path(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void write_file(const char *name, const char *text)
{
	char *path cleanup_free = path_of(name);

	write_path(path, text);
}

static void rename_file(const char *from, const char *to)
{
	char *old cleanup_free = path_of(from);
	char *new cleanup_free = path_of(to);

	assert_int_equal(rename(old, new), 0);
}

static void remove_file(const char *name)
{
	char *path cleanup_free = path_of(name);

	assert_int_equal(unlink(path), 0);
}

static void remove_tree(const char *path)
{
	DIR *tree = opendir(path);
	struct dirent *entry;

	while (tree && (entry = readdir(tree))) {
		char *inner cleanup_free = xasprintf("%s/%s", path, entry->d_name);

		if (streq(entry->d_name, ".") || streq(entry->d_name, ".."))
			continue;
		if (unlink(inner) < 0)
			remove_tree(inner);
	}
	if (tree)
		closedir(tree);
	rmdir(path);
}

/* A Service in one line; the port tells its versions apart. */
#define SERVICE(name, port)                                            \
	"{apiVersion: v1, kind: Service, metadata: {name: " name "}, " \
	"spec: {clusterIP: 10.0.0.1, ports: [{port: " #port "}]}}\n"
#define SLICE(name, service, addresses)                                                 \
	"{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: " name \
	", labels: {kubernetes.io/service-name: " service "}}, addressType: IPv4, "     \
	"ports: [{port: 80}], endpoints: [" addresses "]}\n"
#define ADDRESS(a) "{addresses: [" a "]}"
#define ENDPOINTS(name, a)                                         \
	"{apiVersion: v1, kind: Endpoints, metadata: {name: " name \
	"}, subsets: [{addresses: [{ip: " a "}], ports: [{port: 80}]}]}\n"

static int set_up(void **state attr_unused)
{
	const char *tmp = getenv("TMPDIR");

	root = xasprintf("%s/portolan-test-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(root));
	dir = xasprintf("%s/manifests", root);
	assert_int_equal(mkdir(dir, 0755), 0);
	text_init(&told);
	text_init(&said);
	errors = 0;
	loop = event_base_new();
	return 0;
}

static int tear_down(void **state attr_unused)
{
	manifests = manifests_free(manifests);
	event_base_free(loop);
	text_done(&told);
	text_done(&said);
	remove_tree(root);
	free(dir);
	free(root);
	return 0;
}

static int load(void)
{
	struct err err = {0};
	int r = manifests_load(dir, "node-a", &sink, on_report, NULL, &err);

	if (r < 0)
		fail_msg("%s", err.text);
	return r;
}

static void start(void)
{
	struct err err = {0};

	if (manifests_start(loop, dir, "node-a", &sink, on_report, NULL, &manifests, &err) < 0)
		fail_msg("%s", err.text);
}

static bool holds(const struct text *text, const char *what)
{
	char *copy cleanup_free = text_dup(text);

	return strstr(copy, what);
}

static void on_late(evutil_socket_t fd attr_unused, short what attr_unused, void *late)
{
	*(bool *)late = true;
}

/* Runs the loop until the text appears in what was told or said. */
static void wait_for(struct text *text, const char *what, int line)
{
	struct timeval deadline = {.tv_sec = DEADLINE_S};
	bool late = false;
	struct event *timer = evtimer_new(loop, on_late, &late);

	evtimer_add(timer, &deadline);
	while (!late && !holds(text, what))
		event_base_loop(loop, EVLOOP_ONCE);
	event_free(timer);
	if (late)
		fail_msg("line %d: no \"%s\" within %d s, but\n%s", line, what, DEADLINE_S,
			 text_dup(text));
}

#define wait_told(what) wait_for(&told, (what), __LINE__)
#define wait_said(what) wait_for(&said, (what), __LINE__)

/* Runs the loop until a change to another file, made now, has come through: nothing before it is
 * missing. */
static void wait_settled(void)
{
	static int n;
	char *service cleanup_free = xasprintf("+svc default/marker-%d:1\n", ++n);
	char *text cleanup_free =
		xasprintf("{apiVersion: v1, kind: Service, metadata: {name: marker-%d}, "
			  "spec: {clusterIP: 10.0.0.9, ports: [{port: 1}]}}\n",
			  n);
	char *name cleanup_free = xasprintf("marker-%d.yaml", n);

	write_file(name, text);
	wait_for(&told, service, __LINE__);
}

/* Loading */

static void reads_yaml_yml_and_json_and_several_documents(void **state attr_unused)
{
	write_file("a.yaml", SERVICE("a", 1) "---\n" SERVICE("b", 2) "---\n# nothing\n---\n");
	write_file("b.yml", SLICE("a-1", "a", ADDRESS("10.1.0.1")));
	write_file("c.json",
		   "{\"apiVersion\":\"v1\",\"kind\":\"Service\",\"metadata\":{\"name\":\"c\"},"
		   "\"spec\":{\"clusterIP\":\"10.0.0.3\",\"ports\":[{\"port\":3}]}}");
	assert_int_equal(load(), 0);
	assert_told("+svc default/a:1\n+svc default/b:2\n+svc default/c:3\n"
		    "+slice default/a-1:1\nsynced\n");
	assert_said("");
}

static void other_names_are_not_read(void **state attr_unused)
{
	char *folder cleanup_free = path_of("folder.yaml");
	char *fifo cleanup_free = path_of("fifo.yaml");

	write_file(".hidden.yaml", "{{{");
	write_file("web.yaml~", "{{{");
	write_file("#web.yaml#", "{{{");
	write_file("web.yaml.swp", "{{{");
	write_file("README", "{{{");
	assert_int_equal(mkdir(folder, 0755), 0);
	assert_int_equal(mkfifo(fifo, 0644), 0);
	assert_int_equal(load(), 0);
	assert_told("synced\n");
	assert_said("");
	rmdir(folder);
}

static void lists_are_unpacked(void **state attr_unused)
{
	write_file(
		"a.yaml",
		"apiVersion: v1\nkind: List\nitems:\n- " SERVICE(
			"a", 1) "- apiVersion: v1\n  kind: List\n  items: [" SERVICE("b", 2) "]\n");
	write_file("b.yaml",
		   "apiVersion: v1\nkind: ServiceList\nitems:\n"
		   "- {metadata: {name: c}, spec: {clusterIP: 10.0.0.3, ports: [{port: 3}]}}\n");
	write_file("c.yaml", "apiVersion: discovery.k8s.io/v1\nkind: EndpointSliceList\nitems:\n- "
			     "{metadata: {name: s, labels: {kubernetes.io/service-name: a}}}\n");
	write_file("d.yaml", "apiVersion: v1\nkind: NodeList\nitems: ~\n");
	assert_int_equal(load(), 0);
	assert_told("+svc default/a:1\n+svc default/b:2\n+svc default/c:3\n+slice "
		    "default/s:0\nsynced\n");
	assert_said("");
}

static void unknown_kinds_get_one_line_each(void **state attr_unused)
{
	write_file("a.yaml",
		   "{apiVersion: apps/v1, kind: Deployment}\n---\n{apiVersion: v1, kind: Pod}\n"
		   "---\n{apiVersion: v1, kind: Pod}\n---\n" SERVICE(
			   "a",
			   1) "---\n{apiVersion: discovery.k8s.io/v1beta1, kind: EndpointSlice}\n");
	assert_int_equal(load(), 0);
	assert_told("+svc default/a:1\nsynced\n");
	assert_said(
		"I manifests/a.yaml:1:1: apps/v1 Deployment is not a kind that a proxy reads\n"
		"I manifests/a.yaml:3:1: v1 Pod is not a kind that a proxy reads\n"
		"W manifests/a.yaml:9:1: discovery.k8s.io/v1beta1 EndpointSlice is not a kind that "
		"a proxy reads: did you mean discovery.k8s.io/v1 EndpointSlice?\n");
}

static void a_kind_that_is_nearly_ours_is_a_warning(void **state attr_unused)
{
	write_file("a.yaml",
		   "{apiVersion: v1, kind: service}\n---\n{kind: Service}\n---\n"
		   "{apiVersion: core/v1, kind: Node}\n---\n{apiVersion: v1, kind: endpointslice}\n"
		   "---\n{apiVersion: V1, kind: serviceList}\n---\n{apiVersion: v1, kind: list}\n"
		   "---\n{apiVersion: serving.knative.dev/v1, kind: Service}\n");
	assert_int_equal(load(), 0);
	assert_said(
		"W manifests/a.yaml:1:1: v1 service is not a kind that a proxy reads: did you mean "
		"v1 Service?\n"
		"W manifests/a.yaml:3:1: (no apiVersion) Service is not a kind that a proxy reads: "
		"did you mean v1 Service?\n"
		"W manifests/a.yaml:5:1: core/v1 Node is not a kind that a proxy reads: did you "
		"mean v1 Node?\n"
		"W manifests/a.yaml:7:1: v1 endpointslice is not a kind that a proxy reads: did "
		"you mean discovery.k8s.io/v1 EndpointSlice?\n"
		"W manifests/a.yaml:9:1: V1 serviceList is not a kind that a proxy reads: did you "
		"mean v1 ServiceList?\n"
		"W manifests/a.yaml:11:1: v1 list is not a kind that a proxy reads: did you mean "
		"v1 List?\n"
		"I manifests/a.yaml:13:1: serving.knative.dev/v1 Service is not a kind that a "
		"proxy reads\n");
}

static void a_misspelt_field_is_told_and_the_object_stays_in_force(void **state attr_unused)
{
	write_file("a.yaml",
		   "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec:\n"
		   "  clusterIP: 10.0.0.1\n  externaltrafficPolicy: Local\n"
		   "  ports:\n  - port: 80\n    node_port: 30080\n    targetPort: 8080\n");
	write_file("b.json",
		   "{\"apiVersion\":\"v1\",\"kind\":\"Service\",\"metadata\":{\"name\":\"j\"},\n"
		   "\"spec\":{\"clusterIp\":\"None\",\"clusterIP\":\"10.0.0.3\","
		   "\"ports\":[{\"port\":3}]}}");
	assert_int_equal(load(), 0);
	assert_told("+svc default/j:3\n+svc default/web:80\nsynced\n");
	assert_said("W manifests/a.yaml:9:5: unknown field \"node_port\" in Service default/web: "
		    "did you mean nodePort?\n"
		    "W manifests/a.yaml:6:3: unknown field \"externaltrafficPolicy\" in Service "
		    "default/web: did you mean externalTrafficPolicy?\n"
		    "W manifests/b.json:2:9: unknown field \"clusterIp\" in Service default/j: did "
		    "you mean clusterIP?\n");
}

static void a_broken_file_gives_one_error_and_the_others_count(void **state attr_unused)
{
	write_file("a.yaml", "apiVersion: v1\nkind: Service\nmetadata:\n  name: a\nspec:\n"
			     "  ports:\n  - port: \"80\"\n  - port: \"81\"\n");
	write_file("b.yaml", SERVICE("b", 2) "---\nfoo\n");
	write_file("c.yaml", SERVICE("c", 3));
	write_file("d.yaml", "{metadata: {name: x}}");
	write_file("e.yaml", "{kind: List, apiVersion: v1, items: 3}");
	assert_int_equal(load(), 4);
	assert_told("+svc default/c:3\nsynced\n");
	assert_said("E manifests/a.yaml:7:11: Service default/a: spec.ports[0].port: expected an "
		    "integer, "
		    "found the string \"80\"\n"
		    "E manifests/b.yaml:3:1: expected a mapping, found the string \"foo\"\n"
		    "E manifests/d.yaml:1:1: an object without a kind\n"
		    "E manifests/e.yaml:1:37: items: expected a list\n");
}

static void a_service_that_cannot_be_served_is_named(void **state attr_unused)
{
	write_file(
		"a.yaml",
		SERVICE("a", 99999) "---\n" SERVICE(
			"b",
			2) "---\n"
			   "{apiVersion: v1, kind: Service, metadata: {name: c}, spec: {ports: "
			   "[{port: 1}]}}\n"
			   "---\n{apiVersion: v1, kind: Service, metadata: {name: d}, "
			   "spec: {clusterIP: None}}\n"
			   "---\n{apiVersion: v1, kind: Service, metadata: {name: \"e\\nf\"}}\n");
	assert_int_equal(load(), 3);
	assert_told("+svc default/b:2\nsynced\n");
	assert_said(
		"E manifests/a.yaml:1:1: Service default/a cannot be served: spec.ports[0]: port "
		"99999 is "
		"not between 1 and 65535\n"
		"E manifests/a.yaml:5:1: Service default/c cannot be served: it has no cluster IP\n"
		"I manifests/a.yaml:7:1: Service default/d is left out: it is headless\n"
		"E manifests/a.yaml:9:1: Service default/e?f cannot be served: metadata.name "
		"\"e?f\" "
		"is not a name that Kubernetes allows\n");
}

static void an_unreadable_folder_is_an_error(void **state attr_unused)
{
	struct err err = {0};

	assert_int_equal(manifests_load("/nonexistent/dir", "node-a", &sink, on_report, NULL, &err),
			 -ENOENT);
	assert_string_equal(err.text, "/nonexistent/dir: No such file or directory");
	assert_int_equal(manifests_start(loop, "/nonexistent/dir", "node-a", &sink, on_report, NULL,
					 &manifests, &err),
			 -ENOENT);
	assert_told("");
}

static void only_the_own_node_counts(void **state attr_unused)
{
	write_file("a.yaml", "{apiVersion: v1, kind: Node, metadata: {name: node-b, labels: "
			     "{topology.kubernetes.io/zone: zb}}}\n---\n"
			     "{apiVersion: v1, kind: Node, metadata: {name: node-a, labels: "
			     "{topology.kubernetes.io/zone: za}}}\n");
	assert_int_equal(load(), 0);
	assert_told("+node za\nsynced\n");
}

static void the_first_file_by_name_wins(void **state attr_unused)
{
	write_file("b.yaml", SERVICE("web", 2));
	write_file("a.yaml", "---\n" SERVICE("web", 1));
	write_file("c.yaml", SERVICE("other", 3) "---\n" SERVICE("other", 4));
	assert_int_equal(load(), 0);
	assert_told("+svc default/other:3\n+svc default/web:1\nsynced\n");
	assert_said(
		"W Service default/web is in manifests/a.yaml:2 and again in manifests/b.yaml:1: "
		"the "
		"first counts\n"
		"W Service default/other is in manifests/c.yaml:1 and again in manifests/c.yaml:3: "
		"the first counts\n");
}

/* 253 bytes that differ near their end */
static void long_names_are_told_apart(void **state attr_unused)
{
	char name[254];
	char *text cleanup_free = NULL;

	memset(name, 'a', sizeof(name));
	name[253] = '\0';
	text = xasprintf(
		"{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: %s, "
		"namespace: null, labels: {kubernetes.io/service-name: a}}}\n",
		name);
	write_file("a.yaml", text);
	*strstr(text, "aaa, namespace") = 'b';
	write_file("b.yaml", text);
	assert_int_equal(load(), 0);
	assert_said("");
	assert_true(holds(&told, "baa:0\n+slice") || holds(&told, "aaa:0\n+slice"));
}

static void the_order_of_objects_does_not_matter(void **state attr_unused)
{
	static const char expected[] = "+svc default/a:1\n+svc default/b:2\n+slice default/a-1:1\n"
				       "+slice default/b-1:1\nsynced\n";

	write_file("1.yaml", SERVICE("b", 2) "---\n" SLICE("a-1", "a", ADDRESS("10.1.0.1")));
	write_file("2.yaml", SLICE("b-1", "b", ADDRESS("10.1.0.2")) "---\n" SERVICE("a", 1));
	load();
	assert_told(expected);
	write_file("1.yaml", SERVICE("a", 1) "---\n" SLICE("b-1", "b", ADDRESS("10.1.0.2")));
	write_file("2.yaml", SERVICE("b", 2) "---\n" SLICE("a-1", "a", ADDRESS("10.1.0.1")));
	load();
	assert_told(expected);
}

static void endpoints_give_way_to_endpoint_slices(void **state attr_unused)
{
	write_file("a.yaml", ENDPOINTS("web", "10.1.0.1") "---\n" ENDPOINTS("db", "10.1.0.2"));
	write_file("b.yaml", SLICE("web-1", "web", ADDRESS("10.1.0.3")));
	assert_int_equal(load(), 0);
	assert_told("+slice default/db~0-IPv4:1\n+slice default/web-1:1\nsynced\n");
	assert_said("I manifests/a.yaml:1: Endpoints default/web is left out: the Service has "
		    "EndpointSlices\n");
}

static void dropped_details_are_told(void **state attr_unused)
{
	write_file("a.yaml",
		   "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: "
		   "10.0.0.1, externalIPs: [x], ports: [{port: 1}]}}\n");
	assert_int_equal(load(), 0);
	assert_said("W manifests/a.yaml:1:1: Service default/a: spec.externalIPs: \"x\" is not an "
		    "address\n");
}

static void a_flood_of_messages_is_cut(void **state attr_unused)
{
	struct text text;
	char *copy;

	text_init(&text);
	for (int i = 0; i < 1000; i++)
		text_printf(&text, "---\n{apiVersion: v1, kind: Service, metadata: {name: s%d}}\n",
			    i);
	copy = text_dup(&text);
	text_done(&text);
	write_file("a.yaml", copy);
	free(copy);
	assert_int_equal(load(), 1000);
	assert_int_equal(errors, 201);
	assert_true(holds(&said, "further messages about this file are left out"));
}

static void a_file_that_is_too_large_is_refused(void **state attr_unused)
{
	char *path cleanup_free = path_of("a.yaml");

	write_path(path, "");
	assert_int_equal(truncate(path, (64 << 20) + 1), 0);
	assert_int_equal(load(), 1);
	assert_said("E manifests/a.yaml: larger than 64 MiB\n");
}

/* Following */

static void a_new_file_is_picked_up(void **state attr_unused)
{
	start();
	assert_told("synced\n");
	write_file("a.yaml", SERVICE("a", 1));
	wait_told("+svc default/a:1\n");
	assert_told("+svc default/a:1\n");
}

static void only_real_differences_are_told(void **state attr_unused)
{
	write_file("a.yaml", SERVICE("a", 1) "---\n" SLICE("a-1", "a", ADDRESS("10.1.0.1")));
	start();
	assert_told("+svc default/a:1\n+slice default/a-1:1\nsynced\n");
	write_file("a.yaml", "# again\n" SERVICE("a", 1) "---\n" SLICE(
				     "a-1", "a", ADDRESS("10.1.0.1") "," ADDRESS("10.1.0.2")));
	wait_told("+slice default/a-1:2\n");
	assert_told("+slice default/a-1:2\n");
}

static void an_atomic_rename_is_read_at_once(void **state attr_unused)
{
	write_file("a.yaml", SERVICE("a", 1));
	start();
	write_file(".a.yaml.tmp", SERVICE("a", 2));
	rename_file(".a.yaml.tmp", "a.yaml");
	wait_told("+svc default/a:2\n");
	assert_told("+svc default/a:1\nsynced\n+svc default/a:2\n");
}

static void a_removed_file_takes_its_objects_along(void **state attr_unused)
{
	write_file("a.yaml", SERVICE("a", 1) "---\n" SLICE("a-1", "a", ADDRESS("10.1.0.1")));
	write_file("b.yaml", SERVICE("b", 2));
	start();
	remove_file("a.yaml");
	wait_told("-svc default/a\n");
	assert_told("+svc default/a:1\n+svc default/b:2\n+slice default/a-1:1\nsynced\n"
		    "-slice default/a-1\n-svc default/a\n");
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* vim and emacs: the old one moves away, a new one is written, the back-up goes. Returns the time
 * it took. */
static int64_t save_as_editors_do(const char *text)
{
	char *path cleanup_free = path_of("a.yaml");
	int64_t before = now_ms();
	int fd;

	write_file("4913", "");
	remove_file("4913");
	rename_file("a.yaml", "a.yaml~");
	event_base_loop(loop, EVLOOP_NONBLOCK);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);
	assert_true(fd >= 0);
	event_base_loop(loop, EVLOOP_NONBLOCK);
	assert_true(write(fd, text, strlen(text)) > 0);
	event_base_loop(loop, EVLOOP_NONBLOCK);
	close(fd);
	remove_file("a.yaml~");
	return now_ms() - before;
}

/* It is promised only to those who save within 100 ms, so a slow machine tries again. */
static void an_editors_save_does_not_make_objects_vanish(void **state attr_unused)
{
	int64_t took;

	write_file("a.yaml", SERVICE("a", 1));
	start();
	assert_told("+svc default/a:1\nsynced\n");
	do {
		write_file("a.yaml", SERVICE("a", 1));
		wait_settled();
		text_done(&told);
		text_init(&told);
		took = save_as_editors_do(SERVICE("a", 2));
		wait_told("+svc default/a:2\n");
	} while (took >= 100);
	assert_told("+svc default/a:2\n");
	assert_said("");
}

/* Truncates the file, and writes half of it. */
static FILE *begin_writing(const char *path)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(SERVICE("a", 2), file);
	fflush(file);
	return file;
}

/* It waits for two seconds, no longer: a slow machine tries again. */
static void a_file_being_written_waits_for_its_writer(void **state attr_unused)
{
	char *path cleanup_free = path_of("a.yaml");
	FILE *file = NULL;
	int64_t before;

	start();
	do {
		if (file)
			fclose(file);
		write_file("a.yaml", SERVICE("a", 1) "---\n" SERVICE("b", 1));
		wait_settled();
		text_done(&told);
		text_init(&told);
		before = now_ms();
		file = begin_writing(path);
		wait_settled(); /* another file's change does not make us read it either */
	} while (now_ms() - before >= 2000);
	assert_false(holds(&told, "-svc default/b"));
	assert_false(holds(&told, "+svc default/a:2"));
	fputs("---\n" SERVICE("b", 2), file);
	fclose(file);
	wait_told("+svc default/b:2\n");
	assert_true(holds(&told, "+svc default/a:2"));
	assert_false(holds(&told, "-svc"));
}

static void a_half_written_file_is_read_again_when_closed(void **state attr_unused)
{
	char *path cleanup_free = path_of("a.yaml");
	FILE *file;

	start();
	file = fopen(path, "w");
	fputs(SERVICE("a", 1), file);
	fflush(file);
	wait_told("+svc default/a:1\n"); /* quiet for long enough */
	fputs("---\n" SERVICE("b", 1), file);
	fclose(file);
	wait_told("+svc default/b:1\n");
	assert_told("synced\n+svc default/a:1\n+svc default/b:1\n");
}

/* truncate(2) opens and closes nothing */
static void truncation_in_place_is_seen(void **state attr_unused)
{
	char *path cleanup_free = path_of("a.yaml");

	write_file("a.yaml", SERVICE("a", 1));
	start();
	assert_int_equal(truncate(path, 0), 0);
	wait_told("-svc default/a\n");
}

static void a_hard_link_is_picked_up(void **state attr_unused)
{
	char *path cleanup_free = path_of("a.yaml");
	char *outside cleanup_free = xasprintf("%s/outside", root);

	write_path(outside, SERVICE("a", 1));
	start();
	assert_int_equal(link(outside, path), 0);
	wait_told("+svc default/a:1\n");
}

/* as kubelet mounts a ConfigMap: a.yaml -> ..data/a.yaml, ..data -> ..v1, swapped by rename */
static void a_swapped_data_link_is_followed(void **state attr_unused)
{
	char *v1 cleanup_free = path_of("..v1"), *v2 cleanup_free = path_of("..v2");
	char *data cleanup_free = path_of("..data"), *visible cleanup_free = path_of("a.yaml");
	char *temporary cleanup_free = path_of("..data_tmp");

	assert_int_equal(mkdir(v1, 0755) | mkdir(v2, 0755), 0);
	write_file("..v1/a.yaml", SERVICE("a", 1));
	write_file("..v2/a.yaml", SERVICE("a", 2));
	assert_int_equal(symlink("..v1", data) | symlink("..data/a.yaml", visible), 0);
	start();
	assert_told("+svc default/a:1\nsynced\n");
	assert_int_equal(symlink("..v2", temporary), 0);
	assert_int_equal(rename(temporary, data), 0);
	wait_told("+svc default/a:2\n");
	assert_told("+svc default/a:2\n");
	remove_tree(v1);
	remove_tree(v2);
}

static void a_broken_file_keeps_the_objects_last_read(void **state attr_unused)
{
	write_file("a.yaml", SERVICE("a", 1));
	start();
	write_file("a.yaml", SERVICE("a", 2) "---\n{");
	wait_said("a.yaml");
	assert_said("E manifests/a.yaml:4:1: while parsing a flow node: did not find expected node "
		    "content"
		    ", keeping the objects last read from it\n");
	wait_settled();
	assert_false(holds(&told, "default/a:2"));
	assert_false(holds(&told, "-svc"));
	write_file("a.yaml", SERVICE("a", 3));
	wait_told("+svc default/a:3\n");
	assert_said("");
}

static void a_refused_object_keeps_its_last_version(void **state attr_unused)
{
	write_file("a.yaml", SERVICE("a", 1) "---\n" SERVICE("b", 1));
	start();
	write_file("a.yaml", SERVICE("a", 70000) "---\n" SERVICE("b", 2));
	wait_told("+svc default/b:2\n");
	assert_told("+svc default/a:1\n+svc default/b:1\nsynced\n+svc default/b:2\n");
	assert_said("E manifests/a.yaml:1:1: Service default/a cannot be served: spec.ports[0]: "
		    "port 70000 is "
		    "not between 1 and 65535, keeping the previous version\n");
}

static void a_service_that_turns_headless_goes(void **state attr_unused)
{
	write_file("a.yaml", SERVICE("a", 1));
	start();
	write_file("a.yaml", "{apiVersion: v1, kind: Service, metadata: {name: a}, "
			     "spec: {clusterIP: None, ports: [{port: 1}]}}\n");
	wait_told("-svc default/a\n");
	write_file("a.yaml", SERVICE("a", 1));
	wait_told("-svc default/a\n+svc default/a:1\n");
}

static void the_second_file_takes_over_when_the_first_goes(void **state attr_unused)
{
	write_file("a.yaml", SERVICE("web", 1));
	write_file("b.yaml", SERVICE("web", 2));
	start();
	assert_said("W Service default/web is in manifests/a.yaml:1 and again in "
		    "manifests/b.yaml:1: the "
		    "first counts\n");
	write_file("c.yaml", SERVICE("other", 3));
	wait_told("+svc default/other:3\n");
	assert_said(""); /* not said again */
	remove_file("a.yaml");
	wait_told("+svc default/web:2\n");
	assert_told("+svc default/web:1\nsynced\n+svc default/other:3\n+svc default/web:2\n");
}

static void endpoints_come_back_when_the_slices_go(void **state attr_unused)
{
	write_file("a.yaml", ENDPOINTS("web", "10.1.0.1"));
	write_file("b.yaml", SLICE("web-1", "web", ADDRESS("10.1.0.3")));
	start();
	remove_file("b.yaml");
	wait_told("+slice default/web~0-IPv4:1\n");
	assert_told("+slice default/web-1:1\nsynced\n-slice default/web-1\n"
		    "+slice default/web~0-IPv4:1\n");
}

static void the_node_comes_and_goes(void **state attr_unused)
{
	start();
	write_file("n.yaml", "{apiVersion: v1, kind: Node, metadata: {name: node-a, labels: "
			     "{topology.kubernetes.io/zone: za}}}\n");
	wait_told("+node za\n");
	remove_file("n.yaml");
	wait_told("-node\n");
}

#define CIDR(name, range)                                                                    \
	"{apiVersion: networking.k8s.io/v1, kind: ServiceCIDR, metadata: {name: " name "}, " \
	"spec: {cidrs: [" range "]}}\n"

static void service_cidrs_come_change_and_go(void **state attr_unused)
{
	write_file("a.yaml",
		   CIDR("kubernetes", "10.96.0.0/12") "---\n" CIDR("more", "10.1.0.0/16"));
	write_file("b.yaml", CIDR("more", "10.2.0.0/16"));
	start();
	assert_told("+cidr kubernetes 10.96.0.0/12\n+cidr more 10.1.0.0/16\nsynced\n");
	assert_said("W ServiceCIDR more is in manifests/a.yaml:3 and again in "
		    "manifests/b.yaml:1: the first counts\n");
	remove_file("a.yaml");
	wait_told("+cidr more 10.2.0.0/16\n");
	assert_told("-cidr kubernetes\n+cidr more 10.2.0.0/16\n");
}

static void a_refused_service_cidr_keeps_its_last_version(void **state attr_unused)
{
	write_file("a.yaml", CIDR("kubernetes", "10.96.0.0/12"));
	start();
	write_file("a.yaml", CIDR("kubernetes", "nothing"));
	wait_said("ServiceCIDR kubernetes cannot be served: spec.cidrs \"nothing\" is not a range, "
		  "keeping the previous version");
	wait_settled();
	assert_false(holds(&told, "-cidr"));
}

static void a_sink_that_asks_for_no_service_cidrs_gets_none(void **state attr_unused)
{
	struct source_sink other = sink;
	struct err err = {0};

	other.service_cidrs = false;
	write_file("a.yaml", CIDR("kubernetes", "10.96.0.0/12"));
	assert_int_equal(
		manifests_start(loop, dir, "node-a", &other, on_report, NULL, &manifests, &err), 0);
	remove_file("a.yaml");
	wait_settled();
	assert_false(holds(&told, "cidr"));
}

static void a_burst_of_events_is_one_scan(void **state attr_unused)
{
	write_file("a.yaml", SERVICE("a", 1));
	start();
	for (int i = 0; i < 100; i++)
		write_file("a.yaml", i % 2 ? SERVICE("a", 2) : SERVICE("a", 3));
	wait_told("+svc default/a:2\n");
	assert_told("+svc default/a:1\nsynced\n+svc default/a:2\n");
}

/* more events than the kernel's queue holds, for files that then are not named */
static void lost_events_cause_a_scan(void **state attr_unused)
{
	FILE *limit = fopen("/proc/sys/fs/inotify/max_queued_events", "r");
	int n = 0;

	if (!limit || fscanf(limit, "%d", &n) != 1 || n > 20000)
		n = 0;
	if (limit)
		fclose(limit);
	if (!n)
		skip();
	start();
	for (int i = 0; i <= n; i++) { /* two names in turn: equal neighbours are merged */
		write_file("x", "");
		write_file("y", "");
	}
	write_file("a.yaml", SERVICE("a", 1));
	wait_told("+svc default/a:1\n");
}

static void a_folder_that_vanishes_leaves_everything_in_force(void **state attr_unused)
{
	write_file("a.yaml", SERVICE("a", 1));
	write_file("b.yaml", SERVICE("b", 1));
	start();
	assert_told("+svc default/a:1\n+svc default/b:1\nsynced\n");
	remove_tree(dir);
	wait_said("cannot be read");
	assert_said("W The folder manifests cannot be read (No such file or directory), keeping "
		    "the objects "
		    "last read from it\n");
	assert_int_equal(mkdir(dir, 0755), 0);
	write_file("a.yaml", SERVICE("a", 1));
	write_file("b.yaml", SERVICE("b", 2));
	wait_told("+svc default/b:2\n");
	assert_told("+svc default/b:2\n");
	assert_said("I The folder manifests is back\n");
	/* and it is followed as before */
	write_file("a.yaml", SERVICE("a", 3));
	wait_told("+svc default/a:3\n");
}

static int64_t guard_now_ms;

static int64_t guard_clock(void)
{
	return guard_now_ms;
}

static void on_held(void *arg attr_unused, const struct source_held *held)
{
	text_printf(&told, "held %s %zu\n", held->resource, held->n);
}

/* n Services in two files, followed with a guard; what was told until then is forgotten. */
static void start_guarded(int n)
{
	const struct manifests_guard guard = {.on = true, .held = on_held, .now_ms = guard_clock};
	struct text files[2] = {{0}, {0}};

	for (int i = 0; i < n; i++)
		text_printf(&files[i % 2],
			    "---\n{apiVersion: v1, kind: Service, metadata: {name: s%d}, "
			    "spec: {clusterIP: 10.0.0.1, ports: [{port: 1}]}}\n",
			    i);
	for (int i = 0; i < 2; i++) {
		char *content cleanup_free = text_dup(&files[i]);

		write_file(i ? "b.yaml" : "a.yaml", content);
		text_done(&files[i]);
	}
	guard_now_ms = 1000;
	start();
	manifests_set_guard(manifests, &guard);
	text_done(&told);
	text_init(&told);
}

#define HELD                                                                                      \
	"E The folder manifests has no manifests any more, its 20 Services are held back for 60 " \
	"s, or until SIGUSR2\n"

static void a_folder_that_is_suddenly_empty_is_held_back(void **state attr_unused)
{
	start_guarded(20);
	remove_file("a.yaml");
	remove_file("b.yaml");
	wait_said("has no manifests any more");
	assert_said(HELD);
	assert_told("held services 20\n");
	write_file("a.yaml", SERVICE("s0", 1)); /* then it is not empty, and what it says counts */
	wait_told("-svc default/s1\n");
	assert_said("I What the folder manifests lacks is held back no more: it has manifests "
		    "again\n");
}

static void a_folder_that_stays_empty_is_believed_after_a_minute(void **state attr_unused)
{
	start_guarded(20);
	remove_file("a.yaml");
	remove_file("b.yaml");
	wait_said("has no manifests any more");
	assert_told("held services 20\n");
	guard_now_ms += 60000;
	write_file("README", "makes it look");
	wait_told("-svc default/s19\n");
	assert_said(HELD "I What the folder manifests lacks is held back no more: it had none for "
			 "a minute\n");
}

static void a_folder_that_is_held_back_goes_when_asked_for(void **state attr_unused)
{
	start_guarded(20);
	assert_false(manifests_release(manifests));
	remove_file("a.yaml");
	remove_file("b.yaml");
	wait_said("has no manifests any more");
	assert_true(manifests_release(manifests));
	assert_true(holds(&told, "-svc default/s19\n"));
	assert_true(holds(&told, "held services 0\n"));
	assert_true(holds(&said, "held back no more: it was asked for\n"));
}

static void few_services_of_a_folder_go_at_once(void **state attr_unused)
{
	start_guarded(19);
	remove_file("a.yaml");
	remove_file("b.yaml");
	wait_told("-svc default/s18\n");
	assert_said("");
}

static void a_folder_that_is_replaced_is_followed(void **state attr_unused)
{
	char *old cleanup_free = xasprintf("%s/old", root);
	char *new cleanup_free = xasprintf("%s/new", root);
	char *file cleanup_free = xasprintf("%s/new/a.yaml", root);

	write_file("a.yaml", SERVICE("a", 1));
	write_file("b.yaml", SERVICE("b", 1));
	start();
	assert_int_equal(mkdir(new, 0755), 0);
	write_path(file, SERVICE("a", 2));
	assert_int_equal(rename(dir, old), 0);
	assert_int_equal(rename(new, dir), 0);
	wait_told("-svc default/b\n");
	assert_told(
		"+svc default/a:1\n+svc default/b:1\nsynced\n+svc default/a:2\n-svc default/b\n");
	write_file("c.yaml", SERVICE("c", 1));
	wait_told("+svc default/c:1\n");
}

static void a_folder_behind_a_link_is_followed(void **state attr_unused)
{
	char *link_path = xasprintf("%s/current", root);
	char *temporary cleanup_free = xasprintf("%s/current.tmp", root);
	char *other cleanup_free = xasprintf("%s/other", root);
	char *file cleanup_free = xasprintf("%s/other/a.yaml", root);
	char *real = dir;

	write_file("a.yaml", SERVICE("a", 1));
	assert_int_equal(mkdir(other, 0755), 0);
	write_path(file, SERVICE("a", 2));
	assert_int_equal(symlink("manifests", link_path), 0);
	dir = link_path;
	start();
	assert_int_equal(symlink("other", temporary), 0);
	assert_int_equal(rename(temporary, link_path), 0);
	wait_told("+svc default/a:2\n");
	write_path(file, SERVICE("a", 3));
	wait_told("+svc default/a:3\n");
	free(real);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(reads_yaml_yml_and_json_and_several_documents),
		T(other_names_are_not_read),
		T(lists_are_unpacked),
		T(unknown_kinds_get_one_line_each),
		T(a_kind_that_is_nearly_ours_is_a_warning),
		T(a_misspelt_field_is_told_and_the_object_stays_in_force),
		T(a_broken_file_gives_one_error_and_the_others_count),
		T(a_service_that_cannot_be_served_is_named),
		T(an_unreadable_folder_is_an_error),
		T(only_the_own_node_counts),
		T(the_first_file_by_name_wins),
		T(long_names_are_told_apart),
		T(the_order_of_objects_does_not_matter),
		T(endpoints_give_way_to_endpoint_slices),
		T(dropped_details_are_told),
		T(a_flood_of_messages_is_cut),
		T(a_file_that_is_too_large_is_refused),
		T(a_new_file_is_picked_up),
		T(only_real_differences_are_told),
		T(an_atomic_rename_is_read_at_once),
		T(a_removed_file_takes_its_objects_along),
		T(an_editors_save_does_not_make_objects_vanish),
		T(a_file_being_written_waits_for_its_writer),
		T(a_half_written_file_is_read_again_when_closed),
		T(truncation_in_place_is_seen),
		T(a_hard_link_is_picked_up),
		T(a_swapped_data_link_is_followed),
		T(a_broken_file_keeps_the_objects_last_read),
		T(a_refused_object_keeps_its_last_version),
		T(a_service_that_turns_headless_goes),
		T(the_second_file_takes_over_when_the_first_goes),
		T(endpoints_come_back_when_the_slices_go),
		T(the_node_comes_and_goes),
		T(service_cidrs_come_change_and_go),
		T(a_refused_service_cidr_keeps_its_last_version),
		T(a_sink_that_asks_for_no_service_cidrs_gets_none),
		T(a_burst_of_events_is_one_scan),
		T(lost_events_cause_a_scan),
		T(a_folder_that_vanishes_leaves_everything_in_force),
		T(a_folder_that_is_suddenly_empty_is_held_back),
		T(a_folder_that_stays_empty_is_believed_after_a_minute),
		T(a_folder_that_is_held_back_goes_when_asked_for),
		T(few_services_of_a_folder_go_at_once),
		T(a_folder_that_is_replaced_is_followed),
		T(a_folder_behind_a_link_is_followed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

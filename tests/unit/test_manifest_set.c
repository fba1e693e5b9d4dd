/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A set of files in a folder under $TMPDIR, and a sink that remembers what is in force: "svc
 * default/a" -> its port, or its number of endpoints. Whatever happened to the files before, a set
 * has to end as one that reads them for the first time.
 */

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/text.h"
#include "random_cluster.h"
#include "sources/manifest_set.h"

static char *folder;
static DIR *folder_dir;
static size_t n_allocations;

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
	n_allocations++;
	return __real_malloc(size);
}

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size)
{
	n_allocations++;
	return __real_calloc(count, size);
}

/* -- the sink */

struct in_force {
	size_t value;
	char name[];
};

struct listener {
	struct map objects; /* struct in_force */
	struct text said;
	size_t n_told;
};

static const char *name_of(enum object_kind kind, const char *key)
{
	static char name[512];

	snprintf(name, sizeof(name), "%s %s", kind == OBJECT_SERVICE ? "svc" : "slice", key);
	return name;
}

static void on_set(void *arg, struct object object)
{
	struct listener *listener = arg;
	struct in_force *in_force =
		map_ensure(&listener->objects, name_of(object.kind, object_key(object)),
			   sizeof(*in_force), offsetof(struct in_force, name));

	in_force->value = object.kind == OBJECT_SERVICE ? object.service->ports[0].port
							: object.slice->n_endpoints;
	listener->n_told++;
	object_unref(object);
}

static void on_remove(void *arg, enum object_kind kind, const char *key)
{
	struct listener *listener = arg;
	struct in_force *in_force = map_remove(&listener->objects, name_of(kind, key));

	assert_non_null(in_force);
	listener->n_told++;
	free(in_force);
}

static void on_report(void *arg, enum log_severity severity attr_unused, const char *text)
{
	struct listener *listener = arg;

	text_printf(&listener->said, "%s\n", text);
}

static void apply(struct manifest_set *set, struct listener *listener)
{
	const struct source_sink sink = {.set = on_set, .remove = on_remove, .arg = listener};

	manifest_set_apply(set, &sink, on_report, listener);
}

static void listener_done(struct listener *listener)
{
	map_free_values(&listener->objects);
	text_done(&listener->said);
}

static char *take_said(struct listener *listener)
{
	char *said = text_dup(&listener->said);

	text_done(&listener->said);
	text_init(&listener->said);
	return said;
}

/* -- the folder */

static int set_up(void **state attr_unused)
{
	const char *tmp = getenv("TMPDIR");

	folder = xasprintf("%s/portolan-test-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(folder));
	folder_dir = opendir(folder);
	return 0;
}

static int tear_down(void **state attr_unused)
{
	struct dirent *entry;

	rewinddir(folder_dir);
	while ((entry = readdir(folder_dir)))
		unlinkat(dirfd(folder_dir), entry->d_name, 0);
	closedir(folder_dir);
	assert_int_equal(rmdir(folder), 0);
	free(folder);
	return 0;
}

static void write_file(const char *name, const struct text *content)
{
	char *path cleanup_free = xasprintf("%s/%s", folder, name);
	char *text cleanup_free = text_dup(content);
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void read_into(struct manifest_set *set, const char *name)
{
	struct manifest_file *file = manifest_set_find(set, name);
	struct err err = {0};

	if (!file) {
		file = manifest_file_new(folder, name);
		manifest_set_add(set, file);
	}
	if (manifest_set_read(set, file, dirfd(folder_dir), "node-a", &err) != 1)
		fail_msg("%s", err.text);
}

static void remove_from(struct manifest_set *set, const char *name)
{
	for (size_t i = 0; i < set->n_files; i++)
		if (streq(set->files[i]->name, name)) {
			manifest_set_remove(set, i);
			return;
		}
	fail_msg("%s is not there", name);
}

static void add_service(struct text *text, unsigned int name, unsigned int port)
{
	text_printf(text,
		    "---\n{apiVersion: v1, kind: Service, metadata: {name: s%u}, "
		    "spec: {clusterIP: 10.0.0.1, ports: [{port: %u}]}}\n",
		    name, port);
}

static void add_slice(struct text *text, unsigned int name, unsigned int service, unsigned int n)
{
	text_printf(text,
		    "---\n{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: "
		    "e%u, labels: {kubernetes.io/service-name: s%u}}, addressType: IPv4, "
		    "ports: [{port: 80}], endpoints: [",
		    name, service);
	for (unsigned int i = 0; i < n; i++)
		text_printf(text, "{addresses: [10.1.0.%u]}, ", i + 1);
	text_str(text, "]}\n");
}

static void add_endpoints(struct text *text, unsigned int service, unsigned int subsets)
{
	text_printf(text,
		    "---\n{apiVersion: v1, kind: Endpoints, metadata: {name: s%u}, subsets: [",
		    service);
	for (unsigned int i = 0; i < subsets; i++)
		text_printf(text, "{addresses: [{ip: 10.2.0.%u}], ports: [{port: %u}]}, ", i + 1,
			    i + 80);
	text_str(text, "]}\n");
}

static void draw_file(struct random_cluster *r, const char *name)
{
	struct text text;

	text_init(&text);
	for (unsigned int i = random_below(r, 5); i > 0; i--) {
		unsigned int service = random_below(r, 4);

		if (random_one_in(r, 3))
			add_service(&text, service, random_below(r, 3) + 1);
		else if (random_one_in(r, 2))
			add_slice(&text, random_below(r, 4), service, random_below(r, 3));
		else
			add_endpoints(&text, service, random_below(r, 3));
	}
	write_file(name, &text);
	text_done(&text);
}

/* -- tests */

static void assert_same(const struct map *a, const struct map *b, unsigned int seed)
{
	const struct in_force *one;
	size_t at = 0;

	while ((one = map_next(a, &at))) {
		const struct in_force *other = map_get(b, one->name);

		if (!other || other->value != one->value)
			fail_msg("seed %u: %s is %zu, not %zu", seed, one->name, one->value,
				 other ? other->value : 0);
	}
	assert_int_equal(a->count, b->count);
}

/* What a set that reads all of these files for the first time tells. */
static void assert_as_at_first(const struct manifest_set *set, const struct listener *listener,
			       unsigned int seed)
{
	struct manifest_set fresh = {0};
	struct listener other = {0};

	for (size_t i = 0; i < set->n_files; i++)
		read_into(&fresh, set->files[i]->name);
	apply(&fresh, &other);
	assert_same(&listener->objects, &other.objects, seed);
	assert_int_equal(set->n_services, fresh.n_services);
	assert_int_equal(set->names.count, fresh.names.count);
	manifest_set_done(&fresh);
	listener_done(&other);
}

static void whatever_happened_it_ends_as_if_read_for_the_first_time(void **state attr_unused)
{
	static const char *const names[] = {"a.yaml", "b.yaml", "c.yaml", "d.yaml"};

	for (unsigned int seed = 1; seed <= 20; seed++) {
		struct random_cluster r = {.state = seed};
		struct manifest_set set = {0};
		struct listener listener = {0};

		for (unsigned int step = 0; step < 40; step++) {
			const char *name = names[random_below(&r, ARRAY_SIZE(names))];

			if (manifest_set_find(&set, name) && random_one_in(&r, 3)) {
				remove_from(&set, name);
			} else {
				draw_file(&r, name);
				read_into(&set, name);
			}
			if (random_one_in(&r, 3))
				continue; /* one round for several files */
			apply(&set, &listener);
			assert_as_at_first(&set, &listener, seed);
		}
		manifest_set_done(&set);
		listener_done(&listener);
	}
}

/* The allocations of a change to one file, beside one of n Services. */
static size_t price_of_change(unsigned int n)
{
	struct manifest_set set = {0};
	struct listener listener = {0};
	struct text text;
	size_t price;

	text_init(&text);
	for (unsigned int i = 1; i < n; i++) {
		add_service(&text, i, 1);
		add_slice(&text, i, i, 1);
	}
	write_file("all.yaml", &text);
	text_done(&text);
	text_init(&text);
	add_service(&text, 0, 1);
	add_slice(&text, 0, 0, 1);
	write_file("one.yaml", &text);
	read_into(&set, "all.yaml");
	read_into(&set, "one.yaml");
	apply(&set, &listener);
	assert_int_equal(listener.n_told, 2 * n);
	text_done(&text);
	text_init(&text);
	add_service(&text, 0, 1);
	add_slice(&text, 0, 0, 2);
	write_file("one.yaml", &text);
	text_done(&text);
	read_into(&set, "one.yaml");
	n_allocations = 0;
	apply(&set, &listener);
	price = n_allocations;
	assert_int_equal(listener.n_told, 2 * n + 1);
	manifest_set_done(&set);
	listener_done(&listener);
	return price;
}

static void a_change_costs_what_changed(void **state attr_unused)
{
	assert_true(price_of_change(2) > 0);
	assert_int_equal(price_of_change(1000), price_of_change(2));
}

/* The slice of s0, which is away meanwhile, is one of s1: each Service's Endpoints see it. */
static void endpoints_see_a_slice_change_sides(void **state attr_unused)
{
	struct manifest_set set = {0};
	struct listener listener = {0};
	struct text text;
	char *said;

	text_init(&text);
	add_endpoints(&text, 0, 1);
	add_endpoints(&text, 1, 1);
	write_file("a.yaml", &text);
	text_done(&text);
	for (unsigned int service = 0; service < 2; service++) {
		text_init(&text);
		add_slice(&text, 0, service, 1);
		write_file("b.yaml", &text);
		text_done(&text);
		read_into(&set, "a.yaml");
		read_into(&set, "b.yaml");
		apply(&set, &listener);
		said = take_said(&listener);
		assert_non_null(strstr(said, service ? "default/s1 is left out"
						     : "default/s0 is left out"));
		assert_null(strstr(said, service ? "default/s0" : "default/s1"));
		free(said);
		assert_null(map_get(&listener.objects, service ? "slice default/s1~0-IPv4"
							       : "slice default/s0~0-IPv4"));
		assert_int_equal(listener.objects.count, 2);
	}
	manifest_set_done(&set);
	listener_done(&listener);
}

static void a_double_is_told_again_only_when_it_moves(void **state attr_unused)
{
	struct manifest_set set = {0};
	struct listener listener = {0};
	struct text text;
	char *said;

	text_init(&text);
	add_service(&text, 0, 1);
	add_service(&text, 0, 2);
	write_file("a.yaml", &text);
	for (int i = 0; i < 2; i++) {
		read_into(&set, "a.yaml");
		apply(&set, &listener);
		said = take_said(&listener);
		assert_int_equal(strstr(said, "a.yaml:2 and again in") != NULL, i == 0);
		free(said);
	}
	text_done(&text);
	text_init(&text);
	text_str(&text, "# one line more\n");
	add_service(&text, 0, 1);
	add_service(&text, 0, 2);
	write_file("a.yaml", &text);
	text_done(&text);
	read_into(&set, "a.yaml");
	apply(&set, &listener);
	said = take_said(&listener);
	assert_non_null(strstr(said, "a.yaml:3 and again in"));
	free(said);
	manifest_set_done(&set);
	listener_done(&listener);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(whatever_happened_it_ends_as_if_read_for_the_first_time),
		T(a_change_costs_what_changed),
		T(endpoints_see_a_slice_change_sides),
		T(a_double_is_told_again_only_when_it_moves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

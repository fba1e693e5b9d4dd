/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Both text writers against iptables itself: what render writes for iptables-restore is applied in
 * a network namespace that had no rules, and iptables-save must then print, byte for byte, what
 * render says it will. Skipped where no namespace can be made or the tool is not the one whose
 * spelling we follow (1.8.9, nf_tables).
 */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/iptables/render.h"
#include "cluster.h"
#include "kernel/nfacct.h"
#include "xtables/restore_writer.h"

static const char *unusable; /* why not, or NULL */
static char lock_file[] = "/tmp/portolan-xtables-lock-XXXXXX";

static bool run(const char *command)
{
	int status = system(command);

	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static char *read_output(const char *command)
{
	cleanup_text struct text text = {0};
	FILE *pipe = popen(command, "re");
	char block[4096];
	size_t n;

	assert_non_null(pipe);
	while ((n = fread(block, 1, sizeof(block), pipe)) > 0)
		text_add(&text, block, n);
	assert_int_equal(pclose(pipe), 0);
	return text_dup(&text);
}

static void write_input(const char *command, const struct text *text)
{
	FILE *pipe = popen(command, "we");

	assert_non_null(pipe);
	for (const struct text_block *block = text->first; block; block = block->next)
		assert_int_equal(fwrite(block->data, 1, block->used, pipe), block->used);
	assert_int_equal(pclose(pipe), 0);
}

static bool write_file(const char *path, const char *content)
{
	cleanup_fd int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd >= 0 && write(fd, content, strlen(content)) == (ssize_t)strlen(content);
}

/* An ordinary user becomes root of a user namespace of this process. */
static bool become_root(void)
{
	char map[64];
	unsigned int uid = geteuid();

	if (uid == 0)
		return true;
	snprintf(map, sizeof(map), "0 %u 1", uid);
	return unshare(CLONE_NEWUSER) == 0 && write_file("/proc/self/uid_map", map);
}

static int enter(void **state attr_unused)
{
	int fd = mkstemp(lock_file);

	if (fd >= 0)
		close(fd);
	setenv("XTABLES_LOCKFILE", lock_file, 1); /* other namespaces need not wait for us */
	if (!run("iptables --version 2>/dev/null | grep -q 'v1.8.9 (nf_tables)'"))
		unusable = "iptables is not 1.8.9 with nf_tables";
	else if (!become_root() || unshare(CLONE_NEWNET) < 0)
		unusable = "no network namespace can be made here";
	return 0;
}

static int leave(void **state attr_unused)
{
	unlink(lock_file);
	return 0;
}

static const char *tool(const struct cluster *c)
{
	return c->settings.family == FAMILY_IPV4 ? "iptables" : "ip6tables";
}

/* The counters must exist before a rule can name them. */
static void make_counters(struct cluster *c)
{
	struct err err;

	c->host.nfacct_invalid = nfacct_ensure(NULL, NFACCT_INVALID, &err) >= 0;
	c->host.nfacct_localhost = nfacct_ensure(NULL, NFACCT_LOCALHOST, &err) >= 0;
}

static void ensure_jump(const struct cluster *c, size_t index)
{
	cleanup_arena struct arena *arena = arena_new(1024);
	cleanup_text struct text command = {0};
	cleanup_free char *line = NULL;
	struct rule rule;
	char **argv;
	size_t n;

	ruleset_jump(index, &rule);
	text_printf(&command, "%s -w 5 -N %s -t %s 2>/dev/null; %s -w 5 -I %s -t %s", tool(c),
		    rule.target.chain, table_name(rule.table), tool(c), rule.chain,
		    table_name(rule.table));
	argv = restore_rule_argv(&rule, arena, &n);
	for (size_t i = 0; i < n; i++)
		text_printf(&command, " '%s'", argv[i]);
	line = text_dup(&command);
	assert_true(run(line));
}

static void make_canary(const struct cluster *c, enum table table)
{
	cleanup_free char *line =
		xasprintf("%s -w 5 -N " CHAIN_CANARY " -t %s", tool(c), table_name(table));

	assert_true(run(line));
}

/* What a first full sync does. */
static void apply(const struct cluster *c, const struct text *text)
{
	cleanup_free char *restore = xasprintf("%s-restore -w 5 --noflush --counters", tool(c));

	make_canary(c, TABLE_MANGLE);
	make_canary(c, TABLE_NAT);
	make_canary(c, TABLE_FILTER);
	for (size_t i = 0; i < RULESET_JUMPS; i++)
		ensure_jump(c, i);
	write_input(restore, text);
}

static void render_as(struct cluster *c, enum render_format format, struct text *ret)
{
	struct addr addresses[] = {build_addr("192.168.0.2"), build_addr("127.0.0.1"),
				   build_addr("2001:db8::2"), build_addr("::1")};
	struct render_input input = {
		.settings = &c->settings,
		.host = &c->host,
		.addresses = addresses,
		.n_addresses = ARRAY_SIZE(addresses),
	};
	struct plan_once once;

	plan_once_take(&once, &c->settings, c->model);
	render(&input, once.delta, format, ret);
	plan_once_done(&once);
}

static void check_with_tools(struct cluster *c)
{
	cleanup_text struct text restore = {0}, save = {0};
	cleanup_free char *expected = NULL, *shown = NULL, *command = NULL;

	assert_int_equal(unshare(CLONE_NEWNET), 0); /* an empty host each time */
	make_counters(c);
	render_as(c, RENDER_RESTORE, &restore);
	render_as(c, RENDER_SAVE, &save);
	apply(c, &restore);
	command = xasprintf("%s-save | grep -v '^#'", tool(c));
	shown = read_output(command);
	expected = text_dup(&save);
	assert_string_equal(shown, expected);
	cluster_done(c);
}

/* "10.1.2.3" and "10.1.2.0/24" are written for both families: an octet becomes a group of IPv6. */
static const char *in_family(const struct cluster *c, const char *ipv4, char out[static 64])
{
	unsigned int a, b, d, e, length = 0;
	int n = sscanf(ipv4, "%u.%u.%u.%u/%u", &a, &b, &d, &e, &length);

	assert_true(n >= 4);
	if (c->settings.family == FAMILY_IPV4)
		snprintf(out, 64, "%s", ipv4);
	else if (n == 4)
		snprintf(out, 64, "fd00:%u:%u:%u::%u", a, b, d, e);
	else
		snprintf(out, 64, "fd00:%u:%u:%u::%u/%u", a, b, d, e,
			 length == 32 ? 128 : 16 + length / 8 * 16 + length % 8);
	return out;
}

struct shape {
	const char *key;
	const char *cluster_ip;
	unsigned int n_near, n_far; /* endpoints on this node and elsewhere */
	bool external_local, internal_local;
	bool external_ip, vips, ranges;
	bool one_port;
	uint16_t node_port;
	uint16_t health_check_node_port;
	uint32_t sticky_seconds;
};

static const struct shape shapes[] = {
	{"plain/one", "172.30.0.1", 0, 1, .node_port = 0},
	{"plain/none", "172.30.0.2", 0, 0, .external_ip = true, .vips = true, .ranges = true,
	 .node_port = 30002},
	{"plain/hundred", "172.30.0.3", 0, 100, .node_port = 1},
	{"local/both", "172.30.0.4", 1, 2, .external_local = true, .internal_local = true,
	 .external_ip = true, .vips = true, .ranges = true, .node_port = 65535,
	 .health_check_node_port = 32004, .sticky_seconds = 10800},
	{"local/far", "172.30.0.5", 0, 2, .external_local = true, .internal_local = true,
	 .external_ip = true, .vips = true, .node_port = 30005, .health_check_node_port = 32005},
	{"local/external", "172.30.0.6", 2, 1, .external_local = true, .vips = true, .ranges = true,
	 .node_port = 30006, .sticky_seconds = 1},
	{"local/internal", "172.30.0.7", 1, 1, .internal_local = true, .external_ip = true,
	 .vips = true, .node_port = 30007, .sticky_seconds = 86400},
};

static void add_endpoints(struct cluster *c, struct draft *slice, const struct shape *shape)
{
	char ipv4[64], ip[64];

	for (unsigned int i = 0; i < shape->n_near + shape->n_far; i++) {
		snprintf(ipv4, sizeof(ipv4), "10.180.%u.%u", i / 250, i % 250 + 1);
		build_endpoint(slice, in_family(c, ipv4, ip),
			       i < shape->n_near ? CLUSTER_NODE : "node-b", BUILD_READY);
	}
}

/* Three protocols under one name. */
static void add_ports(struct service *service, struct draft *slice, uint16_t node_port)
{
	for (int i = 0; i < PROTOCOL_COUNT; i++) {
		build_port(service, "p-8.0", (enum protocol)i, 80, node_port);
		build_slice_port(slice, "p-8.0", (enum protocol)i, 65535);
	}
}

/* Every shape has a port without a name, and most have three more. */
static void add_shape(struct cluster *c, const struct shape *shape)
{
	char text[64];
	struct service *service = build_service(shape->key, in_family(c, shape->cluster_ip, text));
	struct draft *slice =
		build_slice(shape->key, strchr(shape->key, '/') + 1, c->settings.family);

	if (!shape->one_port)
		add_ports(service, slice, shape->node_port);
	build_port(service, "", PROTOCOL_TCP, 1, 0);
	build_slice_port(slice, "", PROTOCOL_TCP, 1);
	service->external_local = shape->external_local;
	service->internal_local = shape->internal_local;
	service->health_check_node_port = shape->health_check_node_port;
	service->sticky_seconds = shape->sticky_seconds;
	if (shape->external_ip)
		build_external_ip(service, in_family(c, "192.0.2.1", text));
	if (shape->vips) {
		build_vip(service, in_family(c, "198.51.100.1", text));
		build_vip(service, in_family(c, "198.51.100.2", text));
	}
	if (shape->ranges) {
		build_source_range(service, in_family(c, "203.0.113.128/25", text));
		build_source_range(service, in_family(c, "203.0.113.1/32", text));
		build_source_range(service, in_family(c, "192.168.0.0/16", text));
	}
	add_endpoints(c, slice, shape);
	model_set_service(c->model, service);
	build_set_slice(c->model, slice);
}

static void begin(struct cluster *c, enum family family)
{
	char text[64];

	if (unusable) {
		print_message("skipped: %s\n", unusable);
		skip();
	}
	cluster_init(c, family);
	c->settings.node_ip = build_addr(in_family(c, "192.168.0.2", text));
	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++)
		add_shape(c, &shapes[i]);
}

static void every_shape(void **state attr_unused)
{
	struct cluster c;

	for (int family = 0; family < FAMILY_COUNT; family++) {
		begin(&c, (enum family)family);
		check_with_tools(&c);
	}
}

static void no_services_at_all(void **state attr_unused)
{
	struct cluster c;

	for (int family = 0; family < FAMILY_COUNT; family++) {
		begin(&c, (enum family)family);
		cluster_done(&c);
		cluster_init(&c, (enum family)family);
		c.settings.localhost_node_ports = false;
		c.host.be_liberal = true;
		check_with_tools(&c);
	}
}

static void every_cidr_detector(void **state attr_unused)
{
	static const char *const cidrs[] = {"10.0.0.0/9", "10.1.2.3/32", "10.244.0.0/16",
					    "0.0.0.0/0"};
	struct cluster c;
	char text[64];

	for (size_t i = 0; i < ARRAY_SIZE(cidrs) * FAMILY_COUNT; i++) {
		begin(&c, (enum family)(i % FAMILY_COUNT));
		c.settings.detector.cidr =
			build_prefix(streq(cidrs[i / FAMILY_COUNT], "0.0.0.0/0") && i % FAMILY_COUNT
					     ? "::/0"
					     : in_family(&c, cidrs[i / FAMILY_COUNT], text));
		check_with_tools(&c);
	}
}

static void every_interface_detector_and_none(void **state attr_unused)
{
	static const struct {
		enum detector_kind kind;
		const char *interface;
	} detectors[] = {
		{DETECTOR_BRIDGE, "cni0"},
		{DETECTOR_BRIDGE, "fifteen-letters"},
		{DETECTOR_INTERFACE, "veth"},
		{DETECTOR_NONE, ""},
	};
	struct cluster c;

	for (size_t i = 0; i < ARRAY_SIZE(detectors) * FAMILY_COUNT; i++) {
		begin(&c, (enum family)(i % FAMILY_COUNT));
		c.settings.detector.kind = detectors[i / FAMILY_COUNT].kind;
		strcpy(c.settings.detector.interface, detectors[i / FAMILY_COUNT].interface);
		check_with_tools(&c);
	}
}

static void masquerade_all_and_other_marks(void **state attr_unused)
{
	static const uint32_t marks[] = {0x1, 0x80000000};
	struct cluster c;

	for (size_t i = 0; i < ARRAY_SIZE(marks) * FAMILY_COUNT; i++) {
		begin(&c, (enum family)(i % FAMILY_COUNT));
		c.settings.masquerade_all = true;
		c.settings.masquerade_mark = marks[i / FAMILY_COUNT];
		check_with_tools(&c);
	}
}

static void node_ports_on_chosen_addresses(void **state attr_unused)
{
	struct cluster c;

	for (int family = 0; family < FAMILY_COUNT; family++) {
		begin(&c, (enum family)family);
		cluster_node_ports(&c, (const char *const[]){"192.168.0.0/16", "127.0.0.0/8",
							     "2001:db8::/32", NULL});
		check_with_tools(&c);
	}
}

/* No comments on the rules of endpoints. */
static void large_cluster(void **state attr_unused)
{
	static const struct shape many = {"plain/many", "172.30.0.9",     1,
					  1000,         .one_port = true, .sticky_seconds = 60};
	struct cluster c;

	for (int family = 0; family < FAMILY_COUNT; family++) {
		begin(&c, (enum family)family);
		add_shape(&c, &many);
		check_with_tools(&c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_shape),
		cmocka_unit_test(no_services_at_all),
		cmocka_unit_test(every_cidr_detector),
		cmocka_unit_test(every_interface_detector_and_none),
		cmocka_unit_test(masquerade_all_and_other_marks),
		cmocka_unit_test(node_ports_on_chosen_addresses),
		cmocka_unit_test(large_cluster),
	};

	return cmocka_run_group_tests(tests, enter, leave);
}

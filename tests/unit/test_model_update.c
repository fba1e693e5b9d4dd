/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From one state of slices to another: what is reported, the lists that come out, and how many
 * local addresses a health check would count.
 */

#include "model/model.h"
#include "slice_text.h"

#define HOST "host1"

struct update_case {
	const char *name;
	const char *before[9]; /* slices, as text */
	const char *after[9];  /* those whose key is missing here are removed */
	const char *lists[9];  /* all that exist then: "service port list" */
	const char *updated;   /* keys of services */
	bool udp_changed;
	const char *local; /* "key=count", for services with any */
};

#define UNNAMED      "ns1/ep1-1 ep1 =11/udp 1.1.1.1"
#define NAMED        "ns1/ep1-1 ep1 p11=11/udp 1.1.1.1"
#define NAMED_LOCAL  "ns1/ep1-1 ep1 p11=11/udp 1.1.1.1@" HOST
#define SECOND       "ns1/ep1-2 ep1 p12=12/udp 1.1.1.2"
#define SECOND_LOCAL "ns1/ep1-2 ep1 p12=12/udp 1.1.1.2@" HOST
#define TWO_PORTS    "ns1/ep1-1 ep1 p11=11/udp,p12=12/udp 1.1.1.1,1.1.1.2@" HOST

static const struct update_case cases[] = {
	{.name = "update_endpoints_map_empty", .updated = "", .local = ""},
	{.name = "update_endpoints_map_no_change_unnamed_port",
	 .before = {UNNAMED},
	 .after = {UNNAMED},
	 .lists = {"ns1/ep1 /udp 1.1.1.1:11"},
	 .updated = "",
	 .local = ""},
	{.name = "update_endpoints_map_no_change_named_port_local",
	 .before = {NAMED_LOCAL},
	 .after = {NAMED_LOCAL},
	 .lists = {"ns1/ep1 p11/udp 1.1.1.1:11*"},
	 .updated = "",
	 .local = "ns1/ep1=1"},
	{.name = "update_endpoints_map_no_change_multiple_slices",
	 .before = {NAMED, SECOND},
	 .after = {NAMED, SECOND},
	 .lists = {"ns1/ep1 p11/udp 1.1.1.1:11", "ns1/ep1 p12/udp 1.1.1.2:12"},
	 .updated = "",
	 .local = ""},
	{.name = "update_endpoints_map_no_change_multiple_slices_and_ports_local",
	 .before = {"ns1/ep1-1 ep1 p11=11/udp,p12=12/udp 1.1.1.1@" HOST,
		    "ns1/ep1-2 ep1 p13=13/udp 1.1.1.3"},
	 .after = {"ns1/ep1-1 ep1 p11=11/udp,p12=12/udp 1.1.1.1@" HOST,
		   "ns1/ep1-2 ep1 p13=13/udp 1.1.1.3"},
	 .lists = {"ns1/ep1 p11/udp 1.1.1.1:11*", "ns1/ep1 p12/udp 1.1.1.1:12*",
		   "ns1/ep1 p13/udp 1.1.1.3:13"},
	 .updated = "",
	 .local = "ns1/ep1=1"},
	{.name = "update_endpoints_map_no_change_multiple_services_slices_ips_and_ports",
	 .before = {TWO_PORTS, "ns1/ep1-2 ep1 p13=13/udp,p14=14/udp 1.1.1.3,1.1.1.4@" HOST,
		    "ns2/ep2-1 ep2 p21=21/udp,p22=22/udp 2.2.2.1,2.2.2.2@" HOST},
	 .after = {TWO_PORTS, "ns1/ep1-2 ep1 p13=13/udp,p14=14/udp 1.1.1.3,1.1.1.4@" HOST,
		   "ns2/ep2-1 ep2 p21=21/udp,p22=22/udp 2.2.2.1,2.2.2.2@" HOST},
	 .lists = {"ns1/ep1 p11/udp 1.1.1.1:11 1.1.1.2:11*",
		   "ns1/ep1 p12/udp 1.1.1.1:12 1.1.1.2:12*",
		   "ns1/ep1 p13/udp 1.1.1.3:13 1.1.1.4:13*",
		   "ns1/ep1 p14/udp 1.1.1.3:14 1.1.1.4:14*",
		   "ns2/ep2 p21/udp 2.2.2.1:21 2.2.2.2:21*",
		   "ns2/ep2 p22/udp 2.2.2.1:22 2.2.2.2:22*"},
	 .updated = "",
	 .local = "ns1/ep1=2 ns2/ep2=1"},
	{.name = "update_endpoints_map_add_a_slice",
	 .after = {"ns1/ep1-1 ep1 =11/udp 1.1.1.1@" HOST},
	 .lists = {"ns1/ep1 /udp 1.1.1.1:11*"},
	 .updated = "ns1/ep1",
	 .udp_changed = true,
	 .local = "ns1/ep1=1"},
	{.name = "update_endpoints_map_remove_a_slice",
	 .before = {"ns1/ep1-1 ep1 =11/udp 1.1.1.1@" HOST},
	 .updated = "ns1/ep1",
	 .udp_changed = true,
	 .local = ""},
	{.name = "update_endpoints_map_add_an_ip_and_port",
	 .before = {NAMED},
	 .after = {TWO_PORTS},
	 .lists = {"ns1/ep1 p11/udp 1.1.1.1:11 1.1.1.2:11*",
		   "ns1/ep1 p12/udp 1.1.1.1:12 1.1.1.2:12*"},
	 .updated = "ns1/ep1",
	 .udp_changed = true,
	 .local = "ns1/ep1=1"},
	{.name = "update_endpoints_map_remove_an_ip_and_port",
	 .before = {TWO_PORTS},
	 .after = {NAMED},
	 .lists = {"ns1/ep1 p11/udp 1.1.1.1:11"},
	 .updated = "ns1/ep1",
	 .udp_changed = true,
	 .local = ""},
	{.name = "update_endpoints_map_add_a_slice_to_a_service",
	 .before = {NAMED},
	 .after = {NAMED, SECOND_LOCAL},
	 .lists = {"ns1/ep1 p11/udp 1.1.1.1:11", "ns1/ep1 p12/udp 1.1.1.2:12*"},
	 .updated = "ns1/ep1",
	 .udp_changed = true,
	 .local = "ns1/ep1=1"},
	{.name = "update_endpoints_map_remove_a_slice_from_a_service",
	 .before = {NAMED, SECOND},
	 .after = {NAMED},
	 .lists = {"ns1/ep1 p11/udp 1.1.1.1:11"},
	 .updated = "ns1/ep1",
	 .udp_changed = true,
	 .local = ""},
	{.name = "update_endpoints_map_rename_a_port",
	 .before = {NAMED},
	 .after = {"ns1/ep1-1 ep1 p11-2=11/udp 1.1.1.1"},
	 .lists = {"ns1/ep1 p11-2/udp 1.1.1.1:11"},
	 .updated = "ns1/ep1",
	 .udp_changed = true,
	 .local = ""},
	{.name = "update_endpoints_map_renumber_a_port",
	 .before = {NAMED},
	 .after = {"ns1/ep1-1 ep1 p11=22/udp 1.1.1.1"},
	 .lists = {"ns1/ep1 p11/udp 1.1.1.1:22"},
	 .updated = "ns1/ep1",
	 .udp_changed = true,
	 .local = ""},
	{.name = "update_endpoints_map_complex_add_and_remove",
	 .before = {NAMED, "ns2/ep2-1 ep2 p22=22/udp 2.2.2.2@" HOST ",2.2.2.22@" HOST,
		    "ns2/ep2-2 ep2 p23=23/udp 2.2.2.3@" HOST,
		    "ns4/ep4-1 ep4 p44=44/udp 4.4.4.4@" HOST ",4.4.4.5@" HOST,
		    "ns4/ep4-2 ep4 p45=45/udp 4.4.4.6@" HOST},
	 .after = {"ns1/ep1-1 ep1 p11=11/udp 1.1.1.1,1.1.1.11",
		   "ns1/ep1-2 ep1 p12=12/udp,p122=122/udp 1.1.1.2",
		   "ns3/ep3-1 ep3 p33=33/udp 3.3.3.3", "ns4/ep4-1 ep4 p44=44/udp 4.4.4.4@" HOST},
	 .lists = {"ns1/ep1 p11/udp 1.1.1.11:11 1.1.1.1:11", "ns1/ep1 p12/udp 1.1.1.2:12",
		   "ns1/ep1 p122/udp 1.1.1.2:122", "ns3/ep3 p33/udp 3.3.3.3:33",
		   "ns4/ep4 p44/udp 4.4.4.4:44*"},
	 .updated = "ns1/ep1 ns2/ep2 ns3/ep3 ns4/ep4",
	 .udp_changed = true,
	 .local = "ns4/ep4=1"},
	{.name = "update_endpoints_map_from_no_address_to_one_unnamed_port",
	 .before = {"ns1/ep1-1 ep1 - -"},
	 .after = {UNNAMED},
	 .lists = {"ns1/ep1 /udp 1.1.1.1:11"},
	 .updated = "ns1/ep1",
	 .udp_changed = true,
	 .local = ""},
	{.name = "update_endpoints_map_from_ready_to_terminating",
	 .before = {UNNAMED},
	 .after = {"ns1/ep1-1 ep1 =11/udp 1.1.1.1!s"},
	 .lists = {"ns1/ep1 /udp 1.1.1.1:11!s"},
	 .updated = "ns1/ep1",
	 .udp_changed = true,
	 .local = ""},
	{.name = "update_endpoints_map_from_terminating_to_empty",
	 .before = {"ns1/ep1-1 ep1 =11/udp 1.1.1.1!s"},
	 .after = {"ns1/ep1-1 ep1 - -"},
	 .updated = "ns1/ep1",
	 .udp_changed = true,
	 .local = ""},
	{.name = "change_of_tcp_endpoints_does_not_raise_the_udp_flag",
	 .before = {"ns1/ep1-1 ep1 p11=11/tcp 1.1.1.1", "ns2/ep2-1 ep2 p22=22/udp 2.2.2.2"},
	 .after = {"ns1/ep1-1 ep1 p11=11/tcp 1.1.1.2", "ns2/ep2-1 ep2 p22=22/udp 2.2.2.2"},
	 .lists = {"ns1/ep1 p11/tcp 1.1.1.2:11", "ns2/ep2 p22/udp 2.2.2.2:22"},
	 .updated = "ns1/ep1",
	 .local = ""},
	{.name = "change_of_a_tcp_port_beside_a_udp_port_raises_the_udp_flag",
	 .before = {"ns1/ep1-1 ep1 p11=11/tcp 1.1.1.1", "ns1/ep1-2 ep1 p22=22/udp 2.2.2.2"},
	 .after = {"ns1/ep1-1 ep1 p11=11/tcp 1.1.1.2", "ns1/ep1-2 ep1 p22=22/udp 2.2.2.2"},
	 .lists = {"ns1/ep1 p11/tcp 1.1.1.2:11", "ns1/ep1 p22/udp 2.2.2.2:22"},
	 .updated = "ns1/ep1",
	 .udp_changed = true,
	 .local = ""},
	{.name = "local_endpoint_ips_nothing", .updated = "", .local = ""},
	{.name = "local_endpoint_ips_unnamed_port",
	 .after = {"ns1/ep1-1 ep1 =11/tcp 1.1.1.1"},
	 .lists = {"ns1/ep1 /tcp 1.1.1.1:11"},
	 .updated = "ns1/ep1",
	 .local = ""},
	{.name = "local_endpoint_ips_unnamed_port_local",
	 .after = {"ns1/ep1-1 ep1 =11/tcp 1.1.1.1@" HOST},
	 .lists = {"ns1/ep1 /tcp 1.1.1.1:11*"},
	 .updated = "ns1/ep1",
	 .local = "ns1/ep1=1"},
	{.name = "local_endpoint_ips_merged_over_ports_of_the_same_ip",
	 .after = {"ns1/ep1-1 ep1 p11=11/tcp,p12=12/tcp 1.1.1.1,1.1.1.2@" HOST},
	 .lists = {"ns1/ep1 p11/tcp 1.1.1.1:11 1.1.1.2:11*",
		   "ns1/ep1 p12/tcp 1.1.1.1:12 1.1.1.2:12*"},
	 .updated = "ns1/ep1",
	 .local = "ns1/ep1=1"},
	{.name = "local_endpoint_ips_merged_over_ports_of_different_ips",
	 .after = {"ns1/ep1-1 ep1 p11=11/tcp 1.1.1.1",
		   "ns2/ep2-1 ep2 p22=22/tcp 2.2.2.2@" HOST ",2.2.2.22@" HOST,
		   "ns2/ep2-2 ep2 p23=23/tcp 2.2.2.3@" HOST,
		   "ns4/ep4-1 ep4 p44=44/tcp 4.4.4.4@" HOST ",4.4.4.5",
		   "ns4/ep4-2 ep4 p45=45/tcp 4.4.4.6@" HOST},
	 .lists = {"ns1/ep1 p11/tcp 1.1.1.1:11", "ns2/ep2 p22/tcp 2.2.2.22:22* 2.2.2.2:22*",
		   "ns2/ep2 p23/tcp 2.2.2.3:23*", "ns4/ep4 p44/tcp 4.4.4.4:44* 4.4.4.5:44",
		   "ns4/ep4 p45/tcp 4.4.4.6:45*"},
	 .updated = "ns1/ep1 ns2/ep2 ns4/ep4",
	 .local = "ns2/ep2=3 ns4/ep4=2"},
	{.name = "local_endpoint_ips_some_not_ready",
	 .after = {"ns2/ep2-1 ep2 p22=22/tcp 2.2.2.2@" HOST ",2.2.2.22@" HOST,
		   "ns2/ep2-2 ep2 p23=23/tcp 2.2.2.3@" HOST "!s"},
	 .lists = {"ns2/ep2 p22/tcp 2.2.2.22:22* 2.2.2.2:22*", "ns2/ep2 p23/tcp 2.2.2.3:23*!s"},
	 .updated = "ns2/ep2",
	 .local = "ns2/ep2=2"},
	{.name = "local_endpoint_ips_all_terminating",
	 .after = {"ns1/ep1-1 ep1 p11=11/tcp 1.1.1.1@" HOST "!s,1.1.1.2@" HOST "!t"},
	 .lists = {"ns1/ep1 p11/tcp 1.1.1.1:11*!s 1.1.1.2:11*!t"},
	 .updated = "ns1/ep1",
	 .local = ""},
	{.name = "health_check_node_port_when_terminating_counts_ready_ones",
	 .after = {"ns1/ep1-1 ep1 p11=11/tcp 1.1.1.1@" HOST ",1.1.1.2@" HOST ",1.1.1.3@other"},
	 .lists = {"ns1/ep1 p11/tcp 1.1.1.1:11* 1.1.1.2:11* 1.1.1.3:11"},
	 .updated = "ns1/ep1",
	 .local = "ns1/ep1=2"},
	{.name = "health_check_node_port_when_terminating_falls_to_zero",
	 .before = {"ns1/ep1-1 ep1 p11=11/tcp 1.1.1.1@" HOST ",1.1.1.2@" HOST ",1.1.1.3@other"},
	 .after = {"ns1/ep1-1 ep1 p11=11/tcp 1.1.1.1@" HOST "!s,1.1.1.2@" HOST "!u,1.1.1.3@other"},
	 .lists = {"ns1/ep1 p11/tcp 1.1.1.1:11*!s 1.1.1.2:11*!u 1.1.1.3:11"},
	 .updated = "ns1/ep1",
	 .local = ""},
};

static const char *const services[] = {"ns1/ep1", "ns2/ep2", "ns3/ep3", "ns4/ep4"};

/* Services with every port that the cases use, so that all endpoints count. */
static void add_services(struct model *model)
{
	static const char *const names[] = {"",    "p11", "p11-2", "p12", "p122", "p13", "p14",
					    "p21", "p22", "p23",   "p33", "p44",  "p45"};
	struct model_changes changes;

	for (size_t i = 0; i < ARRAY_SIZE(services); i++) {
		struct service *service = build_service(services[i], "10.0.0.1");

		for (size_t j = 0; j < ARRAY_SIZE(names); j++) {
			build_port(service, names[j], PROTOCOL_TCP, 1, 0);
			build_port(service, names[j], PROTOCOL_UDP, 1, 0);
		}
		model_set_service(model, service);
	}
	model_take_changes(model, FAMILY_IPV4, &changes);
	model_changes_done(&changes);
}

static bool same_key(const char *a, const char *b)
{
	size_t n = strcspn(a, " ");

	return n == strcspn(b, " ") && strncmp(a, b, n) == 0;
}

static void move_on(struct model *model, const struct update_case *c)
{
	for (size_t i = 0; c->before[i]; i++) {
		bool kept = false;
		cleanup_free char *key = strndup(c->before[i], strcspn(c->before[i], " "));

		for (size_t j = 0; c->after[j]; j++)
			kept |= same_key(c->before[i], c->after[j]);
		if (!kept)
			assert_int_equal(model_remove_slice(model, key), 1U << FAMILY_IPV4);
	}
	for (size_t i = 0; c->after[i]; i++)
		build_set_slice(model, slice_from_text(c->after[i]));
}

/* "service port/protocol list" against the model; returns the number of entries. */
static size_t check_list(const struct model *model, const char *wanted)
{
	cleanup_free char *copy = strdup(wanted), *text = NULL;
	char *rest = copy;
	const char *key = strsep(&rest, " "), *port = strsep(&rest, "/");
	const char *protocol = strsep(&rest, " ");
	struct endpoints *list =
		model_endpoints(model, FAMILY_IPV4, key, port,
				streq(protocol, "udp") ? PROTOCOL_UDP : PROTOCOL_TCP);

	text = list_to_text(list);
	assert_string_equal(text, rest);
	return list->n;
}

static void check_changes(const struct model_changes *changes, const struct update_case *c)
{
	cleanup_free char *updated = xstrdup("");

	for (size_t i = 0; i < changes->n_services; i++) {
		char *before = updated;

		updated = xasprintf("%s%s%s", before, i ? " " : "", changes->services[i]);
		free(before);
	}
	assert_string_equal(updated, c->updated);
	assert_int_equal(changes->udp_endpoints_changed, c->udp_changed);
}

static void check_local(const struct model *model, const char *wanted)
{
	cleanup_free char *local = xstrdup("");

	for (size_t i = 0; i < ARRAY_SIZE(services); i++) {
		size_t n = model_local_ready_addresses(model, FAMILY_IPV4, services[i]);
		char *before = local;

		if (n == 0)
			continue;
		local = xasprintf("%s%s%s=%zu", before, *before ? " " : "", services[i], n);
		free(before);
	}
	assert_string_equal(local, wanted);
	assert_int_equal(model_local_ready_addresses(model, FAMILY_IPV4, "no/such"), 0);
}

static void run_case(void **state)
{
	const struct update_case *c = *state;
	struct model *model = model_new(HOST, 0);
	struct model_changes changes;
	size_t total = 0;

	add_services(model);
	for (size_t i = 0; c->before[i]; i++)
		build_set_slice(model, slice_from_text(c->before[i]));
	model_take_changes(model, FAMILY_IPV4, &changes);
	model_changes_done(&changes);

	move_on(model, c);
	model_take_changes(model, FAMILY_IPV4, &changes);
	check_changes(&changes, c);
	model_changes_done(&changes);
	for (size_t i = 0; c->lists[i]; i++)
		total += check_list(model, c->lists[i]);
	assert_int_equal(model_count_endpoints(model, FAMILY_IPV4), total); /* and no other list */
	check_local(model, c->local);
	model_free(model);
}

int main(void)
{
	struct CMUnitTest tests[ARRAY_SIZE(cases)] = {0};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		tests[i].name = cases[i].name;
		tests[i].test_func = run_case;
		tests[i].initial_state = (void *)&cases[i];
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}

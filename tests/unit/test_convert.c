/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>

#include "read_object.h"
#include "slice_view.h"
#include "sources/convert.h"
#include "sources/k8s_name.h"

static struct arena *arena;
static char notes[1024];

static int set_up(void **state attr_unused)
{
	arena = arena_new(4096);
	notes[0] = '\0';
	return 0;
}

static int tear_down(void **state attr_unused)
{
	arena = arena_free(arena);
	return 0;
}

static void on_note(void *arg attr_unused, const char *text)
{
	size_t n = strlen(notes);

	snprintf(notes + n, sizeof(notes) - n, "%s\n", text);
}

static const struct convert_notes note_all = {.fn = on_note};

static int try_service(const char *text, struct service **ret, enum convert_skip *ret_skip,
		       struct err *err)
{
	K8s__Service *message = must_read(arena, text, &k8s__service__descriptor);

	defaults_service(message, arena);
	return convert_service(message, &note_all, ret, ret_skip, err);
}

/* A Service default/web with a port, unless the spec has others, and this in its spec. */
static struct service *service_with(const char *spec)
{
	char *text cleanup_free =
		xasprintf("metadata: {name: web}\nspec: {%s%s}\n", spec,
			  strstr(spec, "ports:") ? "" : ", ports: [{name: http, port: 80}]");
	enum convert_skip skip;
	struct service *service = NULL;
	struct err err = {0};

	if (try_service(text, &service, &skip, &err) != 1)
		fail_msg("%s: %s", text, err.text);
	return service;
}

static void assert_skipped(const char *text, enum convert_skip expected)
{
	enum convert_skip skip = CONVERT_SKIP_NONE;
	struct service *service;
	struct err err = {0};

	if (try_service(text, &service, &skip, &err) != 0)
		fail_msg("%s: %s", text, err.text);
	assert_int_equal(skip, expected);
}

static void assert_refused(const char *text, const char *expected)
{
	enum convert_skip skip;
	struct service *service;
	struct err err = {0};

	assert_true(try_service(text, &service, &skip, &err) < 0);
	assert_string_equal(err.text, expected);
}

static void append(char *text, size_t size, const char *word)
{
	size_t n = strlen(text);

	snprintf(text + n, size - n, "%s%s", n ? " " : "", word);
}

static void assert_addrs(const struct addr *addrs, size_t n, const char *expected)
{
	char text[512] = "";

	for (size_t i = 0; i < n; i++) {
		char addr[ADDR_TEXT_MAX];

		addr_print(&addrs[i], addr);
		append(text, sizeof(text), addr);
	}
	assert_string_equal(text, expected);
}

static void assert_prefixes(const struct prefix *prefixes, size_t n, const char *expected)
{
	char text[512] = "";

	for (size_t i = 0; i < n; i++) {
		char prefix[PREFIX_TEXT_MAX];

		prefix_print(&prefixes[i], prefix);
		append(text, sizeof(text), prefix);
	}
	assert_string_equal(text, expected);
}

static void service_to_service_map_nothing(void **state attr_unused)
{
	assert_skipped("metadata: {name: web}", CONVERT_SKIP_NO_CLUSTER_IP);
	assert_skipped("{metadata: {name: web}, spec: {clusterIP: 10.0.0.1}}",
		       CONVERT_SKIP_NO_PORTS);
	assert_skipped("{metadata: {name: web}, spec: {clusterIP: '', ports: [{port: 80}]}}",
		       CONVERT_SKIP_NO_CLUSTER_IP);
}

/* Of these an API server's last good version stays: nothing in them asks to be left out. */
static void a_service_that_lacks_something_is_a_mistake(void **state attr_unused)
{
	static const struct {
		const char *text;
		bool mistake;
	} rows[] = {
		{"metadata: {name: web}", true},
		{"{metadata: {name: web}, spec: {clusterIP: 10.0.0.1}}", true},
		{"{metadata: {name: web}, spec: {type: Anycast, ports: [{port: 80}]}}", true},
		{"{metadata: {name: web}, spec: {type: Anycast, clusterIP: 10.0.0.1}}", true},
		{"{metadata: {name: web}, spec: {clusterIP: None}}", false},
		{"{metadata: {name: web}, spec: {type: ExternalName}}", false},
		{"metadata: {name: web, labels: {" LABEL_PROXY_NAME ": other}}", false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		enum convert_skip skip = CONVERT_SKIP_NONE;
		struct service *service;
		struct err err;

		assert_int_equal(try_service(rows[i].text, &service, &skip, &err), 0);
		assert_int_equal(convert_skip_is_mistake(skip), rows[i].mistake);
	}
}

static void service_to_service_map_headless(void **state attr_unused)
{
	assert_skipped("{metadata: {name: web}, spec: {clusterIP: None, ports: [{port: 80}]}}",
		       CONVERT_SKIP_HEADLESS);
	assert_skipped("{metadata: {name: web}, spec: {clusterIP: None}}", CONVERT_SKIP_HEADLESS);
	assert_skipped("{metadata: {name: web}, spec: {clusterIPs: [None], ports: [{port: 80}, "
		       "{name: b, port: 81}]}}",
		       CONVERT_SKIP_HEADLESS);
}

static void service_to_service_map_external_name_even_with_cluster_ip(void **state attr_unused)
{
	assert_skipped("{metadata: {name: web}, spec: {type: ExternalName, clusterIP: 10.0.0.1, "
		       "externalName: a.example, ports: [{port: 80}]}}",
		       CONVERT_SKIP_EXTERNAL_NAME);
}

static void the_label_of_another_proxy_leaves_a_service_out(void **state attr_unused)
{
	assert_skipped(
		"{metadata: {name: web, labels: {service.kubernetes.io/service-proxy-name: ''}}, "
		"spec: {clusterIP: 10.0.0.1, ports: [{port: 80}]}}",
		CONVERT_SKIP_OTHER_PROXY);
}

static void service_to_service_map_one_entry_for_each_port(void **state attr_unused)
{
	struct service *service =
		service_with("type: NodePort, clusterIP: 10.0.0.1, ports: [{name: dns, port: 53, "
			     "protocol: UDP, nodePort: 30053}, {name: dns-tcp, port: 53}, "
			     "{name: sctp, port: 9, protocol: SCTP}]");

	assert_string_equal(service->key, "default/web");
	assert_int_equal(service->n_ports, 3);
	assert_string_equal(service->ports[0].name, "dns");
	assert_int_equal(service->ports[0].protocol, PROTOCOL_UDP);
	assert_int_equal(service->ports[0].node_port, 30053);
	assert_int_equal(service->ports[1].protocol, PROTOCOL_TCP);
	assert_int_equal(service->ports[1].node_port, 0);
	assert_int_equal(service->ports[2].protocol, PROTOCOL_SCTP);
	service_unref(service);
}

static void node_ports_are_taken_whatever_the_type(void **state attr_unused)
{
	struct service *service =
		service_with("clusterIP: 10.0.0.1, ports: [{port: 80, nodePort: 80}]");

	assert_int_equal(service->ports[0].node_port, 80);
	assert_string_equal(service->ports[0].name, "");
	service_unref(service);
}

static struct service *balancer(const char *ingress, const char *spec)
{
	char *text cleanup_free =
		xasprintf("{metadata: {name: web}, spec: {type: LoadBalancer, clusterIP: 10.0.0.1, "
			  "ports: [{port: 80}], %s}, status: {loadBalancer: {ingress: [%s]}}}",
			  spec, ingress);
	enum convert_skip skip;
	struct service *service;
	struct err err;

	assert_int_equal(try_service(text, &service, &skip, &err), 1);
	return service;
}

static void load_balancer_ingress_route_type_proxy(void **state attr_unused)
{
	struct service *service = balancer("{ip: 1.1.1.1}, {ip: 2.2.2.2, ipMode: VIP}, "
					   "{ip: 3.3.3.3, ipMode: Proxy}, {hostname: a.example}, "
					   "{ip: ''}",
					   "loadBalancerIP: 9.9.9.9");

	assert_addrs(service->vips, service->n_vips, "1.1.1.1 2.2.2.2");
	service_unref(service);
}

static void service_to_service_map_etp_local_keeps_the_health_port(void **state attr_unused)
{
	struct service *service =
		balancer("", "externalTrafficPolicy: Local, healthCheckNodePort: 345");

	assert_true(service->external_local);
	assert_int_equal(service->health_check_node_port, 345);
	service_unref(service);

	service = balancer("", "healthCheckNodePort: 345");
	assert_int_equal(service->health_check_node_port, 0);
	service_unref(service);
	assert_string_equal(notes, "");

	service = balancer("", "externalTrafficPolicy: Local, healthCheckNodePort: 0");
	assert_int_equal(service->health_check_node_port, 0);
	assert_string_equal(
		notes, "externalTrafficPolicy is Local, but there is no healthCheckNodePort\n");
	service_unref(service);

	service = service_with("type: NodePort, clusterIP: 10.0.0.1, externalTrafficPolicy: Local, "
			       "healthCheckNodePort: 345");
	assert_true(service->external_local);
	assert_int_equal(service->health_check_node_port, 0);
	service_unref(service);
}

static void external_policy_local_needs_an_external_address(void **state attr_unused)
{
	struct service *service = service_with("clusterIP: 10.0.0.1, externalTrafficPolicy: Local");

	assert_false(service->external_local);
	assert_false(service->internal_local);
	service_unref(service);
	service = service_with("clusterIP: 10.0.0.1, externalTrafficPolicy: Local, "
			       "externalIPs: ['fd00::9'], internalTrafficPolicy: Local");
	assert_true(service->external_local);
	assert_true(service->internal_local);
	service_unref(service);
}

static void service_to_service_map_cluster_ip_of_the_other_family(void **state attr_unused)
{
	struct service *service = service_with("clusterIP: 'fd00::1'");

	assert_false(service->has_cluster_ip[FAMILY_IPV4]);
	assert_true(service->has_cluster_ip[FAMILY_IPV6]);
	assert_addrs(&service->cluster_ip[FAMILY_IPV6], 1, "fd00::1");
	service_unref(service);
}

static void service_to_service_map_dual_stack(void **state attr_unused)
{
	struct service *service =
		service_with("clusterIP: 'fd00::1', clusterIPs: ['fd00::1', 10.0.0.1], "
			     "ipFamilies: [IPv6, IPv4]");

	assert_addrs(&service->cluster_ip[FAMILY_IPV4], 1, "10.0.0.1");
	assert_addrs(&service->cluster_ip[FAMILY_IPV6], 1, "fd00::1");
	service_unref(service);
}

/* what an API server sends has no defaults of ours */
static void families_are_read_from_the_text_where_not_given(void **state attr_unused)
{
	K8s__Service *message =
		must_read(arena,
			  "{metadata: {name: web, namespace: ns}, spec: {clusterIP: "
			  "10.0.0.1, ports: [{port: 80}], sessionAffinity: ClientIP}}",
			  &k8s__service__descriptor);
	enum convert_skip skip;
	struct service *service;
	struct err err;

	assert_int_equal(convert_service(message, NULL, &service, &skip, &err), 1);
	assert_true(service->has_cluster_ip[FAMILY_IPV4]);
	assert_false(service->has_cluster_ip[FAMILY_IPV6]);
	assert_int_equal(service->sticky_seconds, 10800);
	assert_int_equal(service->ports[0].protocol, PROTOCOL_TCP);
	service_unref(service);
}

static void service_to_service_map_mixed_addresses_keep_their_order(void **state attr_unused)
{
	struct service *service = service_with(
		"clusterIP: 10.0.0.1, externalIPs: ['fd00::2', 1.2.3.4, '', ' ', nonsense, "
		"1.2.3.4], "
		"loadBalancerSourceRanges: [' 10.0.0.0/8', 'fd00::/16 ', nonsense, 1.2.3.4/28]");

	assert_addrs(service->external_ips, service->n_external_ips, "fd00::2 1.2.3.4 1.2.3.4");
	assert_prefixes(service->source_ranges, service->n_source_ranges,
			"10.0.0.0/8 fd00::/16 1.2.3.0/28");
	assert_string_equal(notes, "spec.externalIPs: \"nonsense\" is not an address\n"
				   "spec.loadBalancerSourceRanges: \"nonsense\" is not a range\n");
	service_unref(service);
}

static void a_range_of_everyone_empties_its_family(void **state attr_unused)
{
	struct service *service = service_with("clusterIP: 10.0.0.1, loadBalancerSourceRanges: "
					       "[10.0.0.0/8, 'fd00::/16', 0.0.0.0/0, 11.0.0.0/8]");

	assert_prefixes(service->source_ranges, service->n_source_ranges, "fd00::/16");
	service_unref(service);
}

static void bad_ips_zero_padded_addresses_are_canonical(void **state attr_unused)
{
	struct service *service =
		service_with("clusterIP: 172.030.000.041, externalIPs: [192.168.099.011], "
			     "loadBalancerSourceRanges: [203.000.113.000/025]");

	assert_addrs(&service->cluster_ip[FAMILY_IPV4], 1, "172.30.0.41");
	assert_addrs(service->external_ips, service->n_external_ips, "192.168.99.11");
	assert_prefixes(service->source_ranges, service->n_source_ranges, "203.0.113.0/25");
	service_unref(service);
	service = balancer("{ip: 001.002.003.004}", "");
	assert_addrs(service->vips, service->n_vips, "1.2.3.4");
	service_unref(service);
}

static void affinity_has_its_time(void **state attr_unused)
{
	struct service *service = service_with("clusterIP: 10.0.0.1, sessionAffinity: ClientIP");

	assert_int_equal(service->sticky_seconds, 10800);
	service_unref(service);
	service = service_with("clusterIP: 10.0.0.1, sessionAffinityConfig: "
			       "{clientIP: {timeoutSeconds: 30}}");
	assert_int_equal(service->sticky_seconds, 0);
	service_unref(service);
}

static void the_annotation_about_connections_is_read(void **state)
{
	static const struct {
		const char *text;
		enum terminate expected;
		const char *note;
	} rows[] = {
		{"endpoint-removed", TERMINATE_ENDPOINT_REMOVED, ""},
		{"none", TERMINATE_NONE, ""},
		{"always", TERMINATE_UNSET,
		 "annotation portolan.io/terminate-connections: \"always\" is not none or "
		 "endpoint-removed\n"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char *text cleanup_free =
			xasprintf("{metadata: {name: web, annotations: {other: none, "
				  "portolan.io/terminate-connections: %s}}, "
				  "spec: {clusterIP: 10.0.0.1, ports: [{port: 80}]}}",
				  rows[i].text);
		struct service *service = NULL;
		enum convert_skip skip;
		struct err err;

		notes[0] = '\0';
		assert_int_equal(try_service(text, &service, &skip, &err), 1);
		assert_int_equal(service->terminate, rows[i].expected);
		assert_string_equal(notes, rows[i].note);
		service_unref(service);
	}
}

#define SPEC(s) "{metadata: {name: web}, spec: {clusterIP: 10.0.0.1, " s "}}"

/* "CLUSTER-IPS | PORTS | POLICIES AND AFFINITY" */
static void describe(const struct service *service, char *ret, size_t size)
{
	ret[0] = '\0';
	for (int family = 0; family < FAMILY_COUNT; family++) {
		char addr[ADDR_TEXT_MAX];

		if (!service->has_cluster_ip[family])
			continue;
		addr_print(&service->cluster_ip[family], addr);
		append(ret, size, addr);
	}
	append(ret, size, "|");
	for (size_t i = 0; i < service->n_ports; i++) {
		const struct service_port *port = &service->ports[i];
		char *text cleanup_free = xasprintf("%s:%u/%s:%u", port->name, port->port,
						    protocol_name(port->protocol), port->node_port);

		append(ret, size, text);
	}
	append(ret, size, "|");
	if (service->external_local)
		append(ret, size, "external-local");
	if (service->internal_local)
		append(ret, size, "internal-local");
	if (service->sticky_seconds) {
		char *text cleanup_free = xasprintf("%us", service->sticky_seconds);

		append(ret, size, text);
	}
}

#define IP "clusterIP: 10.0.0.1, "

/* The table of docs/operations.md: a wrong value takes itself away, never the Service. */
static void what_can_be_served_of_a_service_is_served(void **state attr_unused)
{
	static const struct {
		const char *spec, *expected, *note;
	} rows[] = {
		{IP "type: Mesh, externalTrafficPolicy: Local, ports: [{port: 80, nodePort: 9}]",
		 "10.0.0.1 | :80/tcp:9 |",
		 "spec.type \"Mesh\" is not known, the other fields count\n"},
		{IP "type: NodePort, externalTrafficPolicy: PreferLocal, ports: [{port: 80}]",
		 "10.0.0.1 | :80/tcp:0 |",
		 "spec.externalTrafficPolicy \"PreferLocal\" is not known, it counts as Cluster\n"},
		{IP "internalTrafficPolicy: PreferLocal, ports: [{port: 80}]",
		 "10.0.0.1 | :80/tcp:0 |",
		 "spec.internalTrafficPolicy \"PreferLocal\" is not known, it counts as Cluster\n"},
		{IP "sessionAffinity: Cookie, ports: [{port: 80}]", "10.0.0.1 | :80/tcp:0 |",
		 "spec.sessionAffinity \"Cookie\" is not known, it counts as None\n"},
		{IP "ipFamilies: [IPv9], ports: [{port: 80}]", "10.0.0.1 | :80/tcp:0 |",
		 "spec.ipFamilies \"IPv9\" is not known, the cluster IP itself counts\n"},
		{"clusterIPs: [10.0.0.1, x], ipFamilies: [IPv4, IPv6], ports: [{port: 80}]",
		 "10.0.0.1 | :80/tcp:0 |", "cluster IP \"x\" is not an address, it is left out\n"},
		{IP "ports: [{port: 80}, {name: b, port: 0}]", "10.0.0.1 | :80/tcp:0 |",
		 "spec.ports[1]: port 0 is not between 1 and 65535, this port is left out\n"},
		{IP "ports: [{name: a, port: 80, protocol: QUIC}, {name: b, port: 81}]",
		 "10.0.0.1 | b:81/tcp:0 |",
		 "spec.ports[0]: a port's protocol \"QUIC\" is none of TCP, UDP and SCTP, this "
		 "port "
		 "is left out\n"},
		{IP "ports: [{name: 'a b', port: 80}, {name: b, port: 81}]",
		 "10.0.0.1 | b:81/tcp:0 |",
		 "spec.ports[0]: a port's name \"a b\" is not a name that Kubernetes allows, this "
		 "port is left out\n"},
		{IP "ports: [{port: 80, nodePort: 70000}]", "10.0.0.1 | :80/tcp:0 |",
		 "nodePort 70000 is not between 1 and 65535, it is left out\n"},
		{IP "ports: [{port: 80, nodePort: -1}]", "10.0.0.1 | :80/tcp:0 |",
		 "nodePort -1 is not between 1 and 65535, it is left out\n"},
		{IP "ports: [{port: 80}, {port: 81}]", "10.0.0.1 | :80/tcp:0 |",
		 "spec.ports[1]: two ports are named \"\", this port is left out\n"},
		{IP "ports: [{name: a, port: 80}, {name: b, port: 80}]", "10.0.0.1 | a:80/tcp:0 |",
		 "spec.ports[1]: two ports are tcp 80, this port is left out\n"},
		{IP "ports: [{name: a, port: 80, nodePort: 9}, {name: b, port: 81, nodePort: 9}]",
		 "10.0.0.1 | a:80/tcp:9 |",
		 "spec.ports[1]: two ports have the nodePort 9, this port is left out\n"},
		{IP "type: LoadBalancer, externalTrafficPolicy: Local, healthCheckNodePort: 65537, "
		    "ports: [{port: 80}]",
		 "10.0.0.1 | :80/tcp:0 | external-local",
		 "healthCheckNodePort 65537 is not between 1 and 65535, it is left out\n"},
		{IP "sessionAffinity: ClientIP, sessionAffinityConfig: {clientIP: "
		    "{timeoutSeconds: 0}}, ports: [{port: 80}]",
		 "10.0.0.1 | :80/tcp:0 | 10800s",
		 "sessionAffinityConfig.clientIP.timeoutSeconds 0 is not between 1 and 86400, "
		 "10800 "
		 "is used\n"},
		{IP "sessionAffinity: ClientIP, sessionAffinityConfig: {clientIP: "
		    "{timeoutSeconds: 86401}}, ports: [{port: 80}]",
		 "10.0.0.1 | :80/tcp:0 | 86400s",
		 "sessionAffinityConfig.clientIP.timeoutSeconds 86401 is not between 1 and 86400, "
		 "86400 is used\n"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct service *service;
		char text[256];

		notes[0] = '\0';
		service = service_with(rows[i].spec);
		describe(service, text, sizeof(text));
		assert_string_equal(text, rows[i].expected);
		assert_string_equal(notes, rows[i].note);
		service_unref(service);
	}
}

static void the_same_port_of_two_protocols_is_no_collision(void **state attr_unused)
{
	service_unref(service_with("clusterIP: 10.0.0.1, ports: [{name: a, port: 80, nodePort: 9}, "
				   "{name: b, port: 80, nodePort: 9, protocol: UDP}]"));
	assert_string_equal(notes, "");
}

static void a_service_of_which_nothing_can_be_served_is_refused(void **state attr_unused)
{
	assert_refused(SPEC("ports: [{name: a}]"),
		       "spec.ports[0]: port 0 is not between 1 and 65535");
	assert_refused(SPEC("ports: [{port: 65536}]"),
		       "spec.ports[0]: port 65536 is not between 1 and 65535");
	assert_refused(SPEC("ports: [{port: 80, protocol: tcp}]"),
		       "spec.ports[0]: a port's protocol \"tcp\" is none of TCP, UDP and SCTP");
	assert_refused(
		"{metadata: {name: web}, spec: {clusterIP: 10.0.0.256, ports: [{port: 80}]}}",
		"cluster IP \"10.0.0.256\" is not an address");
	assert_refused("{metadata: {name: web}, spec: {clusterIP: 10.0.0.1, ipFamilies: [IPv6], "
		       "ports: [{port: 80}]}}",
		       "cluster IP \"10.0.0.1\" is not of the family that ipFamilies names");
	assert_refused("{metadata: {name: web}, spec: {clusterIP: x, clusterIPs: [x], ipFamilies: "
		       "[IPv9], ports: [{port: 80}]}}",
		       "spec.ipFamilies leads to no cluster IP");
	assert_string_equal(notes, "");
}

static void notes_about_one_object_are_bounded(void **state attr_unused)
{
	service_unref(service_with("clusterIP: 10.0.0.1, externalIPs: [a, b, c, d, e, f, g, h, i, "
				   "j]"));
	assert_non_null(strstr(notes, "\"h\" is not an address\nand 2 more\n"));
}

static void names_that_kubernetes_refuses_are_refused(void **state attr_unused)
{
	assert_refused("{}", "metadata.name is missing");
	assert_refused("{metadata: {name: ''}}", "metadata.name is missing");
	assert_refused("metadata: {name: \"a\\\" -j ACCEPT\\n\"}",
		       "metadata.name \"a\" -j ACCEPT?\" is not a name that Kubernetes allows");
	assert_refused("{metadata: {name: a.b}}",
		       "metadata.name \"a.b\" is not a name that Kubernetes allows");
	assert_refused("{metadata: {name: a, namespace: A}}",
		       "metadata.namespace \"A\" is not a name that Kubernetes allows");
	assert_refused("{metadata: {name: "
		       "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa}}",
		       "metadata.name "
		       "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\" "
		       "is not a name that Kubernetes allows");
}

static void labels_and_subdomains(void **state attr_unused)
{
	static const char *const not_labels[] = {"",    "-a",  "a-",  "A",
						 "a_b", "a b", "a.b", "\xc3\xa4"};
	static const char *const not_subdomains[] = {"", ".", "a..b", "a.", ".a", "a.-b", "a/b"};

	assert_true(k8s_name_is_label("0a-b9"));
	assert_true(k8s_name_is_subdomain("node-1.example.com"));
	for (size_t i = 0; i < ARRAY_SIZE(not_labels); i++)
		assert_false(k8s_name_is_label(not_labels[i]));
	for (size_t i = 0; i < ARRAY_SIZE(not_subdomains); i++)
		assert_false(k8s_name_is_subdomain(not_subdomains[i]));
}

static int try_slice(const char *text, struct slice **ret, enum convert_skip *ret_skip,
		     struct err *err)
{
	K8s__EndpointSlice *message = must_read(arena, text, &k8s__endpoint_slice__descriptor);

	if (!message->metadata || !message->metadata->namespace_)
		defaults_endpoint_slice(message, arena);
	return convert_slice(message, "a", &note_all, ret, ret_skip, err);
}

#define META(more) "metadata: {name: web-1, labels: {kubernetes.io/service-name: web}" more "}\n"

static struct slice *slice_with(const char *text)
{
	enum convert_skip skip;
	struct slice *slice = NULL;
	struct err err = {0};

	if (try_slice(text, &slice, &skip, &err) != 1)
		fail_msg("%s: %s", text, err.text);
	return slice;
}

static void a_slice_keeps_what_a_proxy_needs(void **state attr_unused)
{
	struct slice *slice = slice_with(
		META("") "ports: [{name: http, port: 8080}, {name: dns, port: 53, protocol: UDP}]\n"
			 "endpoints:\n"
			 "- {addresses: [10.1.0.1, 10.1.0.9], nodeName: a}\n"
			 "- {addresses: [010.1.0.2], conditions: {ready: false, serving: true, "
			 "terminating: true}, hints: {forZones: [{name: z1}, {name: z2}], "
			 "forNodes: [{name: n1}]}}\n"
			 "- {addresses: []}\n"
			 "- {addresses: [10.1.0.3], nodeName: '', conditions: {ready: true, "
			 "serving: false}, hints: {}}\n");
	const struct slice_view view = slice_view(slice, arena);
	const struct slice_endpoint *endpoints = view.endpoints;

	assert_string_equal(slice_key(slice), "default/web-1");
	assert_string_equal(slice_service_key(slice), "default/web");
	assert_int_equal(slice->family, FAMILY_IPV4);
	assert_int_equal(slice->n_ports, 2);
	assert_string_equal(view.ports[0].name, "http");
	assert_int_equal(view.ports[0].port, 8080);
	assert_int_equal(view.ports[1].protocol, PROTOCOL_UDP);
	assert_int_equal(slice->n_endpoints, 3);
	assert_addrs(&endpoints[0].addr, 1, "10.1.0.1");
	assert_int_equal(endpoints[0].flags, ENDPOINT_READY | ENDPOINT_SERVING | ENDPOINT_LOCAL);
	assert_null(endpoints[0].hints);
	assert_addrs(&endpoints[1].addr, 1, "10.1.0.2");
	assert_int_equal(endpoints[1].flags, ENDPOINT_SERVING | ENDPOINT_TERMINATING);
	assert_int_equal(view.hints[1]->n_zones, 2);
	assert_string_equal(view.hints[1]->zones[1], "z2");
	assert_string_equal(view.hints[1]->nodes[0], "n1");
	assert_int_equal(endpoints[2].flags, ENDPOINT_READY);
	assert_null(endpoints[2].hints);
	slice_unref(slice);
}

static void ports_with_null_name_or_no_number_are_skipped(void **state attr_unused)
{
	/* a namespace given: no defaults, as from an API server */
	struct slice *slice = slice_with(
		META(", namespace: ns") "addressType: IPv4\n"
					"ports: [{port: 1}, {name: a}, {name: b, port: 0}, "
					"{name: '', port: 2}]\n");
	struct slice_port port = slice_view(slice, arena).ports[0];

	assert_int_equal(slice->n_ports, 1);
	assert_string_equal(port.name, "");
	assert_int_equal(port.port, 2);
	assert_int_equal(port.protocol, PROTOCOL_TCP);
	slice_unref(slice);
}

static void the_trigger_time_is_read_from_its_annotation(void **state attr_unused)
{
	struct slice *slice =
		slice_with(META(", annotations: {endpoints.kubernetes.io/last-change-trigger-time: "
				"'2001-09-09T01:46:40.5Z'}"));

	assert_true(slice->trigger_time_ns == 1000000000500000000);
	slice_unref(slice);
	slice = slice_with(META(", annotations: {endpoints.kubernetes.io/last-change-trigger-time: "
				"'soon'}"));
	assert_true(slice->trigger_time_ns == 0);
	slice_unref(slice);
}

static void assert_slice_skipped(const char *text, enum convert_skip expected)
{
	enum convert_skip skip = CONVERT_SKIP_NONE;
	struct slice *slice;
	struct err err = {0};

	assert_int_equal(try_slice(text, &slice, &skip, &err), 0);
	assert_int_equal(skip, expected);
}

static void slices_that_are_not_for_a_proxy_are_left_out(void **state attr_unused)
{
	assert_slice_skipped("metadata: {name: a}", CONVERT_SKIP_NO_SERVICE);
	assert_slice_skipped("metadata: {name: a, labels: {kubernetes.io/service-name: ''}}",
			     CONVERT_SKIP_NO_SERVICE);
	assert_slice_skipped("metadata: {name: a, labels: {kubernetes.io/service-name: web, "
			     "service.kubernetes.io/headless: ''}}",
			     CONVERT_SKIP_HEADLESS);
	assert_slice_skipped(META("") "addressType: FQDN\nendpoints: [{addresses: [a.example]}]",
			     CONVERT_SKIP_FQDN);
}

static void assert_slice_refused(const char *text, const char *expected)
{
	enum convert_skip skip;
	struct slice *slice;
	struct err err = {0};

	assert_true(try_slice(text, &slice, &skip, &err) < 0);
	assert_string_equal(err.text, expected);
}

static void bad_slices_are_refused(void **state attr_unused)
{
	assert_slice_refused("{}", "metadata.name is missing");
	assert_slice_refused("metadata: {name: a, labels: {kubernetes.io/service-name: a/b}}",
			     "label kubernetes.io/service-name \"a/b\" is not a name that "
			     "Kubernetes allows");
	assert_slice_refused(META("") "addressType: ipv4", "addressType \"ipv4\" is none of IPv4, "
							   "IPv6 and FQDN");
	assert_slice_refused(META("") "addressType: IPv4\nendpoints: [{addresses: [x]}]",
			     "endpoints[0]: the address \"x\" is none");
	assert_slice_refused(META("") "ports: [{port: 70000}]",
			     "ports[0]: port 70000 is not between 1 and 65535");
	assert_string_equal(notes, "");
}

static void what_can_be_used_of_a_slice_is_used(void **state attr_unused)
{
	static const struct {
		const char *text, *expected, *note;
	} rows[] = {
		{"endpoints: [{addresses: [10.1.0.1]}, {addresses: [x]}, {addresses: [10.1.0.3]}]",
		 "10.1.0.1 10.1.0.3",
		 "endpoints[1]: the address \"x\" is none, this endpoint is left out\n"},
		{"endpoints: [{addresses: ['::1']}, {addresses: [10.1.0.2]}]", "10.1.0.2",
		 "endpoints[0]: the address \"::1\" is not of the family that addressType names, "
		 "this endpoint is left out\n"},
		{"ports: [{port: 1}, {name: b, port: 70000}]", ":1",
		 "ports[1]: port 70000 is not between 1 and 65535, this port is left out\n"},
		{"ports: [{name: b, port: 7, protocol: QUIC}, {port: 1}]", ":1",
		 "ports[0]: a port's protocol \"QUIC\" is none of TCP, UDP and SCTP, this port is "
		 "left out\n"},
		{"ports: [{name: 'a\"', port: 7}, {port: 1}]", ":1",
		 "ports[0]: a port's name \"a\"\" is not a name that Kubernetes allows, this port "
		 "is left out\n"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char *object cleanup_free =
			xasprintf(META("") "addressType: IPv4\n%s", rows[i].text);
		struct slice_view view;
		struct slice *slice;
		char text[256] = "";

		notes[0] = '\0';
		slice = slice_with(object);
		view = slice_view(slice, arena);
		for (size_t j = 0; j < slice->n_ports; j++) {
			char *port cleanup_free =
				xasprintf("%s:%u", view.ports[j].name, view.ports[j].port);

			append(text, sizeof(text), port);
		}
		for (size_t j = 0; j < slice->n_endpoints; j++) {
			char addr[ADDR_TEXT_MAX];

			addr_print(&view.endpoints[j].addr, addr);
			append(text, sizeof(text), addr);
		}
		assert_string_equal(text, rows[i].expected);
		assert_string_equal(notes, rows[i].note);
		slice_unref(slice);
	}
}

static int try_endpoints(const char *text, struct slice ***ret, size_t *ret_n,
			 enum convert_skip *ret_skip, struct err *err)
{
	K8s__Endpoints *message = must_read(arena, text, &k8s__endpoints__descriptor);

	defaults_endpoints(message, arena);
	return convert_endpoints(message, "a", &note_all, ret, ret_n, ret_skip, err);
}

static void endpoints_become_a_slice_for_each_subset_and_family(void **state attr_unused)
{
	struct slice_view view;
	struct slice **slices;
	enum convert_skip skip;
	struct err err;
	size_t n;

	assert_int_equal(
		try_endpoints("metadata: {name: web}\nsubsets:\n"
			      "- {addresses: [{ip: 10.1.0.1, nodeName: a}, {ip: 'fd00::1'}], "
			      "notReadyAddresses: [{ip: 10.1.0.2}], ports: [{port: 80}]}\n"
			      "- {addresses: [{ip: 10.1.0.3}], ports: [{name: b, port: 81, "
			      "protocol: UDP}]}\n"
			      "- {ports: [{port: 82}]}\n",
			      &slices, &n, &skip, &err),
		1);
	assert_int_equal(n, 3);
	assert_string_equal(slice_key(slices[0]), "default/web~0-IPv4");
	assert_string_equal(slice_key(slices[1]), "default/web~0-IPv6");
	assert_string_equal(slice_key(slices[2]), "default/web~1-IPv4");
	assert_string_equal(slice_service_key(slices[0]), "default/web");
	assert_int_equal(slices[0]->n_endpoints, 2);
	view = slice_view(slices[0], arena);
	assert_int_equal(view.endpoints[0].flags,
			 ENDPOINT_READY | ENDPOINT_SERVING | ENDPOINT_LOCAL);
	assert_int_equal(view.endpoints[1].flags, ENDPOINT_SERVING);
	assert_int_equal(view.ports[0].port, 80);
	assert_string_equal(view.ports[0].name, "");
	assert_int_equal(slices[1]->n_endpoints, 1);
	assert_int_equal(slice_view(slices[1], arena).endpoints[0].flags,
			 ENDPOINT_READY | ENDPOINT_SERVING);
	assert_int_equal(slice_view(slices[2], arena).ports[0].protocol, PROTOCOL_UDP);
	for (size_t i = 0; i < n; i++)
		slice_unref(slices[i]);
	free(slices);
}

static void endpoints_that_are_not_mirrored_are_left_out(void **state attr_unused)
{
	struct slice **slices;
	enum convert_skip skip;
	struct err err;
	size_t n;

	assert_int_equal(try_endpoints("metadata: {name: web, labels: "
				       "{endpointslice.kubernetes.io/skip-mirror: 'true'}}",
				       &slices, &n, &skip, &err),
			 0);
	assert_int_equal(skip, CONVERT_SKIP_NOT_MIRRORED);
	assert_int_equal(try_endpoints("metadata: {name: web, labels: "
				       "{service.kubernetes.io/headless: ''}}",
				       &slices, &n, &skip, &err),
			 0);
	assert_int_equal(skip, CONVERT_SKIP_HEADLESS);
	assert_int_equal(try_endpoints("{metadata: {name: web}, subsets: [{addresses: [{ip: "
				       "10.1.0.1}], ports: [{port: 1}]}, {addresses: [{ip: x}]}]}",
				       &slices, &n, &skip, &err),
			 -EINVAL);
	assert_string_equal(err.text, "subsets[1]: the address \"x\" is none");
}

static void a_node_has_addresses_ranges_zone_and_taint(void **state attr_unused)
{
	K8s__Node *message = must_read(
		arena,
		"metadata: {name: node-a.example, labels: {topology.kubernetes.io/zone: z1}, "
		"deletionTimestamp: 2024-01-01T00:00:00Z}\n"
		"spec: {podCIDR: 10.1.0.0/24, podCIDRs: [10.1.0.0/24, 'fd00:1::/64'], "
		"taints: [{key: a}, {key: ToBeDeletedByClusterAutoscaler}]}\n"
		"status: {addresses: [{type: ExternalIP, address: 1.2.3.4}, {type: Hostname, "
		"address: a}, "
		"{type: InternalIP, address: 10.0.0.1}, {type: InternalIP, address: bad}, "
		"{type: InternalIP, address: 'fd00::1'}]}\n",
		&k8s__node__descriptor);
	struct node *node;
	struct err err;

	assert_int_equal(convert_node(message, &note_all, &node, &err), 0);
	assert_string_equal(node->name, "node-a.example");
	assert_string_equal(node->zone, "z1");
	assert_true(node->being_deleted);
	assert_true(node->autoscaler_taint);
	assert_addrs(node->addresses, node->n_addresses, "10.0.0.1 fd00::1 1.2.3.4");
	assert_prefixes(node->pod_cidrs, node->n_pod_cidrs, "10.1.0.0/24 fd00:1::/64");
	assert_string_equal(notes, "status.addresses: InternalIP \"bad\" is not an address\n");
	node_unref(node);
}

static void a_bare_node_is_fine_and_a_bad_one_is_refused(void **state attr_unused)
{
	K8s__Node *message = must_read(arena, "{metadata: {name: a}, spec: {podCIDR: 10.1.0.0/24}}",
				       &k8s__node__descriptor);
	struct node *node;
	struct err err;

	assert_int_equal(convert_node(message, NULL, &node, &err), 0);
	assert_string_equal(node->zone, "");
	assert_false(node->being_deleted);
	assert_prefixes(node->pod_cidrs, node->n_pod_cidrs, "10.1.0.0/24");
	node_unref(node);
	message = must_read(arena, "{metadata: {name: a}, spec: {podCIDR: x}}",
			    &k8s__node__descriptor);
	assert_int_equal(convert_node(message, NULL, &node, &err), -EINVAL);
	message = must_read(arena, "{metadata: {name: 'a b'}}", &k8s__node__descriptor);
	assert_int_equal(convert_node(message, NULL, &node, &err), -EINVAL);
	message = must_read(arena, "{}", &k8s__node__descriptor);
	assert_int_equal(convert_node(message, NULL, &node, &err), -EINVAL);
}

static int read_cidr(const char *text, struct service_cidr **ret, struct err *err)
{
	const K8s__ServiceCIDR *message = must_read(arena, text, &k8s__service_cidr__descriptor);

	return convert_service_cidr(message, ret, err);
}

static void a_service_cidr_has_a_range_of_each_family(void **state attr_unused)
{
	struct service_cidr *cidr;
	struct err err;

	assert_int_equal(read_cidr("{metadata: {name: kubernetes}, spec: {cidrs: [10.96.0.1/12, "
				   "'fd00:10:96::/108']}, status: {conditions: []}}",
				   &cidr, &err),
			 0);
	assert_string_equal(cidr->name, "kubernetes");
	assert_prefixes(cidr->cidrs, cidr->n_cidrs, "10.96.0.0/12 fd00:10:96::/108");
	service_cidr_unref(cidr);
}

static void bad_service_cidrs_are_refused(void **state attr_unused)
{
	static const struct {
		const char *text;
		const char *why;
	} rows[] = {
		{"{spec: {cidrs: [10.0.0.0/8]}}", "metadata.name is missing"},
		{"{metadata: {name: 'a b'}, spec: {cidrs: [10.0.0.0/8]}}",
		 "metadata.name \"a b\" is not a name that Kubernetes allows"},
		{"{metadata: {name: a}}", "spec.cidrs has 0 ranges, not one or two"},
		{"{metadata: {name: a}, spec: {cidrs: [10.0.0.0/8, 'fd00::/64', 10.1.0.0/16]}}",
		 "spec.cidrs has 3 ranges, not one or two"},
		{"{metadata: {name: a}, spec: {cidrs: [10.0.0.0]}}",
		 "spec.cidrs \"10.0.0.0\" is not a range"},
		{"{metadata: {name: a}, spec: {cidrs: [10.0.0.0/8, 11.0.0.0/8]}}",
		 "spec.cidrs has two ranges of IPv4"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct service_cidr *cidr;
		struct err err;

		assert_int_equal(read_cidr(rows[i].text, &cidr, &err), -EINVAL);
		assert_string_equal(err.text, rows[i].why);
	}
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(service_to_service_map_nothing),
		T(a_service_that_lacks_something_is_a_mistake),
		T(service_to_service_map_headless),
		T(service_to_service_map_external_name_even_with_cluster_ip),
		T(the_label_of_another_proxy_leaves_a_service_out),
		T(service_to_service_map_one_entry_for_each_port),
		T(node_ports_are_taken_whatever_the_type),
		T(load_balancer_ingress_route_type_proxy),
		T(service_to_service_map_etp_local_keeps_the_health_port),
		T(external_policy_local_needs_an_external_address),
		T(service_to_service_map_cluster_ip_of_the_other_family),
		T(service_to_service_map_dual_stack),
		T(families_are_read_from_the_text_where_not_given),
		T(service_to_service_map_mixed_addresses_keep_their_order),
		T(a_range_of_everyone_empties_its_family),
		T(bad_ips_zero_padded_addresses_are_canonical),
		T(affinity_has_its_time),
		T(the_annotation_about_connections_is_read),
		T(what_can_be_served_of_a_service_is_served),
		T(the_same_port_of_two_protocols_is_no_collision),
		T(a_service_of_which_nothing_can_be_served_is_refused),
		T(notes_about_one_object_are_bounded),
		T(names_that_kubernetes_refuses_are_refused),
		T(labels_and_subdomains),
		T(a_slice_keeps_what_a_proxy_needs),
		T(ports_with_null_name_or_no_number_are_skipped),
		T(the_trigger_time_is_read_from_its_annotation),
		T(slices_that_are_not_for_a_proxy_are_left_out),
		T(bad_slices_are_refused),
		T(what_can_be_used_of_a_slice_is_used),
		T(endpoints_become_a_slice_for_each_subset_and_family),
		T(endpoints_that_are_not_mirrored_are_left_out),
		T(a_node_has_addresses_ranges_zone_and_taint),
		T(a_bare_node_is_fine_and_a_bad_one_is_refused),
		T(a_service_cidr_has_a_range_of_each_family),
		T(bad_service_cidrs_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

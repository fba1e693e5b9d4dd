/* SPDX-License-Identifier: Apache-2.0 */
#include "read_object.h"

static struct arena *arena;

static int set_up(void **state attr_unused)
{
	arena = arena_new(4096);
	return 0;
}

static int tear_down(void **state attr_unused)
{
	arena = arena_free(arena);
	return 0;
}

static K8s__ServiceSpec *service_spec(const char *spec)
{
	char *text cleanup_free = xasprintf("metadata: {name: web}\nspec: %s\n", spec);
	K8s__Service *service = must_read(arena, text, &k8s__service__descriptor);

	defaults_service(service, arena);
	assert_string_equal(service->metadata->namespace_, "default");
	return service->spec;
}

static void a_service_gets_its_type_protocol_and_affinity(void **state attr_unused)
{
	K8s__ServiceSpec *spec = service_spec(
		"{ports: [{port: 80}, {port: 53, protocol: UDP}, {port: 1, protocol: ''}]}");

	assert_string_equal(spec->type, "ClusterIP");
	assert_string_equal(spec->ports[0]->protocol, "TCP");
	assert_string_equal(spec->ports[1]->protocol, "UDP");
	assert_string_equal(spec->ports[2]->protocol, "TCP");
	assert_string_equal(spec->sessionaffinity, "None");
	assert_null(spec->sessionaffinityconfig);
}

static void client_ip_affinity_lasts_three_hours(void **state attr_unused)
{
	K8s__ServiceSpec *spec = service_spec("{sessionAffinity: ClientIP}");

	assert_int_equal(spec->sessionaffinityconfig->clientip->timeoutseconds, 10800);
	spec = service_spec("{sessionAffinity: ClientIP, sessionAffinityConfig: {clientIP: {}}}");
	assert_int_equal(spec->sessionaffinityconfig->clientip->timeoutseconds, 10800);
	spec = service_spec("{sessionAffinity: ClientIP, "
			    "sessionAffinityConfig: {clientIP: {timeoutSeconds: 60}}}");
	assert_int_equal(spec->sessionaffinityconfig->clientip->timeoutseconds, 60);
}

static void policies_are_cluster_where_the_type_has_them(void **state attr_unused)
{
	K8s__ServiceSpec *spec = service_spec("{}");

	assert_string_equal(spec->internaltrafficpolicy, "Cluster");
	assert_null(spec->externaltrafficpolicy);
	assert_string_equal(service_spec("{type: NodePort}")->externaltrafficpolicy, "Cluster");
	assert_string_equal(service_spec("{type: LoadBalancer}")->externaltrafficpolicy, "Cluster");
	assert_string_equal(service_spec("{externalIPs: [1.2.3.4]}")->externaltrafficpolicy,
			    "Cluster");
	spec = service_spec("{type: NodePort, externalTrafficPolicy: Local, "
			    "internalTrafficPolicy: Local}");
	assert_string_equal(spec->externaltrafficpolicy, "Local");
	assert_string_equal(spec->internaltrafficpolicy, "Local");
	assert_null(service_spec("{type: ExternalName}")->internaltrafficpolicy);
}

static void cluster_ip_and_cluster_ips_follow_each_other(void **state attr_unused)
{
	K8s__ServiceSpec *spec = service_spec("{clusterIP: 10.0.0.1}");

	assert_int_equal(spec->n_clusterips, 1);
	assert_string_equal(spec->clusterips[0], "10.0.0.1");
	spec = service_spec("{clusterIPs: ['fd00::1', 10.0.0.1]}");
	assert_string_equal(spec->clusterip, "fd00::1");
	assert_string_equal(service_spec("{clusterIPs: [None]}")->clusterip, "None");
	assert_null(service_spec("{}")->clusterip);
}

static void ip_families_come_from_the_cluster_ips(void **state attr_unused)
{
	K8s__ServiceSpec *spec = service_spec("{clusterIPs: ['fd00::1', 10.0.0.1]}");

	assert_int_equal(spec->n_ipfamilies, 2);
	assert_string_equal(spec->ipfamilies[0], "IPv6");
	assert_string_equal(spec->ipfamilies[1], "IPv4");
	spec = service_spec("{ipFamilies: [IPv6], clusterIPs: ['fd00::1', 10.0.0.1]}");
	assert_int_equal(spec->n_ipfamilies, 2);
	assert_string_equal(spec->ipfamilies[1], "IPv4");
	assert_int_equal(service_spec("{clusterIP: None}")->n_ipfamilies, 0);
}

static void a_service_without_a_spec_gets_one(void **state attr_unused)
{
	K8s__Service *service = must_read(arena, "{}", &k8s__service__descriptor);

	defaults_service(service, arena);
	assert_string_equal(service->spec->type, "ClusterIP");
}

static K8s__EndpointSlice *slice_of(const char *text)
{
	K8s__EndpointSlice *slice = must_read(arena, text, &k8s__endpoint_slice__descriptor);

	defaults_endpoint_slice(slice, arena);
	return slice;
}

static void slice_ports_get_a_name_and_a_protocol(void **state attr_unused)
{
	K8s__EndpointSlice *slice = slice_of("metadata: {name: a}\nports: [{port: 80}, {}]");

	assert_string_equal(slice->metadata->namespace_, "default");
	assert_string_equal(slice->ports[0]->name, "");
	assert_string_equal(slice->ports[0]->protocol, "TCP");
	assert_false(slice->ports[1]->has_port);
}

static void endpoint_conditions_stay_absent(void **state attr_unused)
{
	K8s__EndpointSlice *slice =
		slice_of("endpoints: [{addresses: [10.0.0.1]}, {conditions: {serving: true}}]");

	assert_null(slice->endpoints[0]->conditions);
	assert_false(slice->endpoints[1]->conditions->has_ready);
}

static void address_type_comes_from_the_addresses(void **state attr_unused)
{
	assert_string_equal(slice_of("endpoints: [{}, {addresses: [10.0.0.1]}]")->addresstype,
			    "IPv4");
	assert_string_equal(slice_of("endpoints: [{addresses: ['fd00::1']}]")->addresstype, "IPv6");
	assert_string_equal(slice_of("endpoints: [{addresses: [a.example]}]")->addresstype, "FQDN");
	assert_string_equal(slice_of("{}")->addresstype, "IPv4");
	assert_string_equal(slice_of("addressType: IPv6")->addresstype, "IPv6");
}

static void endpoints_ports_get_a_protocol(void **state attr_unused)
{
	K8s__Endpoints *endpoints =
		must_read(arena, "metadata: {name: a}\nsubsets: [{ports: [{port: 80}]}]",
			  &k8s__endpoints__descriptor);

	defaults_endpoints(endpoints, arena);
	assert_string_equal(endpoints->metadata->namespace_, "default");
	assert_string_equal(endpoints->subsets[0]->ports[0]->protocol, "TCP");
	assert_string_equal(endpoints->subsets[0]->ports[0]->name, "");
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(a_service_gets_its_type_protocol_and_affinity),
		T(client_ip_affinity_lasts_three_hours),
		T(policies_are_cluster_where_the_type_has_them),
		T(cluster_ip_and_cluster_ips_follow_each_other),
		T(ip_families_come_from_the_cluster_ips),
		T(a_service_without_a_spec_gets_one),
		T(slice_ports_get_a_name_and_a_protocol),
		T(endpoint_conditions_stay_absent),
		T(address_type_comes_from_the_addresses),
		T(endpoints_ports_get_a_protocol),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

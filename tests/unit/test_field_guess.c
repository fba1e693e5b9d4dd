/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sources/field_guess.h"
#include "sources/k8s.pb-c.h"

#define SPEC &k8s__service_spec__descriptor

/* The bit of a field. */
static uint64_t bit(const ProtobufCMessageDescriptor *type, const char *name)
{
	const ProtobufCFieldDescriptor *field =
		protobuf_c_message_descriptor_get_field_by_name(type, name);

	assert_non_null(field);
	return UINT64_C(1) << (field - type->fields);
}

static void case_dashes_and_underscores_do_not_hide_a_field(void **state attr_unused)
{
	assert_string_equal(field_guess(SPEC, "clusterIp", 0), "clusterIP");
	assert_string_equal(field_guess(SPEC, "externaltrafficPolicy", 0), "externalTrafficPolicy");
	assert_string_equal(field_guess(SPEC, "session_affinity", 0), "sessionAffinity");
	assert_string_equal(field_guess(SPEC, "load-balancer-source-ranges", 0),
			    "loadBalancerSourceRanges");
	assert_string_equal(field_guess(SPEC, "Type", 0), "type"); /* a short one, too */
	/* what was meant is given as well: still not a field */
	assert_string_equal(field_guess(SPEC, "clusterIp", bit(SPEC, "clusterIP")), "clusterIP");
}

static void a_letter_or_two_do_not_hide_a_field_that_is_absent(void **state attr_unused)
{
	assert_string_equal(field_guess(SPEC, "extrenalTrafficPolicy", 0), "externalTrafficPolicy");
	assert_string_equal(field_guess(SPEC, "internalTraficPolicy", 0), "internalTrafficPolicy");
	assert_string_equal(field_guess(SPEC, "port", 0), "ports");
	assert_string_equal(field_guess(SPEC, "externalIP", 0), "externalIPs");
	assert_null(field_guess(SPEC, "port", bit(SPEC, "ports")));
	assert_null(field_guess(SPEC, "externalIP", bit(SPEC, "externalIPs")));
}

static void short_names_and_far_ones_are_not_guessed_at(void **state attr_unused)
{
	assert_null(field_guess(SPEC, "tipe", 0));
	assert_null(field_guess(SPEC, "parts2", 0));
	assert_null(field_guess(SPEC, "madeUp", 0));
	assert_null(field_guess(SPEC, "", 0));
	assert_null(field_guess(SPEC, "x-clusterIP", bit(SPEC, "clusterIP")));
}

static void kubernetes_own_fields_are_left_alone(void **state attr_unused)
{
	static const struct {
		const ProtobufCMessageDescriptor *type;
		const char *key;
	} rows[] = {
		{SPEC, "ipFamily"},
		{SPEC, "ipFamilyPolicy"},
		{SPEC, "loadBalancerIP"},
		{SPEC, "selector"},
		{SPEC, "trafficDistribution"},
		{&k8s__service_port__descriptor, "targetPort"},
		{&k8s__service_port__descriptor, "appProtocol"},
		{&k8s__service__descriptor, "apiVersion"},
		{&k8s__load_balancer_ingress__descriptor, "ports"},
		{&k8s__slice_endpoint__descriptor, "hostname"},
		{&k8s__object_meta__descriptor, "ownerReferences"},
		{&k8s__object_meta__descriptor, "managedFields"},
		{&k8s__node_spec__descriptor, "providerID"},
		{&k8s__node_status__descriptor, "features"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_null(field_guess(rows[i].type, rows[i].key, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(case_dashes_and_underscores_do_not_hide_a_field),
		cmocka_unit_test(a_letter_or_two_do_not_hide_a_field_that_is_absent),
		cmocka_unit_test(short_names_and_far_ones_are_not_guessed_at),
		cmocka_unit_test(kubernetes_own_fields_are_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

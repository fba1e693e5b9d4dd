/* SPDX-License-Identifier: Apache-2.0 */

/* Names of chains: those that every kube-proxy gives the same service ports and endpoints. */

#include "backends/iptables/chain_set.h"
#include "build.h"
#include "xtables/chains.h"

static const struct {
	const char *id;
	enum protocol protocol;
	enum chain_kind kind;
	const char *ip; /* NULL: a name of the port */
	uint16_t port;
	const char *name;
} examples[] = {
	{"default/kubernetes:https", PROTOCOL_TCP, CHAIN_KIND_SVC, NULL, 0,
	 "KUBE-SVC-NPX46M4PTMTKRN6Y"},
	{"default/nginx", PROTOCOL_TCP, CHAIN_KIND_SVC, NULL, 0, "KUBE-SVC-2CMXP7HKUVJN7L6M"},
	{"kube-system/kube-dns:dns", PROTOCOL_UDP, CHAIN_KIND_SVC, NULL, 0,
	 "KUBE-SVC-TCOU7JCQXEZGVUNU"},
	{"kube-system/kube-dns:dns-tcp", PROTOCOL_TCP, CHAIN_KIND_SVC, NULL, 0,
	 "KUBE-SVC-ERIFXISQEP7F7OF4"},
	{"default/nginx-svc:http", PROTOCOL_TCP, CHAIN_KIND_SVC, NULL, 0,
	 "KUBE-SVC-ELCM5PCEQWBTUJ2I"},
	{"ns1/svc1:p80", PROTOCOL_TCP, CHAIN_KIND_SVC, NULL, 0, "KUBE-SVC-XPGD46QRK7WJZT7O"},
	{"ns1/svc1:p80", PROTOCOL_TCP, CHAIN_KIND_SVL, NULL, 0, "KUBE-SVL-XPGD46QRK7WJZT7O"},
	{"ns1/svc1:p80", PROTOCOL_TCP, CHAIN_KIND_EXT, NULL, 0, "KUBE-EXT-XPGD46QRK7WJZT7O"},
	{"ns1/svc1:p80", PROTOCOL_TCP, CHAIN_KIND_FW, NULL, 0, "KUBE-FW-XPGD46QRK7WJZT7O"},
	{"ns1/svc1:p80", PROTOCOL_TCP, CHAIN_KIND_SEP, "10.180.0.1", 80,
	 "KUBE-SEP-SXIVWICOYRO3J4NJ"},
	{"ns3/svc3:p8081", PROTOCOL_TCP, CHAIN_KIND_SEP, "203.0.113.4", 8081,
	 "KUBE-SEP-RUVVH7YV3PHQBDOS"},
	{"ns1/svc1:p80", PROTOCOL_TCP, CHAIN_KIND_SEP, "fd00:10:180::1", 80,
	 "KUBE-SEP-OGYCNMB4EMRUSJ6N"},
};

static void hash_example(size_t i, struct chain_hash *ret)
{
	struct addr addr;

	if (!examples[i].ip) {
		chain_hash_port(examples[i].id, examples[i].protocol, ret);
		return;
	}
	addr = build_addr(examples[i].ip);
	chain_hash_endpoint(examples[i].id, examples[i].protocol, &addr, examples[i].port, ret);
}

static void names_are_those_of_kube_proxy(void **state attr_unused)
{
	for (size_t i = 0; i < ARRAY_SIZE(examples); i++) {
		struct chain_hash hash;
		struct chain_name name;

		hash_example(i, &hash);
		chain_name_make(examples[i].kind, &hash, &name);
		assert_string_equal(name.text, examples[i].name);
	}
}

static void a_name_can_be_read_back(void **state attr_unused)
{
	for (size_t i = 0; i < ARRAY_SIZE(examples); i++) {
		struct chain_hash hash, parsed;
		enum chain_kind kind;

		hash_example(i, &hash);
		assert_true(chain_name_parse(examples[i].name, &kind, &parsed));
		assert_int_equal(kind, examples[i].kind);
		assert_memory_equal(&parsed, &hash, sizeof(hash));
	}
}

static void other_names_are_not_read(void **state attr_unused)
{
	static const char *const others[] = {
		"",
		"KUBE-SVC-",
		"KUBE-SVC-XPGD46QRK7WJZT7",
		"KUBE-SVC-XPGD46QRK7WJZT7OO",
		"KUBE-SVC-XPGD46QRK7WJZT71",
		"KUBE-SVC-xpgd46qrk7wjzt7o",
		"KUBE-SERVICES",
		"XPGD46QRK7WJZT7O",
	};

	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		struct chain_hash hash;
		enum chain_kind kind;

		assert_false(chain_name_parse(others[i], &kind, &hash));
	}
}

static void the_five_prefixes_mark_chains_of_services(void **state attr_unused)
{
	assert_true(chain_is_per_service("KUBE-SVC-A"));
	assert_true(chain_is_per_service("KUBE-SVL-A"));
	assert_true(chain_is_per_service("KUBE-EXT-A"));
	assert_true(chain_is_per_service("KUBE-FW-A"));
	assert_true(chain_is_per_service("KUBE-SEP-A"));
	assert_false(chain_is_per_service(CHAIN_SERVICES));
	assert_false(chain_is_per_service(CHAIN_KUBELET_FIREWALL));
	assert_false(chain_is_per_service(CHAIN_EXTERNAL_SERVICES));
	assert_false(chain_is_per_service("KUBE-KUBELET-CANARY"));
	assert_false(chain_is_per_service("PREROUTING"));
}

static void a_set_holds_what_was_added_and_nothing_else(void **state attr_unused)
{
	cleanup_chain_set struct chain_set set = {0};

	chain_set_init(&set, 0); /* it grows */
	for (size_t i = 0; i < ARRAY_SIZE(examples); i++) {
		struct chain_hash hash;

		assert_false(chain_set_has(&set, examples[i].name));
		hash_example(i, &hash);
		chain_set_add(&set, examples[i].kind, &hash);
		assert_true(chain_set_has(&set, examples[i].name));
	}
	for (size_t i = 0; i < ARRAY_SIZE(examples); i++)
		assert_true(chain_set_has(&set, examples[i].name));
	assert_false(chain_set_has(&set, "KUBE-SVL-NPX46M4PTMTKRN6Y")); /* another kind */
	assert_false(chain_set_has(&set, "KUBE-SVC-NPX46M4PTMTKRN6Z"));
	assert_false(chain_set_has(&set, "KUBE-SVC-"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_those_of_kube_proxy),
		cmocka_unit_test(a_name_can_be_read_back),
		cmocka_unit_test(other_names_are_not_read),
		cmocka_unit_test(the_five_prefixes_mark_chains_of_services),
		cmocka_unit_test(a_set_holds_what_was_added_and_nothing_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

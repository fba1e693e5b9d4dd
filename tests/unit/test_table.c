/* SPDX-License-Identifier: Apache-2.0 */

/* What is read back of table kube-proxy, in a network namespace of its own; nft puts things there. */

#include <libmnl/libmnl.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>

#include "backends/nftables/batch_writer.h"
#include "backends/nftables/layout.h"
#include "backends/nftables/table.h"
#include "fake_tools.h"
#include "kernel/nft_batch.h"
#include "kernel/nft_socket.h"

static struct nft_socket *socket_;

static int set_up(void **state attr_unused)
{
	struct err err;

	private_network();
	assert_int_equal(nft_socket_open(&socket_, &err), 0);
	return 0;
}

static void nft(const char *command)
{
	cleanup_free char *line = xasprintf("nft '%s'", command);

	assert_int_equal(system(line), 0);
}

static int tear_down(void **state attr_unused)
{
	nft("flush ruleset");
	nft_socket_free(take(socket_));
	return 0;
}

/* The table as we make it, with all containers and no element. */
static void make_ours(enum family family)
{
	cleanup_nft_batch struct nft_batch *batch = nft_batch_new();
	struct batch_writer writer;
	struct err err;

	batch_writer_init(&writer, family, LAYOUT_TABLE, batch);
	batch_writer_table(&writer, LAYOUT_COMMENT);
	layout_containers(&writer.writer);
	batch_writer_done(&writer);
	if (nft_batch_commit(socket_, batch, 0, NULL, NULL, &err) < 0)
		fail_msg("%s", err.text);
}

static enum table_kind find(enum family family)
{
	enum table_kind kind = TABLE_KIND_COUNT;
	struct err err;

	if (table_find(socket_, family, &kind, &err) < 0)
		fail_msg("%s", err.text);
	return kind;
}

static void our_table_is_known_by_its_comment(void **state attr_unused)
{
	assert_int_equal(find(FAMILY_IPV4), TABLE_ABSENT);
	make_ours(FAMILY_IPV4);
	assert_int_equal(find(FAMILY_IPV4), TABLE_OURS);
	assert_int_equal(find(FAMILY_IPV6), TABLE_ABSENT);
}

static void any_other_comment_is_foreign(void **state attr_unused)
{
	static const char *const comments[] = {
		"comment \"rules for kube-proxy\";", /* kube-proxy's */
		"",
		"comment \"" LAYOUT_COMMENT ".\";",
		"comment \"rules for kube-proxy, by Portolan (layout 0)\";",
	};

	for (size_t i = 0; i < ARRAY_SIZE(comments); i++) {
		cleanup_free char *command =
			xasprintf("add table ip6 kube-proxy { %s }", comments[i]);

		nft(command);
		assert_int_equal(find(FAMILY_IPV6), TABLE_FOREIGN);
		nft("delete table ip6 kube-proxy");
	}
}

static void
a_table_that_kube_proxy_took_over_is_foreign_though_it_keeps_our_comment(void **state attr_unused)
{
	make_ours(FAMILY_IPV4);
	nft("add map ip kube-proxy firewall-ips { type ipv4_addr . inet_proto . inet_service : "
	    "verdict; }");
	assert_int_equal(find(FAMILY_IPV4), TABLE_FOREIGN);
}

static void chains_are_listed_by_name(void **state attr_unused)
{
	cleanup_table_chains struct table_chains chains = {0};
	struct err err;

	nft("add table ip kube-proxy; add chain ip kube-proxy a; add chain ip kube-proxy b/c; "
	    "add table ip other; add chain ip other d; add table ip6 kube-proxy; "
	    "add chain ip6 kube-proxy e");
	assert_int_equal(table_list_chains(socket_, FAMILY_IPV4, &chains, &err), 0);
	assert_int_equal(chains.n, 2);
	assert_string_equal(chains.names[0], "a");
	assert_string_equal(chains.names[1], "b/c");
}

static void ids_of_a_former_life_are_found(void **state attr_unused)
{
	struct affinity_ids ids;
	struct err err;

	affinity_ids_init(&ids);
	make_ours(FAMILY_IPV4);
	nft("add element ip kube-proxy affinity-ids { 10.96.0.1 . tcp . 80 : f000:5, "
	    "10.96.0.2 . udp . 53 : f000:6 }");
	nft("add element ip kube-proxy nodeport-affinity-ids { sctp . 30080 : f000:5 }");
	nft("add element ip kube-proxy affinity-ids { 10.96.0.9 . icmp . 80 : f000:7 }"); /* not ours */
	if (table_find_ids(socket_, FAMILY_IPV4, &ids, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(ids.found.count, 3);
	assert_non_null(map_get(&ids.found, "10.96.0.1:80/tcp"));
	assert_non_null(map_get(&ids.found, "10.96.0.2:53/udp"));
	assert_non_null(map_get(&ids.found, "NodePort 30080/sctp"));
	affinity_ids_done(&ids);
}

static char said[512];

static void on_client(void *arg attr_unused, const struct table_client *client)
{
	char from[ADDR_TEXT_MAX], to[ADDR_PORT_TEXT_MAX];

	addr_print(&client->client, from);
	addr_port_print(&client->endpoint, client->port, to);
	snprintf(said + strlen(said), sizeof(said) - strlen(said), "%s %x %s\n", from, client->id,
		 to);
}

static void on_restart(void *arg attr_unused)
{
	said[0] = '\0';
}

static void remembered_clients_are_read(void **state attr_unused)
{
	struct err err;

	make_ours(FAMILY_IPV4);
	make_ours(FAMILY_IPV6);
	nft("add element ip kube-proxy affinity { 192.0.2.1 . f000:5 timeout 1h : 10.1.0.1 . 8080 "
	    "}");
	nft("add element ip6 kube-proxy local-affinity { 2001:db8::1 . f000:6 timeout 1h : fd00::1 "
	    ". "
	    "53 }");
	said[0] = '\0';
	for (enum family family = 0; family < FAMILY_COUNT; family++)
		if (table_each_client(socket_, family, CONTAINER_AFFINITY, on_client, on_restart,
				      NULL, &err) < 0 ||
		    table_each_client(socket_, family, CONTAINER_LOCAL_AFFINITY, on_client,
				      on_restart, NULL, &err) < 0)
			fail_msg("%s", err.text);
	assert_string_equal(said, "192.0.2.1 f0000005 10.1.0.1:8080\n"
				  "2001:db8::1 f0000006 [fd00::1]:53\n");
}

static void a_list_of_what_is_not_there_is_an_error(void **state attr_unused)
{
	struct affinity_ids ids;
	struct err err;

	affinity_ids_init(&ids);
	assert_int_equal(table_find_ids(socket_, FAMILY_IPV4, &ids, &err), -ENOENT);
	affinity_ids_done(&ids);
}

static void on_element(void *arg, const struct table_element *element)
{
	size_t *n = arg;

	assert_non_null(element->key);
	*n += element->key_size;
}

static void an_element_without_a_key_is_refused(void **state attr_unused)
{
	_Alignas(struct nlmsghdr) char buffer[256] = {0};
	struct nlmsghdr *message = mnl_nlmsg_put_header(buffer);
	struct nlattr *list, *element, *key;
	struct err err;
	size_t n = 0;

	message->nlmsg_type = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWSETELEM;
	mnl_nlmsg_put_extra_header(message, sizeof(struct nfgenmsg));
	assert_int_equal(table_each_element(message, on_element, &n, &err), 0); /* an empty set */
	list = mnl_attr_nest_start(message, NFTA_SET_ELEM_LIST_ELEMENTS);
	element = mnl_attr_nest_start(message, NFTA_LIST_ELEM);
	key = mnl_attr_nest_start(message, NFTA_SET_ELEM_KEY);
	mnl_attr_put_u32(message, NFTA_DATA_VALUE, 7);
	mnl_attr_nest_end(message, key);
	mnl_attr_nest_end(message, element);
	mnl_attr_nest_end(message, list);
	assert_int_equal(table_each_element(message, on_element, &n, &err), 0);
	assert_int_equal(n, 4);
	list->nla_len = (uint16_t)(list->nla_len + MNL_ATTR_HDRLEN);
	mnl_attr_put(message, NFTA_LIST_ELEM, 0, NULL);
	assert_int_equal(table_each_element(message, on_element, &n, &err), -EBADMSG);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(our_table_is_known_by_its_comment),
		T(any_other_comment_is_foreign),
		T(a_table_that_kube_proxy_took_over_is_foreign_though_it_keeps_our_comment),
		T(chains_are_listed_by_name),
		T(ids_of_a_former_life_are_found),
		T(remembered_clients_are_read),
		T(a_list_of_what_is_not_there_is_an_error),
		T(an_element_without_a_key_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */

/* Numbers of service ports with affinity: who gets which, and what that costs. */

#include <stdio.h>
#include <time.h>

#include "backends/nftables/affinity_ids.h"
#include "backends/nftables/user_data.h"
#include "build.h"

#define MANY 30000

struct port {
	struct service service;
	struct service_port port;
	struct addr cluster_ip;
	char id[48];
	struct port_plan plan;
};

static void port_init(struct port *port, size_t number)
{
	*port = (struct port){
		.port = {.protocol = PROTOCOL_TCP, .port = 80},
		.cluster_ip = build_addr("10.96.0.0"),
	};
	port->cluster_ip.bytes[2] = (uint8_t)(number >> 8);
	port->cluster_ip.bytes[3] = (uint8_t)number;
	snprintf(port->id, sizeof(port->id), "ns1/svc%zu:http", number);
	port->plan = (struct port_plan){.service = &port->service,
					.port = &port->port,
					.cluster_ip = &port->cluster_ip,
					.id = port->id};
}

static void found(struct affinity_ids *ids, const struct port *port, uint32_t number)
{
	char name[AFFINITY_IDS_NAME_MAX], comment[USER_DATA_COMMENT_MAX];

	affinity_ids_name(&port->plan, name);
	user_data_cut(name, comment);
	affinity_ids_found_port(ids, comment, number);
}

static struct endpoint endpoint_at(const char *addr, uint16_t port)
{
	return (struct endpoint){.addr = build_addr(addr), .port = port};
}

static void a_port_keeps_its_number_and_nobody_else_gets_it(void **state attr_unused)
{
	struct affinity_ids ids;
	struct port one, other;

	port_init(&one, 1);
	port_init(&other, 2);
	affinity_ids_init(&ids);
	assert_int_equal(affinity_ids_port(&ids, &one.plan), 1);
	assert_int_equal(affinity_ids_port(&ids, &other.plan), 2);
	assert_int_equal(affinity_ids_port(&ids, &one.plan), 1);
	affinity_ids_forget_port(&ids, &one.plan);
	assert_int_equal(affinity_ids_port(&ids, &one.plan), 3);
	affinity_ids_done(&ids);
}

/* What is remembered of one must not be taken for the other, whatever the endpoint's address. */
static void
an_endpoint_has_a_number_for_each_port_and_never_the_same_again(void **state attr_unused)
{
	const struct endpoint endpoint = endpoint_at("10.1.1.1", 8080);
	struct affinity_ids ids;

	affinity_ids_init(&ids);
	ids.next = 3; /* 1 and 2 are the ports */
	assert_int_equal(affinity_ids_endpoint(&ids, 1, &endpoint), 3);
	assert_int_equal(affinity_ids_endpoint(&ids, 2, &endpoint), 4);
	assert_int_equal(affinity_ids_endpoint(&ids, 1, &endpoint), 3);
	affinity_ids_forget_endpoint(&ids, 1, &endpoint);
	assert_int_equal(affinity_ids_endpoint(&ids, 1, &endpoint), 5);
	affinity_ids_done(&ids);
}

static void numbers_of_a_former_life_are_taken_up(void **state attr_unused)
{
	const struct endpoint kept = endpoint_at("10.1.1.1", 8080);
	const struct endpoint new = endpoint_at("10.1.1.2", 8080);
	struct affinity_ids ids;
	struct port one, other;

	port_init(&one, 1);
	port_init(&other, 2);
	affinity_ids_init(&ids);
	found(&ids, &one, 6);
	affinity_ids_found_endpoint(&ids, 6, &kept.addr, kept.port, 9);
	assert_int_equal(affinity_ids_port(&ids, &other.plan), 10);
	assert_int_equal(affinity_ids_port(&ids, &one.plan), 6);
	assert_int_equal(affinity_ids_endpoint(&ids, 6, &kept), 9);
	assert_int_equal(affinity_ids_endpoint(&ids, 6, &new), 11);
	affinity_ids_done(&ids);
}

/* Clients may be remembered with endpoints that are gone, and whose numbers nothing else shows. */
static void no_number_below_the_mark_is_given_once_more(void **state attr_unused)
{
	struct affinity_ids ids;
	struct port one;

	port_init(&one, 1);
	affinity_ids_init(&ids);
	found(&ids, &one, 6);
	affinity_ids_found_mark(&ids, 1000);
	affinity_ids_raise_mark(&ids);
	assert_int_equal(ids.mark, 1000); /* nothing was given */
	affinity_ids_forget_port(&ids, &one.plan);
	affinity_ids_prune(&ids);
	assert_int_equal(affinity_ids_port(&ids, &one.plan), 1000);
	affinity_ids_raise_mark(&ids);
	assert_true(ids.mark > 1000);
	affinity_ids_done(&ids);
}

/* With another Service's address as its own external IP, say. */
static void nobody_takes_up_the_number_of_another(void **state attr_unused)
{
	struct affinity_ids ids;
	struct port victim, thief;

	port_init(&victim, 2);
	port_init(&thief, 1);
	thief.plan.external_ips = &victim.cluster_ip;
	thief.plan.n_external_ips = 1;
	affinity_ids_init(&ids);
	found(&ids, &victim, 6);
	assert_int_equal(affinity_ids_port(&ids, &thief.plan), 7);
	assert_int_equal(affinity_ids_port(&ids, &victim.plan), 6);
	affinity_ids_done(&ids);
}

static void a_service_that_was_made_again_starts_afresh(void **state attr_unused)
{
	struct affinity_ids ids;
	struct port before, after;

	port_init(&before, 1);
	port_init(&after, 2);
	memcpy(after.id, before.id, sizeof(after.id));
	affinity_ids_init(&ids);
	found(&ids, &before, 6);
	assert_int_equal(affinity_ids_port(&ids, &after.plan), 7);
	affinity_ids_done(&ids);
}

/* Of a name that is too long for a comment the rest does not count; but no two ports have the same number. */
static void long_names_do_not_share_a_number(void **state attr_unused)
{
	cleanup_free char *name = xcalloc(1, 180);
	struct affinity_ids ids;
	struct port one, other;

	memset(name, 'x', 170);
	port_init(&one, 1);
	port_init(&other, 1);
	one.plan.id = name;
	other.plan.id = name + 1;
	affinity_ids_init(&ids);
	found(&ids, &one, 6);
	assert_int_equal(affinity_ids_port(&ids, &other.plan), 6);
	assert_int_equal(affinity_ids_port(&ids, &one.plan), 7);
	affinity_ids_done(&ids);
}

static void what_nobody_asked_for_is_forgotten(void **state attr_unused)
{
	const struct endpoint endpoint = endpoint_at("10.1.1.1", 8080);
	struct affinity_ids ids;
	struct port one, other;

	port_init(&one, 1);
	port_init(&other, 2);
	affinity_ids_init(&ids);
	affinity_ids_port(&ids, &one.plan);
	affinity_ids_port(&ids, &other.plan);
	affinity_ids_endpoint(&ids, 1, &endpoint);
	affinity_ids_begin(&ids);
	affinity_ids_port(&ids, &other.plan);
	assert_true(affinity_ids_has(&ids, 2, false));
	assert_false(affinity_ids_has(&ids, 1, false) || affinity_ids_has(&ids, 2, true));
	affinity_ids_prune(&ids);
	assert_false(affinity_ids_has(&ids, 1, false));
	assert_int_equal(affinity_ids_port(&ids, &one.plan), 4);
	assert_int_equal(affinity_ids_endpoint(&ids, 1, &endpoint), 5);
	assert_int_equal(affinity_ids_port(&ids, &other.plan), 2);
	affinity_ids_done(&ids);
}

/* A tenth of a second of work; with a search among all others for each it is six seconds. */
static void many_ports_take_their_numbers_up_at_once(void **state attr_unused)
{
	cleanup_free struct port *ports = xcalloc(MANY, sizeof(*ports));
	struct affinity_ids ids;
	clock_t start;

	affinity_ids_init(&ids);
	for (size_t i = 0; i < MANY; i++) {
		port_init(&ports[i], i);
		found(&ids, &ports[i], (uint32_t)(MANY - i));
	}
	start = clock();
	for (size_t i = 0; i < MANY; i++)
		assert_int_equal(affinity_ids_port(&ids, &ports[i].plan), MANY - i);
	assert_true(clock() - start < 2 * CLOCKS_PER_SEC);
	affinity_ids_done(&ids);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_port_keeps_its_number_and_nobody_else_gets_it),
		cmocka_unit_test(an_endpoint_has_a_number_for_each_port_and_never_the_same_again),
		cmocka_unit_test(numbers_of_a_former_life_are_taken_up),
		cmocka_unit_test(no_number_below_the_mark_is_given_once_more),
		cmocka_unit_test(nobody_takes_up_the_number_of_another),
		cmocka_unit_test(a_service_that_was_made_again_starts_afresh),
		cmocka_unit_test(long_names_do_not_share_a_number),
		cmocka_unit_test(what_nobody_asked_for_is_forgotten),
		cmocka_unit_test(many_ports_take_their_numbers_up_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */

/* Numbers of service ports with affinity: who gets which, and what that costs. */

#include <stdio.h>
#include <time.h>

#include "backends/nftables/affinity_ids.h"
#include "backends/nftables/elements.h"
#include "build.h"

#define MANY 30000

struct port {
	struct service_port port;
	struct addr cluster_ip, vip;
	char id[48];
	struct port_plan plan;
};

static void port_init(struct port *port, size_t number)
{
	*port = (struct port){
		.port = {.protocol = PROTOCOL_TCP, .port = 80},
		.cluster_ip = build_addr("10.96.0.0"),
		.vip = build_addr("198.51.100.1"),
	};
	port->cluster_ip.bytes[2] = (uint8_t)(number >> 8);
	port->cluster_ip.bytes[3] = (uint8_t)number;
	snprintf(port->id, sizeof(port->id), "ns1/svc%zu:http", number);
	port->plan = (struct port_plan){
		.port = &port->port, .cluster_ip = &port->cluster_ip, .id = port->id};
}

static void found(struct affinity_ids *ids, const struct port *port, size_t which, uint32_t id)
{
	char text[DESTINATION_TEXT_MAX];
	size_t n;
	cleanup_free struct destination *v = elements_destinations(&port->plan, &n);

	assert_true(which < n);
	destination_print(&v[which], text);
	affinity_ids_found(ids, text, id);
}

static void a_port_keeps_its_number_and_nobody_else_gets_it(void **state attr_unused)
{
	struct affinity_ids ids;
	struct port one, other;

	port_init(&one, 1);
	port_init(&other, 2);
	affinity_ids_init(&ids);
	assert_int_equal(affinity_ids_get(&ids, &one.plan), AFFINITY_ID_FIRST);
	assert_int_equal(affinity_ids_get(&ids, &other.plan), AFFINITY_ID_FIRST + 1);
	assert_int_equal(affinity_ids_get(&ids, &one.plan), AFFINITY_ID_FIRST);
	affinity_ids_forget(&ids, &one.plan);
	assert_int_equal(affinity_ids_get(&ids, &one.plan), AFFINITY_ID_FIRST + 2);
	affinity_ids_done(&ids);
}

static void numbers_of_a_former_life_are_taken_up_by_destination(void **state attr_unused)
{
	struct affinity_ids ids;
	struct port one, other;

	port_init(&one, 1);
	port_init(&other, 2);
	affinity_ids_init(&ids);
	found(&ids, &one, 0, AFFINITY_ID_FIRST + 6);
	found(&ids, &other, 0, 5); /* not one of ours */
	assert_int_equal(affinity_ids_get(&ids, &other.plan), AFFINITY_ID_FIRST + 7);
	assert_int_equal(affinity_ids_get(&ids, &one.plan), AFFINITY_ID_FIRST + 6);
	affinity_ids_done(&ids);
}

/* A port's destinations may belong to two Services now: the clients go with one of them. */
static void a_number_of_a_former_life_goes_to_one_port_only(void **state attr_unused)
{
	struct affinity_ids ids;
	struct port one, other;
	uint32_t first, second;

	port_init(&one, 1);
	port_init(&other, 2);
	other.plan.vips = &other.vip;
	other.plan.n_vips = 1;
	affinity_ids_init(&ids);
	found(&ids, &one, 0, AFFINITY_ID_FIRST + 6);
	found(&ids, &other, 1, AFFINITY_ID_FIRST + 6);
	first = affinity_ids_get(&ids, &one.plan);
	second = affinity_ids_get(&ids, &other.plan);
	assert_int_equal(first, AFFINITY_ID_FIRST + 6);
	assert_int_equal(second, AFFINITY_ID_FIRST + 7);
	affinity_ids_done(&ids);
}

static void what_nobody_asked_for_is_forgotten(void **state attr_unused)
{
	struct affinity_ids ids;
	struct port one, other;

	port_init(&one, 1);
	port_init(&other, 2);
	affinity_ids_init(&ids);
	affinity_ids_get(&ids, &one.plan);
	affinity_ids_get(&ids, &other.plan);
	affinity_ids_begin(&ids);
	affinity_ids_get(&ids, &other.plan);
	affinity_ids_prune(&ids);
	assert_int_equal(affinity_ids_get(&ids, &one.plan), AFFINITY_ID_FIRST + 2);
	assert_int_equal(affinity_ids_get(&ids, &other.plan), AFFINITY_ID_FIRST + 1);
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
		found(&ids, &ports[i], 0, AFFINITY_ID_FIRST + (uint32_t)(MANY - i));
	}
	start = clock();
	for (size_t i = 0; i < MANY; i++)
		assert_int_equal(affinity_ids_get(&ids, &ports[i].plan),
				 AFFINITY_ID_FIRST + (uint32_t)(MANY - i));
	assert_true(clock() - start < 2 * CLOCKS_PER_SEC);
	affinity_ids_done(&ids);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_port_keeps_its_number_and_nobody_else_gets_it),
		cmocka_unit_test(numbers_of_a_former_life_are_taken_up_by_destination),
		cmocka_unit_test(a_number_of_a_former_life_goes_to_one_port_only),
		cmocka_unit_test(what_nobody_asked_for_is_forgotten),
		cmocka_unit_test(many_ports_take_their_numbers_up_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

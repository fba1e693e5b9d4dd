/* SPDX-License-Identifier: Apache-2.0 */

/* What counts, once: rounds, ends, and both in any order. */

#include <linux/netfilter/nf_conntrack_common.h>
#include <netinet/in.h>
#include <stdio.h>

#include "build.h"
#include "conntrack/service_traffic.h"

#define LIMIT 100

struct lab {
	struct model *model;
	struct service_traffic *traffic;
};

static void set_service(struct lab *lab, const char *key, const char *addr)
{
	struct service *service = build_service(key, addr);

	build_port(service, "http", PROTOCOL_TCP, 80, 0);
	model_set_service(lab->model, service);
}

static void begin(struct lab *lab)
{
	service_traffic_begin(lab->traffic, lab->model);
}

static void end(struct lab *lab)
{
	service_traffic_end(lab->traffic);
	while (service_traffic_sweep(lab->traffic, 100))
		;
}

static void empty_round(struct lab *lab)
{
	begin(lab);
	end(lab);
}

/* One Service, and an empty table to begin with. */
static struct lab lab_new(size_t limit)
{
	struct lab lab = {model_new("node-a", 0), service_traffic_new(limit)};

	set_service(&lab, "default/web", "10.96.0.1");
	empty_round(&lab);
	return lab;
}

static void lab_done(struct lab *lab)
{
	service_traffic_free(lab->traffic);
	model_free(lab->model);
}

/* A flow to 10.96.0.<service>:80 that has seen so many packets of 100 bytes each way. */
static struct conntrack_flow flow_of(uint8_t service, uint32_t id, uint64_t packets)
{
	struct conntrack_flow flow = {
		.protocol = IPPROTO_TCP,
		.status = IPS_DST_NAT | IPS_CONFIRMED,
		.id = id,
		.counted = true,
		.packets = {packets, packets},
		.bytes = {100 * packets, 100 * packets},
	};

	flow.original.src = build_addr("10.244.0.5");
	flow.original.src_port = (uint16_t)(1024 + id);
	flow.original.dst = build_addr("10.96.0.1");
	flow.original.dst.bytes[3] = service;
	flow.original.dst_port = 80;
	return flow;
}

static void see(struct lab *lab, uint8_t service, uint32_t id, uint64_t packets)
{
	const struct conntrack_flow flow = flow_of(service, id, packets);

	service_traffic_see(lab->traffic, &flow);
}

static void ends(struct lab *lab, uint8_t service, uint32_t id, uint64_t packets)
{
	const struct conntrack_flow flow = flow_of(service, id, packets);

	service_traffic_ended(lab->traffic, &flow);
}

static const struct service_traffic_port *find(const struct lab *lab, const char *name)
{
	const struct service_traffic_port *port;
	size_t at = 0;

	while ((port = service_traffic_next(lab->traffic, &at)))
		if (streq(port->service, name))
			return port;
	return NULL;
}

static void check(const struct lab *lab, const char *name, uint64_t connections, uint64_t packets,
		  size_t tracked)
{
	const struct service_traffic_port *port = find(lab, name);

	assert_non_null(port);
	assert_int_equal(port->totals.connections, connections);
	for (enum conntrack_dir dir = 0; dir < CONNTRACK_DIR_COUNT; dir++) {
		assert_int_equal(port->totals.packets[dir], packets);
		assert_int_equal(port->totals.bytes[dir], 100 * packets);
	}
	assert_int_equal(port->tracked, tracked);
}

static void a_flow_is_one_connection_and_grows(void **state attr_unused)
{
	struct lab lab = lab_new(LIMIT);

	assert_null(find(&lab, "web"));
	begin(&lab);
	see(&lab, 1, 7, 3);
	see(&lab, 1, 7, 4); /* reported twice, in a later datagram */
	end(&lab);
	check(&lab, "web", 1, 4, 1);
	assert_string_equal(find(&lab, "web")->ns, "default");
	assert_string_equal(find(&lab, "web")->port, "http");
	assert_int_equal(find(&lab, "web")->protocol, PROTOCOL_TCP);
	begin(&lab);
	see(&lab, 1, 7, 10);
	see(&lab, 1, 8, 1);
	end(&lab);
	check(&lab, "web", 2, 11, 2);
	ends(&lab, 1, 7, 12);
	check(&lab, "web", 2, 13, 1);
	lab_done(&lab);
}

static void what_was_there_before_counts_from_now_on(void **state attr_unused)
{
	struct lab lab = {model_new("node-a", 0), service_traffic_new(LIMIT)};

	set_service(&lab, "default/web", "10.96.0.1");
	begin(&lab);
	see(&lab, 1, 7, 1000);
	ends(&lab, 1, 8, 1000); /* not even met */
	ends(&lab, 1, 7, 1001);
	see(&lab, 1, 9, 50);
	end(&lab);
	check(&lab, "web", 0, 1, 1);
	begin(&lab);
	see(&lab, 1, 9, 60);
	end(&lab);
	check(&lab, "web", 0, 11, 1);
	lab_done(&lab);
}

static void a_flow_that_no_round_met_counts_when_it_ends(void **state attr_unused)
{
	struct lab lab = lab_new(LIMIT);

	ends(&lab, 1, 7, 5);
	check(&lab, "web", 1, 5, 0);
	lab_done(&lab);
}

/* Its datagram was made before it ended, and is read after. */
static void news_of_the_past_do_not_count_again(void **state attr_unused)
{
	struct lab lab = lab_new(LIMIT);

	begin(&lab);
	ends(&lab, 1, 7, 5);
	see(&lab, 1, 7, 5);
	see(&lab, 1, 8, 2);
	ends(&lab, 1, 8, 3);
	see(&lab, 1, 8, 2);
	end(&lab);
	check(&lab, "web", 2, 8, 0);
	/* the same tuple and id once more, now a flow of its own */
	begin(&lab);
	see(&lab, 1, 7, 5);
	end(&lab);
	check(&lab, "web", 3, 13, 1);
	lab_done(&lab);
}

/* Both began and ended while one round lasted: an end is told once. */
static void a_second_end_is_of_another_flow(void **state attr_unused)
{
	struct lab lab = lab_new(LIMIT);

	begin(&lab);
	ends(&lab, 1, 7, 5);
	see(&lab, 1, 7, 2);
	ends(&lab, 1, 7, 5);
	end(&lab);
	check(&lab, "web", 2, 10, 0);
	lab_done(&lab);
}

static void a_flow_that_went_back_is_another(void **state attr_unused)
{
	struct lab lab = lab_new(LIMIT);

	begin(&lab);
	see(&lab, 1, 7, 10);
	end(&lab);
	begin(&lab);
	see(&lab, 1, 7, 2);
	end(&lab);
	check(&lab, "web", 2, 12, 1);
	lab_done(&lab);
}

static void a_flow_that_one_round_misses_is_kept(void **state attr_unused)
{
	struct lab lab = lab_new(LIMIT);

	begin(&lab);
	see(&lab, 1, 7, 10);
	end(&lab);
	empty_round(&lab);
	check(&lab, "web", 1, 10, 1);
	begin(&lab);
	see(&lab, 1, 7, 11);
	end(&lab);
	check(&lab, "web", 1, 11, 1);
	empty_round(&lab);
	empty_round(&lab);
	check(&lab, "web", 1, 11, 0);
	lab_done(&lab);
}

static void a_round_that_failed_concludes_nothing(void **state attr_unused)
{
	struct lab lab = lab_new(LIMIT);

	begin(&lab);
	see(&lab, 1, 7, 10);
	end(&lab);
	for (int i = 0; i < 5; i++) {
		begin(&lab);
		service_traffic_give_up(lab.traffic);
	}
	check(&lab, "web", 1, 10, 1);
	lab_done(&lab);
}

static void what_is_not_for_a_service_does_not_count(void **state attr_unused)
{
	struct lab lab = lab_new(LIMIT);
	struct conntrack_flow flow = flow_of(1, 1, 1);

	begin(&lab);
	flow.status = IPS_CONFIRMED;
	service_traffic_see(lab.traffic, &flow);
	see(&lab, 9, 2, 1);
	ends(&lab, 9, 3, 1);
	end(&lab);
	assert_null(find(&lab, "web"));
	/* a Service for it comes later, and finds the flow */
	set_service(&lab, "default/late", "10.96.0.9");
	begin(&lab);
	see(&lab, 9, 2, 4);
	end(&lab);
	check(&lab, "late", 1, 4, 1);
	lab_done(&lab);
}

static void without_accounting_connections_count(void **state attr_unused)
{
	struct lab lab = lab_new(LIMIT);

	begin(&lab);
	see(&lab, 1, 7, 0);
	see(&lab, 1, 8, 0);
	end(&lab);
	begin(&lab);
	see(&lab, 1, 7, 0);
	end(&lab);
	check(&lab, "web", 2, 0, 2);
	lab_done(&lab);
}

/* Changed, gone, and there again. */
static void a_service_that_is_gone_has_no_numbers(void **state attr_unused)
{
	struct lab lab = lab_new(LIMIT);
	struct service *service;

	begin(&lab);
	see(&lab, 1, 7, 10);
	end(&lab);
	service = build_service("default/web", "10.96.0.2");
	build_port(service, "http", PROTOCOL_TCP, 80, 30080);
	model_set_service(lab.model, service);
	begin(&lab);
	see(&lab, 1, 7, 11); /* of the old address, still its own */
	see(&lab, 2, 8, 1);
	end(&lab);
	check(&lab, "web", 2, 12, 2);
	model_remove_service(lab.model, "default/web");
	begin(&lab);
	see(&lab, 2, 8, 2);
	end(&lab);
	assert_null(find(&lab, "web"));
	set_service(&lab, "default/web", "10.96.0.2");
	begin(&lab);
	see(&lab, 2, 8, 3);
	end(&lab);
	check(&lab, "web", 2, 14, 1);
	model_remove_service(lab.model, "default/web");
	empty_round(&lab);
	ends(&lab, 2, 8, 3);
	empty_round(&lab);
	set_service(&lab, "default/web", "10.96.0.2");
	begin(&lab);
	see(&lab, 2, 9, 1);
	end(&lab);
	check(&lab, "web", 1, 1, 1);
	lab_done(&lab);
}

/* -- the limit */

static uint64_t sum_shown(const struct lab *lab, size_t *ret_n)
{
	const struct service_traffic_port *port;
	uint64_t sum = 0;
	size_t at = 0;

	*ret_n = 0;
	while ((port = service_traffic_next(lab->traffic, &at))) {
		sum += port->totals.packets[0];
		++*ret_n;
	}
	return sum;
}

static void the_smallest_are_one_sum(void **state attr_unused)
{
	struct lab lab = lab_new(2);
	struct service_totals other;
	size_t tracked;
	size_t n;

	set_service(&lab, "default/b", "10.96.0.2");
	set_service(&lab, "default/c", "10.96.0.3");
	set_service(&lab, "default/d", "10.96.0.4");
	for (int round = 1; round <= 2; round++) {
		begin(&lab);
		see(&lab, 1, 1, 1 * (uint64_t)round);
		see(&lab, 2, 2, 10 * (uint64_t)round);
		see(&lab, 3, 3, 100 * (uint64_t)round);
		see(&lab, 4, 4, 1000 * (uint64_t)round);
		end(&lab);
	}
	assert_int_equal(service_traffic_folded(lab.traffic, &tracked), 2);
	assert_int_equal(tracked, 2);
	assert_null(find(&lab, "web"));
	assert_null(find(&lab, "b"));
	assert_non_null(find(&lab, "c"));
	check(&lab, "d", 0, 1000, 1); /* what it had before is in the sum, its connection too */
	/* two have first come to the sum, of the others it holds the first round */
	sum_shown(&lab, &n);
	assert_int_equal(n, 2);
	other = service_traffic_other(lab.traffic);
	assert_int_equal(other.connections, 2);
	assert_int_equal(other.packets[0], 1000 + 100 + 10 + 1);
	lab_done(&lab);
}

static void with_a_limit_of_zero_all_is_one_sum(void **state attr_unused)
{
	struct lab lab = lab_new(0);
	size_t tracked;

	begin(&lab);
	see(&lab, 1, 1, 5);
	end(&lab);
	assert_null(find(&lab, "web"));
	assert_int_equal(service_traffic_folded(lab.traffic, &tracked), 1);
	assert_int_equal(service_traffic_other(lab.traffic).packets[0], 5);
	lab_done(&lab);
}

/* Random traffic with many changes of rank: nothing that is told ever gets smaller. */
static void no_number_ever_gets_smaller(void **state attr_unused)
{
	struct lab lab = lab_new(3);
	uint64_t packets[200] = {0};
	uint64_t last[11] = {0};
	uint64_t last_other = 0;
	char key[16], addr[16];
	unsigned int seed = 1;

	for (unsigned int i = 2; i <= 10; i++) {
		snprintf(key, sizeof(key), "default/s%u", i);
		snprintf(addr, sizeof(addr), "10.96.0.%u", i);
		set_service(&lab, key, addr);
	}
	for (int round = 0; round < 300; round++) {
		begin(&lab);
		for (uint32_t id = 0; id < 200; id++) {
			packets[id] += (uint64_t)(rand_r(&seed) % 50);
			see(&lab, (uint8_t)(1 + id % 10), id, packets[id]);
			if (rand_r(&seed) % 20 == 0) {
				ends(&lab, (uint8_t)(1 + id % 10), id, ++packets[id]);
				packets[id] = 0;
			}
		}
		end(&lab);
		for (unsigned int i = 2; i <= 10; i++) {
			const struct service_traffic_port *port;

			snprintf(key, sizeof(key), "s%u", i);
			port = find(&lab, key);
			assert_true(!port || port->totals.packets[0] == 0 ||
				    port->totals.packets[0] >= last[i]);
			last[i] = port ? port->totals.packets[0] : 0;
		}
		assert_true(service_traffic_other(lab.traffic).packets[0] >= last_other);
		last_other = service_traffic_other(lab.traffic).packets[0];
	}
	lab_done(&lab);
}

/* Against a plain reckoning: tables grow and shrink, flows come and go, none is lost or doubled. */
static void many_flows_add_up(void **state attr_unused)
{
	enum { FLOWS = 20000 };
	struct lab lab = lab_new(LIMIT);
	uint64_t *packets = xcalloc(FLOWS, sizeof(*packets));
	uint64_t connections = 0;
	uint64_t sum = 0;
	size_t alive = 0;
	unsigned int seed = 7;

	for (int round = 0; round < 12; round++) {
		begin(&lab);
		for (uint32_t id = 0; id < FLOWS; id++) {
			bool wanted = round < 6 ? rand_r(&seed) % 2 : rand_r(&seed) % 100 == 0;
			uint64_t more = 1 + (uint64_t)(rand_r(&seed) % 3);

			if (packets[id] && !wanted) {
				ends(&lab, 1, id, packets[id] + more);
				sum += more;
				packets[id] = 0;
				alive--;
			} else if (wanted) {
				connections += !packets[id];
				alive += !packets[id];
				packets[id] += more;
				sum += more;
			}
		}
		for (uint32_t id = 0; id < FLOWS; id++)
			if (packets[id])
				see(&lab, 1, id, packets[id]);
		end(&lab);
		/* those that ended in this round and began again within it are met in the next */
		check(&lab, "web", connections, sum, alive);
	}
	free(packets);
	lab_done(&lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_flow_is_one_connection_and_grows),
		cmocka_unit_test(what_was_there_before_counts_from_now_on),
		cmocka_unit_test(a_flow_that_no_round_met_counts_when_it_ends),
		cmocka_unit_test(news_of_the_past_do_not_count_again),
		cmocka_unit_test(a_second_end_is_of_another_flow),
		cmocka_unit_test(a_flow_that_went_back_is_another),
		cmocka_unit_test(a_flow_that_one_round_misses_is_kept),
		cmocka_unit_test(a_round_that_failed_concludes_nothing),
		cmocka_unit_test(what_is_not_for_a_service_does_not_count),
		cmocka_unit_test(without_accounting_connections_count),
		cmocka_unit_test(a_service_that_is_gone_has_no_numbers),
		cmocka_unit_test(the_smallest_are_one_sum),
		cmocka_unit_test(with_a_limit_of_zero_all_is_one_sum),
		cmocka_unit_test(no_number_ever_gets_smaller),
		cmocka_unit_test(many_flows_add_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

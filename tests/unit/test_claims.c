/* SPDX-License-Identifier: Apache-2.0 */

/* Who owns a destination that several Services ask for, before and after the kernel has agreed. */

#include <stdio.h>

#include "backends/nftables/claims.h"
#include "plan_world.h"

#define SHARED "198.51.100.1:80/tcp"

/* A Service with a cluster IP of its own, and the external IP that all want. */
static struct served *add(struct world *world, struct claims *claims, const char *key,
			  const char *cluster_ip, uint32_t created_s)
{
	struct served *served = xcalloc(1, sizeof(*served) + strlen(key) + 1);
	struct service *service = build_service(key, cluster_ip);
	struct model_changes changes;

	build_port(service, "", PROTOCOL_TCP, 80, 0);
	build_external_ip(service, "198.51.100.1");
	service->created_s = created_s;
	model_set_service(world->model, service);
	model_take_changes(world->model, FAMILY_IPV4, &changes);
	model_changes_done(&changes);
	memcpy(served->key, key, strlen(key));
	served->next.plan = plan_service(&world->settings, world->model, key);
	assert_non_null(served->next.plan);
	claims_add(claims, served, served->next.plan);
	return served;
}

static struct served *drop(struct served *served)
{
	service_plan_unref(served->next.plan);
	free(served);
	return NULL;
}

/* "ns/a ns/b": the line for it, the owner to be first. */
static void assert_line(const struct claims *claims, const char *destination, const char *expected)
{
	const struct claimed_destination *claimed = map_get(&claims->destinations, destination);
	char text[256] = "";

	for (const struct claim *claim = claimed ? claimed->first : NULL; claim;
	     claim = claim->behind)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s",
			 claim == claimed->first ? "" : " ", claim->service->key);
	assert_string_equal(text, expected);
}

static const char *owner(const struct claims *claims, const char *destination)
{
	const struct claimed_destination *claimed = map_get(&claims->destinations, destination);

	return claimed && claimed->owner.service ? claimed->owner.service->key : "nobody";
}

static void the_oldest_is_first_whatever_the_order_of_coming(void **state attr_unused)
{
	struct world world = world_new();
	struct claims claims = {0};
	struct served *young = add(&world, &claims, "ns/a-young", "10.96.0.1", 300);
	struct served *old = add(&world, &claims, "ns/z-old", "10.96.0.2", 100);
	struct served *middle = add(&world, &claims, "ns/m-middle", "10.96.0.3", 200);

	assert_line(&claims, SHARED, "ns/z-old ns/m-middle ns/a-young");
	assert_line(&claims, "10.96.0.3:80/tcp", "ns/m-middle");
	claims_done(&claims);
	drop(young);
	drop(old);
	drop(middle);
	world_done(&world);
}

static void ties_go_by_namespace_and_name_and_no_age_is_old(void **state attr_unused)
{
	struct world world = world_new();
	struct claims claims = {0};
	struct served *v[] = {
		add(&world, &claims, "ns-b/a", "10.96.0.1", 100),
		add(&world, &claims, "ns-a/z", "10.96.0.2", 100),
		add(&world, &claims, "ns-a/b", "10.96.0.3", 100),
		add(&world, &claims, "ns-z/z", "10.96.0.4", 0),
	};

	assert_line(&claims, SHARED, "ns-z/z ns-a/b ns-a/z ns-b/a");
	claims_done(&claims);
	for (size_t i = 0; i < ARRAY_SIZE(v); i++)
		drop(v[i]);
	world_done(&world);
}

static void a_cluster_ip_goes_before_older_external_ones(void **state attr_unused)
{
	struct world world = world_new();
	struct claims claims = {0};
	struct served *old = add(&world, &claims, "ns/old", "10.96.0.1", 100);
	struct served *young = add(&world, &claims, "ns/young", "198.51.100.1", 300);

	assert_line(&claims, SHARED, "ns/young ns/old");
	claims_done(&claims);
	drop(old);
	drop(young);
	world_done(&world);
}

static void the_owner_changes_only_when_the_kernel_has_agreed(void **state attr_unused)
{
	struct world world = world_new();
	struct claims claims = {0};
	struct served *young = add(&world, &claims, "ns/young", "10.96.0.1", 300);
	struct served *old;

	claims_settle(&claims);
	assert_null(claims.touched);
	assert_string_equal(owner(&claims, SHARED), "ns/young");
	old = add(&world, &claims, "ns/old", "10.96.0.2", 100);
	assert_line(&claims, SHARED, "ns/old ns/young");
	assert_string_equal(owner(&claims, SHARED), "ns/young");
	claims_settle(&claims);
	assert_string_equal(owner(&claims, SHARED), "ns/old");
	claims_done(&claims);
	drop(young);
	drop(old);
	world_done(&world);
}

static void the_next_in_line_takes_over_and_the_last_one_leaves_nothing(void **state attr_unused)
{
	struct world world = world_new();
	struct claims claims = {0};
	struct served *young = add(&world, &claims, "ns/young", "10.96.0.1", 300);
	struct served *old = add(&world, &claims, "ns/old", "10.96.0.2", 100);

	claims_settle(&claims);
	claims_remove(&claims, old, old->next.plan);
	assert_line(&claims, SHARED, "ns/young");
	assert_string_equal(owner(&claims, SHARED), "ns/old");
	claims_settle(&claims);
	old = drop(old);
	assert_string_equal(owner(&claims, SHARED), "ns/young");
	assert_null(map_get(&claims.destinations, "10.96.0.2:80/tcp"));
	claims_remove(&claims, young, young->next.plan);
	claims_settle(&claims);
	drop(young);
	assert_int_equal(claims.destinations.count, 0);
	claims_done(&claims);
	world_done(&world);
}

static void each_destination_is_touched_once(void **state attr_unused)
{
	struct world world = world_new();
	struct claims claims = {0};
	struct served *one = add(&world, &claims, "ns/one", "10.96.0.1", 1);
	struct served *two = add(&world, &claims, "ns/two", "10.96.0.2", 2);
	size_t n = 0;

	claims_remove(&claims, one, one->next.plan);
	claims_add(&claims, one, one->next.plan);
	for (const struct claimed_destination *claimed = claims.touched; claimed;
	     claimed = claimed->next_touched)
		n++;
	assert_int_equal(n, 3); /* two cluster IPs and what they share */
	claims_done(&claims);
	drop(one);
	drop(two);
	world_done(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_oldest_is_first_whatever_the_order_of_coming),
		cmocka_unit_test(ties_go_by_namespace_and_name_and_no_age_is_old),
		cmocka_unit_test(a_cluster_ip_goes_before_older_external_ones),
		cmocka_unit_test(the_owner_changes_only_when_the_kernel_has_agreed),
		cmocka_unit_test(the_next_in_line_takes_over_and_the_last_one_leaves_nothing),
		cmocka_unit_test(each_destination_is_touched_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

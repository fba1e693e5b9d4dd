/* SPDX-License-Identifier: Apache-2.0 */

/* Chain cluster-ips-check as ServiceCIDRs come and go: what a full sync and what a difference writes, in nft's words. */

#include "backends/nftables/script.h"
#include "backends/nftables/state.h"
#include "plan_feed.h"
#include "plan_world.h"

#define REJECT                                                                                    \
	"add rule ip kube-proxy cluster-ips-check ip daddr @cluster-ips reject comment \"Reject " \
	"traffic to invalid ports of ClusterIPs\"\n"
#define DROP(range)                                                \
	"add rule ip kube-proxy cluster-ips-check ip daddr " range \
	" drop comment \"Drop traffic to unallocated ClusterIPs\"\n"

static struct text *said;

static void flush_chain(struct writer *writer attr_unused, struct chain chain)
{
	char name[CHAIN_NAME_MAX];

	chain_name(chain, name);
	text_printf(said, "flush %s\n", name);
}

static void delete_chain(struct writer *writer attr_unused, struct chain chain)
{
	char name[CHAIN_NAME_MAX];

	chain_name(chain, name);
	text_printf(said, "delete %s\n", name);
}

static void delete_clients(struct writer *writer attr_unused, enum container container,
			   uint32_t number)
{
	char name[CONTAINER_NAME_MAX];

	container_name(container, number, name);
	text_printf(said, "delete %s\n", name);
}

static const struct state_delta_ops delta_ops = {flush_chain, delete_chain, delete_clients};

/* Commands about rules and flushes alone, of the chain or, in a difference, of all. */
static char *sync_of(struct plan_feed *feed, struct state *state, bool full)
{
	cleanup_text struct text all, kept;
	cleanup_free char *copy = NULL;
	struct script_writer script;
	char *rest, *line;

	text_init(&all);
	text_init(&kept);
	script_writer_init(&script, FAMILY_IPV4, &all);
	said = &all;
	state_begin(state, &(struct state_input){.delta = plan_feed_next(feed), .full = full});
	if (full)
		state_write_chains(state, &script.writer);
	else
		state_write_delta(state, &script.writer, &delta_ops);
	script_writer_finish(&script);
	state_end(state, true);
	plan_feed_end(feed, true);
	rest = copy = text_dup(&all);
	while ((line = strsep(&rest, "\n")))
		if (strstr(line, "rule ip kube-proxy cluster-ips-check ") ||
		    strncmp(line, "flush ", 6) == 0 || (!full && strstr(line, "add rule")))
			text_printf(&kept, "%s\n", line);
	return text_dup(&kept);
}

static void expect(struct plan_feed *feed, struct state *state, bool full, const char *expected)
{
	cleanup_free char *text = sync_of(feed, state, full);

	assert_string_equal(text, expected);
}

static void set_cidr(struct world *world, const char *name, const char *range)
{
	struct service_cidr *cidr = service_cidr_new(name);

	assert_int_equal(prefix_parse(range, &cidr->cidrs[cidr->n_cidrs++]), 0);
	model_set_service_cidr(world->model, cidr);
}

static void a_change_rewrites_one_chain(void **state_ attr_unused)
{
	struct world world = world_new();
	struct state *state = state_new(&world.settings);
	struct plan_feed feed;

	plan_feed_open(&feed, &world.settings, world.model);
	expect(&feed, state, true, REJECT);
	expect(&feed, state, false, "");
	set_cidr(&world, "kubernetes", "10.96.0.0/12");
	expect(&feed, state, false, "flush cluster-ips-check\n" REJECT DROP("10.96.0.0/12"));
	expect(&feed, state, false, "");
	set_cidr(&world, "six", "fd00::/108");
	expect(&feed, state, false, "");
	set_cidr(&world, "more", "10.1.0.0/16");
	expect(&feed, state, false,
	       "flush cluster-ips-check\n" REJECT DROP("10.1.0.0/16") DROP("10.96.0.0/12"));
	model_remove_service_cidr(world.model, "kubernetes");
	model_remove_service_cidr(world.model, "more");
	expect(&feed, state, false, "flush cluster-ips-check\n" REJECT);
	state_free(state);
	plan_feed_close(&feed);
	world_done(&world);
}

static void a_full_sync_writes_what_is_there(void **state_ attr_unused)
{
	struct world world = world_new();
	struct state *state = state_new(&world.settings);
	struct plan_feed feed;

	plan_feed_open(&feed, &world.settings, world.model);
	set_cidr(&world, "kubernetes", "10.96.0.0/12");
	expect(&feed, state, true, REJECT DROP("10.96.0.0/12"));
	expect(&feed, state, false, "");
	expect(&feed, state, true, REJECT DROP("10.96.0.0/12"));
	state_free(state);
	plan_feed_close(&feed);
	world_done(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_change_rewrites_one_chain),
		cmocka_unit_test(a_full_sync_writes_what_is_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

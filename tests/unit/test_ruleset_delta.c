/* SPDX-License-Identifier: Apache-2.0 */

/*
 * However the cluster changes, a delta leads to what a full sync would have written. Random clusters
 * live for some hundred syncs; after each, tables that took every delta are compared with tables that
 * took one full sync of the same model, word by word and as text for iptables-restore.
 */

#include "backends/iptables/restore/restore_stream.h"
#include "cluster.h"
#include "fake_kernel.h"
#include "random_cluster.h"

#define BALLAST     "large/ballast"
#define N_ADDRESSES 5

struct life {
	struct cluster c;
	struct random_cluster random;
	struct fake_kernel words, text; /* the same, by both ways */
	struct arena *names;
	struct map uncommented; /* keys of services that were last written without comments */
	struct addr addresses[N_ADDRESSES];
	size_t n_addresses;
	const char *held; /* a chain that a foreign rule leads to, or NULL */
	bool addresses_changed;
};

/* What happened in all lives of a test: each kind of thing must. */
static struct {
	size_t fulls, deltas, idle, held_back, failed, index_chains;
} seen;

/* -- a life */

static void choose_settings(struct life *life)
{
	static const char *const limits[FAMILY_COUNT][2] = {
		[FAMILY_IPV4] = {"192.168.0.0/29", NULL},
		[FAMILY_IPV6] = {"2001:db8::/125", NULL},
	};
	static const enum detector_kind kinds[] = {DETECTOR_NONE, DETECTOR_CIDR, DETECTOR_BRIDGE,
						   DETECTOR_INTERFACE};
	struct settings *settings = &life->c.settings;

	settings->masquerade_all = random_one_in(&life->random, 4);
	settings->localhost_node_ports = random_one_in(&life->random, 2);
	settings->detector.kind = kinds[random_below(&life->random, ARRAY_SIZE(kinds))];
	strcpy(settings->detector.interface, "pods0");
	if (random_one_in(&life->random, 2))
		cluster_node_ports(&life->c, limits[life->random.family]);
}

static void life_init(struct life *life, enum family family, uint64_t seed)
{
	*life = (struct life){.n_addresses = 2, .names = arena_new(1024)};
	cluster_init(&life->c, family);
	life->random = (struct random_cluster){
		.state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1,
		.family = family,
		.model = life->c.model,
	};
	for (int i = 0; i < N_ADDRESSES; i++) {
		char ip[64];

		snprintf(ip, sizeof(ip), family == FAMILY_IPV4 ? "192.168.0.%d" : "2001:db8::%x",
			 i + 2);
		life->addresses[i] = build_addr(ip);
	}
	choose_settings(life);
}

static void life_done(struct life *life)
{
	map_done(&life->uncommented);
	fake_kernel_done(&life->words);
	fake_kernel_done(&life->text);
	arena_free(life->names);
	cluster_done(&life->c);
}

/* -- writing */

static struct ruleset_input life_input(struct life *life)
{
	return (struct ruleset_input){
		.now_ns = life->c.now_ns,
		.addresses_known = true,
		.addresses = life->addresses,
		.n_addresses = life->n_addresses,
	};
}

/* Names of the nat chains that exist, for a full sync. */
static const char **list_chains(const struct fake_kernel *kernel, struct arena *arena,
				size_t *ret_n)
{
	const struct map *chains = &kernel->chains[TABLE_NAT];
	const char **names = arena_array(arena, chains->count + 1, sizeof(*names));
	const char *name;
	size_t at = 0, n = 0;

	while ((name = map_next_key(chains, &at)))
		names[n++] = arena_strdup(arena, name);
	*ret_n = n;
	return names;
}

static char *write_text(struct ruleset *ruleset, const struct ruleset_input *input,
			struct ruleset_stats *stats)
{
	cleanup_text struct text text = {0};
	struct restore_writer writer;

	restore_writer_init(&writer);
	ruleset_write(ruleset, input, &writer.txn, stats);
	restore_writer_finish(&writer, &text);
	restore_writer_done(&writer);
	return text_dup(&text);
}

static void write_words(struct ruleset *ruleset, const struct ruleset_input *input,
			struct fake_kernel *kernel, struct ruleset_stats *stats)
{
	struct fake_txn txn;

	fake_txn_init(&txn, kernel);
	ruleset_write(ruleset, input, &txn.txn, stats);
	fake_txn_done(&txn);
}

static void write_pieces(struct ruleset *ruleset, struct fake_kernel *kernel)
{
	struct fake_txn txn;

	fake_txn_init(&txn, kernel);
	fake_declare(kernel, TABLE_NAT, "KUBE-MARK-MASQ");
	for (size_t i = 0; i < ruleset_n_services(ruleset); i++)
		ruleset_write_service(ruleset, i, RULESET_OWN, &txn.txn);
	txn_chains(&txn.txn, ruleset_fixed(ruleset, NULL));
	for (size_t i = 0; i < ruleset_n_shared(ruleset); i++) {
		cleanup_rule_list struct rule_list list;

		ruleset_make_shared(ruleset, i, &list);
		txn_rules(&txn.txn, &list);
	}
	fake_txn_done(&txn);
}

/* -- checks */

/* more: rules of nat that only the delta has, the jumps of an index. */
static void check_totals(const struct ruleset_stats *delta, const struct ruleset_stats *full,
			 size_t more)
{
	assert_int_equal(delta->rules_total[TABLE_FILTER], full->rules_total[TABLE_FILTER]);
	assert_int_equal(delta->rules_total[TABLE_NAT], full->rules_total[TABLE_NAT] + more);
}

static size_t count_rules(const char *text)
{
	size_t n = 0;

	for (; (text = strchr(text, '\n')); text++)
		n += has_prefix(text, "\n-A ") || has_prefix(text, "\n-I ");
	return n;
}

static void check_written(const struct ruleset_stats *stats, const char *text)
{
	assert_int_equal(stats->rules_written[TABLE_FILTER] + stats->rules_written[TABLE_NAT],
			 count_rules(text));
}

/* Whether a rule about an endpoint has a comment is as it was when its Service changed. */
static void check_comments(const struct life *life)
{
	const struct map *chains = &life->words.chains[TABLE_NAT];
	const struct fake_chain *chain;
	size_t at = 0, index, every = chains->count / 60 + 1;

	while ((chain = map_next(chains, &at))) {
		if (at % every != 0 || !ruleset_find_chain(life->c.ruleset, chain->name, &index))
			continue;
		for (size_t i = 0; i < chain->n; i++) {
			const char *key = ruleset_service_key(life->c.ruleset, index);
			bool without = map_get(&life->uncommented, key);

			if (fake_is_about_endpoint(chain->lines[i]) &&
			    !strstr(chain->lines[i], " --comment ") != without)
				fail_msg("%s: %s", key, chain->lines[i]);
		}
	}
}

static void check_equal(const struct fake_kernel *kernel, const struct fake_kernel *expected)
{
	cleanup_free char *found = fake_kernel_dump(kernel);
	cleanup_free char *wanted = fake_kernel_dump(expected);

	assert_string_equal(found, wanted);
}

/* Chain by chain and line by line: as the tree is, so it stands. */
static void check_index(const struct fake_kernel *kernel, const struct fake_kernel *other)
{
	const struct map *chains = &kernel->chains[TABLE_NAT];
	const struct fake_chain *chain;
	size_t at = 0;

	while ((chain = map_next(chains, &at))) {
		const struct fake_chain *same;

		if (!has_prefix(chain->name, FAKE_INDEX))
			continue;
		same = fake_kernel_need(other, TABLE_NAT, chain->name);
		assert_int_equal(chain->n, same->n);
		for (size_t i = 0; i < chain->n; i++)
			assert_string_equal(chain->lines[i], same->lines[i]);
	}
}

static void check_pieces(struct life *life, const struct fake_kernel *expected)
{
	struct fake_kernel kernel = {0};
	struct ruleset_stats stats;

	write_pieces(life->c.ruleset, &kernel);
	check_equal(&kernel, expected);
	check_index(&kernel, &life->words);
	check_index(&kernel, &life->text);
	fake_kernel_done(&kernel);
	ruleset_count(life->c.ruleset, &stats);
	check_totals(&stats, &life->c.stats, 0);
}

/* Chains of the index; each has one rule that leads to it. */
static size_t count_index(const struct life *life)
{
	const struct map *chains = &life->words.chains[TABLE_NAT];
	const struct fake_chain *chain;
	size_t at = 0, n = 0;

	while ((chain = map_next(chains, &at))) {
		if (!has_prefix(chain->name, FAKE_INDEX) || (chain->n == 0 && life->held))
			continue;
		if (!life->held)
			assert_int_equal(chain->refs, 1);
		n++;
	}
	seen.index_chains = MAX(seen.index_chains, n);
	return n;
}

/* What was kept up by difference is what is found at once. */
static void check_counts(const struct plan_store *kept, const struct plan_store *fresh)
{
	size_t internal, external, expected_internal, expected_external;

	plan_store_count_no_local(kept, &internal, &external);
	plan_store_count_no_local(fresh, &expected_internal, &expected_external);
	assert_int_equal(internal, expected_internal);
	assert_int_equal(external, expected_external);
	assert_memory_equal(plan_store_conflicts(kept), plan_store_conflicts(fresh),
			    CONFLICT_KIND_COUNT * sizeof(size_t));
}

/* Everything must be as one full sync on an empty host would leave it. */
static void check_state(struct life *life)
{
	struct settings settings = life->c.settings;
	struct ruleset *fresh = ruleset_new(&settings, &life->c.host);
	struct fake_kernel expected = {0};
	struct ruleset_input input = life_input(life);
	struct ruleset_stats stats;
	struct plan_once once;
	struct ruleset_begun begun;

	settings.mode.service_index = false;
	assert_false(model_has_changes(life->c.model, settings.family));
	plan_once_take(&once, &settings, life->c.model);
	check_counts(life->c.feed.store, once.store);
	ruleset_begin(fresh, once.delta, life->c.now_ns, &begun);
	plan_once_done(&once);
	assert_true(begun.full);
	write_words(fresh, &input, &expected, &stats);
	ruleset_end(fresh, true, life->c.now_ns);
	check_totals(&life->c.stats, &stats, count_index(life));
	check_pieces(life, &expected);
	if (life->held && !has_prefix(life->held, FAKE_INDEX) &&
	    !fake_kernel_chain(&expected, TABLE_NAT, life->held) &&
	    fake_kernel_chain(&life->words, TABLE_NAT, life->held))
		fake_declare(&expected, TABLE_NAT, life->held); /* emptied, but it stays */
	check_equal(&life->words, &expected);
	check_equal(&life->text, &expected);
	check_comments(life);
	fake_kernel_done(&expected);
	ruleset_free(fresh);
}

/* -- syncs */

static void note_key(struct life *life, const char *key)
{
	static char mark;

	if (!life->c.stats.large_cluster)
		map_remove(&life->uncommented, key);
	else if (!map_get(&life->uncommented, key))
		map_set(&life->uncommented, arena_strdup(life->names, key), &mark);
}

static void note_written(struct life *life)
{
	const struct plan_delta *delta = life->c.feed.delta;

	for (size_t i = 0; i < ruleset_n_services(life->c.ruleset) && life->c.stats.full; i++)
		note_key(life, ruleset_service_key(life->c.ruleset, i));
	for (size_t i = 0; i < delta->n_changes; i++)
		note_key(life, delta->changes[i].key);
	for (size_t i = 0; i < delta->n_renewed; i++)
		note_key(life, delta->renewed[i].key);
}

/* The kernel refuses to delete a chain that a foreign rule leads to, and all that comes with it. */
static bool is_refused(const struct life *life, const char *text)
{
	char line[64];

	if (!life->held)
		return false;
	snprintf(line, sizeof(line), "\n-X %s\n", life->held);
	return strstr(text, line);
}

static void check_idle(struct life *life, const struct model_changes *changes, const char *text)
{
	if (life->c.begun.full || changes->n_services > 0 || life->addresses_changed)
		return;
	assert_string_equal(text, "");
	seen.idle++;
}

/* In pieces it is the same text. */
static void check_stream(struct life *life, const struct ruleset_input *input, const char *text)
{
	cleanup_text struct text all = {0};
	cleanup_free char *said = NULL;
	struct restore_stream *stream = restore_stream_new(life->c.ruleset, input);
	struct ruleset_stats stats;

	while (restore_stream_more(stream, &all))
		;
	restore_stream_free(stream);
	said = text_dup(&all);
	assert_string_equal(said, text);
	ruleset_count(life->c.ruleset, &stats);
	check_totals(&stats, &life->c.stats, 0);
	assert_int_equal(stats.chains_deleted, life->c.stats.chains_deleted);
}

static void carry_out(struct life *life, const struct ruleset_input *input, const char *text,
		      const struct model_changes *changes)
{
	struct ruleset_stats again;

	fake_kernel_restore(&life->text, text, true);
	write_words(life->c.ruleset, input, &life->words, &again);
	assert_memory_equal(&again, &life->c.stats, sizeof(again));
	check_written(&again, text);
	if (again.full)
		check_stream(life, input, text);
	check_idle(life, changes, text);
	note_written(life);
	*(life->c.stats.full ? &seen.fulls : &seen.deltas) += 1;
}

static bool sync_once(struct life *life, bool fail)
{
	cleanup_arena struct arena *arena = arena_new(4096);
	cleanup_free char *text = NULL;
	struct ruleset_input input = life_input(life);
	struct map held = {0};

	ruleset_begin(life->c.ruleset, plan_feed_next(&life->c.feed), life->c.now_ns,
		      &life->c.begun);
	if (life->held)
		map_set(&held, life->held, life);
	if (life->c.begun.wants_nat_chains)
		input.nat_chains = list_chains(&life->words, arena, &input.n_nat_chains);
	input.held_chains = &held;
	text = write_text(life->c.ruleset, &input, &life->c.stats);
	if (is_refused(life, text)) {
		assert_false(life->c.begun.full);
		seen.held_back++;
		fail = true;
	}
	if (!fail)
		carry_out(life, &input, text, &life->c.feed.changes);
	else if (random_one_in(&life->random, 2))
		fake_kernel_restore(&life->text, text, false);
	ruleset_end(life->c.ruleset, !fail, life->c.now_ns);
	plan_feed_end(&life->c.feed, !fail);
	map_done(&held);
	seen.failed += fail;
	return !fail;
}

/* -- events */

static void set_ballast(struct life *life, int n)
{
	struct draft *slice = build_slice(BALLAST "-1", "ballast", life->random.family);
	char ip[64];

	build_slice_port(slice, "p", PROTOCOL_TCP, 80);
	for (int i = 0; i < n; i++) {
		snprintf(ip, sizeof(ip),
			 life->random.family == FAMILY_IPV4 ? "10.9.%d.%d" : "fd00:9::%x:%x",
			 i / 200, i % 200 + 1);
		build_endpoint(slice, ip, NULL, BUILD_READY);
	}
	build_set_slice(life->c.model, slice);
}

static void change_host(struct life *life)
{
	struct ruleset_host *host = &life->c.host;
	bool *const flags[] = {&host->be_liberal, &host->nfacct_invalid, &host->nfacct_localhost};
	bool *flag = flags[random_below(&life->random, ARRAY_SIZE(flags))];

	*flag = !*flag;
}

static void change_zone(struct life *life)
{
	struct node *node = node_new(CLUSTER_NODE);

	node->zone = random_one_in(&life->random, 2) ? "zone-a" : "zone-b";
	if (model_set_node(life->c.model, node))
		ruleset_need_full_sync(life->c.ruleset);
}

static void hold(struct life *life, int by)
{
	struct fake_chain *chain = fake_kernel_chain(&life->words, TABLE_NAT, life->held);

	chain->refs += (size_t)by;
	fake_kernel_need(&life->text, TABLE_NAT, life->held)->refs += (size_t)by;
}

/* Somebody's rule leads to a chain of ours, or no longer does. */
static void change_held(struct life *life)
{
	const struct map *chains = &life->words.chains[TABLE_NAT];
	char from[] = "KUBE-SEP-?";
	const char *name, *chosen = NULL;
	size_t at = 0;

	if (life->held) {
		hold(life, -1);
		life->held = NULL;
		ruleset_need_full_sync(life->c.ruleset);
		return;
	}
	from[strlen(from) - 1] = (char)('A' + random_below(&life->random, 26));
	while ((name = map_next_key(chains, &at)))
		if (chain_is_per_service(name) && strcmp(name, from) >= 0 &&
		    (!chosen || strcmp(name, chosen) < 0))
			chosen = name;
	if (!chosen)
		return;
	life->held = arena_strdup(life->names, chosen);
	hold(life, 1);
}

/* Many services come, or many go, so that a tree grows and shrinks. */
static void surge(struct random_cluster *random)
{
	bool grow = random_one_in(random, 2);

	for (unsigned int i = random_below(random, random->wide); i > 0; i--) {
		const char *key = random_key(random);

		if (grow)
			model_set_service(random->model, random_service(random, key));
		else
			model_remove_service(random->model, key);
		if (grow)
			build_set_slice(random->model, random_slice(random, key, 0));
	}
}

static void happen(struct life *life, bool large)
{
	struct random_cluster *random = &life->random;

	for (unsigned int n = random_below(random, 5); n > 0; n--)
		random_change(random);
	if (random->wide && random_one_in(random, 6))
		surge(random);
	if (random_one_in(random, 60))
		change_host(life);
	if (random_one_in(random, 40))
		change_zone(life);
	if (random_one_in(random, 80))
		life->c.now_ns += RULESET_FULL_SYNC_PERIOD_NS + 1;
	if (random_one_in(random, 15))
		change_held(life);
	life->addresses_changed = random_one_in(random, 8);
	if (life->addresses_changed)
		life->n_addresses = random_below(random, N_ADDRESSES + 1);
	if (large && random_one_in(random, 4))
		set_ballast(life, random_one_in(random, 2) ? 1001 : 3);
}

struct kind_of_life {
	int syncs;
	bool large;        /* the number of endpoints goes up and down around a thousand */
	unsigned int wide; /* as in struct random_cluster, with an index of services */
};

static void live(enum family family, uint64_t seed, const struct kind_of_life *kind)
{
	struct life life;
	bool large = kind->large;

	life_init(&life, family, seed);
	life.random.wide = kind->wide;
	life.c.settings.mode.service_index = fake_by_address = kind->wide > 0;
	if (large)
		cluster_serve(
			&life.c,
			build_service(BALLAST, family == FAMILY_IPV4 ? "10.96.9.9" : "fd00:96::99"),
			"p", 80, 0);
	for (int i = 0; i < kind->syncs; i++) {
		happen(&life, large);
		if (sync_once(&life, random_one_in(&life.random, 40)))
			check_state(&life);
	}
	life_done(&life);
}

static void deltas_lead_to_what_a_full_sync_writes(void **state attr_unused)
{
	static const struct kind_of_life kind = {.syncs = 120};

	for (uint64_t seed = 1; seed <= 10; seed++) {
		live(FAMILY_IPV4, seed, &kind);
		live(FAMILY_IPV6, seed, &kind);
	}
	assert_true(seen.deltas > 2 * seen.fulls);
	assert_true(seen.fulls > 100 && seen.idle > 100);
	assert_true(seen.failed > 30 && seen.held_back > 5);
}

static void deltas_keep_comments_as_the_size_of_the_cluster_flips(void **state attr_unused)
{
	static const struct kind_of_life kind = {.syncs = 40, .large = true};

	live(FAMILY_IPV4, 101, &kind);
	live(FAMILY_IPV6, 102, &kind);
}

/* What the index leads to is what would stand in KUBE-SERVICES. */
static void deltas_of_an_index_lead_to_what_a_full_sync_without_one_writes(void **state attr_unused)
{
	static const struct kind_of_life kind = {.syncs = 50, .wide = 120};
	static const struct kind_of_life few = {.syncs = 100, .wide = 20};

	seen.held_back = 0;
	for (uint64_t seed = 201; seed <= 204; seed++) {
		live(FAMILY_IPV4, seed, &kind);
		live(FAMILY_IPV6, seed, &kind);
		live(FAMILY_IPV4, seed, &few);
		live(FAMILY_IPV6, seed, &few);
	}
	assert_true(seen.index_chains > 20 && seen.held_back > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(deltas_lead_to_what_a_full_sync_writes),
		cmocka_unit_test(deltas_of_an_index_lead_to_what_a_full_sync_without_one_writes),
		cmocka_unit_test(deltas_keep_comments_as_the_size_of_the_cluster_flips),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Repairs of single things in table kube-proxy, in a network namespace: whatever others do, the whole table is afterwards
 * what it was. Damage is met by a sync, which repairs it at once, so that no test waits for the pauses
 * between repairs.
 *
 * table_repair_write() is wrapped (meson.build), so that somebody can write while a repair is under way.
 */

#include "backends/nftables/table_repair.h"
#include "nftables_host.h"
#include "shell.h"

static const char *meddling; /* a command for just before the commit; NULL: none */

bool __real_table_repair_write(const struct damage *damage, struct state *state,
			       struct batch_writer *writer);
bool __wrap_table_repair_write(const struct damage *damage, struct state *state,
			       struct batch_writer *writer);

bool __wrap_table_repair_write(const struct damage *damage, struct state *state,
			       struct batch_writer *writer)
{
	const char *command = meddling;

	meddling = NULL;
	if (command)
		host_run(command);
	return __real_table_repair_write(damage, state, writer);
}

/* -- the table as text */

/*
 * Lines "element of map service-ips KEY : DATA", and one for each chain, set and map, with all that is in its braces. What the
 * kernel may order as it likes is sorted; rules are not.
 */
#define LISTING                                                                         \
	"nft -s list table ip kube-proxy | awk 'BEGIN { RS = \"\" } "                   \
	"{ sub(/\\n}$/, \"\"); match($0, /(set|map|chain) [^ ]+ /); "                   \
	"name = substr($0, RSTART, RLENGTH); at = index($0, \"elements = {\"); "        \
	"if (at) { list = substr($0, at + 12); $0 = substr($0, 1, at); "                \
	"gsub(/[\\n\\t ]+/, \" \", list); gsub(/[ }]+$/, \"\", list); "                 \
	"n = split(list, v, \",\"); for (i = 1; i <= n; i++) { sub(/^ /, \"\", v[i]); " \
	"print \"element of \" name v[i] } } "                                          \
	"sub(/^\\t/, \"\"); gsub(/\\n/, \"|\"); print }' | LC_ALL=C sort"

static char *listing(void)
{
	return shell_output(LISTING);
}

/* -- a node with something in almost every set and map */

static void add_service(struct node_host *host, struct service *service, uint16_t node_port,
			const char *name, const char *endpoints)
{
	cleanup_free char *key = xasprintf("ns1/%s-1", name);
	cleanup_free char *list = xstrdup(endpoints);
	struct draft *slice = build_slice(key, name, FAMILY_IPV4);
	char *rest = NULL;

	build_port(service, "http", PROTOCOL_TCP, 80, node_port);
	model_set_service(host->world.model, service);
	build_slice_port(slice, "http", PROTOCOL_TCP, 8080);
	for (const char *ip = strtok_r(list, " ", &rest); ip; ip = strtok_r(NULL, " ", &rest))
		build_endpoint(slice, ip, strncmp(ip, "10.1.0.", 7) == 0 ? NODE : OTHER,
			       BUILD_READY);
	build_set_slice(host->world.model, slice);
}

static void start(struct node_host *host)
{
	struct service *plain = build_service("ns1/plain", "10.96.0.1");
	struct service *sticky = build_service("ns1/sticky", "10.96.0.2");
	struct service *guarded = build_service("ns1/guarded", "10.96.0.3");
	struct service *empty = build_service("ns1/empty", "10.96.0.4");

	host_init(host);
	sticky->sticky_seconds = 10800;
	guarded->external_local = true;
	build_vip(guarded, "192.0.2.3");
	build_source_range(guarded, "198.51.100.0/24");
	build_source_range(guarded, "203.0.113.0/28");
	add_service(host, plain, 30080, "plain", "10.1.0.1 10.1.1.1 10.1.1.2");
	add_service(host, sticky, 30081, "sticky", "10.1.0.2 10.1.1.1");
	add_service(host, guarded, 30082, "guarded", "10.1.0.1 10.1.1.2");
	add_service(host, empty, 30083, "empty", "");
	host_watch(host);
}

/* ns1/sticky has the first number, and its endpoints the next. */
#define CLIENT "element ip kube-proxy clients-1 '{ 192.0.2.9 timeout 1h : 1000:3 }'"

static void expect_repaired(struct node_host *host, const char *command, const char *wanted,
			    bool full)
{
	size_t before = host->n_repaired;
	cleanup_free char *found = NULL;

	host_sync(host);
	found = listing();
	if (!streq(found, wanted))
		fail_msg("%s left this behind:\n%s\ninstead of:\n%s", command, found, wanted);
	if (host->result.full != full)
		fail_msg("%s led to a %s sync", command, full ? "partial" : "full");
	assert_int_equal(host->n_repaired, before + 1);
}

static void expect_each_repaired(const char *const *commands, bool full)
{
	cleanup_free char *wanted = NULL;
	struct node_host host;

	start(&host);
	wanted = listing();
	for (; *commands; commands++) {
		host_run(*commands);
		expect_repaired(&host, *commands, wanted, full);
	}
	host_done(&host);
}

#define TABLE    "ip kube-proxy "
#define SERVICE  "service-ips '{ 10.96.0.1 . tcp . 80 }'"
#define SLOT     "endpoints '{ 10.96.0.1 . tcp . 80 . 1 }'"
#define FIRST_OF "$(nft -a list chain " TABLE

#define HANDLE(chain) FIRST_OF chain " | sed -n 's/.*# handle //p' | sed -n 2p)"

/* -- tests */

static void elements_are_repaired_one_by_one(void **state attr_unused)
{
	static const char *const commands[] = {
		"nft delete element " TABLE SERVICE,
		"nft delete element " TABLE SERVICE " \\; add element " TABLE
		"service-ips '{ 10.96.0.1 . tcp . 80 : drop }'",
		"nft add element " TABLE "service-ips '{ 203.0.113.1 . tcp . 80 : goto pick-2 }'",
		"nft add element " TABLE "service-ips '{ 203.0.113.1 . tcp . 80 : drop }' \\; "
		"delete element " TABLE "service-ips '{ 203.0.113.1 . tcp . 80 }'",
		"nft delete element " TABLE SLOT,
		"nft delete element " TABLE SLOT " && nft add element " TABLE
		"endpoints '{ 10.96.0.1 . tcp . 80 . 1 : 192.0.2.66 . 80 }'",
		"nft delete element " TABLE "cluster-ips '{ 10.96.0.4 }' && nft add element " TABLE
		"cluster-ips '{ 10.96.0.99 }'",
		"nft delete element " TABLE "service-nodeports '{ tcp . 30081 }'",
		"nft delete element " TABLE "no-endpoint-services '{ 10.96.0.4 . tcp . 80 }'",
		"nft delete element " TABLE "affinity-ids '{ 10.96.0.2 . tcp . 80 }'",
		"nft add element " TABLE
		"hairpin-connections '{ 192.0.2.1 . 192.0.2.1 . tcp . 1 }'",
		NULL,
	};

	expect_each_repaired(commands, false);
}

static void sets_and_maps_are_filled_again(void **state attr_unused)
{
	static const char *const commands[] = {
		"nft flush map " TABLE "service-ips",
		"nft flush map " TABLE "endpoints \\; flush set " TABLE "hairpin-connections",
		"nft flush set " TABLE "source-ranges",
		"nft add element " TABLE "source-ranges '{ 192.0.2.3 . tcp . 80 . 192.0.2.0/24 }'",
		"nft add element " TABLE "cluster-ips '{ '$(seq -s, -f 10.97.0.%.0f 1 200)' }'",
		NULL,
	};

	expect_each_repaired(commands, false);
}

static void chains_get_their_rules_again(void **state attr_unused)
{
	static const char *const commands[] = {
		"nft add rule " TABLE "services accept",
		"nft insert rule " TABLE "pick-2 drop",
		"nft insert rule " TABLE "services jump pick-2",
		"nft delete rule " TABLE "nat-prerouting handle " HANDLE("nat-prerouting"),
		"nft replace rule " TABLE "services handle " HANDLE("services") " drop",
		"nft flush chain " TABLE "services",
		"nft flush chain " TABLE "pick-3 && nft flush chain " TABLE "remember-1",
		"nft insert rule " TABLE "recall-1 drop",
		"nft flush chain " TABLE "filter-input \\; flush map " TABLE "service-nodeports",
		NULL,
	};

	expect_each_repaired(commands, false);
}

static void chains_themselves_are_made_again(void **state attr_unused)
{
	static const char *const commands[] = {
		"nft flush chain " TABLE "nat-output \\; delete chain " TABLE "nat-output",
		"nft chain " TABLE "filter-forward '{ policy drop; }'",
		"nft delete element " TABLE "remembers '{ 1000:1 }' \\; flush chain " TABLE
		"remember-1 \\; delete chain " TABLE "remember-1",
		"nft delete element " TABLE "recalls '{ 1000:1 }' \\; flush chain " TABLE
		"recall-1 \\; delete chain " TABLE "recall-1",
		NULL,
	};

	expect_each_repaired(commands, false);
}

static void what_is_not_known_by_its_name_takes_a_full_sync(void **state attr_unused)
{
	static const char *const commands[] = {
		"nft add chain " TABLE "mine",
		"nft add chain " TABLE "pick-77",
		"nft add chain " TABLE "recall-77",
		"nft add map " TABLE "clients-77 '{ type ipv4_addr : classid; }'",
		"nft add chain " TABLE "mine \\; insert rule " TABLE "services jump mine",
		"nft add set " TABLE "mine '{ type ipv4_addr; }' \\; delete set " TABLE "mine",
		"for n in $(seq 16); do nft add rule " TABLE "pick-$n drop \\; add rule " TABLE
		"masq-pick-$n drop \\; add rule " TABLE "local-pick-$n drop; done",
		"nft delete table " TABLE,
		NULL,
	};

	expect_each_repaired(commands, true);
}

static void clients_keep_their_endpoints(void **state attr_unused)
{
	cleanup_free char *wanted = NULL;
	struct node_host host;

	start(&host);
	host_run("nft add " CLIENT);
	host_sync(&host);
	wanted = listing();
	assert_non_null(strstr(wanted, "192.0.2.9 "));
	for (int i = 0; i < 3; i++) {
		static const char *const commands[] = {"nft flush chain " TABLE "remember",
						       "nft flush chain " TABLE "remember-1",
						       "nft flush map " TABLE "members"};

		host_run(commands[i]);
		expect_repaired(&host, commands[i], wanted, false);
	}
	host_run("nft add chain " TABLE "mine");
	expect_repaired(&host, "a chain of another program's", wanted, true);
	host_done(&host);
}

static void a_change_of_the_model_comes_with_the_repair(void **state attr_unused)
{
	cleanup_free char *wanted = NULL;
	struct node_host host;

	start(&host);
	wanted = listing();
	host_run("nft flush map " TABLE "endpoints \\; flush chain " TABLE "services");
	add_service(&host, build_service("ns1/new", "10.96.0.5"), 0, "new", "10.1.0.1 10.1.1.7");
	host_sync(&host);
	assert_false(host.result.full);
	host_run("nft get element " TABLE "service-ips '{ 10.96.0.5 . tcp . 80 }' >/dev/null");
	host_run("nft delete element " TABLE "endpoints '{ 10.96.0.5 . tcp . 80 . 0 }'");
	model_remove_service(host.world.model, "ns1/new");
	model_remove_slice(host.world.model, "ns1/new-1");
	expect_repaired(&host, "the removal of what was damaged", wanted, false);
	host_done(&host);
}

static void who_writes_during_a_repair_is_repaired_too(void **state attr_unused)
{
	cleanup_free char *wanted = NULL;
	struct node_host host;

	start(&host);
	wanted = listing();
	host_run("nft delete element " TABLE SERVICE);
	meddling = "nft add element " TABLE "service-ips '{ 10.96.0.1 . tcp . 80 : drop }'";
	expect_repaired(&host, "another damage", wanted, false);
	host_run("nft delete element " TABLE SERVICE);
	meddling = "nft add table ip elsewhere";
	expect_repaired(&host, "another table", wanted, false);
	host_run("nft delete element " TABLE SERVICE);
	meddling = "nft delete table " TABLE;
	expect_repaired(&host, "a table that went", wanted, true);
	host_done(&host);
}

/* -- damage by chance, the same each time */

#define ROUNDS 40

static uint32_t chance(uint32_t *seed, uint32_t below)
{
	*seed = *seed * 1664525 + 1013904223;
	return (*seed >> 8) % below;
}

/* A line of a listing that begins with those words, without them; owned by the caller. */
static char *pick(uint32_t *seed, const char *text, const char *words)
{
	size_t skip = strlen(words);
	const char *found = NULL;
	uint32_t n = 0;

	for (const char *line = text; *line; line = strchr(line, '\n') + 1)
		if (strncmp(line, words, skip) == 0 && chance(seed, ++n) == 0)
			found = line + skip;
	assert_non_null(found);
	return strndup(found, (size_t)(strchr(found, '\n') - found));
}

/* Any but clients: who forgets one of these has it forgotten. */
static char *pick_element(uint32_t *seed, const char *table)
{
	char *element = pick(seed, table, "element of ");

	while (strncmp(element, "map clients-", strlen("map clients-")) == 0) {
		free(element);
		element = pick(seed, table, "element of ");
	}
	return element;
}

/* "map service-ips 10.96.0.1 . tcp . 80 : drop": the name of the set or map, and the key. */
static char *split_element(char *element, char **ret_key)
{
	char *name = strchr(element, ' ') + 1;
	char *end = strchr(name, ' ');

	*end = '\0';
	*ret_key = end + 1;
	for (const char *const *stop = (const char *const[]){" comment ", " timeout ", " : ", NULL};
	     *stop; stop++) {
		end = strstr(*ret_key, *stop);
		if (end)
			*end = '\0';
	}
	return name;
}

static char *damage_an_element(uint32_t *seed, const char *table, bool flush)
{
	cleanup_free char *element = pick_element(seed, table);
	const char *kind = element[0] == 'm' ? "map" : "set";
	char *key, *name = split_element(element, &key);

	if (flush)
		return xasprintf("nft flush %s " TABLE "%s", kind, name);
	return xasprintf("nft delete element " TABLE "%s '{ %s }'", name, key);
}

/* A command with a name or a number in the middle. */
struct gap {
	const char *before, *behind;
};

static char *damage_a_chain(uint32_t *seed, const char *table)
{
	static const struct gap ways[] = {
		{"nft flush chain " TABLE, ""},
		{"nft add rule " TABLE, " drop"},
		{"nft insert rule " TABLE, " ip saddr 192.0.2.1 accept"},
	};
	const struct gap *way = &ways[chance(seed, ARRAY_SIZE(ways))];
	cleanup_free char *chain = pick(seed, table, "chain ");

	*strchr(chain, ' ') = '\0';
	return xasprintf("%s%s%s", way->before, chain, way->behind);
}

static char *add_an_element(uint32_t *seed)
{
	static const struct gap elements[] = {
		{"service-ips '{ 203.0.113.", " . tcp . 80 : drop }'"},
		{"cluster-ips '{ 203.0.113.", " }'"},
		{"endpoints '{ 10.96.0.1 . tcp . 80 . 1", " : 192.0.2.66 . 80 }'"},
		{"source-ranges '{ 192.0.2.3 . tcp . 80 . 192.0.", ".0/24 }'"},
		{"members '{ 1000:1 . 192.0.2.", " . 80 : 1000:99 }'"},
	};
	const struct gap *element = &elements[chance(seed, ARRAY_SIZE(elements))];

	return xasprintf("nft add element " TABLE "%s%u%s", element->before, 1 + chance(seed, 99),
			 element->behind);
}

static char *damage_something(uint32_t *seed, const char *table)
{
	switch (chance(seed, 5)) {
	case 0:
		return damage_a_chain(seed, table);
	case 1:
		return add_an_element(seed);
	case 2:
		return damage_an_element(seed, table, true);
	default:
		return damage_an_element(seed, table, false);
	}
}

/* Of the damages of a round the first one is done for sure; others may find that there is nothing left. */
static void any_damage_is_repaired(void **state attr_unused)
{
	cleanup_free char *wanted = NULL;
	struct node_host host;
	uint32_t seed = 5000;

	start(&host);
	host_run("nft add " CLIENT);
	host_sync(&host);
	wanted = listing();
	for (int i = 0; i < ROUNDS; i++) {
		cleanup_free char *first = damage_something(&seed, wanted);

		host_run(first);
		for (uint32_t more = chance(&seed, 4); more > 0; more--) {
			cleanup_free char *next = damage_something(&seed, wanted);
			cleanup_free char *quiet = xasprintf("%s 2>/dev/null || true", next);

			host_run(quiet);
		}
		expect_repaired(&host, first, wanted, false);
	}
	host_done(&host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(elements_are_repaired_one_by_one),
		cmocka_unit_test(sets_and_maps_are_filled_again),
		cmocka_unit_test(chains_get_their_rules_again),
		cmocka_unit_test(chains_themselves_are_made_again),
		cmocka_unit_test(what_is_not_known_by_its_name_takes_a_full_sync),
		cmocka_unit_test(clients_keep_their_endpoints),
		cmocka_unit_test(a_change_of_the_model_comes_with_the_repair),
		cmocka_unit_test(who_writes_during_a_repair_is_repaired_too),
		cmocka_unit_test(any_damage_is_repaired),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

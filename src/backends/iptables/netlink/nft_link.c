/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/iptables/netlink/nft_link.h"

#include <endian.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter/nf_tables.h>
#include <stdlib.h>

#include "kernel/nft_dump.h"
#include "kernel/nft_message.h"
#include "kernel/nft_socket.h"
#include "kernel/nft_watch.h"
#include "xtables/nft_chain.h"
#include "xtables/nft_rule.h"

#define PAUSE_RULES_MIN 256 /* rules in a transaction: from there on it saves a millisecond */

void nft_link_init(struct nft_link *link, enum family family, struct nft_socket *socket,
		   struct nft_watch *watch)
{
	*link = (struct nft_link){
		.family = family,
		.socket = socket,
		.watch = watch,
		.batch = nft_batch_new(),
		.state = nft_state_new(),
	};
}

void nft_link_done(struct nft_link *link)
{
	link->state = nft_state_free(link->state);
	link->batch = nft_batch_free(link->batch);
}

/* -- messages */

static struct nlmsghdr *message(struct nft_link *link, uint16_t type, uint16_t flags)
{
	return nft_batch_message(link->batch, type, link->family, flags);
}

void nft_link_reset(struct nft_link *link)
{
	nft_batch_reset(link->batch);
	memset(link->n_batch_rules, 0, sizeof(link->n_batch_rules));
}

void nft_link_new_table(struct nft_link *link, enum table table)
{
	nft_table_put(message(link, NFT_MSG_NEWTABLE, NLM_F_CREATE), table);
}

void nft_link_new_chain(struct nft_link *link, enum table table, const char *chain)
{
	nft_chain_put(message(link, NFT_MSG_NEWCHAIN, NLM_F_CREATE), table, chain);
}

void nft_link_new_base_chain(struct nft_link *link, enum table table, const char *chain)
{
	nft_base_chain_put(message(link, NFT_MSG_NEWCHAIN, NLM_F_CREATE), table, chain);
}

void nft_link_flush(struct nft_link *link, enum table table, const char *chain)
{
	nft_flush_put(message(link, NFT_MSG_DELRULE, 0), table, chain);
}

void nft_link_delete_chain(struct nft_link *link, enum table table, const char *chain)
{
	nft_chain_put(message(link, NFT_MSG_DELCHAIN, NLM_F_NONREC), table, chain);
}

/* before: a handle, or 0 */
static void put_rule(struct nft_link *link, const struct rule *rule, uint16_t flags,
		     uint64_t before)
{
	struct nlmsghdr *header = message(link, NFT_MSG_NEWRULE, flags);

	link->n_batch_rules[rule->table]++;
	nft_rule_put(header, link->family, rule);
	if (before)
		mnl_attr_put_u64(header, NFTA_RULE_POSITION, htobe64(before));
}

void nft_link_append(struct nft_link *link, const struct rule *rule)
{
	uint16_t flags = NLM_F_CREATE | NLM_F_APPEND;

	put_rule(link, rule, nft_link_is_shared(rule->chain) ? flags | NLM_F_ECHO : flags, 0);
}

void nft_link_prepend(struct nft_link *link, const struct rule *rule)
{
	uint16_t flags = rule->leading ? NLM_F_CREATE | NLM_F_ECHO : NLM_F_CREATE;

	put_rule(link, rule, flags, 0);
}

/* nft insert rule ip nat KUBE-SVC-... position 42 ... */
void nft_link_insert(struct nft_link *link, const struct rule *rule, uint64_t before)
{
	put_rule(link, rule, before ? NLM_F_CREATE : NLM_F_CREATE | NLM_F_APPEND, before);
}

void nft_link_delete_rule(struct nft_link *link, enum table table, const char *chain,
			  uint64_t handle)
{
	nft_delete_rule_put(message(link, NFT_MSG_DELRULE, 0), table, chain, handle);
}

#define SUBJECT_PREFIX "Service "

void nft_link_subject(struct nft_link *link, const char *key)
{
	char subject[sizeof(SUBJECT_PREFIX) + 512] = SUBJECT_PREFIX;

	if (key)
		strncat(subject, key, 511);
	nft_batch_subject(link->batch, key ? subject : NULL);
}

const char *nft_link_refused(const struct nft_link *link)
{
	const struct nft_batch_failure *failure = nft_batch_failure(link->batch);

	if (!failure || !failure->subject || !has_prefix(failure->subject, SUBJECT_PREFIX))
		return NULL;
	return failure->subject + strlen(SUBJECT_PREFIX);
}

/* -- the way to the kernel */

static void on_echo(void *arg, size_t index attr_unused, const struct nlmsghdr *echo)
{
	struct nft_link *link = arg;
	struct nft_rule_seen seen;
	enum table table;

	if (nft_message_type(echo) != NFT_MSG_NEWRULE || nft_rule_digest_message(echo, &seen) < 0 ||
	    !table_parse(seen.table, &table))
		return;
	if (!nft_link_is_shared(seen.chain))
		return;
	nft_state_add(link->state, nft_state_chain(link->state, table, seen.chain), seen.digest,
		      seen.handle);
}

static struct nft_listener *listener_of(const struct nft_link *link)
{
	return nft_session_listener(nft_watch_session(link->watch));
}

static bool pause_listener(const struct nft_link *link)
{
	size_t n = 0;

	for (size_t i = 0; i < TABLE_COUNT; i++)
		n += link->n_batch_rules[i];
	return link->watch && n >= PAUSE_RULES_MIN && nft_listener_pause(listener_of(link));
}

static void resume(const struct nft_link *link, int result)
{
	enum nft_pause outcome = result >= 0 ? NFT_PAUSE_NEXT : NFT_PAUSE_SAME;

	if (nft_batch_uncertain(link->batch))
		outcome = NFT_PAUSE_UNKNOWN;
	nft_listener_resume(listener_of(link), link->socket, outcome);
}

static int send_batch(struct nft_link *link, uint32_t generation, struct err *err)
{
	bool paused = pause_listener(link);
	int r = nft_batch_commit(link->socket, link->batch, generation, on_echo, link, err);

	if (paused)
		resume(link, r);
	return r;
}

int nft_link_commit(struct nft_link *link, uint32_t generation, struct err *err)
{
	size_t n = nft_batch_count(link->batch);
	int r;

	if (n == 0)
		return 0;
	r = nft_socket_begin(link->socket);
	if (r < 0)
		return err_sys(err, r, "a transaction of nf_tables");
	r = send_batch(link, generation, err);
	nft_socket_end(link->socket);
	if (r < 0)
		return r;
	link->n_transactions++;
	link->n_messages += n;
	link->largest = MAX(link->largest, nft_batch_size(link->batch));
	for (size_t i = 0; i < TABLE_COUNT; i++)
		link->n_rules[i] += link->n_batch_rules[i];
	return 0;
}

/* -- reading back */

static void on_restart(void *arg)
{
	struct nft_link_rules *rules = arg;

	rules->n = 0;
}

static int on_rule(void *arg, const struct nlmsghdr *rule, struct err *err attr_unused)
{
	struct nft_link_rules *rules = arg;
	struct nft_rule_seen seen;

	if (nft_rule_digest_message(rule, &seen) < 0)
		return 0; /* the chain cannot be ours then, or it shows as a difference */
	array_grow(&rules->v, &rules->capacity, rules->n, sizeof(*rules->v));
	rules->v[rules->n++] = (struct nft_link_rule){seen.digest, seen.handle};
	return 0;
}

int nft_link_read(struct nft_link *link, enum table table, const char *chain,
		  struct nft_link_rules *ret, struct err *err)
{
	static const struct nft_dump_ops ops = {.restart = on_restart, .message = on_rule};
	const struct nft_dump_request request = {
		.type = NFT_MSG_GETRULE,
		.family = link->family,
		.table = table_name(table),
		.chain = chain,
	};

	int r;

	ret->n = 0;
	r = nft_dump(link->socket, &request, &ops, ret, err);
	return r == -ENOENT ? 0 : r;
}

void nft_link_rules_done(struct nft_link_rules *rules)
{
	free(rules->v);
	*rules = (struct nft_link_rules){0};
}

void nft_link_know(struct nft_link *link, unsigned int number, const struct nft_link_rules *rules)
{
	nft_state_forget(link->state, number, NULL, NULL);
	for (size_t i = 0; i < rules->n; i++)
		nft_state_add(link->state, number, rules->v[i].digest, rules->v[i].handle);
}

int nft_link_learn(struct nft_link *link, enum table table, const char *chain, struct err *err)
{
	cleanup_nft_link_rules struct nft_link_rules rules = {0};
	int r = nft_link_read(link, table, chain, &rules, err);

	if (r >= 0)
		nft_link_know(link, nft_state_chain(link->state, table, chain), &rules);
	return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * An iptables rule as a value: a chain, matches in the order in which they are written, a target.
 *
 * Rules are built on the stack, one at a time, and put into a list (rule_list.h), of which a writer
 * (txn.h) makes iptables-restore text, iptables-save text, or nf_tables messages. Strings are
 * borrowed. The family is the writer's to know: no rule mixes them.
 *
 * A rule says all that any writer needs, not only its text: a prefix is bytes and a length, a
 * probability is its denominator. Matches that the kernel keeps apart from the others (-i, -p, -s,
 * -d) may stand anywhere among them; a writer that has its own order for those looks through the
 * list.
 */

#include "base/addr.h"
#include "model/service.h"

enum table {
	TABLE_FILTER = 0,
	TABLE_NAT,
	TABLE_MANGLE,
	TABLE_COUNT,
};

const char *table_name(enum table table);
bool table_parse(const char *name, enum table *ret); /* false, *ret untouched: another table */

enum match_kind {
	MATCH_COMMENT = 0,            /* -m comment --comment TEXT */
	MATCH_PROTOCOL,               /* -m tcp -p tcp */
	MATCH_SOURCE,                 /* [!] -s PREFIX */
	MATCH_DESTINATION,            /* [!] -d PREFIX */
	MATCH_INTERFACE,              /* [!] -i NAME; "veth+" for a prefix */
	MATCH_PORT,                   /* --dport N; only behind MATCH_PROTOCOL */
	MATCH_CTSTATE,                /* -m conntrack [!] --ctstate LIST */
	MATCH_MARK,                   /* -m mark [!] --mark V/V */
	MATCH_SOURCE_TYPE_LOCAL,      /* -m addrtype --src-type LOCAL */
	MATCH_DESTINATION_TYPE_LOCAL, /* -m addrtype --dst-type LOCAL */
	MATCH_STATISTIC,              /* -m statistic --mode random --probability 1/n */
	MATCH_RECENT_CHECK,           /* -m recent --name N --rcheck --seconds S --reap */
	MATCH_RECENT_SET,             /* -m recent --name N --set */
	MATCH_NFACCT,                 /* -m nfacct --nfacct-name N */
	MATCH_OTHER,                  /* by its name: read from the kernel, in no rule of ours */
	MATCH_COUNT,
};

/* Bits of MATCH_CTSTATE, written in this order. */
enum ctstate {
	CTSTATE_INVALID = 1 << 0,
	CTSTATE_NEW = 1 << 1,
	CTSTATE_RELATED = 1 << 2,
	CTSTATE_ESTABLISHED = 1 << 3,
	CTSTATE_DNAT = 1 << 4,
};

struct match {
	enum match_kind kind;
	bool invert;
	/*
	 * SOURCE, DESTINATION: one address, which is written without its length. In no rule of ours:
	 * PROTOCOL by -p without -m, CTSTATE by -m state.
	 */
	bool bare;
	union {
		struct {
			const char *text; /* COMMENT, INTERFACE, NFACCT, OTHER; else NULL */
			union {
				uint32_t number; /* whichever it is; 0: none */
				enum protocol protocol;
				uint32_t port;
				unsigned int ctstate; /* enum ctstate */
				uint32_t mark;
				unsigned int one_in; /* STATISTIC: probability is 1/one_in */
			};
		};
		struct {
			const char *name;
			uint32_t seconds;
		} recent;             /* its text and number */
		struct prefix prefix; /* SOURCE, DESTINATION */
	};
};

enum target_kind {
	TARGET_NONE = 0, /* only counts */
	TARGET_CHAIN,    /* jump */
	TARGET_ACCEPT,
	TARGET_DROP,
	TARGET_RETURN,
	TARGET_REJECT,
	TARGET_MARK_XOR,
	TARGET_MARK_OR,
	TARGET_MASQUERADE,
	TARGET_DNAT,
	/* read from the kernel, in no rule of ours: */
	TARGET_GOTO,  /* -g */
	TARGET_OTHER, /* by its name */
	TARGET_COUNT,
};

struct target {
	enum target_kind kind;
	union {
		const char *chain; /* CHAIN, GOTO; of OTHER the name */
		uint32_t mark;
		bool random_fully;
		struct {
			struct addr addr;
			uint16_t port;
		} dnat;
	};
};

#define RULE_MATCH_MAX 8

/* What the kernel holds of a text; writers cut there. */
#define RULE_COMMENT_MAX   255
#define RULE_INTERFACE_MAX 15
#define RULE_NFACCT_MAX    31
#define RULE_RECENT_MAX    199

struct rule {
	enum table table;
	const char *chain;
	bool leading; /* stands in its shared chain before all rules that are not */
	struct target target;
	size_t n_matches;
	struct match
		matches[RULE_MATCH_MAX]; /* last: those of a list have no more than they need */
};

/* Bytes, without the matches that it does not have. */
size_t rule_size(const struct rule *rule);
/* The first of a kind; NULL: none. */
const struct match *rule_match(const struct rule *rule, enum match_kind kind);
/* Has it parts that we do not write? */
bool rule_is_foreign(const struct rule *rule);
bool match_has_prefix(const struct match *match);
/* The address that it is for; every entry of a Service has its destination. */
const struct addr *rule_address(const struct rule *rule);

/* Builders: rule_init(), then matches in order, then at most one target. */
void rule_init(struct rule *rule, enum table table, const char *chain);
void rule_comment(struct rule *rule, const char *text);
void rule_protocol(struct rule *rule, enum protocol protocol);
void rule_source(struct rule *rule, bool invert, const struct prefix *prefix);
void rule_source_addr(struct rule *rule, const struct addr *addr);
void rule_destination(struct rule *rule, bool invert, const struct prefix *prefix);
void rule_destination_addr(struct rule *rule, const struct addr *addr);
void rule_interface(struct rule *rule, bool invert, const char *name);
void rule_port(struct rule *rule, uint16_t port);
void rule_ctstate(struct rule *rule, bool invert, unsigned int states);
void rule_mark(struct rule *rule, bool invert, uint32_t mark);
void rule_source_local(struct rule *rule);
void rule_destination_local(struct rule *rule);
void rule_statistic(struct rule *rule, unsigned int one_in);
void rule_recent_check(struct rule *rule, const char *name, uint32_t seconds);
void rule_recent_set(struct rule *rule, const char *name);
void rule_nfacct(struct rule *rule, const char *name);
void rule_jump(struct rule *rule, const char *chain);
void rule_verdict(struct rule *rule, enum target_kind kind); /* ACCEPT, DROP, RETURN, REJECT */
void rule_mark_xor(struct rule *rule, uint32_t mark);
void rule_mark_or(struct rule *rule, uint32_t mark);
void rule_masquerade(struct rule *rule, bool random_fully);
void rule_dnat(struct rule *rule, const struct addr *addr, uint16_t port);

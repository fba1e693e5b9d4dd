/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A rule of table kube-proxy as a value: a chain and statements, evaluated from left to right until
 * one does not hold. A statement is written as nf_tables expressions (statement_put.h), read from those that the
 * kernel lists (statement_read.h), and printed in nft's words (statement_text.h).
 */

#include "backends/nftables/chain.h"
#include "backends/nftables/container.h"
#include "model/service.h"

/* What of a packet a key is made of. */
enum operand {
	OPERAND_END = 0,
	OPERAND_SADDR,
	OPERAND_DADDR,
	OPERAND_PROTOCOL,
	OPERAND_DPORT,
	OPERAND_RANDOM, /* a number below statement.number */
	OPERAND_PRIORITY,
	OPERAND_ORIGINAL_DADDR, /* before it was translated */
	OPERAND_ORIGINAL_DPORT,
	OPERAND_COUNT,
};

#define STATEMENT_KEY 5

enum statement_kind {
	STATEMENT_END = 0,
	/* conditions */
	STATEMENT_NEW,         /* ct state new */
	STATEMENT_TRANSLATED,  /* ct status dnat */
	STATEMENT_PROTOCOL,    /* meta l4proto tcp */
	STATEMENT_SOURCE,      /* ip saddr 10.244.0.0/16 */
	STATEMENT_DESTINATION, /* ip daddr 127.0.0.0/8 */
	STATEMENT_INTERFACE,   /* iifname "cni0", or with is_prefix "cali*" */
	STATEMENT_FROM_NODE,   /* fib saddr type local */
	STATEMENT_TO_NODE,     /* fib daddr type local */
	STATEMENT_IN,          /* KEY @set */
	STATEMENT_MARKED,      /* meta mark & X != 0 */
	STATEMENT_ID,          /* meta priority 1000:1 */
	/* what happens */
	STATEMENT_SET_MARK,      /* meta mark set meta mark | X */
	STATEMENT_TOGGLE_MARK,   /* meta mark set meta mark ^ X */
	STATEMENT_DNAT,          /* dnat ip to KEY map @map */
	STATEMENT_TAKE_ID,       /* meta priority set KEY map @map */
	STATEMENT_SET_ID,        /* meta priority set 1000:1, with number 0 set none */
	STATEMENT_UPDATE,        /* update @clients-1 { ip saddr timeout Ts : meta priority } */
	STATEMENT_NOTE_FULL,     /* update @full-clients { meta priority timeout Ts } */
	STATEMENT_FORGET,        /* delete @clients-1 { ip saddr : meta priority } */
	STATEMENT_MASQUERADE,    /* masquerade fully-random */
	STATEMENT_COUNTER,       /* only other programs count by rule */
	STATEMENT_NAMED_COUNTER, /* counter name "localhost-nodeport-rejected-udp" */
	/* how it ends */
	STATEMENT_VMAP, /* KEY vmap @map */
	STATEMENT_JUMP,
	STATEMENT_GOTO,
	STATEMENT_RETURN,
	STATEMENT_DROP,
	STATEMENT_REJECT,
	STATEMENT_RESET,  /* reject with tcp reset */
	STATEMENT_ACCEPT, /* only other programs do */
	/* of another program, and not understood: expressions as the kernel lists them */
	STATEMENT_RAW,
	STATEMENT_COUNT,
};

struct statement {
	enum statement_kind kind;
	bool not ;
	bool is_prefix;         /* of an interface's name */
	enum protocol protocol; /* the fields below: as the kind needs */
	enum container container;
	uint32_t map; /* the container's number, if it has one */
	struct chain chain;
	uint32_t number; /* slots, mark, seconds, or that of an id */
	enum operand key[STATEMENT_KEY];
	struct prefix prefix;
	const char *interface;
	const void *raw; /* as in NFTA_RULE_EXPRESSIONS */
	size_t raw_size;
};

/*
 * Letters behind a % in a form are parts of the statement: chain c, family f, id i, key k, protocol of layer 4 l, set or
 * map m, name of an interface n, named counter o, not !, prefix p, raw r, time-out t, mark x. What a form does not have is zero.
 */
struct statement_type {
	const char *end;  /* the expression that it ends with */
	const char *form; /* in nft's words */
};

extern const struct statement_type statement_types[STATEMENT_COUNT];

#define STATEMENTS_MAX 8

struct nft_rule {
	struct chain chain;
	const char *comment; /* NULL: none */
	size_t n;
	struct statement v[STATEMENTS_MAX];
};

/* The same comment and statements; the chain does not count. */
bool nft_rule_equal(const struct nft_rule *a, const struct nft_rule *b);

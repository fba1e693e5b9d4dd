/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Names of chains. Those of a service port end in a hash of its identity, so that any kube-proxy,
 * and anyone who knows one, finds the same names: the first 16 base32 letters (80 bits) of a
 * SHA-256.
 */

#include "model/endpoints.h"

#define CHAIN_SERVICES          "KUBE-SERVICES"
#define CHAIN_EXTERNAL_SERVICES "KUBE-EXTERNAL-SERVICES"
#define CHAIN_NODEPORTS         "KUBE-NODEPORTS"
#define CHAIN_POSTROUTING       "KUBE-POSTROUTING"
#define CHAIN_MARK_MASQ         "KUBE-MARK-MASQ"
#define CHAIN_FORWARD           "KUBE-FORWARD"
#define CHAIN_PROXY_FIREWALL    "KUBE-PROXY-FIREWALL"
#define CHAIN_KUBELET_FIREWALL  "KUBE-FIREWALL"
#define CHAIN_CANARY            "KUBE-PROXY-CANARY"

#define NFACCT_INVALID   "ct_state_invalid_dropped_pkts"
#define NFACCT_LOCALHOST "localhost_nps_accepted_pkts"

/* The part of a name that is hashed, before it becomes letters: half the memory. */
struct chain_hash {
	uint8_t bytes[10];
};

enum chain_kind {
	CHAIN_KIND_INDEX = 0, /* of service_index.h; before SVC, with which its names begin */
	CHAIN_KIND_SVC,       /* endpoints for policy Cluster */
	CHAIN_KIND_SVL,       /* endpoints for policy Local */
	CHAIN_KIND_EXT,       /* external destinations */
	CHAIN_KIND_FW,        /* source ranges */
	CHAIN_KIND_SEP,       /* one endpoint */
	CHAIN_KIND_COUNT,
};

/* "KUBE-SVC-IX-XPGD46QRK7WJZT7O" is the longest: the kernel takes 28 letters at most. */
struct chain_name {
	char text[32];
};

/* id: "namespace/name[:port]". Both hashes are those of the printed identity. */
void chain_hash_port(const char *id, enum protocol protocol, struct chain_hash *ret);
void chain_hash_endpoint(const char *id, enum protocol protocol, const struct addr *addr,
			 uint16_t port, struct chain_hash *ret);
void chain_hash_prefix(const struct prefix *prefix, struct chain_hash *ret);
void chain_name_make(enum chain_kind kind, const struct chain_hash *hash, struct chain_name *ret);
/* Is it a chain of a service port or endpoint, or of the index, by its name? */
bool chain_is_per_service(const char *name);
/* Is it one of those that spread connections over endpoints, SVC or SVL? */
bool chain_spreads(const char *name);
/*
 * Chains lead to such of a lower rank only, but for those of the index and the shared ones, which have the
 * highest ranks and lead to each other, too.
 */
unsigned int chain_rank(const char *name);
/* The way back: false, and nothing returned, when the name is not a prefix and 16 letters. */
bool chain_name_parse(const char *name, enum chain_kind *ret_kind, struct chain_hash *ret_hash);

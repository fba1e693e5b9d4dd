/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Statements and elements in nft's words. */

#include "backends/nftables/element.h"
#include "backends/nftables/statement.h"
#include "base/text.h"

/* "ip daddr . meta l4proto . th dport vmap @service-ips" */
void statement_text_rule(struct text *text, enum family family, const struct nft_rule *rule);
/* "10.96.0.1 . tcp . 80 comment "default/web" : goto pick-2" */
void statement_text_element(struct text *text, enum family family, const struct element *element);
/* The same without what is behind the colon. */
void statement_text_key(struct text *text, enum family family, const struct element *element);
/* "type ipv4_addr . inet_proto . inet_service : verdict" */
void statement_text_type(struct text *text, enum family family, enum container container);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Texts of the rules that do not depend on any Service, as iptables-restore gets them. */

#define LOOPBACK_GUARD                                                                       \
	"-A KUBE-FIREWALL -m comment --comment \"block incoming localnet connections\""      \
	" -d 127.0.0.0/8 ! -s 127.0.0.0/8 -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT" \
	" -j DROP\n"

#define DROP_INVALID                                     \
	"-A KUBE-FORWARD -m conntrack --ctstate INVALID" \
	" -m nfacct --nfacct-name ct_state_invalid_dropped_pkts -j DROP\n"

#define FORWARD_ACCEPT                                                                  \
	"-A KUBE-FORWARD -m comment --comment \"kubernetes forwarding rules\""          \
	" -m mark --mark 0x00004000/0x00004000 -j ACCEPT\n"                             \
	"-A KUBE-FORWARD -m comment --comment \"kubernetes forwarding conntrack rule\"" \
	" -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n"

#define FILTER_CHAINS                       \
	"*filter\n"                         \
	":KUBE-SERVICES - [0:0]\n"          \
	":KUBE-EXTERNAL-SERVICES - [0:0]\n" \
	":KUBE-FORWARD - [0:0]\n"           \
	":KUBE-NODEPORTS - [0:0]\n"         \
	":KUBE-PROXY-FIREWALL - [0:0]\n"

#define NAT_CHAINS                    \
	"COMMIT\n"                    \
	"*nat\n"                      \
	":KUBE-SERVICES - [0:0]\n"    \
	":KUBE-NODEPORTS - [0:0]\n"   \
	":KUBE-POSTROUTING - [0:0]\n" \
	":KUBE-MARK-MASQ - [0:0]\n"

#define MASQUERADE                                                                      \
	"-A KUBE-POSTROUTING -m mark ! --mark 0x00004000/0x00004000 -j RETURN\n"        \
	"-A KUBE-POSTROUTING -j MARK --xor-mark 0x00004000\n"                           \
	"-A KUBE-POSTROUTING -m comment --comment"                                      \
	" \"kubernetes service traffic requiring SNAT\" -j MASQUERADE --random-fully\n" \
	"-A KUBE-MARK-MASQ -j MARK --or-mark 0x00004000\n"

#define TO_NODE_PORTS(destination) "-A " LAST_RULE(destination)
#define REMOVED(destination)       "-D " LAST_RULE(destination)
#define LAST_RULE(destination)                                               \
	"KUBE-SERVICES -m comment --comment \"kubernetes service nodeports;" \
	" NOTE: this must be the last rule in this chain\"" destination " -j KUBE-NODEPORTS\n"

#define CHAIN(name) ":" name " - [0:0]\n"

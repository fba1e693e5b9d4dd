# SPDX-License-Identifier: Apache-2.0
"""`portolan diff`: what others did to the rules, and nothing else, as a unified diff."""

import json
import random
import re

import pytest

from lab.daemon import program
from lab.manifests import Service
from test_explain import random_service

WEB = dict(kind="LoadBalancer", affinity=600, loadBalancerSourceRanges=["192.0.2.0/24", "198.18.7.0/24"])


def run_diff(cluster, *words):
    code, out, err = cluster.node.run(program(), "diff", *words, *cluster.daemon.flags, check=False)
    assert code in (0, 1), f"{code} {err} {out}"
    return code, out


@pytest.fixture
def damaged(cluster):
    """damaged(command, ...) is what the diff says after these commands, without a daemon that would repair it."""
    cluster.serve(Service("web", 7, cluster.pods, **WEB))
    # some clients of affinity, and counters that are not zero
    for _ in range(3):
        assert cluster.client.ask("198.51.100.7", 80).pod
    assert run_diff(cluster) == (0, "")
    cluster.daemon.stop()

    def damage(*commands):
        for command in commands:
            cluster.node.run(*command.split(" ", 5 if command.startswith("nft") else -1))
        code, out = run_diff(cluster)
        assert code == 1
        return out

    yield damage
    cluster.daemon.start()


LIMITED = ("--masquerade-all", "--nodeport-addresses=primary")


@pytest.mark.parametrize("flags", [
    pytest.param((), id="plain"),
    pytest.param(("--iptables-variant=legacy",), id="legacy", marks=pytest.mark.only("iptables")),
    pytest.param(("--iptables-service-index", *LIMITED), id="index", marks=pytest.mark.only("iptables")),
    pytest.param(LIMITED, id="limited", marks=pytest.mark.only("nftables")),
])
def test_what_the_daemon_wrote_is_what_is_wanted(clusters, flags):
    cluster = clusters(*flags)
    draw = random.Random(7)
    for state in range(2):
        cluster.serve(*(random_service(draw, 100 + 10 * state + i, cluster) for i in range(8)))
        assert run_diff(cluster) == (0, "")


@pytest.mark.only("iptables")
def test_a_deleted_rule_and_a_foreign_one(damaged):
    assert damaged(
        "iptables -t nat -D KUBE-MARK-MASQ 1",
        "iptables -t nat -I PREROUTING -d 203.0.113.1 -j ACCEPT",  # of somebody else, and none of our business
        "ip6tables -t nat -A KUBE-POSTROUTING -d 2001:db8::1 -j RETURN",
    ) == """\
--- wanted/ipv4/nat
+++ kernel/ipv4/nat
@@ -1,1 +0,0 @@ chain KUBE-MARK-MASQ
--A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000
--- wanted/ipv6/nat
+++ kernel/ipv6/nat
@@ -1,3 +1,4 @@ chain KUBE-POSTROUTING
 -A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN
 -A KUBE-POSTROUTING -j MARK --set-xmark 0x4000/0x0
 -A KUBE-POSTROUTING -m comment --comment "kubernetes service traffic requiring SNAT" -j MASQUERADE --random-fully
+-A KUBE-POSTROUTING -d 2001:db8::1/128 -j RETURN
"""


@pytest.mark.only("iptables")
def test_a_rule_that_no_proxy_writes_has_the_words_of_iptables(damaged):
    assert damaged("iptables -t nat -A KUBE-MARK-MASQ -p tcp -m multiport --dports 7,9 -m limit --limit 5/min -j LOG") == """\
--- wanted/ipv4/nat
+++ kernel/ipv4/nat
@@ -1,1 +1,2 @@ chain KUBE-MARK-MASQ
 -A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000
+-A KUBE-MARK-MASQ -p tcp -m multiport --dports 7,9 -m limit --limit 5/min -j LOG
"""


@pytest.mark.only("iptables")
def test_rules_of_a_service_and_the_jumps_to_them(damaged, cluster):
    rules = cluster.node.run("iptables", "-t", "nat", "-S", "KUBE-SERVICES")
    line = next(line for line in rules.splitlines() if "default/web:main cluster IP" in line)
    number = rules.splitlines().index(line)  # the first line is the chain itself
    out = damaged(f"iptables -t nat -D KUBE-SERVICES {number}", "iptables -t nat -F PREROUTING")
    # where the line would stand is free: entries of Services have no order
    assert re.sub(r"-\d+,1 \+\d+,0", "-N,1 +N,0", out) == f"""\
--- wanted/ipv4/nat
+++ kernel/ipv4/nat
@@ -N,1 +N,0 @@ chain PREROUTING
--A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
@@ -N,1 +N,0 @@ chain KUBE-SERVICES, service default/web
-{line}
"""


@pytest.mark.only("nftables")
def test_elements_that_are_missing_changed_or_not_wanted(damaged):
    assert damaged(
        "nft delete element ip kube-proxy service-ips { 10.96.0.7 . tcp . 80 }",
        "nft delete element ip kube-proxy endpoints { 10.96.0.7 . tcp . 80 . 1 }",
        "nft delete element ip kube-proxy nodeport-endpoints { tcp . 30007 . 0 }",
        "nft add element ip kube-proxy nodeport-endpoints { tcp . 30007 . 0 : 10.244.9.9 . 8080 }",
        "nft add element ip6 kube-proxy cluster-ips { 2001:db8::1 }",
        "nft delete element ip kube-proxy source-ranges { 198.51.100.7 . tcp . 80 . 198.18.7.0/24 }",
    ) == """\
--- wanted/ipv4/kube-proxy
+++ kernel/ipv4/kube-proxy
@@ -1,1 +0,0 @@ map service-ips, service default/web
-10.96.0.7 . tcp . 80 comment "default/web:main" : goto sticky
@@ -2,1 +1,0 @@ map endpoints, service default/web
-10.96.0.7 . tcp . 80 . 1 : 10.244.1.12 . 8080
@@ -1,1 +1,1 @@ map nodeport-endpoints, service default/web
-tcp . 30007 . 0 : 10.244.1.11 . 8080
+tcp . 30007 . 0 : 10.244.9.9 . 8080
@@ -2,1 +1,0 @@ set source-ranges, service default/web
-198.51.100.7 . tcp . 80 . 198.18.7.0/24
--- wanted/ipv6/kube-proxy
+++ kernel/ipv6/kube-proxy
@@ -0,0 +1,1 @@ set cluster-ips
+2001:db8::1
"""


@pytest.mark.only("nftables")
def test_rules_and_chains(damaged):
    assert damaged(
        "nft add rule ip kube-proxy services counter accept",
        "nft flush chain ip6 kube-proxy masquerading",
        "nft add chain ip6 kube-proxy late { type filter hook input priority 5; policy drop; }",
    ) == """\
--- wanted/ipv4/kube-proxy
+++ kernel/ipv4/kube-proxy
@@ -1,3 +1,4 @@ chain services
 ip daddr @cluster-ips ip saddr != 10.244.0.0/16 meta mark set meta mark | 0x00004000 comment \
"masquerade clusterIP traffic from outside cluster"
 ip daddr . meta l4proto . th dport vmap @service-ips
 ip daddr @nodeport-ips meta l4proto . th dport vmap @service-nodeports
+counter accept
--- wanted/ipv6/kube-proxy
+++ kernel/ipv6/kube-proxy
@@ -1,2 +0,0 @@ chain masquerading
-meta mark & 0x00004000 != 0x00000000 meta mark set meta mark ^ 0x00004000 masquerade fully-random
-ct status dnat ip6 saddr . ip6 daddr . meta l4proto . th dport @hairpin-connections masquerade fully-random
@@ -0,0 +0,1 @@ chain late
+type filter hook input priority 5; policy drop;
"""


def test_an_empty_kernel_lacks_everything(damaged, cluster, mode):
    tool = "iptables -t nat -F" if mode == "iptables" else "nft delete table ip kube-proxy"
    damaged(tool)
    code, out = run_diff(cluster, "-o", "json")
    found = json.loads(out)
    assert code == 1 and found["kind"] == "Diff" and found["mode"] == mode and not found["same"]
    assert not any(difference["unwanted"] for difference in found["differences"])
    assert {"default/web"} <= {difference["service"] for difference in found["differences"]}
    assert {difference["family"] for difference in found["differences"]} == {"ipv4"}

# SPDX-License-Identifier: Apache-2.0
"""--healthz-probe: readiness that looks at the kernel. Somebody else takes rules away again and again, faster than they are put
back, so that there is always a moment in which they are missing; then stops.
"""

import os

import pytest

from lab.host import ADDRESSES, HEALTH, NODE, Pod
from lab.manifests import Service

#: by name: the daemon's flags, and what somebody else does
WRITERS = {
    "netlink": (["--iptables-writer=netlink"], "iptables -t nat -F PREROUTING; iptables -t nat -F KUBE-SERVICES"),
    "restore": (["--iptables-writer=restore"], "iptables -t nat -F KUBE-SERVICES; ip6tables -t nat -F OUTPUT"),
    "nftables": (["--proxy-mode=nftables"], "nft flush chain ip kube-proxy nat-output; nft delete table ip6 kube-proxy"),
}


def healthz(host):
    return lambda: host.ask("/healthz", HEALTH)


@pytest.mark.parametrize("writer", WRITERS)
def test_a_node_without_its_rules_is_not_ready(host, writer):
    flags, harm = WRITERS[writer]
    host.write(Service("web", 10, [Pod("a", 3)]))
    host.start("--healthz-probe=rules", "--healthz-probe-interval=100ms", *flags)
    answer = host.wait_for(healthz(host), lambda answer: answer.status == 200)
    assert "reason" not in answer.json()
    hammer = host.node.agent.start("run", argv=["sh", "-c", f"until [ -e /run/enough ]; do {harm}; done 2>/dev/null"])
    body = host.wait_for(healthz(host), lambda answer: answer.status == 503).json()
    assert body["healthy"] is False and body["nodeEligible"] is True
    assert body["reason"].startswith("IPv")
    assert host.ask("/livez", HEALTH).status == 200
    host.wait_for(host.metrics, lambda metrics: metrics.get('portolan_healthz_probe_failures_total{probe="rules"}', 0) >= 1)
    host.node.run("touch", "/run/enough")
    hammer.result(60)
    host.wait_for(healthz(host), lambda answer: answer.status == 200)
    for line in ('"Not ready: rules are missing"', '"Ready: all rules are there"'):
        host.log.wait_line(line)


def test_a_single_chain_that_iptables_emptied_is_noticed_and_written_again(host):
    """With iptables-restore as the writer nobody tells of it; the canaries are still there."""
    host.write(Service("web", 10, [Pod("a", 3)]))
    host.start("--healthz-probe=rules", "--healthz-probe-interval=100ms", "--iptables-writer=restore")
    host.wait_for(healthz(host), lambda answer: answer.status == 200)
    host.node.run("iptables", "-t", "nat", "-F", "KUBE-SERVICES")
    host.log.wait_line('"Not ready: rules are missing" ipFamily="IPv4".*KUBE-SERVICES')
    host.wait_for(healthz(host), lambda answer: answer.status == 200)
    assert "KUBE-NODEPORTS" in host.node.run("iptables", "-t", "nat", "-S", "KUBE-SERVICES")


SERVER = """
import socket
server = socket.create_server(("192.0.2.11", 8080), reuse_port=True)
open("/run/serving", "w").close()
while True:
    server.accept()[0].close()
"""


class Self(Pod):
    """An endpoint that is the node itself."""

    def __init__(self):
        super().__init__("self", 3, NODE)
        self.address = dict(ADDRESSES)


def serve(host):
    host.node.run("rm", "-f", "/run/serving")
    with open(os.devnull, "wb") as nowhere:
        pid = host.node.agent.call("spawn", [nowhere.fileno()], argv=["python3", "-c", SERVER])
    host.wait_for(lambda: host.node.run("test", "-e", "/run/serving", check=False)[0], lambda code: code == 0)
    return pid


def wait_not_ready(host, reason):
    host.wait_for(healthz(host), lambda answer: answer.status == 503 and answer.json()["reason"] == reason)


def lose_packets(host):
    """On their way, whatever our rules say."""
    host.node.run("nft", "add table ip enemy; add chain ip enemy out { type filter hook output priority 0; };"
                  " add rule ip enemy out tcp dport 8080 drop")
    wait_not_ready(host, "IPv4: connecting to 10.96.0.10:80: Connection timed out")
    assert host.ask("/livez", HEALTH).status == 200
    host.node.run("nft", "delete table ip enemy")
    host.wait_for(healthz(host), lambda answer: answer.status == 200)


@pytest.mark.parametrize("mode", ["iptables", "nftables"])
def test_a_node_through_which_no_connection_comes_about_is_not_ready(host, mode):
    host.node.ip("route add 10.96.0.0/16 dev eth0")
    web = Service("web", 10, [Self()], families=[4])
    host.write(web)
    pid = serve(host)
    host.start(f"--proxy-mode={mode}", "--healthz-probe=connect", "--healthz-probe-target=default/web:main",
               "--healthz-probe-interval=200ms")
    host.wait_for(healthz(host), lambda answer: answer.status == 200)
    if mode == "iptables":
        lose_packets(host)
    host.node.agent.call("kill", pid=pid, number=9)
    wait_not_ready(host, "IPv4: connecting to 10.96.0.10:80: Connection refused")
    web.pods = []  # not the fault of this node
    host.write(web)
    host.wait_for(healthz(host), lambda answer: answer.status == 200)
    metrics = host.metrics()
    assert metrics['portolan_healthz_probe_failures_total{probe="connect"}'] >= (6 if mode == "iptables" else 3)
    assert 'portolan_healthz_probe_failures_total{probe="rules"}' not in metrics

# SPDX-License-Identifier: Apache-2.0
"""A connection tracking table that fills up with real flows.

The limit is that of the whole machine and no namespace can change it. Where the daemon should see a small one it finds a file in
its place: a mount in the mount namespace of the test.
"""

import re

import pytest

from lab.host import Pod
from lab.manifests import Service

LIMIT = 100
MAX = "/proc/sys/net/netfilter/nf_conntrack_max"
SEND = """
import socket, sys
address, port, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
for source in range(first, first + count):
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind(("", source))
        one.sendto(b"x", (address, port))
print("null")
"""
#: Each flow is a pair of an address and a port.
FILL = """
import socket, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
    for number in range(int(sys.argv[1])):
        one.sendto(b"x", (f"192.0.2.{100 + number // 65535}", 1 + number % 65535))
print("null")
"""
#: Connections whose answers would look like another flow's: the kernel cannot enter them.
CLASH = """
import socket
for port in range(20000, 20005):
    with socket.socket() as one:
        one.bind(("192.0.2.11", port))
        one.setblocking(False)
        one.connect_ex(("192.0.2.100", 80))
print("null")
"""
FILL_MAX = 1 << 20
TRACK = ("nft", "add table inet t; add chain inet t c { type filter hook output priority 0; }; "
                "add rule inet t c ct state invalid drop")


def track(host):
    """All flows of the host, and none of them is forgotten while a busy machine still counts them."""
    host.node.run(*TRACK)
    assert not host.node.sysctl(net__netfilter__nf_conntrack_udp_timeout=600)


def test_a_table_that_fills_up_is_told_with_its_causes(host):
    dns, log = (Service(name, number, [Pod("a", 3)], proto="UDP") for name, number in (("dns", 10), ("log", 11)))
    host.write(dns, log)
    host.node.ip("route add 10.0.0.0/8 dev eth0", "route add fd00::/16 dev eth0")
    track(host)
    host.node.agent.call("write_file", path="/run/max", text=f"{LIMIT}\n", atomic=False)
    host.node.run("mount", "--bind", "/run/max", MAX)
    host.start()
    assert host.metrics()["portolan_conntrack_max_entries"] == LIMIT
    host.run_client(SEND, dns.cluster_ip[4], dns.port, 20000, 40)
    host.run_client(SEND, dns.cluster_ip[6], dns.port, 20000, 20)
    host.run_client(SEND, log.cluster_ip[4], log.port, 20000, 22)
    filling = host.log.wait_line(r'"The connection tracking table is filling up.*percent=(\d+) entries=(\d+) max=100.*'
                                 r'top="default/dns:main/udp (\d+)%, default/log:main/udp (\d+)%.*'
                                 r'advice="conntrack.maxPerCore=1024 \(cores: \d+\) would leave half of it free"')
    percent, entries, first, second = map(int, filling.groups())
    assert percent == entries and 82 <= entries < 95
    assert (first, second) == (60 * 100 // entries, 22 * 100 // entries)
    host.run_client(SEND, "10.200.0.1", 9, 20000, 95 - entries)
    host.log.wait_line('"The connection tracking table is nearly full.*percent=9[5-9] ')
    host.node.run("conntrack", "-F")
    host.log.wait_line('"The connection tracking table has room again" ')
    assert sum("The connection tracking table" in line for line in host.log.lines) == 3


def test_what_the_kernel_drops_is_counted_as_the_kernel_counts_it(hosts):
    """The table is really filled, up to the limit of the machine, which counts for each namespace alone."""
    host = hosts()
    limit = int(host.node.run("cat", MAX))
    if limit > FILL_MAX:
        pytest.skip(f"nf_conntrack_max is {limit}, more flows than a test should make")
    host.node.ip(*(f"neigh add 192.0.2.{100 + number} lladdr 02:00:00:00:00:01 dev eth0 nud permanent"
                   for number in range(limit // 65535 + 1)))
    track(host)
    for port in range(20000, 20005):
        host.node.run("conntrack", "-I", "-p", "tcp", "-s", "192.0.2.90", "-d", "192.0.2.91", "--sport", str(port), "--dport", "9",
                      "-r", "192.0.2.100", "-q", "192.0.2.11", "--reply-port-src", "80", "--reply-port-dst", str(port),
                      "--state", "SYN_SENT", "--timeout", "60")
    host.run_client(CLASH)
    host.run_client(FILL, limit + 20)
    host.node.run("conntrack", "-F")  # from here on nothing has to go, not for those who ask either
    text = host.node.run("conntrack", "-S")
    kernel = {name: sum(map(int, re.findall(rf"\b{name}=(\d+)", text))) for name in ("insert_failed", "drop", "early_drop")}
    assert (kernel["insert_failed"], kernel["drop"]) == (5, 5) and kernel["early_drop"] >= 20, text
    host.write(Service("web", 10, [Pod("a", 3)]))
    host.start()
    metrics = host.metrics()
    assert {name: metrics[f"portolan_conntrack_{metric}_total"] for name, metric in
            (("insert_failed", "insert_failed"), ("drop", "dropped"), ("early_drop", "early_dropped"))} == kernel

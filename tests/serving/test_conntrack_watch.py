# SPDX-License-Identifier: Apache-2.0
"""A connection tracking table that fills up with real flows.

The limit is that of the whole machine and no namespace can change it. So the daemon finds a file in its place: a mount in the
mount namespace of the test.
"""

from host import Pod
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


def test_a_table_that_fills_up_is_told_with_its_causes(host):
    dns, log = (Service(name, number, [Pod("a", 3)], proto="UDP") for name, number in (("dns", 10), ("log", 11)))
    host.write(dns, log)
    host.node.ip("route add 10.0.0.0/8 dev eth0", "route add fd00::/16 dev eth0")
    host.node.run("nft", "add table inet t; add chain inet t c { type filter hook output priority 0; }; "
                         "add rule inet t c ct state invalid drop")
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

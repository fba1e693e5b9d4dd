# SPDX-License-Identifier: Apache-2.0
"""A process of the node that takes all connections to NodePorts on localhost that it can get.

It must neither keep syncs and health checks waiting nor take the descriptors that they need.
"""
import json
import sys

import pytest

from lab.host import ADDRESSES, HEALTH, METRICS, NODE, Pod
from lab.log import SLOWNESS
from lab.manifests import Service
from lab.topology import wait_for

FLAGS = ("--proxy-mode=nftables", "--feature-gates=KubeProxyNFTablesLocalhostNodePorts=true",
         "--nodeport-addresses=127.0.0.0/8,::1/128")
LOCALHOST = {4: "127.0.0.1", 6: "::1"}
LABEL = {4: "IPv4", 6: "IPv6"}
TARGET = 7777
#: Far from what one slow thing alone would take, and above what a busy machine takes from every process.
LATE_S = 2 * SLOWNESS

#: Accepts whatever comes, and keeps it.
KEEPER = """
import resource, select, socket, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
kept = []
listeners = [socket.create_server((address, int(sys.argv[1])), backlog=4096,
                                  family=socket.AF_INET6 if ":" in address else socket.AF_INET) for address in sys.argv[2:]]
print("keeping", flush=True)
while True:
    for listener in select.select(listeners, [], [])[0]:
        kept.append(listener.accept()[0])
"""

#: Connects so many times to each and keeps what it gets. Then, for each line on its input, says how many are still open.
CROWD = """
import json, resource, select, socket, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
held = []
for _ in range(int(sys.argv[1])):
    for target in sys.argv[2:]:
        address, port = target.rsplit("/", 1)
        held.append(socket.create_connection((address, int(port))))
def is_open(sock):
    if not select.select([sock], [], [], 0)[0]:
        return True
    try:
        return bool(sock.recv(1))
    except OSError:
        return False
print("crowded", flush=True)
while True:
    held = [sock for sock in held if is_open(sock)]
    print(json.dumps({"open": len(held)}), flush=True)
    select.select(held, [], [], 0.1)
"""


@pytest.fixture
def node(hosts):
    """A host with a server of its own as the endpoint, and the daemon not started."""
    host = hosts()
    _pid, log = host.node.spawn(sys.executable, "-c", KEEPER, str(TARGET), *ADDRESSES.values())
    log.wait_line("keeping")
    return host


def services(n):
    keeper = Pod("keeper", 1)
    keeper.address = dict(ADDRESSES)
    assert keeper.node == NODE
    return [Service(f"web-{i}", 10 + i, [keeper], kind="NodePort", target=TARGET) for i in range(n)]


def metric(host, name, family):
    line = f'{name}{{ip_family="{LABEL[family]}"}} '
    return next((float(each.split()[-1]) for each in host.ask("/metrics", METRICS).body.splitlines() if each.startswith(line)), None)


def connections(host):
    return sum(metric(host, "portolan_localhost_nodeport_connections", family) or 0 for family in (4, 6))


def crowd(host, each, *ports):
    """Connects; the log says how many are open, again and again."""
    targets = [f"{LOCALHOST[family]}/{port}" for family in (4, 6) for port in ports]
    _pid, log = host.node.spawn(sys.executable, "-c", CROWD, str(each), *targets)
    log.wait_line("crowded")
    return log


def change_is_served(host, now):
    """A Service more: the seconds that its syncs took, and that it is reached."""
    name = "kubeproxy_sync_partial_proxy_rules_duration_seconds_sum"
    before = metric(host, name, 4) or 0
    since = len(host.log.lines)
    host.write(*services(now))
    host.log.wait_line('"Sync done" ipFamily="IPv4"', since=since)
    taken = wait_for(lambda: (metric(host, name, 4) or 0) - before)
    wait_for(lambda: metric(host, "kubeproxy_nftables_localhost_nodeport_listeners", 4) == now)
    return taken


def test_a_thousand_idle_connections_slow_no_sync(node):
    ports = [service.node_port for service in services(2)]
    node.write(*services(2))
    node.start(*FLAGS)
    crowd(node, 250, *ports)
    wait_for(lambda: connections(node) == 1000)
    assert change_is_served(node, 3) < LATE_S
    assert node.ask("/livez", HEALTH).status == 200


def test_a_crowd_beyond_the_bound_harms_nobody_else(node):
    """With 1,024 descriptors in all, of which a port has room for 16 connections in each family."""
    flooded, other = (service.node_port for service in services(2))
    node.write(*services(2))
    node.start(*FLAGS, before=("prlimit", "--nofile=1024:1024"))
    log = crowd(node, 400, flooded)
    wait_for(lambda: any(json.loads(line)["open"] == 32 for line in log.lines if "open" in line))
    assert connections(node) == 32
    assert node.ask("/livez", HEALTH).status == 200
    assert change_is_served(node, 3) < LATE_S
    quiet = crowd(node, 4, other)
    wait_for(lambda: connections(node) == 40)
    assert json.loads(quiet.wait_line("open").string)["open"] == 8
    for family in (4, 6):
        wait_for(lambda: metric(node, "portolan_localhost_nodeport_connections_refused_total", family) == 384)
    told = [line for line in node.log.lines if "Too many connections to a NodePort on localhost" in line]
    assert 1 <= len(told) <= 4, told

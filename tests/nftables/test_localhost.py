# SPDX-License-Identifier: Apache-2.0
"""NodePorts on localhost: what a process of the node gets that connects to 127.0.0.1 or ::1, with the gate and without."""
import itertools
import json
import os
import signal
import subprocess
import sys

import pytest

from lab.daemon import program
from lab.log import PATIENCE
from lab.manifests import Endpoint, Service, object_of
from lab.topology import BRIDGE, wait_for

GATE = "--feature-gates=KubeProxyNFTablesLocalhostNodePorts=true"
LOCALHOST = {4: "127.0.0.1", 6: "::1"}
CARRIED = (GATE, "--nodeport-addresses=127.0.0.0/8,::1/128,192.0.2.0/24,2001:db8:2::/64")
EXCHANGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "exchange.py")
NUMBERS = itertools.count(60)
LABEL = {4: "IPv4", 6: "IPv6"}


@pytest.fixture
def carried(clusters):
    """TCP is carried."""
    return clusters(*CARRIED)


def node_port(cluster, pods, **more):
    return cluster.service(next(NUMBERS), pods, kind="NodePort", **more)


def metric(cluster, name, **labels):
    """A number of the daemon's metrics; None: there is none. A page is kept for a moment: what has just changed is waited for."""
    words = ",".join(f'{key}="{value}"' for key, value in sorted(labels.items()))
    page = cluster.node.ask_http("/metrics", 10249).body
    lines = [line for line in page.splitlines() if line.startswith(f"{name}{{{words}}} ")]
    return float(lines[0].split()[-1]) if lines else None


def listeners(cluster, family):
    return metric(cluster, "kubeproxy_nftables_localhost_nodeport_listeners", ip_family=LABEL[family])


def rejected(cluster, family, proto):
    name = "kubeproxy_nftables_localhost_nodeport_rejected_packets_total"
    return metric(cluster, name, ip_family=LABEL[family], protocol=proto)


def test_tcp_reaches_pods_here_and_elsewhere(carried, family):
    """The pod sees the node, as it cannot answer to 127.0.0.1."""
    pods = carried.pods + carried.remote_pods
    web = node_port(carried, pods)
    answers = carried.node.request(LOCALHOST[family], web.node_port, count=80, parallel=4)
    assert {answer.pod for answer in answers} == {pod.name for pod in pods}
    assert {answer.error for answer in answers} == {None}
    assert {answer.source for answer in answers if answer.pod == "pod-a"} == {BRIDGE[family]}
    wait_for(lambda: listeners(carried, family) == 1)
    assert carried.node.ask("127.0.0.2", web.node_port).error == "refused"


def test_other_addresses_of_the_node_are_served_by_rules(carried, family):
    web = node_port(carried, carried.pods)
    for address in ("192.0.2.11", "2001:db8:2::11"):
        assert carried.client.ask(address, web.node_port).error is None


def test_what_is_not_carried_is_refused_and_counted(carried, family):
    service = node_port(carried, carried.pods, proto="UDP")
    before = rejected(carried, family, "UDP")
    assert carried.node.ask(LOCALHOST[family], service.node_port, "UDP").error == "refused"
    wait_for(lambda: rejected(carried, family, "UDP") == before + 1)
    assert rejected(carried, family, "TCP") is None
    assert rejected(carried, family, "SCTP") is not None
    assert carried.client.ask("192.0.2.11", service.node_port, "UDP").error is None


def test_without_the_loopback_among_addresses_all_is_refused(clusters, family):
    """Also by a program of the node that listens on the port."""
    cluster = clusters(GATE)
    web = node_port(cluster, cluster.pods)
    before = rejected(cluster, family, "TCP")
    answer = cluster.node.ask(LOCALHOST[family], web.node_port)
    assert answer.error == "refused"
    assert answer.seconds < 0.9, "it took a second SYN"
    wait_for(lambda: rejected(cluster, family, "TCP") == before + 1)
    assert listeners(cluster, family) is None
    assert cluster.client.ask({4: "192.0.2.11", 6: "2001:db8:2::11"}[family], web.node_port).error is None


def test_the_kernel_has_what_is_wanted(carried):
    node_port(carried, carried.pods, proto="UDP")
    flags = [flag for flag in carried.daemon.flags if not flag.startswith(("--v", "--iptables-min", "--conntrack"))]
    code, out, err = carried.node.run(program(), "diff", *flags, check=False)
    assert (code, out) == (0, ""), out + err


@pytest.mark.parametrize("flags, proto, words", [
    ((), "tcp", "No rule concerns 127.0.0.1"),
    ((GATE,), "tcp", "Connections are refused: NodePort 30080/tcp of service default/web"),
    ((GATE, "--nodeport-addresses=127.0.0.0/8"), "tcp", "Connections are taken by the daemon itself"),
    ((GATE, "--nodeport-addresses=127.0.0.0/8"), "udp", "No rule concerns 127.0.0.1:30080/udp"),
])
def test_explain_says_who_answers(flags, proto, words, tmp_path):
    service = {"type": "NodePort", "clusterIP": "10.96.0.10", "ports": [{"port": 80, "nodePort": 30080}]}
    (tmp_path / "web.json").write_text(json.dumps(object_of("Service", "v1", "web", spec=service)))
    command = [program(), "explain", "--proxy-mode=nftables", "--manifests", tmp_path, *flags, "--proto", proto, "127.0.0.1:30080"]
    said = subprocess.run([*command, "--from=node"], capture_output=True, text=True, check=False).stdout
    assert words in " ".join(said.split())


def test_policy_local(carried, family):
    web = node_port(carried, carried.pods[:1] + carried.remote_pods, externalTrafficPolicy="Local")
    answers = carried.node.request(LOCALHOST[family], web.node_port, count=20)
    assert {answer.pod for answer in answers} == {"pod-a"}
    web = node_port(carried, carried.remote_pods, externalTrafficPolicy="Local")
    assert carried.node.ask(LOCALHOST[family], web.node_port).error == "refused"
    wait_for(lambda: listeners(carried, family) == 0)


def test_affinity(carried, family):
    web = node_port(carried, carried.pods, affinity=10800)
    pod = {answer.pod for answer in carried.node.request(LOCALHOST[family], web.node_port, count=20)}
    assert len(pod) == 1
    rest = [each for each in carried.pods if each.name not in pod]
    web.pods = rest
    carried.serve(web)
    assert {answer.pod for answer in carried.node.request(LOCALHOST[family], web.node_port, count=20)} < {each.name for each in rest}


def test_a_dead_endpoint_is_made_up_for(carried, family):
    web = node_port(carried, carried.pods[:2])
    carried.pods[0].stop()
    answers = carried.node.request(LOCALHOST[family], web.node_port, count=20)
    assert {(answer.pod, answer.error) for answer in answers} == {("pod-b", None)}
    web.pods = carried.pods[:1]
    carried.serve(web)
    assert carried.node.ask(LOCALHOST[family], web.node_port).error == "reset"
    carried.pods[0].start()


def test_connections_outlive_their_endpoint_and_end_with_the_service(carried, family):
    web = node_port(carried, carried.pods[:1])
    talk = carried.node.talk(LOCALHOST[family], web.node_port)
    assert talk.ask().pod == "pod-a"
    web.pods = carried.pods[1:]
    carried.serve(web)
    assert talk.ask().pod == "pod-a"
    web.pods = [Endpoint(carried.pods[0], "notready")]
    carried.serve(web)
    assert talk.ask().pod == "pod-a"
    assert carried.node.ask(LOCALHOST[family], web.node_port).error == "refused"
    carried.serve()
    assert talk.ask().error == "reset"
    talk.close()


def test_a_port_that_is_taken(carried, family):
    """One line, a number, and another try with each sync."""
    number = next(NUMBERS)
    holder = f"import socket, time; s = socket.create_server(('{LOCALHOST[family]}', {30000 + number}), " \
             f"family=socket.AF_INET{'6' if family == 6 else ''}); print('held', flush=True); time.sleep(1000)"
    pid, log = carried.node.spawn(sys.executable, "-c", holder)
    log.wait_line("held")
    since = len(carried.daemon.log.lines)
    web = Service("taken", number, carried.pods, kind="NodePort")
    other = Service("other", next(NUMBERS), carried.pods, kind="NodePort")
    carried.serve(web, other)
    carried.serve(web, other)
    assert carried.node.ask(LOCALHOST[family], other.node_port).error is None
    failures = "kubeproxy_nftables_localhost_nodeport_listener_creation_failures_total"
    wait_for(lambda: metric(carried, failures, ip_family=LABEL[family]) >= 2)
    carried.node.agent.call("kill", pid=pid, number=signal.SIGKILL)
    carried.node.agent.call("wait", pid=pid, timeout=PATIENCE)
    carried.serve(web)
    assert carried.node.ask(LOCALHOST[family], web.node_port).error is None
    told = [line for line in carried.daemon.log.lines[since:] if "Cannot serve a NodePort on localhost" in line]
    assert len(told) == 1 and "another program listens there" in told[0]


def test_64_mib_each_way_and_the_end_of_one_before_the_other(carried, family):
    pod, total = carried.pods[0], 64 << 20
    web = node_port(carried, [pod], target=7777)
    pid, log = pod.namespace.spawn(sys.executable, EXCHANGE, "serve", pod.address[family], "7777", str(total))
    log.wait_line("listening")
    client = json.loads(carried.node.run(sys.executable, EXCHANGE, "connect", LOCALHOST[family], str(web.node_port), str(total), timeout=120))
    server = json.loads(log.wait_line("got").string)
    pod.namespace.agent.call("wait", pid=pid, timeout=PATIENCE)
    assert client["sent"][0] == server["sent"][0] == total
    assert (client["got"], server["got"]) == (server["sent"], client["sent"])
    assert (client["tail"], server["tail"]) == ("the end", "")
    wait_for(lambda: metric(carried, "portolan_localhost_nodeport_connections", ip_family=LABEL[family]) == 0)


def test_the_end_of_the_daemon_ends_connections_and_leaves_rules(clusters, family):
    cluster = clusters(*CARRIED)
    web = node_port(cluster, cluster.pods)
    talk = cluster.node.talk(LOCALHOST[family], web.node_port)
    assert talk.ask().error is None
    assert cluster.daemon.stop() == 0
    assert talk.ask().error == "reset"
    talk.close()
    assert cluster.node.ask(LOCALHOST[family], web.node_port).error == "refused"
    assert cluster.client.ask("192.0.2.11", web.node_port).error is None
    cluster.daemon.start()
    assert cluster.node.ask(LOCALHOST[family], web.node_port).error is None


def test_without_the_gate_nothing_is_there(clusters):
    """Nor after a life with it, over the same table."""
    cluster = clusters("--nodeport-addresses=127.0.0.0/8,::1/128", pods=1, remote_pods=0)
    web = node_port(cluster, cluster.pods)
    without = list(cluster.daemon.flags)
    for flags, there in (([*without, GATE], True), (without, False)):
        cluster.daemon.stop()
        cluster.daemon.flags = flags
        cluster.daemon.start()
        for table in ("ip", "ip6"):
            assert ("localhost" in cluster.node.run("nft", "list", "table", table, "kube-proxy")) == there
        assert (cluster.node.ask("127.0.0.1", web.node_port).error is None) == there
        assert ("localhost_nodeport" in cluster.node.ask_http("/metrics", 10249).body) == there

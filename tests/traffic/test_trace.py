# SPDX-License-Identifier: Apache-2.0
"""`trace` tells what real packets do: the same as `explain` says, where nobody meddles, and nothing of it stays."""

import json
import signal

import pytest

from lab.check import describe
from lab.daemon import program
from lab.topology import CLIENT, NODE

WAITING = r"portolan trace: waiting \d+ s for"


class Trace:
    """A `portolan trace` in the node that is armed when it is made."""

    def __init__(self, cluster, *words, flags=None):
        self.agent = cluster.node.agent
        flags = cluster.daemon.flags if flags is None else flags
        argv = [program(), "trace", *words, *(flag for flag in flags if not flag.startswith("--v="))]
        self.pid, self.log = cluster.node.spawn(*argv)
        self.log.wait_line(WAITING)

    def end(self):
        """Exit code, and what it printed behind the line that it waits."""
        code = self.agent.call("wait", pid=self.pid, timeout=20)
        self.log.wait(lambda: self.log.ended, "the end of its output")
        return code, [line for line in self.log.lines if not line.startswith("portolan trace:")]

    def document(self):
        code, lines = self.end()
        return code, json.loads("\n".join(lines))["connections"]

    def kill(self, number):
        self.agent.call("kill", pid=self.pid, number=number)
        return self.end()[0]


def tables(cluster):
    return [line for line in cluster.node.run("nft", "list", "tables").splitlines() if "portolan-trace" in line]


def check(connection, answer, family, cluster):
    """What was traced is what the client and the pod saw, and what explain says."""
    pods = {pod.address[family]: pod.name for pod in cluster.pods + cluster.remote_pods}
    backend = connection["endpoint"].rsplit(":", 1)[0].strip("[]")
    assert connection["explain"] == {"compared": True, "same": True}, connection
    assert pods[backend] == answer.pod, f"{connection['summary']} {describe([answer])}"
    source, port = connection["sourceSeen"].rsplit(":", 1)
    assert (source.strip("[]"), int(port)) == (answer.source, answer.port), connection["summary"]
    assert connection["firstPacket"]
    assert connection["steps"][-1]["hook"] == "postrouting"


def test_a_cluster_ip(cluster, family):
    service = cluster.service(1, cluster.pods)
    words = ["service/default/service-1", "-o", "json", f"--ip-family=ipv{family}"]
    for sender, masquerade in [(cluster.pods[0], None), (cluster.node, True)]:
        trace = Trace(cluster, *words)
        answer = sender.ask(service.cluster_ip[family], service.port)
        code, connections = trace.document()
        assert code == 0
        check(connections[0], answer, family, cluster)
        assert masquerade is None or connections[0]["masquerade"] == masquerade


def test_a_node_port(cluster, family):
    service = cluster.service(2, cluster.pods + cluster.remote_pods, kind="NodePort")
    trace = Trace(cluster, f":{service.node_port}", "-o", "json", f"--ip-family=ipv{family}")
    answer = cluster.client.ask(NODE[family], service.node_port)
    code, connections = trace.document()
    assert code == 0
    check(connections[0], answer, family, cluster)
    assert connections[0]["masquerade"] and "masquerade" in connections[0]["masqueradeRule"].lower()
    assert connections[0]["service"]["entry"] == "nodePort"


def test_affinity(cluster, proto):
    """The second time the client is remembered, and comes to the same backend by another way."""
    service = cluster.service(3, cluster.pods + cluster.remote_pods, affinity=600, proto=proto)
    seen = []
    for _ in range(2):
        trace = Trace(cluster, "service/default/service-3", "-o", "json")
        answer = cluster.client.ask(service.cluster_ip[4], service.port, proto)
        code, connections = trace.document()
        assert code == 0
        check(connections[0], answer, 4, cluster)
        seen.append((connections[0]["clientRemembered"], connections[0]["endpoint"]))
    assert seen == [(False, seen[0][1]), (True, seen[0][1])]


def test_a_pod_that_reaches_itself(cluster, family):
    pod = cluster.pods[0]
    service = cluster.service(4, [pod])
    trace = Trace(cluster, "service/default/service-4", "-o", "json", f"--ip-family=ipv{family}")
    answer = pod.ask(service.cluster_ip[family], service.port)
    code, connections = trace.document()
    assert code == 0
    check(connections[0], answer, family, cluster)
    assert connections[0]["masquerade"]
    assert connections[0]["summary"].endswith("because client and backend are the same pod.")


def test_a_service_without_endpoints_is_refused(cluster):
    service = cluster.service(5, [])
    trace = Trace(cluster, f"{service.cluster_ip[4]}:{service.port}")
    assert cluster.pods[0].ask(service.cluster_ip[4], service.port).error == "refused"
    code, lines = trace.end()
    text = " ".join(" ".join(lines).split())
    assert code == 1
    assert "refuses the packet" in text and "has no ready endpoint" in text and "As explain says." in text


def test_what_others_drop_is_named(cluster):
    """A rule that is not ours stops the packet: the trace names it, and says that this is not planned."""
    service = cluster.service(6, cluster.pods)
    rule = ["FORWARD", "-p", "tcp", "--dport", str(service.target), "-j", "DROP"]
    cluster.node.run("iptables", "-I", *rule)
    try:
        trace = Trace(cluster, "service/default/service-6", "-o", "json")
        assert cluster.client.ask(service.cluster_ip[4], service.port, timeout=0.3).error == "timeout"
        code, connections = trace.document()
    finally:
        cluster.node.run("iptables", "-D", *rule)
    last = connections[0]["steps"][-1]
    assert code == 3 and connections[0]["verdict"] == "dropped" and not connections[0]["explain"]["same"]
    assert (last["table"], last["chain"], last["position"], last["effect"]) == ("filter", "FORWARD", 1, "drop")
    assert f"--dport {service.target} -j DROP" in last["rule"]


def test_only_one_sender_and_several_connections(cluster):
    service = cluster.service(7, cluster.pods)
    trace = Trace(cluster, "service/default/service-7", "-o", "json", "--from", CLIENT[4], "--count=2")
    cluster.pods[0].ask(service.cluster_ip[4], service.port)
    answers = [cluster.client.ask(service.cluster_ip[4], service.port) for _ in range(2)]
    code, connections = trace.document()
    assert code == 0 and len(connections) == 2
    for connection, answer in zip(connections, answers):
        check(connection, answer, 4, cluster)


def test_an_address_can_be_traced_without_any_object(cluster):
    service = cluster.service(8, cluster.pods)
    trace = Trace(cluster, f"{service.cluster_ip[4]}:{service.port}", "-o", "json",
                  flags=["--hostname-override=node1", f"--proxy-mode={cluster.daemon.mode}"])
    answer = cluster.pods[0].ask(service.cluster_ip[4], service.port)
    code, connections = trace.document()
    assert code == 0 and answer.pod
    assert connections[0]["explain"] == {"compared": False} and connections[0]["verdict"] == "backend"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_nothing_stays_armed(cluster, number):
    cluster.service(9, cluster.pods)
    since = len(cluster.daemon.log.lines)
    trace = Trace(cluster, "service/default/service-9")
    assert len(tables(cluster)) == 1
    assert trace.kill(number) == (-number if number == signal.SIGKILL else 5)
    assert not tables(cluster)
    cluster.service(9, cluster.pods)  # by then the daemon has heard of the table
    assert not cluster.daemon.log.find("Repair|another program", since)


def test_time_runs_out(cluster):
    cluster.service(9, cluster.pods)
    trace = Trace(cluster, "service/default/service-9", "--seconds=1")
    assert trace.end()[0] == 5
    assert not tables(cluster)
    assert "curl" in trace.log.lines[-1]

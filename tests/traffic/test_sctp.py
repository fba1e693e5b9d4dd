# SPDX-License-Identifier: Apache-2.0
"""SCTP: an INIT from a raw socket arrives at the pod with the pod's port and a right checksum.

Kernels may lack SCTP sockets; the rules do not need them, and neither does this.
"""

import itertools

import pytest

from lab.log import PATIENCE
from lab.topology import BRIDGE, CLIENT, NODE, SctpListener, wait_for

TAGS = itertools.count(0x706F7274)


def listen(cluster, family):
    return {pod.name: SctpListener(pod.namespace, family) for pod in cluster.pods}


def send(place, listeners, address, port):
    """Sends one INIT and says who heard what; only one pod may."""
    tag = next(TAGS)
    place.agent.call("sctp_send", address=address, port=port, source_port=40000 + tag % 20000, tag=tag)
    waiting = {name: listener.wait(tag, PATIENCE) for name, listener in listeners.items()}
    return {name: heard for name, wait in waiting.items() if (heard := wait.result())}


@pytest.fixture
def one_pod(cluster, family):
    """A Service with one endpoint, and ears in all pods."""
    web = cluster.service(80, cluster.pods[:1], proto="SCTP", kind="LoadBalancer", external=True, port=9000, target=9899)
    return web, {cluster.pods[0].name: SctpListener(cluster.pods[0].namespace, family)}


def test_init_to_the_cluster_ip_from_a_pod(cluster, one_pod, family):
    web, listeners = one_pod
    heard = send(cluster.pods[1], listeners, web.cluster_ip[family], 9000)
    assert heard == {cluster.pods[0].name: {"source": cluster.pods[1].address[family], "port": 9899, "checksum": True}}


def test_init_to_the_cluster_ip_from_the_node(cluster, one_pod, family):
    web, listeners = one_pod
    heard = send(cluster.node, listeners, web.cluster_ip[family], 9000)
    assert heard == {cluster.pods[0].name: {"source": BRIDGE[family], "port": 9899, "checksum": True}}


def test_init_to_external_addresses(cluster, one_pod, family):
    web, listeners = one_pod
    targets = [(NODE[family], web.node_port), (web.load_balancer_ip[family], 9000), (web.external_ip[family], 9000)]
    for address, port in targets:
        heard = send(cluster.client, listeners, address, port)
        assert heard == {cluster.pods[0].name: {"source": BRIDGE[family], "port": 9899, "checksum": True}}, address


def test_init_with_the_local_policy_keeps_its_source(cluster, family):
    web = cluster.service(
        81, cluster.pods[:1] + cluster.remote_pods, proto="SCTP", kind="NodePort", target=9899, externalTrafficPolicy="Local"
    )
    heard = send(cluster.client, {"pod": SctpListener(cluster.pods[0].namespace, family)}, NODE[family], web.node_port)
    assert heard == {"pod": {"source": CLIENT[family], "port": 9899, "checksum": True}}


def test_inits_reach_every_pod_one_each(cluster, family):
    web = cluster.service(82, cluster.pods, proto="SCTP", target=9899)
    listeners = listen(cluster, family)
    tags = [next(TAGS) for _ in range(60)]
    for tag in tags:
        cluster.client.agent.call("sctp_send", address=web.cluster_ip[family], port=80, source_port=tag % 60000, tag=tag)

    def heard(tag):
        return [name for name, listener in listeners.items() if listener.wait(tag, 0).result()]

    wait_for(lambda: all(map(heard, tags)), what="each INIT arrives")
    reached = [heard(tag) for tag in tags]
    assert all(len(pods) == 1 for pods in reached), reached
    assert {pods[0] for pods in reached} == set(listeners)

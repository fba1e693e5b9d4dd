# SPDX-License-Identifier: Apache-2.0
"""Cluster IPs: who answers, whom the pods see, and how the load is shared."""

import pytest

from lab.check import evenly_spread, names, refused_at_once, served, sources
from lab.manifests import Service
from lab.topology import BRIDGE


def test_from_pod_reaches_all_pods_with_its_own_address(cluster, family, proto):
    client, *servers = cluster.pods
    web = cluster.service(10, servers, proto=proto)
    answers = client.request(web.cluster_ip[family], web.port, proto, count=60)
    assert served(answers) == names(servers)
    assert sources(answers) == {client.address[family]}


def test_from_node_is_masqueraded(cluster, family, proto):
    web = cluster.service(11, cluster.pods, proto=proto)
    answers = cluster.node.request(web.cluster_ip[family], web.port, proto, count=60)
    assert served(answers) == names(cluster.pods)
    assert sources(answers) == {BRIDGE[family]}


def test_from_outside_the_cluster_is_masqueraded(cluster, family, proto):
    web = cluster.service(12, cluster.pods, proto=proto)
    answers = cluster.client.request(web.cluster_ip[family], web.port, proto, count=30)
    assert sources(answers) == {BRIDGE[family]}


def test_remote_pods_are_reached_and_see_the_pod(cluster, family, proto):
    web = cluster.service(13, cluster.remote_pods, proto=proto)
    answers = cluster.pods[0].request(web.cluster_ip[family], web.port, proto, count=40)
    assert served(answers) == names(cluster.remote_pods)
    assert sources(answers) == {cluster.pods[0].address[family]}


@pytest.mark.parametrize("bridge_netfilter", [True, False], ids=["bridged", "routed"])
def test_hairpin_comes_from_the_node(clusters, family, proto, bridge_netfilter):
    cluster = clusters(bridge_netfilter=bridge_netfilter)
    pod = cluster.pods[0]
    web = cluster.service(14, [pod], proto=proto)
    answers = pod.request(web.cluster_ip[family], web.port, proto, count=10)
    assert served(answers) == {pod.name}
    assert sources(answers) == {BRIDGE[family]}


def test_without_endpoints_is_refused_at_once(cluster, family, proto):
    web = cluster.service(15, [], proto=proto)
    places = (cluster.pods[0], cluster.node, cluster.client)
    for asked in [place.begin(web.cluster_ip[family], web.port, proto, count=3, parallel=3) for place in places]:
        assert refused_at_once(asked.answers(), family, proto)


def test_same_port_in_tcp_and_udp_are_two_services(cluster, family):
    tcp = Service("both-tcp", 16, cluster.pods[:1])
    udp = Service("both-udp", 16, cluster.pods[1:2], proto="UDP")
    cluster.serve(tcp, udp)
    assert served(cluster.node.request(tcp.cluster_ip[family], 80, "TCP", count=5)) == {cluster.pods[0].name}
    assert served(cluster.node.request(udp.cluster_ip[family], 80, "UDP", count=5)) == {cluster.pods[1].name}


@pytest.mark.parametrize("count", [3, 7])
def test_load_is_spread_evenly(clusters, family, count):
    cluster = clusters(pods=7, remote_pods=0)
    pods = cluster.pods[:count]
    web = cluster.service(17, pods)
    answers = cluster.client.request(web.cluster_ip[family], web.port, count=600 * count, parallel=2)
    assert evenly_spread(answers, pods)


def test_datagrams_are_spread_evenly(clusters, family):
    cluster = clusters(pods=7, remote_pods=0)
    pods = cluster.pods[:3]
    web = cluster.service(18, pods, proto="UDP")
    answers = cluster.client.request(web.cluster_ip[family], web.port, "UDP", count=1500, parallel=2)
    assert evenly_spread(answers, pods)

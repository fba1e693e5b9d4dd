# SPDX-License-Identifier: Apache-2.0
"""Who counts as local: masquerading of cluster IP traffic for each local traffic detector."""

import pytest

from lab.check import served, sources
from lab.topology import BRIDGE, CLIENT, NODE, UPLINK

BRIDGE_FLAGS = ("--detect-local-mode=BridgeInterface", "--pod-bridge-interface")
PREFIX_FLAGS = ("--detect-local-mode=InterfaceNamePrefix", "--pod-interface-name-prefix")

DETECTORS = {
    "cluster-cidr": ("--detect-local-mode=ClusterCIDR", "--cluster-cidr=10.244.0.0/16,fd00:10:244::/48"),
    "node-cidr": ("--detect-local-mode=NodeCIDR",),
    "bridge": (*BRIDGE_FLAGS, "cni0"),
    "prefix": (*PREFIX_FLAGS, "cni"),
}
MISSING_THE_POD = {
    "cluster-cidr": ("--cluster-cidr=10.245.0.0/16,fd00:10:245::/48",),
    "bridge": (*BRIDGE_FLAGS, "cni9"),
    "prefix": (*PREFIX_FLAGS, "eth"),
}


def cluster_ip_sources(cluster, place, web, family, proto, **more):
    return sources(place.request(web.cluster_ip[family], web.port, proto, count=8, **more))


@pytest.mark.parametrize("detector", DETECTORS)
def test_pods_keep_their_address_and_others_do_not(clusters, detector, family, proto):
    cluster = clusters(detector=DETECTORS[detector])
    web = cluster.service(70, cluster.pods[1:], proto=proto)
    pod = cluster.pods[0]
    assert cluster_ip_sources(cluster, pod, web, family, proto) == {pod.address[family]}
    assert cluster_ip_sources(cluster, cluster.node, web, family, proto) == {BRIDGE[family]}
    assert cluster_ip_sources(cluster, cluster.client, web, family, proto) == {BRIDGE[family]}


@pytest.mark.parametrize("detector", MISSING_THE_POD)
def test_pods_that_the_detector_does_not_know_are_masqueraded(clusters, detector, family, proto):
    cluster = clusters(detector=MISSING_THE_POD[detector])
    web = cluster.service(71, cluster.pods[1:], proto=proto)
    assert cluster_ip_sources(cluster, cluster.pods[0], web, family, proto) == {BRIDGE[family]}


def test_node_cidr_takes_pods_of_other_nodes_for_strangers(clusters, family, proto):
    cluster = clusters(detector=DETECTORS["node-cidr"])
    web = cluster.service(72, cluster.pods, proto=proto)
    source = cluster.remote_pods[0].address[family]
    assert cluster_ip_sources(cluster, cluster.lab.remote, web, family, proto, sources=[source]) == {BRIDGE[family]}


def test_cluster_cidr_knows_the_pods_of_other_nodes(clusters, family, proto):
    cluster = clusters(detector=DETECTORS["cluster-cidr"])
    web = cluster.service(73, cluster.pods, proto=proto)
    source = cluster.remote_pods[0].address[family]
    assert cluster_ip_sources(cluster, cluster.lab.remote, web, family, proto, sources=[source]) == {source}


def test_without_detector_nobody_is_masqueraded_for_cluster_ips(clusters, family, proto):
    cluster = clusters(detector=())
    web = cluster.service(74, cluster.pods[1:], kind="NodePort", proto=proto)
    assert cluster_ip_sources(cluster, cluster.client, web, family, proto) == {CLIENT[family]}
    assert cluster_ip_sources(cluster, cluster.pods[0], web, family, proto) == {cluster.pods[0].address[family]}
    assert sources(cluster.client.request(NODE[family], web.node_port, proto)) == {BRIDGE[family]}


def test_masquerade_all_hides_everybody(clusters, family, proto):
    cluster = clusters("--masquerade-all")
    web = cluster.service(75, cluster.pods[1:], proto=proto)
    for place in (cluster.pods[0], cluster.node, cluster.client):
        assert cluster_ip_sources(cluster, place, web, family, proto) == {BRIDGE[family]}, place.name


def test_masquerade_all_hides_pods_from_pods_of_other_nodes(clusters, family, proto):
    cluster = clusters("--masquerade-all")
    web = cluster.service(76, cluster.remote_pods, proto=proto)
    assert cluster_ip_sources(cluster, cluster.pods[0], web, family, proto) == {UPLINK[family]}


@pytest.mark.parametrize("detector", DETECTORS)
def test_external_local_short_circuit_follows_the_detector(clusters, detector, family, proto):
    cluster = clusters(detector=DETECTORS[detector])
    web = cluster.service(77, cluster.remote_pods, kind="NodePort", proto=proto, externalTrafficPolicy="Local")
    answers = cluster.pods[0].request(NODE[family], web.node_port, proto, count=4)
    assert served(answers)
    assert sources(answers) == {cluster.pods[0].address[family]}


def test_external_local_without_detector_takes_pods_for_outsiders(clusters, family, proto):
    cluster = clusters(detector=())
    pods = [cluster.pods[1], *cluster.remote_pods]
    web = cluster.service(78, pods, kind="NodePort", proto=proto, externalTrafficPolicy="Local")
    answers = cluster.pods[0].request(NODE[family], web.node_port, proto, count=20)
    assert served(answers) == {cluster.pods[1].name}

# SPDX-License-Identifier: Apache-2.0
"""A tenant asks for the cluster IP of the cluster's DNS: by external IPs or by the load balancer's status of their Service,
written before the DNS or after it. Whatever happens to the node, queries reach the DNS."""

import pytest

from lab.check import errors, served
from lab.manifests import Service
from lab.topology import NODE

DNS = "10.96.0.190", "fd00:10:96::be"


class Made:
    """A Service in a namespace of its own, made at a time."""

    def __init__(self, namespace, service, created, ingress=()):
        self.namespace, self.service, self.created, self.ingress = namespace, service, created, ingress

    def objects(self):
        made = self.service.objects()
        for thing in made:
            thing["metadata"]["namespace"] = self.namespace
            thing["metadata"]["creationTimestamp"] = self.created
        if self.ingress:
            made[0]["status"] = {"loadBalancer": {"ingress": [{"ip": ip} for ip in self.ingress]}}
        return made


def dns(cluster, pods=None):
    pods = cluster.pods[:1] if pods is None else pods
    return Made("kube-system", Service("dns", 190, pods, proto="UDP", port=53), "2026-06-01T00:00:00Z")


def thief(cluster, way, family):
    """Older than the DNS, and first by name; a name for each test, since the same thing is logged once in ten seconds."""
    name, kind = f"evil-{way.lower()}-{family}", "ClusterIP" if way == "externalIPs" else "LoadBalancer"
    spec = {"externalIPs": list(DNS)} if way == "externalIPs" else {}
    return Made("aaa", Service(name, 191, cluster.pods[1:2], proto="UDP", port=53, kind=kind, **spec), "2026-01-01T00:00:00Z",
                () if spec else DNS)


def check(cluster, family):
    address = DNS[family == 6]
    for place in (cluster.pods[2], cluster.node):
        assert served(place.request(address, 53, "UDP", count=8)) == {cluster.pods[0].name}


@pytest.mark.parametrize("flags", [(), ("--iptables-service-index",)], ids=["plain", "index"])
@pytest.mark.parametrize("way", ["externalIPs", "status"])
def test_queries_reach_the_dns_whatever_happens(clusters, mode, family, way, flags):
    if flags and mode != "iptables":
        return  # there is no index
    cluster = clusters(*flags)
    since = len(cluster.daemon.log.lines)
    evil = thief(cluster, way, family)
    cluster.serve(evil)
    cluster.serve(evil, dns(cluster))  # after the thief
    check(cluster, family)
    cluster.daemon.log.wait_line(f'"A Service asks for the cluster IP of another one" .*destination="{DNS[family == 6]}" '
                                 f'service="aaa/{evil.service.name}" owner="kube-system/dns"', since)
    cluster.serve(dns(cluster))
    cluster.serve(dns(cluster), evil)  # before it
    check(cluster, family)
    cluster.daemon.stop()
    cluster.daemon.start()
    check(cluster, family)
    cluster.daemon.stop()
    cluster.node.run("nft", "flush", "ruleset")  # as after a reboot
    cluster.daemon.start()
    check(cluster, family)
    assert served(cluster.pods[2].request(evil.service.cluster_ip[family], 53, "UDP")) == {cluster.pods[1].name}


@pytest.mark.parametrize("way", ["externalIPs", "status"])
def test_a_dns_without_endpoints_is_not_answered_for_by_others(cluster, family, way):
    evil = thief(cluster, way, family)
    cluster.serve(dns(cluster, []), evil)
    assert errors(cluster.pods[2].request(DNS[family == 6], 53, "UDP")) == {"refused"}
    cluster.serve(dns(cluster), evil)
    check(cluster, family)
    cluster.serve(evil)  # nobody's cluster IP any more: it is the thief's to have
    assert served(cluster.pods[2].request(DNS[family == 6], 53, "UDP")) == {cluster.pods[1].name}


def test_the_nodes_own_address_is_served_and_told(cluster, family):
    since = len(cluster.daemon.log.lines)
    own = Service(f"own-{family}", 192, cluster.pods[:1], port=9443, externalIPs=[NODE[4], NODE[6]])
    cluster.serve(own)
    assert served(cluster.client.request(NODE[family], 9443)) == {cluster.pods[0].name}
    cluster.daemon.log.wait_line(f'"A Service asks for an address of this node, and has it" .*destination="{NODE[family]}" '
                                 f'service="default/{own.name}" owner="this node"', since)

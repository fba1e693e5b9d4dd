# SPDX-License-Identifier: Apache-2.0
"""--iptables-service-index: the rules are found by another way, and do the same."""

import re

import pytest

from lab.check import errors, names, served
from lab.daemon import save
from lab.manifests import Service
from lab.topology import NODE

GONE = {"count": 3, "parallel": 3, "timeout": 0.3}
INDEX = re.compile(r"^:(KUBE-SVC-IX-\S+)", re.MULTILINE)


pytestmark = pytest.mark.only("iptables")  # is about chains of iptables


@pytest.fixture(params=["netlink", "restore"])
def indexed(clusters, request):
    return clusters("--iptables-service-index", f"--iptables-writer={request.param}")


def crowd(cluster, proto, numbers=range(100, 150)):
    """Enough for a tree; every fifth one can be reached from outside."""
    return [Service(f"s{number}", number, cluster.pods[:2], proto=proto, kind="NodePort" if number % 5 else "LoadBalancer",
                    external=number % 5 == 0) for number in numbers]


def chains(cluster, family):
    return INDEX.findall(save(cluster.lab, family, "nat"))


def test_every_address_leads_to_its_pods(indexed, family, proto):
    services = crowd(indexed, proto)
    indexed.serve(*services)
    assert len(chains(indexed, family)) > 3
    for service in services[::7]:
        assert served(indexed.pods[2].request(service.cluster_ip[family], service.port, proto, count=6)) <= names(indexed.pods[:2])
    outer = services[0]
    for address in (outer.load_balancer_ip, outer.external_ip):
        assert served(indexed.client.request(address[family], outer.port, proto, count=6)) <= names(indexed.pods[:2])


def test_what_no_leaf_knows_goes_on_to_the_node_ports(indexed, family, proto):
    services = crowd(indexed, proto)
    indexed.serve(*services)
    assert served(indexed.client.request(NODE[family], services[1].node_port, proto, count=6)) <= names(indexed.pods[:2])


def test_the_tree_follows_changes_and_goes_when_few_are_left(indexed, family, proto):
    services = crowd(indexed, proto)
    indexed.serve(*services)
    before = set(chains(indexed, family))
    left = services[:3]
    left[0].pods = indexed.pods[2:3]
    indexed.serve(*left)
    assert len(chains(indexed, family)) < len(before)
    assert served(indexed.pods[0].request(left[0].cluster_ip[family], left[0].port, proto)) == names(indexed.pods[2:3])
    gone = services[10]
    assert errors(indexed.pods[0].request(gone.cluster_ip[family], gone.port, proto, **GONE))
    indexed.serve(*services)
    assert served(indexed.pods[0].request(gone.cluster_ip[family], gone.port, proto, count=6)) <= names(indexed.pods)

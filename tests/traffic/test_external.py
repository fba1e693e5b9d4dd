# SPDX-License-Identifier: Apache-2.0
"""Node ports, load balancer IPs and external IPs, with externalTrafficPolicy Cluster."""

import pytest

from lab.check import errors, names, refused_at_once, served, sources
from lab.manifests import Service
from lab.topology import BRIDGE, CLIENT, NODE, UPLINK

LOOPBACK = {4: "127.0.0.1", 6: "::1"}
DROPPED = {"count": 3, "parallel": 3, "timeout": 0.3}


def test_node_port_from_outside_is_masqueraded(cluster, family, proto):
    web = cluster.service(20, cluster.pods, kind="NodePort", proto=proto)
    answers = cluster.client.request(NODE[family], web.node_port, proto, count=60)
    assert served(answers) == names(cluster.pods)
    assert sources(answers) == {BRIDGE[family]}


EVERYWHERE = "--nodeport-addresses=0.0.0.0/0,::/0"


def test_node_port_from_the_node_on_each_of_its_addresses(clusters, mode, family, proto):
    cluster = clusters() if mode == "iptables" else clusters(EVERYWHERE)
    web = cluster.service(21, cluster.pods, kind="NodePort", proto=proto)
    for address in (NODE[family], BRIDGE[family], UPLINK[family]):
        answers = cluster.node.request(address, web.node_port, proto, count=20)
        assert sources(answers) == {BRIDGE[family]}, address


@pytest.mark.only("nftables")  # iptables mode answers on all addresses: the test above
def test_node_port_in_nftables_mode_is_on_the_primary_address_unless_told_otherwise(cluster, family, proto):
    web = cluster.service(33, cluster.pods, kind="NodePort", proto=proto)
    assert served(cluster.node.request(NODE[family], web.node_port, proto, count=5))
    for address in (BRIDGE[family], UPLINK[family], LOOPBACK[family]):
        assert errors(cluster.node.request(address, web.node_port, proto)) == {"refused"}, address


def test_node_port_from_a_pod(cluster, family, proto):
    web = cluster.service(22, cluster.pods[1:], kind="NodePort", proto=proto)
    answers = cluster.pods[0].request(NODE[family], web.node_port, proto, count=40)
    assert served(answers) == names(cluster.pods[1:])
    assert sources(answers) == {BRIDGE[family]}


def test_node_port_on_localhost_works_for_ipv4_only(cluster, mode, family, proto):
    web = cluster.service(23, cluster.pods, kind="NodePort", proto=proto)
    answers = cluster.node.request(LOOPBACK[family], web.node_port, proto, count=60, parallel=20)
    if family == 4 and mode == "iptables":
        assert served(answers) == names(cluster.pods)
        assert sources(answers) == {BRIDGE[4]}
    else:
        assert errors(answers) == {"refused"}


def test_node_port_on_localhost_can_be_turned_off(clusters, proto):
    cluster = clusters("--iptables-localhost-nodeports=false")
    web = cluster.service(24, cluster.pods, kind="NodePort", proto=proto)
    assert errors(cluster.node.request("127.0.0.1", web.node_port, proto)) == {"refused"}
    assert served(cluster.node.request(NODE[4], web.node_port, proto))
    assert served(cluster.client.request(NODE[4], web.node_port, proto))


def test_node_port_only_on_chosen_addresses(clusters, family, proto):
    cluster = clusters("--nodeport-addresses=192.0.2.0/24,2001:db8:2::/64")
    web = cluster.service(25, cluster.pods, kind="NodePort", proto=proto)
    assert served(cluster.client.request(NODE[family], web.node_port, proto, count=5))
    assert served(cluster.node.request(NODE[family], web.node_port, proto, count=5))
    for address in (UPLINK[family], BRIDGE[family], LOOPBACK[family]):
        assert errors(cluster.node.request(address, web.node_port, proto)) == {"refused"}, address
    assert errors(cluster.client.request(UPLINK[family], web.node_port, proto)) == {"refused"}


def test_load_balancer_ip_from_everywhere(cluster, family, proto):
    web = cluster.service(26, cluster.pods, kind="LoadBalancer", proto=proto)
    for place in (cluster.client, cluster.node, cluster.pods[0]):
        answers = place.request(web.load_balancer_ip[family], web.port, proto, count=30)
        assert sources(answers) == {BRIDGE[family]}, place.name
    assert served(cluster.client.request(NODE[family], web.node_port, proto, count=5))


def test_external_ip_from_everywhere(cluster, family, proto):
    web = cluster.service(27, cluster.pods, external=True, proto=proto)
    for place in (cluster.client, cluster.node, cluster.pods[0]):
        answers = place.request(web.external_ip[family], web.port, proto, count=60)
        assert served(answers) == names(cluster.pods), place.name
        assert sources(answers) == {BRIDGE[family]}, place.name


def test_source_ranges_let_in_and_keep_out(cluster, family, proto):
    ranges = ["192.0.2.64/26", "2001:db8:2::100/120"]
    web = cluster.service(28, cluster.pods, kind="LoadBalancer", proto=proto, loadBalancerSourceRanges=ranges)
    address = web.load_balancer_ip[family]
    inside, outside = CLIENT[family], cluster.lab.distant(family, 9)
    assert served(cluster.client.request(address, web.port, proto, count=5, sources=[inside]))
    assert errors(cluster.client.request(address, web.port, proto, sources=[outside], **DROPPED)) == {"timeout"}
    assert errors(cluster.node.request(address, web.port, proto, **DROPPED)) <= {"timeout", "prohibited"}
    # They guard the load balancer IP alone.
    assert served(cluster.client.request(NODE[family], web.node_port, proto, count=5, sources=[outside]))
    assert served(cluster.client.request(web.cluster_ip[family], web.port, proto, count=5, sources=[outside]))


def test_source_ranges_that_hold_the_node_let_it_in(cluster, family, proto):
    ranges = ["192.0.2.11/32", "2001:db8:2::11/128"]
    web = cluster.service(29, cluster.pods, kind="LoadBalancer", proto=proto, loadBalancerSourceRanges=ranges)
    assert served(cluster.node.request(web.load_balancer_ip[family], web.port, proto, count=5))
    answers = cluster.client.request(web.load_balancer_ip[family], web.port, proto, **DROPPED)
    assert errors(answers) == {"timeout"}


def test_source_range_of_everything_lets_everybody_in(cluster, family):
    ranges = ["0.0.0.0/0", "::/0"]
    web = cluster.service(30, cluster.pods, kind="LoadBalancer", loadBalancerSourceRanges=ranges)
    source = cluster.lab.distant(family, 10)
    assert served(cluster.client.request(web.load_balancer_ip[family], web.port, sources=[source], count=3))


def test_without_endpoints_is_refused_at_once(cluster, family, proto):
    web = cluster.service(31, [], kind="LoadBalancer", external=True, proto=proto)
    targets = [(web.load_balancer_ip[family], web.port), (web.external_ip[family], web.port), (NODE[family], web.node_port)]
    places = (cluster.client, cluster.pods[0])
    for asked in [place.begin(*target, proto, count=2, parallel=2) for place in places for target in targets]:
        assert refused_at_once(asked.answers(), family, proto)


def test_load_balancer_in_proxy_mode_is_left_alone(cluster, family):
    class Proxied(Service):
        def service(self):
            made = super().service()
            for ingress in made["status"]["loadBalancer"]["ingress"]:
                ingress["ipMode"] = "Proxy"
            return made

    web = Proxied("proxied", 32, cluster.pods, kind="LoadBalancer")
    cluster.serve(web)
    assert errors(cluster.node.request(web.load_balancer_ip[family], web.port, **DROPPED))
    assert served(cluster.client.request(NODE[family], web.node_port, count=5))


@pytest.mark.only("iptables")  # nftables mode opens no node ports on localhost and leaves route_localnet alone
def test_localhost_node_ports_open_no_other_door_to_localhost(clusters):
    """route_localnet would let neighbours reach what the node serves on 127.0.0.1 alone; KUBE-FIREWALL forbids it."""
    cluster = clusters(pods=1, remote_pods=0)
    (pod,) = cluster.pods
    cluster.node.agent.call("serve_pod", pod="private", addresses=["127.0.0.1"], ports=[9999])
    pod.sysctl(net__ipv4__conf__all__route_localnet=1)
    pod.ip("addr del 127.0.0.1/8 dev lo", f"route add 127.0.0.1/32 via {BRIDGE[4]}")
    assert errors(pod.request("127.0.0.1", 9999, **DROPPED)) == {"timeout"}
    # It is that rule alone which stands between them.
    cluster.daemon.stop()  # it would put the rule back
    cluster.node.run("iptables", "-F", "KUBE-FIREWALL")
    assert served(pod.request("127.0.0.1", 9999)) == {"private"}
    cluster.daemon.start()
    assert errors(pod.request("127.0.0.1", 9999, **DROPPED)) == {"timeout"}

# SPDX-License-Identifier: Apache-2.0
"""Traffic through changes, restarts and kills: what should work goes on working, what should end ends."""

import time

import pytest

from lab import iptables_listing
from lab.check import describe, errors, names, served
from lab.daemon import save
from lab.manifests import Service
from lab.topology import NODE

GONE = {"count": 3, "parallel": 3, "timeout": 0.3}


def started_after(answers, moment):
    later = [answer for answer in answers if answer.start > moment]
    assert later, "the load made no request after the change"
    return later


@pytest.fixture
def load(loads, proto):
    return lambda place, address, port: loads(place, address, port, proto)


def test_a_pod_leaves_and_comes_back_without_a_failed_request(cluster, load, family, proto):
    web = Service("shop", 90, cluster.pods, proto=proto, kind="NodePort")
    cluster.serve(web)
    inner = load(cluster.pods[0], web.cluster_ip[family], web.port)
    outer = load(cluster.client, NODE[family], web.node_port)
    leaving = web.pods.pop()
    cluster.serve(web)
    left = time.monotonic()
    inner.wait(2), outer.wait(2)
    leaving.stop()
    inner.wait(50), outer.wait(50)
    for one in (inner.so_far(), outer.so_far()):
        assert leaving.name not in served(started_after(one, left))
    leaving.start()
    web.pods.append(leaving)
    cluster.serve(web)
    back = time.monotonic()
    inner.wait(100), outer.wait(100)
    for one in (inner.stop(), outer.stop()):
        assert served(one) == names(cluster.pods)
        assert leaving.name in served(started_after(one, back))


def test_a_deleted_service_is_no_longer_served(cluster, family, proto):
    web = Service("deleted", 91, cluster.pods, proto=proto, kind="LoadBalancer")
    cluster.serve(web)
    targets = [(web.cluster_ip[family], web.port), (web.load_balancer_ip[family], web.port), (NODE[family], web.node_port)]
    for target in targets:
        assert served(cluster.pods[0].request(*target, proto, count=3))
    cluster.serve()
    for asked in [cluster.pods[0].begin(*target, proto, **GONE) for target in targets]:
        assert errors(asked.answers())


def test_a_new_type_brings_and_takes_the_node_port(cluster, family, proto):
    web = Service("typed", 92, cluster.pods, proto=proto)
    cluster.serve(web)
    assert errors(cluster.client.request(NODE[family], web.node_port, proto)) == {"refused"}
    web.kind = "NodePort"
    cluster.serve(web)
    assert served(cluster.client.request(NODE[family], web.node_port, proto, count=5))
    web.kind = "LoadBalancer"
    cluster.serve(web)
    assert served(cluster.client.request(web.load_balancer_ip[family], web.port, proto, count=5))
    web.kind = "ClusterIP"
    cluster.serve(web)
    assert errors(cluster.client.request(NODE[family], web.node_port, proto)) == {"refused"}
    assert errors(cluster.pods[0].request(web.load_balancer_ip[family], web.port, proto, **GONE))
    assert served(cluster.pods[0].request(web.cluster_ip[family], web.port, proto, count=5))


def test_an_external_name_is_not_served(cluster, family, proto):
    web = Service("named", 93, cluster.pods, proto=proto)
    cluster.serve(web)
    assert served(cluster.pods[0].request(web.cluster_ip[family], web.port, proto))
    web.kind = "ExternalName"
    web.spec["externalName"] = "shop.example"
    cluster.serve(web)
    assert errors(cluster.pods[0].request(web.cluster_ip[family], web.port, proto, **GONE))


def test_new_port_target_and_cluster_ip(cluster, family, proto):
    web = Service("moving", 94, cluster.pods, proto=proto)
    cluster.serve(web)
    old = web.cluster_ip[family]
    web.port, web.target = 81, 80
    cluster.serve(web)
    assert served(cluster.pods[0].request(old, 81, proto, count=5))
    assert errors(cluster.pods[0].request(old, 80, proto, **GONE))
    web.cluster_ip = Service("x", 95).cluster_ip
    cluster.serve(web)
    assert served(cluster.pods[0].request(web.cluster_ip[family], 81, proto, count=5))
    assert errors(cluster.pods[0].request(old, 81, proto, **GONE))


def test_endpoints_come_and_go_and_come(cluster, family, proto):
    web = Service("blinking", 96, [], proto=proto)
    address = web.cluster_ip[family]
    for pods in ([], cluster.pods[1:2], [], cluster.pods[1:], cluster.remote_pods):
        web.pods = pods
        cluster.serve(web)
        answers = cluster.pods[0].request(address, web.port, proto, count=20, parallel=20)
        if pods:
            assert served(answers) <= names(pods)
        else:
            assert errors(answers) == {"refused"}


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_traffic_goes_on_without_the_daemon_and_through_its_return(cluster, load, end, family, proto):
    web = Service("steady", 97, cluster.pods, proto=proto, kind="NodePort")
    cluster.serve(web)
    inner = load(cluster.pods[0], web.cluster_ip[family], web.port)
    outer = load(cluster.client, NODE[family], web.node_port)
    code = getattr(cluster.daemon, end)()
    assert code == (0 if end == "stop" else -9)
    inner.wait(30), outer.wait(30)
    cluster.daemon.start()
    inner.wait(30), outer.wait(30)
    for one in (inner.stop(), outer.stop()):
        assert served(one) == names(cluster.pods), describe(one)


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_what_changed_while_the_daemon_was_away_is_in_force_on_its_return(cluster, end, family, proto):
    kept = Service("kept", 98, cluster.pods, proto=proto)
    gone = Service("gone", 99, cluster.pods, proto=proto)
    new = Service("new", 100, cluster.pods[1:], proto=proto)
    cluster.serve(kept, gone)
    getattr(cluster.daemon, end)()
    kept.pods = cluster.pods[:1]
    cluster.daemon.write_services(kept, new)
    cluster.daemon.start()
    assert served(cluster.node.request(kept.cluster_ip[family], 80, proto, count=40)) == names(cluster.pods[:1])
    assert served(cluster.node.request(new.cluster_ip[family], 80, proto, count=40)) == names(cluster.pods[1:])
    assert errors(cluster.pods[0].request(gone.cluster_ip[family], 80, proto, **GONE))


def test_an_open_connection_outlives_changes_and_restarts(cluster, family, proto):
    web = Service("long", 101, cluster.pods, proto=proto)
    cluster.serve(web)
    talk = cluster.pods[0].talk(web.cluster_ip[family], web.port, proto)
    first = talk.ask()
    cluster.serve(web, Service("unrelated", 102, cluster.pods))
    cluster.daemon.kill()
    cluster.daemon.start()
    second = talk.ask()
    talk.close()
    assert served([first, second]) == {first.pod}
    assert first.port == second.port


@pytest.mark.only("iptables")  # compares iptables-save
def test_a_restart_changes_no_rule(cluster, family):
    cluster.serve(Service("same", 103, cluster.pods, kind="LoadBalancer", affinity=30))
    before = rules(cluster, family)
    cluster.daemon.stop()
    assert rules(cluster, family) == before
    cluster.daemon.start()
    assert rules(cluster, family) == before


def rules(cluster, family):
    return iptables_listing.lines(save(cluster.lab, family))

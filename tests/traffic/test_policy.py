# SPDX-License-Identifier: Apache-2.0
"""Which endpoints are chosen: policy Local, endpoints that are about to end, hints for zones and nodes."""

from lab.check import errors, names, refused_at_once, served, sources
from lab.manifests import ZONE, Endpoint
from lab.topology import BRIDGE, CLIENT, NODE

DROPPED = {"count": 3, "parallel": 3, "timeout": 0.3}
EXTERNAL_LOCAL = {"externalTrafficPolicy": "Local", "kind": "LoadBalancer", "external": True}


def external_targets(web, family):
    return [
        (NODE[family], web.node_port),
        (web.load_balancer_ip[family], web.port),
        (web.external_ip[family], web.port),
    ]


def test_external_local_keeps_the_source_address_and_stays_on_the_node(cluster, family, proto):
    local = cluster.pods[:2]
    web = cluster.service(40, local + cluster.remote_pods, proto=proto, **EXTERNAL_LOCAL)
    for address, port in external_targets(web, family):
        answers = cluster.client.request(address, port, proto, count=30)
        assert served(answers) == names(local), address
        assert sources(answers) == {CLIENT[family]}, address


def test_external_local_without_local_endpoint_is_dropped(cluster, family, proto):
    web = cluster.service(41, cluster.remote_pods, proto=proto, **EXTERNAL_LOCAL)
    for asked in [cluster.client.begin(*target, proto, **DROPPED) for target in external_targets(web, family)]:
        assert errors(asked.answers()) == {"timeout"}


def test_external_local_takes_pods_and_the_node_to_all_endpoints(cluster, family, proto):
    web = cluster.service(42, cluster.remote_pods, proto=proto, **EXTERNAL_LOCAL)
    for address, port in external_targets(web, family):
        answers = cluster.pods[0].request(address, port, proto, count=30)
        assert served(answers) == names(cluster.remote_pods), address
        assert sources(answers) == {cluster.pods[0].address[family]}, address
        answers = cluster.node.request(address, port, proto, count=30)
        assert served(answers) == names(cluster.remote_pods), address


def test_external_local_node_traffic_is_masqueraded(cluster, family, proto):
    web = cluster.service(43, cluster.pods, proto=proto, **EXTERNAL_LOCAL)
    answers = cluster.node.request(NODE[family], web.node_port, proto, count=10)
    assert sources(answers) == {BRIDGE[family]}


def test_external_local_leaves_the_cluster_ip_alone(cluster, family, proto):
    pods = cluster.pods[1:2] + cluster.remote_pods
    web = cluster.service(44, pods, proto=proto, **EXTERNAL_LOCAL)
    answers = cluster.pods[0].request(web.cluster_ip[family], web.port, proto, count=60)
    assert served(answers) == names(pods)


def test_external_local_without_any_endpoint_is_refused(cluster, family, proto):
    web = cluster.service(45, [], proto=proto, **EXTERNAL_LOCAL)
    for asked in [cluster.client.begin(*target, proto, count=2, parallel=2) for target in external_targets(web, family)]:
        assert refused_at_once(asked.answers(), family, proto)


def test_internal_local_stays_on_the_node(cluster, family, proto):
    web = cluster.service(46, cluster.pods[1:] + cluster.remote_pods, proto=proto, internalTrafficPolicy="Local")
    for place in (cluster.pods[0], cluster.node):
        answers = place.request(web.cluster_ip[family], web.port, proto, count=40)
        assert served(answers) == names(cluster.pods[1:]), place.name


def test_internal_local_without_local_endpoint_is_dropped(cluster, family, proto):
    web = cluster.service(47, cluster.remote_pods, proto=proto, internalTrafficPolicy="Local")
    assert errors(cluster.pods[0].request(web.cluster_ip[family], web.port, proto, **DROPPED)) == {"timeout"}
    assert errors(cluster.node.request(web.cluster_ip[family], web.port, proto, **DROPPED)) <= {"timeout", "prohibited"}


def test_internal_local_says_nothing_about_node_ports(cluster, family, proto):
    web = cluster.service(48, cluster.remote_pods, proto=proto, kind="NodePort", internalTrafficPolicy="Local")
    answers = cluster.client.request(NODE[family], web.node_port, proto, count=40)
    assert served(answers) == names(cluster.remote_pods)


def test_terminating_endpoints_serve_when_nothing_else_does(cluster, family, proto):
    pods = [Endpoint(pod, "terminating") for pod in cluster.pods[1:]] + [Endpoint(cluster.remote_pods[0], "gone")]
    web = cluster.service(49, pods, proto=proto)
    answers = cluster.pods[0].request(web.cluster_ip[family], web.port, proto, count=30)
    assert served(answers) == names(cluster.pods[1:])


def test_terminating_endpoints_rest_when_another_is_ready(cluster, family, proto):
    pods = [cluster.pods[1], Endpoint(cluster.pods[2], "terminating"), Endpoint(cluster.remote_pods[0], "notready")]
    web = cluster.service(50, pods, proto=proto)
    answers = cluster.pods[0].request(web.cluster_ip[family], web.port, proto, count=30)
    assert served(answers) == {cluster.pods[1].name}


def test_terminating_fallback_of_external_local_is_for_local_endpoints_alone(cluster, family, proto):
    local = cluster.pods[0]
    pods = [Endpoint(local, "terminating")] + cluster.remote_pods
    web = cluster.service(51, pods, proto=proto, **EXTERNAL_LOCAL)
    for address, port in external_targets(web, family):
        answers = cluster.client.request(address, port, proto, count=20)
        assert served(answers) == {local.name}, address
        assert sources(answers) == {CLIENT[family]}, address
    answers = cluster.pods[1].request(web.cluster_ip[family], web.port, proto, count=30)
    assert served(answers) == names(cluster.remote_pods)


def test_endpoints_that_are_not_ready_are_refused_like_none(cluster, family, proto):
    pods = [Endpoint(cluster.pods[0], "notready"), Endpoint(cluster.pods[1], "gone")]
    web = cluster.service(52, pods, proto=proto)
    answers = cluster.pods[2].request(web.cluster_ip[family], web.port, proto, count=2, parallel=2)
    assert refused_at_once(answers, family, proto)


def hinted(cluster, hints):
    return [Endpoint(pod, **hint) for pod, hint in zip(cluster.pods, hints)]


def test_zone_hints_keep_traffic_in_the_zone(cluster, family, proto):
    pods = hinted(cluster, [{"zones": [ZONE]}, {"zones": ["zone-2"]}, {"zones": ["zone-3", ZONE]}])
    web = cluster.service(53, pods, proto=proto)
    answers = cluster.node.request(web.cluster_ip[family], web.port, proto, count=40)
    assert served(answers) == {cluster.pods[0].name, cluster.pods[2].name}


def test_zone_hints_are_ignored_when_one_is_missing(cluster, family, proto):
    web = cluster.service(54, hinted(cluster, [{"zones": [ZONE]}, {"zones": ["zone-2"]}, {}]), proto=proto)
    answers = cluster.node.request(web.cluster_ip[family], web.port, proto, count=60)
    assert served(answers) == names(cluster.pods)


def test_zone_hints_are_ignored_when_none_names_this_zone(cluster, family, proto):
    pods = hinted(cluster, [{"zones": ["zone-2"]}, {"zones": ["zone-2"]}, {"zones": ["zone-3"]}])
    web = cluster.service(55, pods, proto=proto)
    answers = cluster.node.request(web.cluster_ip[family], web.port, proto, count=60)
    assert served(answers) == names(cluster.pods)


def test_node_hints_win_over_zone_hints(cluster, family, proto):
    elsewhere = {"zones": [ZONE], "nodes": ["node2"]}
    hints = [elsewhere, {"zones": ["zone-2"], "nodes": ["node1"]}, elsewhere]
    web = cluster.service(56, hinted(cluster, hints), proto=proto)
    answers = cluster.node.request(web.cluster_ip[family], web.port, proto, count=30)
    assert served(answers) == {cluster.pods[1].name}

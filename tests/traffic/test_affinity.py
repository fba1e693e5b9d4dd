# SPDX-License-Identifier: Apache-2.0
"""sessionAffinity ClientIP: a client keeps its pod, for as long as it was told to.

The client namespace can send from any address of a network, so one test has many clients: that all of forty
keep their pods by chance happens once in 3^40 runs.
"""

from lab.check import names, served
from lab.manifests import Service
from lab.topology import NODE, wait_for

CLIENTS = range(1, 41)


def addresses(cluster, family, hosts=CLIENTS):
    return [cluster.lab.distant(family, host) for host in hosts]


def first_pods(cluster, family, address, port, proto, hosts=CLIENTS):
    """Which pod each client got, all of them having been served."""
    clients = addresses(cluster, family, hosts)
    answers = cluster.client.request(address, port, proto, sources=clients)
    served(answers)
    return dict(zip(clients, (answer.pod for answer in answers)))


def sticks(cluster, address, port, proto, chosen, count=5):
    clients = list(chosen)
    answers = cluster.client.request(address, port, proto, sources=clients, count=count)
    served(answers)
    return all(answer.pod == chosen[clients[i // count]] for i, answer in enumerate(answers))


def targets(web, family):
    return [
        (web.cluster_ip[family], web.port),
        (NODE[family], web.node_port),
        (web.load_balancer_ip[family], web.port),
    ]


def test_clients_keep_their_pods_on_every_address(cluster, family, proto):
    web = cluster.service(60, cluster.pods, kind="LoadBalancer", proto=proto, affinity=10800)
    chosen = first_pods(cluster, family, *targets(web, family)[0], proto)
    assert set(chosen.values()) == names(cluster.pods)
    for address, port in targets(web, family):
        assert sticks(cluster, address, port, proto, chosen), address


def test_affinity_holds_with_the_local_policy(cluster, family, proto):
    web = cluster.service(
        61, cluster.pods + cluster.remote_pods, kind="LoadBalancer", proto=proto, affinity=600, externalTrafficPolicy="Local"
    )
    chosen = first_pods(cluster, family, NODE[family], web.node_port, proto)
    assert set(chosen.values()) == names(cluster.pods)
    assert sticks(cluster, NODE[family], web.node_port, proto, chosen)
    assert sticks(cluster, web.load_balancer_ip[family], web.port, proto, chosen)


def test_a_pod_keeps_its_pod(cluster, family, proto):
    web = cluster.service(62, cluster.pods, proto=proto, affinity=10800)
    for pod in cluster.pods:
        assert len(served(pod.request(web.cluster_ip[family], web.port, proto, count=20))) == 1


def test_affinity_survives_unrelated_changes(cluster, family, proto):
    web = Service("kept", 63, cluster.pods, kind="LoadBalancer", proto=proto, affinity=10800)
    cluster.serve(web)
    chosen = first_pods(cluster, family, web.cluster_ip[family], web.port, proto)
    cluster.serve(web, Service("another", 64, cluster.pods[:1]))
    assert sticks(cluster, web.cluster_ip[family], web.port, proto, chosen)
    cluster.serve(web)
    assert sticks(cluster, web.cluster_ip[family], web.port, proto, chosen)


def test_affinity_survives_a_new_endpoint_and_a_restart(cluster, family, proto):
    web = Service("growing", 65, cluster.pods[:2], proto=proto, affinity=10800)
    cluster.serve(web)
    chosen = first_pods(cluster, family, web.cluster_ip[family], web.port, proto)
    web.pods.append(cluster.pods[2])
    cluster.serve(web)
    assert sticks(cluster, web.cluster_ip[family], web.port, proto, chosen)
    cluster.daemon.stop()
    cluster.daemon.start()
    assert sticks(cluster, web.cluster_ip[family], web.port, proto, chosen)


def test_clients_of_a_pod_that_left_move_and_stay_where_they_are(cluster, family, proto):
    web = Service("leaving", 66, cluster.pods, proto=proto, affinity=10800)
    cluster.serve(web)
    chosen = first_pods(cluster, family, web.cluster_ip[family], web.port, proto)
    gone = web.pods.pop().name
    cluster.serve(web)
    again = first_pods(cluster, family, web.cluster_ip[family], web.port, proto)
    assert {client: pod for client, pod in again.items() if chosen[client] != gone} == {
        client: pod for client, pod in chosen.items() if pod != gone
    }
    assert gone not in again.values()
    assert sticks(cluster, web.cluster_ip[family], web.port, proto, again)


def test_affinity_expires(cluster, family, proto):
    """Asking renews, so each client asks only twice: early it must find its pod again, late it need not."""
    timeout = 1
    web = cluster.service(67, cluster.pods, proto=proto, affinity=timeout)
    target = (web.cluster_ip[family], web.port, proto)
    clients = addresses(cluster, family, range(1, 91))
    waiting = list(zip(clients, cluster.client.request(*target, sources=clients)))
    served([first for _client, first in waiting])

    def one_that_moved():
        assert waiting, "no client ever left its pod"
        client, first = waiting.pop(0)
        second = cluster.client.ask(*target, source=client)
        served([second])
        return second.pod != first.pod and second.start + second.seconds - first.start

    assert wait_for(one_that_moved, step=0.03) >= timeout * 0.99

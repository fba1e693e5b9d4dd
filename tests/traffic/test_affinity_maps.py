# SPDX-License-Identifier: Apache-2.0
"""nftables mode: each port of a Service with ClientIP affinity remembers its own clients, as many as --affinity-clients says.

A tenant whose clients are too many loses by that, and no other does.
"""

import re

import pytest

from lab import scrape
from lab.check import names, served
from lab.manifests import Service
from lab.topology import wait_for

ROOM = 50
FULL = "portolan_affinity_full_service_ports"
TABLE = {4: ("ip", "kube-proxy"), 6: ("ip6", "kube-proxy")}
#: The default of --affinity-clients.
MANY = 65536


@pytest.fixture(scope="module", params=["nftables"])
def mode(request):
    return request.param


@pytest.fixture
def small(clusters):
    return clusters(f"--affinity-clients={ROOM}")


def addresses(cluster, family, hosts):
    return [cluster.lab.distant(family, host) for host in hosts]


def pods_of(cluster, web, family, clients):
    answers = cluster.client.request(web.cluster_ip[family], web.port, sources=clients)
    served(answers)
    return dict(zip(clients, (answer.pod for answer in answers)))


def maps(cluster, family):
    """{comment: name} of the maps of clients."""
    text = cluster.node.run("nft", "list", "table", *TABLE[family])
    return {comment: name for name, comment in re.findall(r'map (clients-\d+) \{[^}]*?comment "([^"]*)"', text)}


def map_of(cluster, web, family):
    return next(name for comment, name in maps(cluster, family).items() if comment.startswith(f"{web.cluster_ip[family]} "))


def remembered(cluster, web, family):
    text = cluster.node.run("nft", "list", "map", *TABLE[family], map_of(cluster, web, family))
    return len(re.findall(r" expires ", text))


def full_ports(cluster, family):
    values = scrape.values(scrape.page_of(cluster.node))
    return values.get((FULL, (("ip_family", f"IPv{family}"),)))


def test_a_service_with_too_many_clients_fills_its_own_map(small, family):
    """All of its clients are served, and those of others keep their pods, also while an endpoint leaves and over a restart."""
    quiet = Service("quiet", 210, small.pods, affinity=10800)
    loud = Service("loud", 211, small.pods, affinity=10800)
    small.serve(quiet, loud)
    before = pods_of(small, quiet, family, addresses(small, family, range(1, 46)))
    assert set(before.values()) == names(small.pods)
    since = len(small.daemon.log.lines)
    pods_of(small, loud, family, addresses(small, family, range(1, 121)))
    assert remembered(small, loud, family) == ROOM
    line = small.daemon.log.wait_line(rf'"A Service with affinity has more clients than .*" ipFamily="IPv{family}".*', since)[0]
    assert f'service="default/loud" servicePort="default/loud:main" clients={ROOM}' in line
    assert wait_for(lambda: full_ports(small, family) == 1, what="the metric tells of the full map")
    assert pods_of(small, quiet, family, list(before)) == before
    loud.pods = loud.pods[:2]
    small.serve(quiet, loud)
    assert pods_of(small, quiet, family, list(before)) == before
    assert not [one for one in small.daemon.log.lines if "more clients" in one and "default/quiet" in one]
    small.daemon.stop()
    small.daemon.start()
    assert pods_of(small, quiet, family, list(before)) == before


def test_who_is_remembered_stays_when_the_map_is_full(small, family):
    web = small.service(212, small.pods, affinity=10800)
    known = pods_of(small, web, family, addresses(small, family, range(1, ROOM + 1)))
    assert remembered(small, web, family) == ROOM
    strangers = addresses(small, family, range(100, 130))
    seen = [pods_of(small, web, family, strangers) for _ in range(4)]
    assert any(one != seen[0] for one in seen[1:])  # any pod, each time
    assert pods_of(small, web, family, list(known)) == known


def test_clients_of_a_pod_that_left_make_room(small, family):
    """The packet that finds its endpoint gone forgets it: a full map does not stay full of clients whose pod is gone."""
    web = Service("leaving", 213, small.pods, affinity=10800)
    small.serve(web)
    first = pods_of(small, web, family, addresses(small, family, range(1, ROOM + 1)))
    gone = web.pods.pop().name
    small.serve(web)
    again = pods_of(small, web, family, list(first))
    assert gone not in again.values()
    assert {client: pod for client, pod in again.items() if first[client] != gone} == {
        client: pod for client, pod in first.items() if pod != gone
    }
    assert wait_for(lambda: pods_of(small, web, family, list(first)) == pods_of(small, web, family, list(first)), step=0.3)


def test_another_size_takes_the_clients_along(clusters, family):
    cluster = clusters("--affinity-clients=30", pods=2)
    web = cluster.service(214, cluster.pods, affinity=10800)
    before = pods_of(cluster, web, family, addresses(cluster, family, range(1, 26)))
    cluster.daemon.stop()
    cluster.daemon.flags[-1] = "--affinity-clients=40"
    cluster.daemon.start()
    text = cluster.node.run("nft", "list", "map", *TABLE[family], map_of(cluster, web, family))
    assert "size 40" in text
    assert pods_of(cluster, web, family, list(before)) == before
    cluster.daemon.stop()
    cluster.daemon.flags[-1] = "--affinity-clients=30"
    cluster.daemon.start()
    assert pods_of(cluster, web, family, list(before)) == before


def test_maps_go_with_their_service(small):
    web = Service("short", 215, small.pods, affinity=60)
    other = Service("long", 216, small.pods, affinity=60)
    small.serve(web, other)
    mine = map_of(small, web, 4)
    small.serve(other)
    assert mine not in maps(small, 4).values()
    small.serve(web, other)
    assert mine not in maps(small, 4).values() and map_of(small, web, 4)


def fill(cluster, web):
    """The whole map, as packets would: nft is given the elements in one go."""
    name = map_of(cluster, web, 4)
    text = cluster.node.run("nft", "list", "map", "ip", "kube-proxy", "members")
    port = f"1000:{int(name.removeprefix('clients-')):x}"
    endpoint = re.search(rf"{port} \. \S+ \. \S+ : (1000:\w+)", text)[1]
    elements = ", ".join(f"172.{16 + n // 65536}.{n // 256 % 256}.{n % 256} timeout 3h : {endpoint}" for n in range(MANY))
    cluster.node.run("nft", "-f", "-", stdin=f"add element ip kube-proxy {name} {{ {elements} }}")


def worked_ms(cluster):
    """What the daemon used of a processor so far, the kernel's work for it included: a busy machine changes nothing about that."""
    tasks = cluster.node.run("sh", "-c", f"cat /proc/{cluster.daemon.pid}/task/*/schedstat").splitlines()
    return sum(int(task.split()[0]) for task in tasks) / 1e6


def leave_ms(cluster, service, *all_services):
    """How much work it is that the last endpoint leaves, and all else that is done meanwhile: the least of three."""
    pods, work = service.pods, []
    for _ in range(3):
        service.pods = pods[:-1]
        before = worked_ms(cluster)
        cluster.serve(*all_services)
        work.append(worked_ms(cluster) - before)
        service.pods = pods
        cluster.serve(*all_services)
    return min(work)


def test_an_endpoint_leaves_in_milliseconds_whatever_others_remember(clusters):
    """Whether it is of a small Service beside a full map, or of the Service with 65,536 clients itself."""
    cluster = clusters(pods=3)
    quiet = Service("quiet", 217, cluster.pods, affinity=10800)
    loud = Service("loud", 218, cluster.pods, affinity=10800)
    cluster.serve(quiet, loud)
    fill(cluster, loud)
    cluster.serve(quiet, loud)  # what nft did is heard of here, as what packets do is not
    beside = leave_ms(cluster, quiet, quiet, loud)
    itself = leave_ms(cluster, loud, quiet, loud)
    print(f"that an endpoint left was {beside} ms of work in a small Service, and {itself} ms in the full one")
    assert max(beside, itself) < 20  # to hear of all those clients was more

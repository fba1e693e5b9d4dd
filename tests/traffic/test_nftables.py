# SPDX-License-Identifier: Apache-2.0
"""Table kube-proxy itself: that a dry run and the daemon write the same, what happens while it changes, and foreign hands."""

import re

import pytest

from lab import nft_dump
from lab.check import errors, names, refused_at_once, served
from lab.manifests import Service, service_cidr

WORDS = {4: "ip", 6: "ip6"}
CONTAINER = re.compile(r"^\t(?:set|map) (\S+) \{\n(.*?)^\t\}", re.S | re.M)
ELEMENTS = re.compile(r"elements = \{(.*)\}", re.S)


@pytest.fixture(scope="module", params=["nftables"])
def mode(request):
    return request.param


def listing(cluster, family):
    return cluster.node.run("nft", "list", "table", WORDS[family], "kube-proxy")


def assert_as_rendered(cluster, family):
    """The kernel's maps are those of a dry run, which has all elements anew. Only the order of slots may differ: who has a slot keeps it."""
    wanted = nft_dump.loaded(cluster.daemon.render(f"--ip-family=ipv{family}"), family)
    mine = nft_dump.read(cluster.node, family)
    assert nft_dump.differences(nft_dump.canonical(mine), nft_dump.canonical(wanted), nft_dump.LINGERING) == []


def everything(cluster):
    """Services that put at least two elements into each set and map."""
    both = cluster.pods + cluster.remote_pods
    made = []
    for number in (180, 181):
        made += [
            Service(f"plain-{number}", number, both),
            Service(f"empty-{number}", number + 10, [], kind="NodePort"),
            Service(f"policy-{number}", number + 20, both, kind="LoadBalancer", external=True, externalTrafficPolicy="Local",
                    internalTrafficPolicy="Local", loadBalancerSourceRanges=["192.0.2.0/24", "203.0.113.0/24", "2001:db8::/32"]),
            Service(f"sticky-{number}", number + 30, both, kind="LoadBalancer", affinity=600, externalTrafficPolicy="Local"),
        ]
    return made


def load_elsewhere(cluster, text, family):
    """What nft lists in a namespace of its own after it has loaded the text."""
    script = f"nft -f - && nft list table {WORDS[family]} kube-proxy"
    return cluster.node.run("unshare", "--net", "sh", "-c", script, stdin=text)


def without_times(text):
    """Elements of the maps that packets write expire: times differ, and elements are in any order."""
    text = re.sub(r" timeout \S+ expires [^ :,]+", "", text)
    return {name: sorted(re.split(r",\s*", found[1].strip())) if (found := ELEMENTS.search(body)) else []
            for name, body in CONTAINER.findall(text)}, re.sub(r"\s*elements = \{.*?\}\n", "\n", text, flags=re.S)


def test_a_dry_run_and_the_daemon_write_the_same(cluster, family):
    cluster.serve(*everything(cluster))
    cluster.daemon.stop()
    cluster.node.run("nft", "flush", "ruleset")
    cluster.daemon.start()
    shown = load_elsewhere(cluster, cluster.daemon.render(f"--ip-family=ipv{family}"), family)
    mine, other = without_times(listing(cluster, family)), without_times(shown)
    # a dry run knows the Node's addresses, not those of the interfaces
    for maps in (mine[0], other[0]):
        maps.pop("nodeport-ips")
    assert mine == other


@pytest.mark.parametrize("damage, full", [("flush ruleset", "true"), ("delete table ip kube-proxy; delete table ip6 kube-proxy", "true"),
                                          ("flush map ip kube-proxy service-ips; flush map ip6 kube-proxy service-ips", "false"),
                                          ("flush chain ip kube-proxy services; flush chain ip6 kube-proxy services", "false")])
def test_damage_by_others_is_repaired_at_once(cluster, damage, full):
    """All of it, or what was touched."""
    web = cluster.service(173, cluster.pods)
    since = len(cluster.daemon.log.lines)
    for command in damage.split(";"):
        cluster.node.run("nft", command.strip())
    for family in (4, 6):
        cluster.daemon.log.wait_line(rf'Sync done" ipFamily="IPv{family}" full={full}', since)
        assert_as_rendered(cluster, family)
        assert served(cluster.node.request(web.cluster_ip[family], web.port, count=5))


def test_changes_of_other_tables_are_nobodys_damage(cluster):
    cluster.service(174, cluster.pods)
    since = len(cluster.daemon.log.lines)
    cluster.node.run("nft", "add table ip other; add chain ip other x; delete table ip other")
    web = cluster.service(175, cluster.pods)
    assert served(cluster.node.request(web.cluster_ip[4], web.port))
    assert not [line for line in cluster.daemon.log.lines[since:] if "full=true" in line]


UNALLOCATED = {4: "10.96.7.7", 6: "fd00:10:96::7777"}


@pytest.fixture(scope="module")
def squatter(clusters):
    """Somebody outside who answers at addresses of the service network that no Service has."""
    client = clusters().client
    client.ip(f"addr add {UNALLOCATED[4]}/32 dev lo", f"addr add {UNALLOCATED[6]}/128 dev lo nodad")
    client.agent.call("serve_pod", pod="squatter", addresses=list(UNALLOCATED.values()), ports=[9080])
    return 9080


def test_packets_to_cluster_ips_that_nobody_has_are_dropped(cluster, squatter, family):
    """As long as a ServiceCIDR has them; connections that there are go on."""
    web = Service("web", 172, cluster.pods)
    places = (cluster.node, cluster.pods[0])
    ask = [UNALLOCATED[family], squatter]
    cluster.serve(web)
    assert all(served(place.request(*ask)) == {"squatter"} for place in places)
    talk = cluster.pods[0].talk(*ask)
    since = len(cluster.daemon.log.lines)
    cluster.serve(web, extra=[service_cidr("kubernetes", "10.96.0.0/16", "fd00:10:96::/112")])
    for asked in [place.begin(*ask, timeout=1.2) for place in places]:
        assert errors(asked.answers()) == {"timeout"}
    assert talk.ask().pod == "squatter"
    talk.close()
    assert refused_at_once(cluster.pods[0].request(web.cluster_ip[family], 9999, count=3, parallel=3), family, "TCP")
    assert served(cluster.pods[0].request(web.cluster_ip[family], web.port)) <= names(cluster.pods)
    cluster.serve(web)
    assert all(served(place.request(*ask)) == {"squatter"} for place in places)
    assert not [line for line in cluster.daemon.log.lines[since:] if "full=true" in line]


def test_the_older_of_two_services_has_an_address_and_the_other_takes_over(cluster, family):
    older = Service("zebra", 176, cluster.pods[:1], externalIPs=["198.18.9.9", "2001:db8:18::99"])
    younger = Service("ant", 177, cluster.pods[1:2], externalIPs=["198.18.9.9", "2001:db8:18::99"])
    older.created, younger.created = "2020-01-01T00:00:00Z", "2024-01-01T00:00:00Z"
    address = "198.18.9.9" if family == 4 else "2001:db8:18::99"
    since = len(cluster.daemon.log.lines)
    cluster.serve(Aged(younger), Aged(older))
    assert served(cluster.client.request(address, 80, count=10)) == {cluster.pods[0].name}
    told = r'"Two Services ask for the same destination.* ipFamily="{}" .* service="default/ant" owner="default/zebra"'
    for name in ("IPv4", "IPv6"):  # just after the rules are in force
        cluster.daemon.log.wait_line(told.format(name), since)
    assert sum("Two Services ask for the same destination" in line for line in cluster.daemon.log.lines[since:]) == 2
    cluster.serve(Aged(younger))
    assert served(cluster.client.request(address, 80, count=10)) == {cluster.pods[1].name}
    assert served(cluster.node.request(younger.cluster_ip[family], 80))


class Aged:
    def __init__(self, service):
        self.inner = service

    def objects(self):
        made = self.inner.objects()
        made[0]["metadata"]["creationTimestamp"] = self.inner.created
        return made


def test_clients_keep_their_pods_over_a_restart(cluster, family):
    web = cluster.service(178, cluster.pods, affinity=600)
    clients = [cluster.lab.distant(family, host) for host in range(1, 61)]
    first = [answer.pod for answer in cluster.client.request(web.cluster_ip[family], web.port, sources=clients)]
    assert set(first) == names(cluster.pods)
    cluster.daemon.kill()
    cluster.daemon.start()
    assert [answer.pod for answer in cluster.client.request(web.cluster_ip[family], web.port, sources=clients)] == first

# SPDX-License-Identifier: Apache-2.0
"""An API server that tells nonsense takes no working Service away: empty lists, lists without end, words that are not known.

The server is in the daemon's own namespace, see lab/fake_api.py.
"""

import re
import signal
import sys
import time

import pytest

from lab import fake_api, manifests
from lab.daemon import program
from lab.host import ADDRESSES, HEALTH, METRICS, NODE
from test_status_page import FOLLOW

N = 50
MODES = ("iptables", "nftables")


def meta(name, **labels):
    return {"namespace": "default", "name": name, "labels": labels}


def service_with(number, **spec):
    return {"kind": "Service", "metadata": meta(f"web-{number}"), "spec": spec}


def service(number, policy=None, protocol="TCP"):
    ports = [{"name": "a", "protocol": "TCP", "port": 80}, {"name": "b", "protocol": protocol, "port": 81}]
    return service_with(number, ports=ports, clusterIP=f"10.96.1.{number}", type="ClusterIP", internalTrafficPolicy=policy)


def empty_slice_of(number):
    return {"kind": "EndpointSlice", "metadata": meta(f"web-{number}-x", **{"kubernetes.io/service-name": f"web-{number}"}), "addressType": "IPv4"}


def slice_of(number, *more):
    return {**empty_slice_of(number), "endpoints": [{"addresses": [address]} for address in (f"10.244.1.{number}", *more)],
            "ports": [{"name": name, "protocol": "TCP", "port": 8080} for name in "ab"]}


def both(number):
    return [service(number), slice_of(number)]


class Cluster:
    """The host with an API server and a daemon on it, and N Services with an endpoint each."""

    def __init__(self, host, mode, *flags):
        self.host, self.mode = host, mode
        self.api = fake_api.spawn(host.node)
        self.apply(manifests.node(NODE, [ADDRESSES[4]], []), *[service(i) for i in range(N)], *[slice_of(i) for i in range(N)])
        self.start(*flags)
        host.log.wait_line('"First sync done" ipFamily="IPv4"')
        self.wait_served(N, N)

    def start(self, *flags):
        self.host.pid_of_daemon, self.host.log = self.host.node.spawn(
            program(), "run", f"--master=http://127.0.0.1:{fake_api.PORT}", f"--hostname-override={NODE}", "--v=2",
            f"--proxy-mode={self.mode}", "--iptables-min-sync-period=0s", "--conntrack-max-per-core=0", *flags)

    def apply(self, *items):
        self.api.call("apply", items=items)

    def slip(self, *items, there=True):
        self.api.call("slip", items=items, there=there)

    def show(self, kind, count):
        self.api.call("show", kind=kind, count=count)

    def lists(self):
        """How often Services were listed."""
        return self.api.call("told")["lists"]["Service"]

    def events(self, reason):
        return [event for event in self.api.call("told")["events"] if event["reason"] == reason]

    def served(self):
        """Services with and without endpoints in the kernel: those whose first port leads somewhere."""
        if self.mode == "iptables":
            rules = self.host.node.run("iptables-save", "-t", "nat").splitlines()
            return (sum(" --dport 80 -j KUBE-SVC-" in rule for rule in rules if rule.startswith("-A KUBE-SERVICES ")),
                    sum("--to-destination" in rule and ":a\"" in rule for rule in rules))
        listing = self.host.node.run("nft", "list", "table", "ip", "kube-proxy")
        return (len(set(re.findall(r"10\.96\.1\.\d+ \. tcp \. 80 (?:comment \"[^\"]*\" )?: goto", listing))),
                len(set(re.findall(r"10\.96\.1\.\d+ \. tcp \. 80 \. 0 (?:comment \"[^\"]*\" )?: 10\.244", listing))))

    def wait_served(self, services, endpoints):
        self.host.wait_for(self.served, lambda served: served == (services, endpoints))

    def wait_endpoints(self, endpoints):
        self.host.wait_for(lambda: self.served()[1], lambda served: served == endpoints)

    def health(self):
        return self.host.ask("/healthz", HEALTH)

    def held(self, resource="services"):
        return self.host.metrics()[f'portolan_sync_held_objects{{resource="{resource}"}}']

    def page(self):
        """What the status page is told from now on, an event a line."""
        _pid, log = self.host.node.spawn(sys.executable, "-c", FOLLOW, f"http://127.0.0.1:{METRICS}/status/events")
        return log

    def list_anew(self, kind, count=None):
        since = len(self.host.log.lines)
        self.show(kind, count)
        self.api.call("expire", kind=kind)
        return since

    def event(self, reason):
        """The first Event of this reason that was posted."""
        return self.host.wait_for(lambda: self.events(reason), bool)[0]


@pytest.mark.parametrize("mode", MODES)
def test_an_empty_list_is_held_back_until_a_signal(host, mode):
    cluster = Cluster(host, mode)
    since = cluster.list_anew("Service", 0)
    held = host.log.wait_line("A list of the API server lacks 50 of 50 Services, held back until another list in 60 s", since)
    assert cluster.served() == (N, N)
    assert cluster.held() == N and cluster.held("endpointslices") == 0
    health = cluster.health()
    assert health.status == 200 and health.json()["healthy"] is True
    assert health.json()["degraded"].startswith("A list of the API server lacks 50 of 50 Services")
    cluster.page().wait_line('^gauges .*"healthy": ?true,.*"degraded": ?"A list of the API server lacks 50 of 50 Services')
    assert held.group() in cluster.event("SyncHeld")["note"] and cluster.event("SyncHeld")["regarding"]["kind"] == "Node"
    # what watches tell goes on: a new one comes, one that is held back is deleted, one is there after all
    cluster.apply(*both(N))
    cluster.api.call("remove", items=[service(0)])
    cluster.apply(service(1))
    host.wait_for(cluster.held, lambda held: held == N - 2)
    host.wait_for(lambda: cluster.served()[0], lambda served: served == N)
    since = len(host.log.lines)
    host.signal(signal.SIGUSR2)
    host.log.wait_line("What a list of Services lacks is held back no more: it was asked for", since)
    host.log.wait_line("SIGUSR2: what was held back is removed", since)
    host.wait_for(lambda: cluster.served()[0], lambda served: served == 2)
    assert cluster.held() == 0 and "degraded" not in cluster.health().json()
    host.signal(signal.SIGUSR2)
    host.log.wait_line("SIGUSR2: nothing is held back", since)


@pytest.mark.parametrize("mode", MODES)
def test_a_list_without_endpoints_is_held_back_until_they_are_listed_again(host, mode):
    cluster = Cluster(host, mode)
    since = cluster.list_anew("EndpointSlice", 20)
    host.log.wait_line("A list of the API server leaves 30 of 50 Services without endpoints, held back", since)
    assert cluster.served() == (N, N) and cluster.held("endpointslices") == 30
    assert "without endpoints" in cluster.health().json()["degraded"]
    cluster.list_anew("EndpointSlice")
    host.log.wait_line("What a list of EndpointSlices lacks is held back no more: each of them is there again", since)
    assert cluster.served() == (N, N) and "degraded" not in cluster.health().json()


@pytest.mark.parametrize("mode", MODES)
def test_a_list_of_empty_slices_is_held_back(host, mode):
    cluster = Cluster(host, mode)
    cluster.slip(*[empty_slice_of(i) for i in range(10)])
    since = cluster.list_anew("EndpointSlice")
    cluster.wait_endpoints(N - 10)  # a few are just emptied
    cluster.slip(*[empty_slice_of(i) for i in range(N)])
    cluster.list_anew("EndpointSlice")
    host.log.wait_line("A list of the API server leaves 40 of 40 Services without endpoints, held back", since)
    assert cluster.served()[1] == N - 10 and cluster.held("endpointslices") == N - 10
    assert "leaves 40 of 40 Services without endpoints" in cluster.health().json()["degraded"]
    # a watch is believed, whichever way it tells
    cluster.apply(empty_slice_of(10), slice_of(0), empty_slice_of(11))
    cluster.wait_endpoints(N - 11)
    host.signal(signal.SIGUSR2)
    cluster.wait_endpoints(1)
    assert cluster.held("endpointslices") == 0 and "degraded" not in cluster.health().json()


def test_what_a_list_adds_does_not_make_its_loss_small(host):
    cluster = Cluster(host, "iptables")
    cluster.apply(*[service(i) for i in range(N, N + 30)])
    cluster.slip(*[slice_of(i) for i in range(30)], there=False)
    cluster.slip(*[slice_of(i) for i in range(N, N + 30)])
    since = cluster.list_anew("EndpointSlice")
    host.log.wait_line("A list of the API server leaves 30 of 50 Services without endpoints, held back", since)
    cluster.wait_served(N + 30, N + 30)  # what it adds counts
    cluster.slip(*[service(i) for i in range(45)], there=False)
    cluster.slip(*[service(i) for i in range(N + 30, N + 50)])
    since = cluster.list_anew("Service")
    host.log.wait_line("A list of the API server lacks 45 of 80 Services, held back", since)
    assert cluster.served() == (N + 30, N + 30)


def test_half_a_list_counts_and_without_a_guard_any_list(hosts):
    cluster = Cluster(hosts(), "iptables")
    cluster.list_anew("Service", N // 2)
    cluster.wait_served(N // 2, N // 2)
    cluster = Cluster(hosts(), "iptables", "--sync-guard=off")
    cluster.list_anew("Service", 0)
    cluster.wait_served(0, 0)
    assert cluster.health().status == 200


def test_a_share_of_its_own(host):
    cluster = Cluster(host, "iptables", "--sync-guard=10")
    since = cluster.list_anew("Service", N - 6)
    host.log.wait_line("A list of the API server lacks 6 of 50 Services, held back", since)
    assert cluster.served() == (N, N)


@pytest.mark.parametrize("mode", MODES)
def test_a_new_start_over_empty_lists_keeps_the_rules(host, mode):
    cluster = Cluster(host, mode)
    host.stop()
    for kind in ("Service", "EndpointSlice"):
        cluster.show(kind, 0)
    cluster.start()
    for resource in ("Services", "EndpointSlices"):
        host.log.wait_line(f"The first list of the API server has no {resource}, not even of default/kubernetes, held back")
    health = host.wait_for(cluster.health, lambda health: health.status == 200)
    assert "The first list of the API server has no Services" in health.json()["degraded"]
    assert cluster.served() == (N, N) and cluster.held() == 1
    # the first object that comes is a reason to list them all
    for kind in ("Service", "EndpointSlice"):
        cluster.show(kind, None)
    cluster.apply(*both(N))
    host.log.wait_line('"First sync done" ipFamily="IPv4"')
    cluster.wait_served(N + 1, N + 1)
    assert "degraded" not in cluster.health().json()


def test_a_server_that_goes_back_is_asked_twice_and_guarded(host):
    """An etcd that was restored from before there were any Services."""
    cluster = Cluster(host, "iptables")
    lists = cluster.lists()
    since = len(host.log.lines)
    cluster.api.call("go_on_from", version=10)
    cluster.show("Service", 0)
    cluster.apply(service(N))
    host.log.wait_line("goes back from resourceVersion \\d+ to 11 with a watch of Service objects, listing them anew", since)
    host.log.wait_line("goes back from resourceVersion \\d+ to 11 with a list of Service objects, listing them anew", since)
    host.log.wait_line("A list of the API server lacks 50 of 50 Services, held back", since)
    assert cluster.lists() == lists + 2
    assert cluster.served() == (N, N)


def test_a_list_without_end_is_given_up(host):
    cluster = Cluster(host, "iptables")
    since = len(host.log.lines)
    cluster.api.call("page", token="again")
    cluster.api.call("expire", kind="Service")
    host.log.wait_line("gives an answer that cannot be read about Services: the same continue token again; what is known stays", since)
    cluster.api.call("page", token="x" * 20000)
    begun, lists = time.monotonic(), cluster.lists()
    host.wait_for(lambda: cluster.lists(), lambda n: n >= lists + 1)
    assert cluster.served() == (N, N) and host.ask("/livez", HEALTH).status == 200
    assert cluster.lists() < lists + 5 + time.monotonic() - begun  # with waits between them
    since = len(host.log.lines)
    cluster.api.call("page", token=None)
    cluster.apply(service(N))
    host.log.wait_line("The API server lets us follow Services again", since, timeout=90)  # it may have waited longer and longer
    host.wait_for(lambda: cluster.served()[0], lambda served: served == N)


@pytest.mark.parametrize("mode", MODES)
def test_words_that_are_not_known_take_no_service_away(host, mode):
    cluster = Cluster(host, mode)
    since = len(host.log.lines)
    cluster.apply(service(1, policy="PreferLocal"), service(2, protocol="QUIC"), slice_of(3, "nonsense"))
    host.log.wait_line('Service default/web-1: spec.internalTrafficPolicy .*PreferLocal.* is not known, it counts as Cluster', since)
    host.log.wait_line('Service default/web-2: spec.ports\\[1\\]: a port\'s protocol .*QUIC.* is none of', since)
    host.log.wait_line('EndpointSlice default/web-3-x: endpoints\\[1\\]: the address .*nonsense.* is none', since)
    cluster.wait_served(N, N)
    wanted = [("Service", f"web-{number}") for number in (1, 2, 3)]
    host.wait_for(lambda: sorted({(event["regarding"]["kind"], event["regarding"]["name"]) for event in cluster.events("PartlyServed")}),
                  lambda found: found == wanted)


def test_the_last_good_version_stays_over_watches_and_lists(host):
    cluster = Cluster(host, "iptables")
    since = len(host.log.lines)
    broken = {**service(1), "spec": "\udcff\udcff"}
    cluster.apply(broken)
    host.log.wait_line("Service default/web-1 cannot be understood, its last good version stays in force: "
                       "it is not readable protobuf", since)
    cluster.page().wait_line("^troubles .*Service default/web-1 cannot be understood, its last good version stays in force")
    event = cluster.event("ObjectNotUnderstood")
    assert event["regarding"]["name"] == "web-1" and event["type"] == "Warning"
    lists = cluster.lists()
    cluster.list_anew("Service")
    host.wait_for(lambda: cluster.lists(), lambda n: n == lists + 1)
    cluster.apply(*both(N))
    cluster.wait_served(N + 1, N + 1)  # with web-1
    cluster.apply(service(1))
    host.log.wait_line("Service default/web-1 is understood again", since)
    cluster.apply(broken)
    cluster.api.call("remove", items=[broken])
    cluster.wait_served(N, N)


@pytest.mark.parametrize("mode", MODES)
def test_a_version_with_nothing_to_serve_takes_no_service_away(host, mode):
    cluster = Cluster(host, mode)
    since = len(host.log.lines)
    ports = [{"name": "a", "protocol": "TCP", "port": 80}]
    cluster.apply({"kind": "Service", "metadata": meta("web-1")}, service_with(2, clusterIP="10.96.1.2", type="ClusterIP"),
                  service_with(3, ports=ports, type="Anycast"), service_with(N, ports=ports))
    for number, why in (1, "it has no cluster IP"), (2, "it has no ports"), (3, "it has no cluster IP"):
        host.log.wait_line(f"Service default/web-{number} cannot be understood, its last good version stays in force: {why}", since)
    host.log.wait_line(f"Service default/web-{N} cannot be served: it has no cluster IP", since)
    cluster.page().wait_line("^troubles .*Service default/web-1 cannot be understood, its last good version stays in force")
    host.wait_for(lambda: {event["regarding"]["name"] for event in cluster.events("ObjectNotUnderstood")}, lambda names: names == {"web-1", "web-2", "web-3", f"web-{N}"})
    lists = cluster.lists()
    cluster.list_anew("Service")
    host.wait_for(lambda: cluster.lists(), lambda n: n == lists + 1)
    cluster.apply(*both(N))
    cluster.wait_served(N + 1, N + 1)
    # these say what they want: not to be served
    cluster.apply(service_with(1, clusterIP="None"), service_with(2, type="ExternalName"))
    cluster.wait_served(N - 1, N - 1)

# SPDX-License-Identifier: Apache-2.0
"""Clients that keep their socket. UDP: connection tracking would go on sending their packets where the first one went: into the
void. Without a clean-up after syncs none of these flows would ever reach another pod: each packet keeps the flow alive. The
clean-up follows a sync, and rules are seen in force a little earlier, so a flow may be answered as before for a moment.
"""

import re
import signal
import statistics
import sys

import pytest

from lab import scrape
from lab.log import PATIENCE
from lab.manifests import Endpoint, Service
from lab.topology import NODE, wait_for


@pytest.fixture
def talk(request):
    """Talks that end with the test."""

    def begin(place, address, port, proto="UDP", timeout=2.0):
        made = place.talk(address, port, proto, timeout=timeout)
        request.addfinalizer(made.close)
        return made

    return begin


def ways(cluster, service, family):
    """From where, to which address and port: all that lead to the Service."""
    return [(cluster.pods[0], service.cluster_ip[family], service.port), (cluster.client, NODE[family], service.node_port),
            (cluster.client, service.load_balancer_ip[family], service.port),
            (cluster.client, service.external_ip[family], service.port)]


def dns(number, pods, **more):
    return Service("dns", number, pods, proto="UDP", kind="LoadBalancer", external=True, **more)


def reach(talks, pod):
    """All talks are answered by the pod, now or soon; by nobody: None. An answer to a flow that is being forgotten is lost."""
    name = pod and pod.name
    for one in talks:
        wait_for(lambda one=one: one.ask().pod == name, what=f"the flow reaches {name}")


def flows(cluster, pod, family):
    """How many the kernel has that lead to the pod. None of them can change where it leads."""
    listed = cluster.node.run("conntrack", "-L", "-f", f"ipv{family}", "-p", "udp", "--reply-src", pod.address[family])
    return len(listed.splitlines())


def forgotten(cluster, family):
    """How many flows the daemon says that it deleted."""
    name = "kubeproxy_conntrack_reconciler_deleted_entries_total"
    return scrape.values(scrape.page_of(cluster.node)).get((name, (("ip_family", f"IPv{family}"),)), 0)


def test_an_endpoint_is_replaced(cluster, talk, family):
    """The metric counts the flows that are gone, each once."""
    service = cluster.serve(dns(120, cluster.pods[1:2]))
    talks = [talk(*way) for way in ways(cluster, service, family)]
    reach(talks, cluster.pods[1])
    counted = forgotten(cluster, family)
    assert flows(cluster, cluster.pods[1], family) == len(talks)
    service.pods = cluster.pods[2:3]
    cluster.serve(service)
    reach(talks, cluster.pods[2])
    assert flows(cluster, cluster.pods[1], family) == 0
    assert forgotten(cluster, family) - counted == len(talks)


SLOW = """
import signal, socket, time
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as server:
    server.bind(("::", 9053))
    print("ready", flush=True)
    while True:
        _question, client = server.recvfrom(100)
        print("asked", flush=True)
        signal.sigwait([signal.SIGUSR1])
        time.sleep(0.08)
        server.sendto(b"answer", client)
"""
ASK = """
import socket, sys
with socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET, socket.SOCK_DGRAM) as client:
    client.settimeout(3)
    client.connect((sys.argv[1], 53))
    client.send(b"question")
    try:
        print(client.recv(100).decode(), flush=True)
    except TimeoutError:
        print("silence", flush=True)
"""


def begin(request, place, *argv):
    """A program whose lines can be waited for."""
    pid, log = place.spawn(sys.executable, "-c", *argv)
    request.addfinalizer(lambda: place.agent.call("wait", pid=pid, timeout=10))
    request.addfinalizer(lambda: place.agent.call("kill", pid=pid, number=signal.SIGKILL))
    return pid, log


def clean_ups(cluster, family):
    """How many there were, and how many seconds they took."""
    values = scrape.values(scrape.page_of(cluster.node))
    name, labels = "kubeproxy_conntrack_reconciler_sync_duration_seconds", (("ip_family", f"IPv{family}"),)
    return values.get((f"{name}_count", labels), 0), values.get((f"{name}_sum", labels), 0)


def moment(line):
    """When a line was logged, in seconds of some day."""
    hours, minutes, seconds = re.search(r" (\d\d):(\d\d):(\d\d\.\d+) ", line).groups()
    return (int(hours) * 60 + int(minutes)) * 60 + float(seconds)


class Leaving:
    """One question to a pod that leaves the Service before it answers: was the answer heard, how long was the grace?"""

    def __init__(self, cluster, family, request):
        self.cluster, self.family, self.request = cluster, family, request
        self.server, self.questions = begin(request, cluster.pods[1].namespace, SLOW)
        self.questions.wait_line("ready")

    def try_once(self):
        """The grace is None when it cannot be told, since a clean-up of before came in between."""
        cluster, log = self.cluster, self.cluster.daemon.log
        service = cluster.serve(Service("slow", 129, cluster.pods[1:2], proto="UDP", port=53, target=9053))
        count, spent = clean_ups(cluster, self.family)
        asked, since = len(self.questions.lines), len(log.lines)
        _pid, client = begin(self.request, cluster.pods[0].namespace, ASK, service.cluster_ip[self.family])
        self.questions.wait_line("asked", asked)
        service.pods = cluster.pods[2:3]
        cluster.daemon.write_services(service)
        synced = log.wait_line(f'"Sync done" ipFamily="IPv{self.family}"', since).string
        cluster.pods[1].agent.call("kill", pid=self.server, number=signal.SIGUSR1)
        heard = client.wait_line("answer|silence")[0] == "answer"
        forgot = log.wait_line(f'"Forgot connections that led nowhere" ipFamily="IPv{self.family}"', since).string
        later, spent_later = clean_ups(cluster, self.family)
        cluster.daemon.wait_in_force()
        grace = (moment(forgot) - moment(synced)) % 86400 - (spent_later - spent)
        return heard, grace if later == count + 1 else None


def test_an_answer_on_its_way_is_let_through(cluster, family, request):
    """The pod answers 80 ms after it left the Service. The machine may not give it its turn in time, so once is enough; nor may
    it delete flows at once, by which an answer would be let through without a grace, too: that is measured."""
    leaving = Leaving(cluster, family, request)
    answers, graces = 0, []
    for _ in range(10):
        heard, grace = leaving.try_once()
        answers += heard
        graces += [grace] if grace is not None else []
        if answers and len(graces) == 3:
            break
    print(f"{answers} answers, graces of {graces} s")
    assert answers
    assert statistics.median(graces) > 0.05  # of 0.1, which begin when the daemon wakes up for the end of the sync


def test_an_endpoint_no_longer_serves(cluster, talk, family):
    service = cluster.serve(dns(121, cluster.pods[1:2]))
    one = talk(cluster.pods[0], service.cluster_ip[family], service.port)
    reach([one], cluster.pods[1])
    service.pods = [Endpoint(cluster.pods[1], "terminating"), cluster.pods[2]]
    cluster.serve(service)
    reach([one], cluster.pods[1])  # it still serves what it has; from the other one there would be no way back
    service.pods = [Endpoint(cluster.pods[1], "gone"), cluster.pods[2]]
    cluster.serve(service)
    reach([one], cluster.pods[2])


def test_the_first_packet_came_before_the_first_endpoint(cluster, talk, family):
    """It was sent on untranslated, or refused; the flow must not remember that."""
    service = dns(122, [])
    cluster.serve(service)
    talks = [talk(*way) for way in ways(cluster, service, family)]
    reach(talks, None)
    service.pods = cluster.pods[1:2]
    cluster.serve(service)
    reach(talks, cluster.pods[1])


def test_all_endpoints_are_gone_and_others_come(cluster, talk, family):
    """kube-proxy keeps those to the NodePort until others come."""
    service = cluster.serve(dns(123, cluster.pods[1:2]))
    talks = [talk(*way) for way in ways(cluster, service, family)]
    reach(talks, cluster.pods[1])
    service.pods = []
    cluster.serve(service)
    reach(talks, None)
    service.pods = cluster.pods[2:3]
    cluster.serve(service)
    reach(talks, cluster.pods[2])


STREAM = """
import errno, socket, sys, time
address, port = sys.argv[1], int(sys.argv[2])
with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as client:
    client.connect((address, port))
    client.settimeout(0.02)
    last = None
    while True:
        try:
            client.send(b"datum")
            heard = client.recv(100).decode().split()[0]
            time.sleep(0.02)
        except TimeoutError:
            continue
        except OSError as error:
            heard = errno.errorcode[error.errno]
            time.sleep(0.02)
        if heard != last:
            print(heard, flush=True)
        last = heard
"""


class Stream:
    """A client that sends fifty packets a second from one socket whatever comes back, so that its flow never expires; and who
    answers, a line for each change."""

    def __init__(self, request, place, address, port):
        _pid, self.log = begin(request, getattr(place, "namespace", place), STREAM, address, str(port))
        self.seen = 0

    def wait(self, heard):
        self.log.wait_line(f"^{heard}$", self.seen)
        self.seen = len(self.log.lines)


def test_a_stream_that_never_pauses_follows_its_service(cluster, family, request):
    """Endpoints are replaced, all go, one comes: no pause of the client ever lets its flow expire."""
    service = cluster.serve(dns(130, cluster.pods[1:2]))
    streams = [Stream(request, *way) for way in ways(cluster, service, family)]
    for pods, heard in [(cluster.pods[1:2], cluster.pods[1].name), (cluster.pods[2:3], cluster.pods[2].name),
                        ([], "ECONNREFUSED"), (cluster.pods[1:2], cluster.pods[1].name)]:
        service.pods = pods
        cluster.serve(service)
        for stream in streams:
            stream.wait(heard)


def test_a_service_is_deleted_and_made_again(cluster, talk, family):
    service = cluster.serve(dns(124, cluster.pods[1:2]))
    talks = [talk(*way) for way in ways(cluster, service, family)]
    reach(talks, cluster.pods[1])
    cluster.serve()
    reach(talks, None)
    service.pods = cluster.pods[2:3]
    cluster.serve(service)
    reach(talks, cluster.pods[2])


def test_what_changed_while_the_daemon_was_away_is_cleaned_on_its_return(cluster, talk, family):
    service = cluster.serve(dns(125, cluster.pods[1:2]))
    one = talk(cluster.pods[0], service.cluster_ip[family], service.port)
    reach([one], cluster.pods[1])
    cluster.daemon.stop()
    service.pods = cluster.pods[2:3]
    cluster.daemon.write_services(service)
    cluster.daemon.start()
    reach([one], cluster.pods[2])


def test_flows_that_are_well_are_left_alone(cluster, talk, family):
    """Another Service changes, an endpoint joins, a port of TCP loses one: nobody's flow is touched."""
    service, other = dns(126, cluster.pods[1:2]), Service("other", 127, cluster.pods[1:2], proto="UDP")
    web = Service("web", 128, cluster.pods[1:2])
    cluster.serve(service, other, web)
    one = talk(cluster.pods[0], service.cluster_ip[family], service.port, timeout=PATIENCE)
    tcp = talk(cluster.pods[0], web.cluster_ip[family], web.port, "TCP", timeout=PATIENCE)
    before, before_tcp = one.ask(), tcp.ask()
    service.pods = cluster.pods[1:]
    other.pods = cluster.pods[2:3]
    web.pods = cluster.pods[2:3]
    cluster.serve(service, other, web)
    after, after_tcp = one.ask(), tcp.ask()
    assert (after.pod, after.port) == (before.pod, before.port)
    assert (after_tcp.pod, after_tcp.port) == (before_tcp.pod, before_tcp.port)


# -- TCP, on request

CUT = {"portolan.io/terminate-connections": "endpoint-removed"}


def notice(talks):
    """A client learns with its next packet that its connection is gone."""
    for one in talks:
        wait_for(lambda one=one: one.ask().error == "reset", what="the client is told to connect again")


def test_tcp_to_an_endpoint_that_is_gone_is_reset_when_the_service_asks_for_it(cluster, talk, family):
    service = cluster.serve(Service("web", 129, cluster.pods[1:2], kind="LoadBalancer", external=True, annotations=CUT))
    talks = [talk(*way, "TCP") for way in ways(cluster, service, family)]
    reach(talks, cluster.pods[1])
    service.pods = [Endpoint(cluster.pods[1], "gone"), cluster.pods[2]]
    cluster.serve(service)
    reach(talks, cluster.pods[1])  # it has not left, and may finish what it does
    service.pods = cluster.pods[2:3]
    cluster.serve(service)
    notice(talks)
    for place, address, port in ways(cluster, service, family):
        assert place.ask(address, port).pod == cluster.pods[2].name


def test_the_annotation_may_come_later(cluster, talk, family):
    """Connections to an endpoint that had left before are found, too."""
    service = cluster.serve(Service("web", 131, cluster.pods[1:2]))
    one = talk(cluster.pods[0], service.cluster_ip[family], service.port, "TCP")
    reach([one], cluster.pods[1])
    service.pods = cluster.pods[2:3]
    cluster.serve(service)
    reach([one], cluster.pods[1])
    service.annotations = CUT
    cluster.serve(service)
    notice([one])


def test_tcp_is_cut_for_all_services_with_the_flag_but_for_those_that_refuse(clusters, talk, family):
    cluster = clusters("--terminate-connections=endpoint-removed", pods=3, remote_pods=0)
    web = Service("web", 132, cluster.pods[1:2])
    other = Service("other", 133, cluster.pods[1:2], annotations={"portolan.io/terminate-connections": "none"})
    cluster.serve(web, other)
    cut, kept = [talk(cluster.pods[0], service.cluster_ip[family], service.port, "TCP") for service in (web, other)]
    reach([cut, kept], cluster.pods[1])
    web.pods = other.pods = cluster.pods[2:3]
    cluster.serve(web, other)
    notice([cut])
    reach([kept], cluster.pods[1])

# SPDX-License-Identifier: Apache-2.0
"""Traffic by service port (--service-metrics): as many connections, packets and bytes as were sent.

Numbers are brought up to date by rounds through the connection tracking table, one a second while somebody asks. A test sends all that it
has to send and then waits for a whole round. Whatever has no fixed size (TCP decides how many packets it needs) lies between the
smallest and the largest header.

Rules play no part in counting; so the numbers are compared in both modes, and what becomes of flows in one each.
"""

import pytest

from lab import scrape
from lab.client import REQUEST
from lab.manifests import Service
from lab.prometheus import promtool
from lab.topology import NODE, wait_for

IP = {4: 20, 6: 40}
UDP = 8
TCP = (20, 40)  # without options, with all that a SYN has
ANSWER = len(b"HTTP/1.1 200 OK\r\nContent-Length: 00\r\n\r\n")
N = 12


class Numbers:
    """Of all Services, at one moment."""

    def __init__(self, cluster):
        self.values = scrape.values(scrape.page_of(cluster.node))

    def rounds(self):
        return self.values[("portolan_service_traffic_rounds_total", ())]

    def of(self, name, service, **labels):
        """The sum over all series of the Service with these labels; None when there are none."""
        wanted = {"service": service, **labels}.items()
        found = [value for (metric, pairs), value in self.values.items()
                 if metric == f"portolan_service_{name}" and wanted <= dict(pairs).items()]
        return sum(found) if found else None


def after_a_round(cluster):
    """What is known after a round that began after now."""
    first = Numbers(cluster).rounds()
    found = []

    def enough():
        found[:] = [Numbers(cluster)]
        return found[0].rounds() >= first + 2

    wait_for(enough, timeout=20, step=0.2, what="two rounds are over")
    return found[0]


@pytest.fixture
def metered(clusters):
    return clusters("--service-metrics", "--service-metrics-limit=4")


def line(answer):
    return len(f"{answer.pod} {answer.source} {answer.port}\n")


def test_connections_packets_and_bytes_are_those_that_were_sent(metered):
    """Over both families, to the cluster IP and to the node port."""
    dns = Service("dns", 140, metered.pods[1:], proto="UDP", kind="NodePort")
    web = Service("web", 141, metered.pods[1:], kind="NodePort")
    idle = Service("idle", 142, metered.pods[1:])
    metered.serve(dns, web, idle)
    begun = Numbers(metered)
    got = {}
    for service, proto in ((dns, "UDP"), (web, "TCP")):
        for family in (4, 6):
            ways = ((metered.pods[0], service.cluster_ip[family], service.port),
                    (metered.client, NODE[family], service.node_port))
            got[service.name, family] = [answer for place, *way in ways for answer in place.request(*way, proto, count=N)]
    assert all(answer.pod for answers in got.values() for answer in answers)
    numbers = after_a_round(metered)

    for name, proto in (("dns", "udp"), ("web", "tcp")):
        labels = {"namespace": "default", "protocol": proto}
        before = begun.of("connections_total", name, **labels) or 0
        assert numbers.of("connections_total", name, **labels) - before == 4 * N
    sent = {family: 2 * N * (len(REQUEST) + IP[family] + UDP) for family in (4, 6)}
    back = {family: sum(line(answer) + IP[family] + UDP for answer in got["dns", family]) for family in (4, 6)}
    assert numbers.of("packets_total", "dns", direction="to_service") == 4 * N
    assert numbers.of("packets_total", "dns", direction="from_service") == 4 * N
    assert numbers.of("bytes_total", "dns", direction="to_service") == sum(sent.values())
    assert numbers.of("bytes_total", "dns", direction="from_service") == sum(back.values())
    assert numbers.of("tracked_connections", "dns") == 4 * N

    packets = numbers.of("packets_total", "web", direction="to_service")
    payload = 4 * N * len(REQUEST)
    assert packets >= 4 * N * 4, "SYN, ACK, request, RST"
    assert payload + packets * (IP[4] + TCP[0]) < numbers.of("bytes_total", "web", direction="to_service") \
        < payload + packets * (IP[6] + TCP[1])
    packets = numbers.of("packets_total", "web", direction="from_service")
    payload = sum(ANSWER + line(answer) for family in (4, 6) for answer in got["web", family])
    assert payload + packets * (IP[4] + TCP[0]) < numbers.of("bytes_total", "web", direction="from_service") \
        < payload + packets * (IP[6] + TCP[1])
    assert numbers.of("connections_total", "idle") is None, "what has no traffic has no numbers"
    assert numbers.values[("portolan_service_ports_folded", ())] == 0
    assert numbers.values[("portolan_service_traffic_overflows_total", ())] == 0


@pytest.mark.only("iptables")
def test_promtool_finds_nothing_to_fix(metered):
    web = Service("web", 143, metered.pods[1:])
    metered.serve(web)
    metered.pods[0].request(web.cluster_ip[4], web.port, "TCP")
    assert after_a_round(metered).of("connections_total", "web")
    done = promtool("check", "metrics", stdin=scrape.page_of(metered.node))
    assert [row for row in (done.stdout + done.stderr).splitlines() if row.startswith("portolan_")] == []


@pytest.mark.only("iptables")
def test_each_flow_counts_once_whatever_becomes_of_it(metered):
    """One grows over several rounds, one ends before any round has met it, one ends after. Meanwhile rules change."""
    long = Service("long", 150, metered.pods[1:2])
    short = Service("short", 151, metered.pods[1:2], proto="UDP")
    metered.serve(long, short)
    after_a_round(metered)
    talk = metered.pods[0].talk(long.cluster_ip[4], long.port)
    assert talk.ask().pod
    metered.pods[0].request(short.cluster_ip[4], short.port, "UDP", count=3)
    metered.node.run("conntrack", "-D", "-p", "udp", "-d", short.cluster_ip[4])
    first = after_a_round(metered)
    assert first.of("connections_total", "long") == 1
    assert first.of("connections_total", "short") == 3
    assert first.of("packets_total", "short", direction="to_service") == 3
    assert first.of("tracked_connections", "short") == 0

    long.pods = metered.pods[1:]  # both Services are written anew
    short.pods = metered.pods[1:]
    metered.serve(long, short)
    for _ in range(5):
        assert talk.ask().pod == metered.pods[1].name
    metered.pods[0].request(short.cluster_ip[4], short.port, "UDP", count=2)
    second = after_a_round(metered)
    metered.node.run("conntrack", "-D", "-p", "udp", "-d", short.cluster_ip[4])
    talk.close()
    assert second.of("connections_total", "long") == 1
    grown = second.of("bytes_total", "long", direction="to_service") - first.of("bytes_total", "long", direction="to_service")
    assert 5 * len(REQUEST) + 5 * (IP[4] + TCP[0]) < grown < 5 * len(REQUEST) + 12 * (IP[4] + TCP[1])
    wait_for(lambda: Numbers(metered).of("tracked_connections", "short") == 0, what="the ends are heard")
    assert Numbers(metered).of("connections_total", "short") == 5

    metered.serve(short)
    third = after_a_round(metered)
    assert third.of("connections_total", "long") is None, "it is gone"
    assert third.of("connections_total", "short") == 5


@pytest.mark.only("nftables")
def test_beyond_the_limit_there_is_one_sum_and_a_new_life_begins_at_0(metered):
    services = [Service(f"many-{i}", 160 + i, metered.pods[1:2], proto="UDP") for i in range(7)]
    metered.serve(*services)
    after_a_round(metered)
    for i, service in enumerate(services):
        metered.pods[0].request(service.cluster_ip[6], service.port, "UDP", count=1 + 10 * i)
    numbers = after_a_round(metered)
    shown = [i for i in range(7) if numbers.of("connections_total", f"many-{i}") is not None]
    assert len(shown) <= 4 and {5, 6} <= set(shown)
    assert numbers.values[("portolan_service_ports_folded", ())] >= 3
    assert numbers.of("connections_total", "other", namespace="") >= sum(1 + 10 * i for i in range(7) if i not in shown)
    metered.daemon.stop()
    metered.daemon.start()
    numbers = after_a_round(metered)
    assert not any(numbers.of("connections_total", f"many-{i}") for i in range(7)), "they began in another life"
    assert numbers.of("connections_total", "other", namespace="") is None
    assert numbers.values[("portolan_service_ports_folded", ())] == 0

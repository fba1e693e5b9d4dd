# SPDX-License-Identifier: Apache-2.0
"""The daemon with few file descriptors, and clients who want them all.

Health check ports of Services are open to whoever reaches the node, so connections to them must neither take the descriptors
that syncs need nor keep the kubelet from /livez. How late a change is, is measured as in test_load.py; on a quiet machine the bar is
100 ms.
"""
import json
import os
import sys
import time

import pytest

from lab import manifests
from lab.host import ADDRESSES, HEALTH, METRICS

QUIET = "PORTOLAN_QUIET" in os.environ
SANITIZED = "PORTOLAN_SANITIZED" in os.environ
LATE_MS = 100 if QUIET else 20000 if SANITIZED else 5000
ANSWERED_S = 1 if QUIET else 5
CPU_SHARE = 0.25 if QUIET else 1 if SANITIZED else 0.5
CHANGES, RATE, MOVING = 100, 20, 10
LOG_LINES = 100
FIRST_PORT = 31000

#: Holds connections to the ports, opens others in the place of those that the server closes, and says how many it has had. What it
#: is given to say it says on each: nothing, or requests whose answers it never reads.
HOLD = """
import resource, select, socket, sys, time
want, words, addresses = int(sys.argv[1]), sys.argv[2].encode().decode("unicode_escape").encode(), sys.argv[3:5]
ports = [int(port) for port in sys.argv[5:]]
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
poll, held, opened, told = select.epoll(), {}, 0, False
def hold():
    global opened
    address = addresses[opened // len(ports) % 2]
    one = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    one.settimeout(0.2)
    try:
        one.connect((address, ports[opened % len(ports)]))
        one.setblocking(False)
        if words:
            one.send(words)
    except OSError:
        pass
    opened += 1
    held[one.fileno()] = one
    poll.register(one.fileno(), select.EPOLLRDHUP)
while True:
    for _ in range(50 if opened < want else 5):
        if len(held) < want:
            hold()
    for fd, _what in poll.poll(0):
        poll.unregister(fd)
        held.pop(fd).close()
    if opened >= want and not told:
        told = print("held", flush=True) or True
    if told:
        time.sleep(0.02)
"""

#: Asks for /livez ten times a second, on a connection of its own each time, and tells how long each answer took, or what went wrong.
PROBE = """
import http.client, sys, time
while True:
    begun = time.monotonic()
    try:
        connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=10)
        connection.request("GET", "/livez")
        status = connection.getresponse().status
        connection.close()
    except (OSError, http.client.HTTPException) as error:
        status = type(error).__name__
    print(status, time.monotonic() - begun, flush=True)
    time.sleep(0.1)
"""


def local(number):
    """A dual-stack LoadBalancer with external policy Local and a health check port."""
    name = f"local{number:04}"
    return [manifests.object_of("Service", "v1", name, spec={
        "type": "LoadBalancer", "clusterIP": f"10.97.{number // 250}.{number % 250 + 1}",
        "clusterIPs": [f"10.97.{number // 250}.{number % 250 + 1}", f"fd00:10:97::{number + 1:x}"], "ipFamilies": ["IPv4", "IPv6"],
        "externalTrafficPolicy": "Local", "healthCheckNodePort": FIRST_PORT + number,
        "ports": [{"name": "http", "port": 80, "targetPort": 8080}]})]


class Attacked:
    """A crowd whose daemon may have so many descriptors, with health check ports of so many Services."""

    def __init__(self, crowd, soft, hard, ports):
        self.crowd, self.ports = crowd, range(FIRST_PORT, FIRST_PORT + ports)
        crowd.write_file("local", [item for number in range(ports) for item in local(number)])
        crowd.begin("--v=0", "--metrics-bind-address=0.0.0.0", before=("prlimit", f"--nofile={soft}:{hard}"))
        crowd.listen()

    def hold(self, connections, words, *ports):
        holder = self.crowd.node.spawn("nice", "-n", "10", sys.executable, "-c", HOLD, str(connections), words,
                                       *ADDRESSES.values(), *map(str, ports))[1]
        holder.wait_line("held", timeout=120)

    def processor_s(self):
        words = self.crowd.node.run("cat", f"/proc/{self.crowd.pid_of_daemon}/stat").rsplit(")", 1)[1].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def check(self, most=CPU_SHARE):
        """Changes while all this goes on: written in time, /livez answered, little said and little work: that much of a processor."""
        probe = self.crowd.node.spawn("nice", "-n", "-10", sys.executable, "-c", PROBE, str(HEALTH))[1]
        probe.wait(lambda: len(probe.lines) > 3, "/livez was asked for")
        begun, work = time.monotonic(), self.processor_s()
        for number in range(CHANGES):
            time.sleep(max(0, begun + number / RATE - time.monotonic()))  # the pace is what is tested
            self.crowd.change(number % MOVING)
        for number in range(self.crowd.n_changes - MOVING + 1, self.crowd.n_changes + 1):
            self.crowd.wait_heard(number)
        share = (self.processor_s() - work) / (time.monotonic() - begun)
        late = max(most - taken for most, taken in self.crowd.lateness_ms())
        answers = [line.split() for line in list(probe.lines)]
        longest = max(float(took) for _status, took in answers)
        lines = len(self.crowd.log.lines)
        print(json.dumps({"late_ms": late, "livez_s": longest, "livez": len(answers), "log": lines, "processor": share,
                          "descriptors": self.crowd.descriptors()}))
        assert {status for status, _took in answers} == {"200"}
        assert lines < LOG_LINES, self.crowd.log.lines[-20:]
        assert late <= LATE_MS and longest <= ANSWERED_S and share <= most


@pytest.mark.parametrize("mode", ["iptables", "nftables"])
def test_who_holds_connections_to_health_check_ports_stops_nothing(crowds, mode):
    attacked = Attacked(crowds(50, MOVING, mode), 256, 512, 16)
    attacked.hold(3000, "", *attacked.ports)
    attacked.check()
    crowd = attacked.crowd
    assert crowd.descriptors() <= 512
    assert crowd.ask("/", FIRST_PORT, ADDRESSES[4]).status == 503, "others may still ask for the Service's health"
    assert crowd.metrics()['portolan_http_connections_refused_total{server="service"}'] > 100


@pytest.mark.parametrize("words", ["", "GET /livez HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n" * 400], ids=["silent", "not reading"])
def test_who_holds_connections_to_the_servers_themselves_stops_nothing(crowds, words):
    attacked = Attacked(crowds(50, MOVING, "nftables"), 512, 512, 4)
    attacked.hold(1500, words, HEALTH, METRICS, *attacked.ports)
    attacked.check(most=1.02 if words else CPU_SHARE)  # requests cost what they cost: all of one processor, and what ticks are rounded by
    assert attacked.crowd.metrics()['portolan_http_connections_refused_total{server="health"}'] > 100


@pytest.mark.parametrize("mode", ["iptables", "nftables"])
def test_more_health_check_ports_than_descriptors_stop_nothing(crowds, mode):
    attacked = Attacked(crowds(50, MOVING, mode), 1024, 1024, 600)
    attacked.hold(3000, "", *attacked.ports)
    attacked.check()
    crowd = attacked.crowd
    assert crowd.log_count("file descriptors") >= 1
    assert crowd.descriptors() <= 1024 - 64, "what syncs need is not touched"


def test_the_soft_limit_is_raised_to_the_hard_one(crowds):
    attacked = Attacked(crowds(50, MOVING, "nftables"), 1024, 4096, 600)
    attacked.check()
    crowd = attacked.crowd
    assert crowd.descriptors() > 1200 and not crowd.log.find("A health check port cannot be opened")
    assert crowd.log.find('"Few file descriptors.*limit=4096')
    assert crowd.metrics()["process_max_fds"] == 4096
    for port in (FIRST_PORT, FIRST_PORT + 599):
        for address in ADDRESSES.values():
            assert crowd.ask("/", port, address).status == 503


def test_ports_open_as_descriptors_become_free(crowds):
    attacked = Attacked(crowds(50, MOVING, "nftables"), 512, 512, 400)
    crowd = attacked.crowd
    crowd.log.wait_line("A health check port cannot be opened")
    crowd.write_file("local", local(0) + local(399))
    for port in (FIRST_PORT, FIRST_PORT + 399):
        crowd.wait_for(lambda: crowd.ask("/", port, ADDRESSES[4]).status, lambda status: status == 503)

# SPDX-License-Identifier: Apache-2.0
"""A log that is not read: changes are written and health is told as if it were, and what was lost is told later."""

import fcntl
import os
import pty
import re
import signal
import socket
import subprocess
import time

import pytest
from node import PATIENCE, PORTOLAN, WEB, service, until

HEALTH = """
import http.client, time
begun = time.monotonic()
connection = http.client.HTTPConnection("127.0.0.1", 10256, timeout=5)
connection.request("GET", "/livez")
print(connection.getresponse().status, time.monotonic() - begun)
"""

METRICS = """
import http.client
connection = http.client.HTTPConnection("127.0.0.1", 10249, timeout=20)
connection.request("GET", "/metrics")
print(connection.getresponse().read().decode())
"""

#: For each address that it is told: connects until the pod answers, and says when that was.
CLIENT = """
import socket, sys, time
for line in sys.stdin:
    while True:
        try:
            with socket.create_connection((line.strip(), 80), timeout=5) as connection:
                if connection.recv(16) == b"pod":
                    break
        except OSError:
            time.sleep(0.001)
    print(time.monotonic(), flush=True)
"""

DROPPED = re.compile(r'^W.*"Lines of the log were dropped, its reader does not keep up" lines=(\d+)$', re.M)


def a_pipe():
    return os.pipe()


def a_terminal():
    return pty.openpty()


def a_socket():
    reader, writer = socket.socketpair()
    return reader.detach(), writer.detach()


def fill(fd):
    """Writes until there is no room, as a writer whose reader sleeps; the flag is the description's, and is taken back."""
    flags = fcntl.fcntl(fd, fcntl.F_GETFL)
    fcntl.fcntl(fd, fcntl.F_SETFL, flags | os.O_NONBLOCK)
    for size in (4096, 1):
        try:
            while True:
                os.write(fd, b"\n" * size)
        except BlockingIOError:
            pass
    fcntl.fcntl(fd, fcntl.F_SETFL, flags)


def metric(node, name):
    text = node.run("/usr/bin/python3", "-c", METRICS)
    return float(next(line for line in text.splitlines() if line.startswith(f"{name} ")).split()[1])


def read_until(fd, pattern):
    os.set_blocking(fd, False)
    text = ""

    def more():
        nonlocal text
        try:
            text += os.read(fd, 1 << 20).decode(errors="replace").replace("\r\n", "\n")
        except BlockingIOError:
            pass
        return pattern.search(text)

    return until(more, "the line came")


@pytest.fixture(params=[a_pipe, a_terminal, a_socket], ids=lambda make: make.__name__[2:])
def ends(request):
    reader, writer = request.param()
    yield reader, writer
    for fd in (reader, writer):
        os.close(fd)


@pytest.fixture
def client(netlink_node):
    process = subprocess.Popen(netlink_node.inside(["/usr/bin/python3", "-c", CLIENT]), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               text=True)
    yield process
    process.kill()
    process.communicate()


def change(node, client, number):
    """Seconds from a change of a file to a connection that it made possible."""
    address = f"10.96.1.{number}"
    node.write("other.yaml", service("other", address, ["10.244.0.5"]))
    begun = time.monotonic()
    client.stdin.write(f"{address}\n")
    client.stdin.flush()
    return float(client.stdout.readline()) - begun


def median_of_changes(node, client, first):
    took = sorted(change(node, client, number) for number in range(first, first + 10))
    print(took)
    return took[5]


def alive_within_a_second(node):
    status, seconds = node.run("/usr/bin/python3", "-c", HEALTH).split()
    return status == "200" and float(seconds) < 1


def prepare(node, client):
    """Leaves a thousand Services whose rules are gone: at --v=4 a start logs each chain, more than its buffer holds. Returns what a
    change takes with a log that has room, on this machine and with this build."""
    node.write("web.yaml", WEB)
    node.write("many.yaml", "".join(service(f"s{i}", f"10.96.{2 + i // 250}.{1 + i % 250}", ["10.244.0.5"]) for i in range(1000)))
    node.serve()
    daemon = node.start().wait_synced()
    usual = median_of_changes(node, client, 101)
    chains = re.findall(r"chain (KUBE-S(?:VC|EP)-\w+) {", node.run("nft", "-t", "list", "table", "ip", "nat"))
    assert len(chains) > 2000
    assert daemon.end() == 0
    node.run("nft", "-f", "-", input="".join(f"flush chain ip nat {chain}\n" for chain in chains))
    assert not node.ask()
    return usual


def test_a_reader_that_sleeps_delays_nothing(netlink_node, ends, client):
    node = netlink_node
    reader, writer = ends
    usual = prepare(node, client)
    fill(writer)
    daemon = subprocess.Popen(node.inside([PORTOLAN, "run", *node.flags, "--v=4"]), stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=writer, env=node.env)
    try:
        until(node.ask, "the Service answered, with a log that was full before the start")
        dropped = until(lambda: metric(node, "portolan_log_lines_dropped_total"), "lines were dropped")
        # whoever waits for the log waits always; who has a busy machine may try again, and is slow without that too
        assert any(median_of_changes(node, client, first) < max(0.1, 2 * usual) for first in (1, 11, 21))
        assert any(alive_within_a_second(node) for _ in range(3))
        assert int(read_until(reader, DROPPED).group(1)) >= dropped
        daemon.terminate()
        assert daemon.wait(PATIENCE) == 0
    finally:
        daemon.kill()
        daemon.wait()


def test_a_reader_that_sleeps_does_not_hold_up_the_end(netlink_node, ends):
    node = netlink_node
    _, writer = ends
    fill(writer)
    node.write("web.yaml", WEB)
    node.serve()
    daemon = subprocess.Popen(node.inside([PORTOLAN, "run", *node.flags]), stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=writer, env=node.env)
    try:
        until(node.ask, "the Service answered")
        daemon.terminate()
        assert daemon.wait(PATIENCE) == 0
        assert node.ask()
    finally:
        daemon.kill()
        daemon.wait()


def test_what_is_said_again_and_again_hides_nothing(netlink_node):
    """The same line once in ten seconds, with the number of those left out; what is new is written at once."""
    node = netlink_node
    node.write("web.yaml", WEB)
    daemon = node.start().wait_synced()
    for _ in range(50):
        daemon.process.send_signal(signal.SIGUSR1)  # each is noticed before the next: one that is pending would take in others
        until(lambda: not pending(daemon, signal.SIGUSR1), "it was taken")
    node.write("broken.yaml", "kind: [")
    daemon.wait_log(r"broken\.yaml")
    said = [line for line in daemon.lines if "SIGUSR1: comparing" in line]
    assert len(said) == 1
    assert daemon.end() == 0
    until(lambda: not daemon.read(1), "the log ended")
    said = [line for line in daemon.lines if "SIGUSR1: comparing" in line]
    assert len(said) == 2
    left_out = int(re.search(r" leftOut=(\d+)$", said[1]).group(1))
    assert 1 <= left_out <= 48


def pending(daemon, number):
    """Has the process still to take this signal?"""
    with open(f"/proc/{daemon.process.pid}/status", encoding="ascii") as file:
        masks = [int(line.split()[1], 16) for line in file if line.startswith(("SigPnd", "ShdPnd"))]
    return any(mask >> (number - 1) & 1 for mask in masks)

# SPDX-License-Identifier: Apache-2.0
"""A daemon that is given no more memory: it ends with one line that says what it asked for, and rules stay."""

import re
import resource

import pytest
from node import PATIENCE, WEB, service, until

MIB = 1 << 20
LINE = r'^E.* [a-z_]+\.c:\d+\] "Out of memory, the process ends and rules stay" for="[^"]*" bytes=\d+ err="Cannot allocate memory"$'


def limit(daemon, more):
    """Lets the process grow by so many bytes and no further."""
    with open(f"/proc/{daemon.process.pid}/statm", encoding="ascii") as file:
        size = int(file.read().split()[0]) * resource.getpagesize()
    resource.prlimit(daemon.process.pid, resource.RLIMIT_AS, (size + more, size + more))


def many(round_number):
    return "".join(service(f"more-{round_number}-{i}", f"10.96.{round_number}.{i}", ["10.244.0.5"] * 3) for i in range(1, 251))


def ended(daemon):
    """Has it, within what a change takes to be read?"""
    daemon.mark()
    return not daemon.alive()


@pytest.mark.parametrize("mode", ["iptables", "nftables"])
def test_a_daemon_without_memory_says_what_it_asked_for_and_leaves_the_rules(netlink_node, mode):
    node = netlink_node
    node.write("web.yaml", WEB)
    node.serve()
    daemon = node.start(f"--proxy-mode={mode}").wait_synced()
    until(node.ask, "the Service answered")
    limit(daemon, 2 * MIB)
    for round_number in range(1, 101):
        node.write(f"more-{round_number}.yaml", many(round_number))
        if ended(daemon):
            break
    assert daemon.process.wait(PATIENCE) == 1
    until(lambda: not daemon.read(1), "the log ended")
    told = [line for line in daemon.lines if "Out of memory" in line]
    assert len(told) == 1 and re.match(LINE, told[0]), told
    assert daemon.lines[-1] == told[0]
    assert node.ask()

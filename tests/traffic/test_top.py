# SPDX-License-Identifier: Apache-2.0
"""`portolan top`: rates that were sent, and a terminal that is left as it was. Rules play no part: one mode is enough."""

import json
import os
import re
import sys
import time

import pytest

from lab.daemon import program
from lab.manifests import Service

SESSION = os.path.join(os.path.dirname(os.path.abspath(__file__)), "top_session.py")

pytestmark = pytest.mark.only("nftables")


@pytest.fixture
def busy(cluster):
    """Service default/web with somebody who connects again and again."""
    assert not cluster.node.sysctl(net__netfilter__nf_conntrack_acct=1)
    web = cluster.serve(Service("web", 7, cluster.pods, kind="NodePort"))
    load = cluster.client.load(web.cluster_ip[4], web.port)
    load.wait(2)
    yield cluster, load, web
    load.stop()


def top_words(cluster, *words):
    return [program(), "top", "--interval=300ms", *words, *cluster.daemon.flags]


@pytest.mark.parametrize("scene", ["keys", "signals", "dumb"])
def test_a_terminal_is_left_as_it_was(busy, scene):
    cluster, _load, _web = busy
    cluster.node.run(sys.executable, "-B", SESSION, scene, *top_words(cluster))


def measure(cluster, load):
    """What top tells three times, and how many requests a second the load made meanwhile."""
    before, begun = len(load.so_far()), time.monotonic()
    out = cluster.node.run(*top_words(cluster, "--count=3", "-o", "json"))
    sent = (len(load.so_far()) - before) / (time.monotonic() - begun)
    documents = [json.loads(part) for part in re.split(r"(?<=\n})\n", out) if part.strip()]
    assert len(documents) == 3 and all(found["kind"] == "ServiceRates" for found in documents)
    return documents, sent


def agree(documents, sent):
    names = {"namespace": "default", "name": "web", "port": "main", "protocol": "tcp"}.items()
    counted = [row["connectionsPerSecond"] for found in documents for row in found["servicePorts"] if names <= row.items()]
    print(f"{counted} connections a second, {sent} were made")
    return len(counted) == 3 and sent / 3 < sum(counted) / 3 < sent * 3 and all(
        found["total"]["bytesPerSecond"] > found["total"]["packetsPerSecond"] * 40 for found in documents)


def test_rates_are_those_of_the_load(busy):
    """Once in three times: the load is not the same all the time, a machine has other things to do."""
    cluster, load, _web = busy
    assert any(agree(*measure(cluster, load)) for _ in range(3))


def test_a_service_that_comes_is_counted(busy):
    cluster, _load, web = busy
    read, write = os.pipe()
    pid = cluster.node.agent.call("spawn", [write], argv=top_words(cluster, "--batch"), env=None, log_file=None)
    os.close(write)
    with os.fdopen(read, encoding="utf-8") as lines:
        assert any(line.startswith("default/web:main/tcp ") for line in iter(lines.readline, ""))
        late = Service("late", 9, cluster.pods[:1])
        cluster.serve(web, late)
        assert cluster.client.ask(late.cluster_ip[4], late.port).pod
        assert any(line.startswith("default/late:main/tcp ") for line in iter(lines.readline, ""))
        cluster.node.agent.call("kill", pid=pid, number=15)
        assert cluster.node.agent.call("wait", pid=pid, timeout=10) == 0

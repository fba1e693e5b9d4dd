# SPDX-License-Identifier: Apache-2.0
"""The status page at the metrics' address: what a browser would be told, and what others are refused."""

import base64
import hashlib
import json
import re
import sys

import pytest

from lab.host import METRICS, Pod
from lab.manifests import Service
from lab.prometheus import promtool

#: Prints each event of the stream in a line.
FOLLOW = """
import sys, urllib.request
name = None
for line in urllib.request.urlopen(sys.argv[1]):
    kind, _, rest = line.decode().rstrip("\\n").partition(": ")
    if kind == "event":
        name = rest
    elif kind == "data":
        print(name, rest, flush=True)
"""

#: Opens streams and reads nothing of them, until it is ended. A place that somebody has just left may still be taken.
LAZY = """
import signal, socket, sys
held = []
while len(held) < int(sys.argv[2]):
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    one.connect(("127.0.0.1", int(sys.argv[1])))
    one.send(b"GET /status/events HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n")
    if one.recv(12) == b"HTTP/1.1 200":
        held.append(one)
print("lazy", flush=True)
signal.pause()
"""


@pytest.fixture(scope="module")
def running(hosts):
    host = hosts()
    host.web = Service("web", 10, [Pod("a", 3), Pod("b", 4, "elsewhere")], kind="NodePort")
    host.write(host.web)
    return host.start()


def start_client(host, code, *argv):
    pid, log = host.node.spawn(sys.executable, "-c", code, *map(str, argv))
    return log, pid


def follow(host):
    return start_client(host, FOLLOW, f"http://127.0.0.1:{METRICS}/status/events")


def end(host, pid):
    host.node.agent.call("kill", pid=pid, number=9)
    host.node.agent.call("wait", pid=pid, timeout=15)


def event(log, name, pattern=""):
    """The data of the first such event."""
    return json.loads(log.wait_line(f"^{name} .*{pattern}").string.split(" ", 1)[1])


def services(log, pattern=""):
    return {service["service"]: service for service in event(log, "services", pattern)}


def test_the_page_allows_nothing_but_itself(running):
    page = running.ask("/")
    assert page.status == 200 and page.headers["Content-Type"] == "text/html; charset=utf-8"
    policy = page.headers["Content-Security-Policy"]
    for tag, directive in (("script", "script-src"), ("style", "style-src")):
        found = re.findall(f"<{tag}>(.*?)</{tag}>", page.body, re.S)
        assert len(found) == 1 and f"<{tag} " not in page.body
        digest = base64.b64encode(hashlib.sha256(found[0].encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}';" in policy
    assert policy.startswith("default-src 'none';") and "unsafe" not in policy
    assert page.headers["X-Content-Type-Options"] == "nosniff"


def test_a_change_reaches_an_open_page(running):
    log, pid = follow(running)
    try:
        hello = event(log, "hello")
        assert hello["node"] == "node1" and hello["mode"] == "iptables" and hello["rates"] is False
        first = services(log)["default/web"]
        assert first["type"] == "NodePort" and first["ports"][0]["used"] == 2
        event(log, "loaded")
        running.write(running.web, Service("other", 11, []))
        changed = services(log, "default/other")
        assert changed["default/other"]["ports"][0]["used"] == 0 and changed["default/other"]["changed"] > 0
        assert "default/web" not in changed
        running.write(running.web)
        log.wait(lambda: any(one["service"] == "default/other" and one["ports"] == [] for line in log.lines
                             if line.startswith("services ") for one in json.loads(line.split(" ", 1)[1])), "the end of default/other")
        gauges = event(log, "gauges")
        assert gauges["services"] == 1 and gauges["healthy"] is True and gauges["conntrack_max"] > 0
        sync = event(log, "syncs")[-1]
        assert sync["good"] is True and sync["ms"] > 0
    finally:
        end(running, pid)


def test_the_way_of_a_packet_is_told(running):
    way = running.ask("/status/explain?dest=service/default/web&from=pod").json()
    assert "one of 2 backends" in way["summary"]
    assert sorted(backend["address"].split(":")[0] for backend in way["backends"]) == ["10.244.1.3", "10.244.2.4"]
    assert {backend["share"] for backend in way["backends"]} == {"1/2"}
    assert way["steps"][0]["hook"] == "prerouting"
    chart = running.ask("/status/chart.svg?service=default/web")
    assert chart.headers["Content-Type"] == "image/svg+xml" and "10.244.1.3" in chart.body


@pytest.mark.parametrize("path, status", [
    ("/status/explain", 400), ("/status/explain?dest=x", 400), ("/status/explain?dest=10.96.0.10:80&from=mars", 400),
    ("/status/explain?dest=service/default/none", 404), ("/status/chart.svg?service=default/none", 404),
    ("/status/chart.svg?service=none", 400), ("/status/none", 404)])
def test_bad_questions_are_answered_in_words(running, path, status):
    answer = running.ask(path)
    assert answer.status == status and len(answer.body) > 10


def test_nothing_can_be_changed(running):
    for method in ("POST", "PUT", "DELETE"):
        for path in ("/", "/status/events", "/status/explain"):
            answer = running.ask(path, method=method)
            assert answer.status == 405 and answer.headers["Allow"] == "GET, HEAD"


def test_readers_that_do_not_read_harm_nobody(running):
    """All but one place taken by clients that read nothing: syncs, scrapes and the last reader go on."""
    lazy, lazy_pid = start_client(running, LAZY, METRICS, 15)
    log = pid = None
    try:
        lazy.wait_line("lazy")
        log, pid = follow(running)
        event(log, "loaded")
        assert running.ask("/status/events").status == 503
        pods = [Pod("a", 3)]
        for number in range(5, 15):
            pods.append(Pod("x", number, "elsewhere"))
            running.web.pods = list(pods)
            running.write(running.web)
            log.wait_line(f'^services .*"used":{len(pods)},')
        checked = promtool("check", "metrics", stdin=running.ask("/metrics").body)
        assert checked.returncode != 1, checked.stderr  # 3 is a matter of taste: names of kube-proxy's
    finally:
        end(running, lazy_pid)
        if pid:
            end(running, pid)
    running.wait_for(lambda: running.ask("/status/events", method="HEAD").status, lambda status: status == 200)


def test_the_page_can_be_closed(host):
    host.start("--status-page=false")
    assert host.ask("/").status == 404 and host.ask("/status/events").status == 404
    assert host.ask("/metrics").status == 200

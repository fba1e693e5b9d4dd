# SPDX-License-Identifier: Apache-2.0
"""By which names the servers may be called, and which requests are none.

A web site can make its own name point to a node. What a browser there sends has that name in its Host header.
"""

import pytest

from lab.host import ADDRESSES, HEALTH, METRICS, Pod
from lab.manifests import Service

ABOUT_THE_CLUSTER = ["/", "/status/events", "/status/explain?dest=10.96.0.10:80", "/status/chart.svg", "/metrics", "/metrics/slis",
                     "/configz", "/flagz", "/statusz", "/proxyMode", "/debug/pprof/", "/no/such/page"]
SERVICE_PORT = 31050

#: Sends bytes and tells what comes back, up to the end.
RAW = """
import json, socket, sys
one = socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=20)
one.sendall(sys.argv[2].encode().decode("unicode_escape").encode())
one.shutdown(socket.SHUT_WR)
answer = b""
while (part := one.recv(65536)):
    answer += part
print(json.dumps(answer.decode()))
"""


@pytest.fixture(scope="module")
def running(hosts):
    host = hosts()
    host.write(Service("web", 10, [Pod("a", 3)], kind="LoadBalancer", externalTrafficPolicy="Local", healthCheckNodePort=SERVICE_PORT))
    return host.start("--profiling", "--metrics-bind-address=0.0.0.0", "--feature-gates=ComponentFlagz=true,ComponentStatusz=true")


@pytest.mark.parametrize("path", ABOUT_THE_CLUSTER)
def test_a_foreign_name_learns_nothing_about_the_cluster(running, path):
    for name in ("evil.example", "evil.example:10249", "localhost.evil.example", "node1.evil.example"):
        answer = running.ask(path, Host=name)
        assert answer.status == 421 and "Host" in answer.body and "10.96" not in answer.body


@pytest.mark.parametrize("path", ["/metrics", "/configz", "/flagz", "/statusz", "/proxyMode", "/"])
def test_addresses_localhost_and_the_nodes_name_are_answered(running, path):
    for name in ("127.0.0.1", f"{ADDRESSES[4]}:10249", f"[{ADDRESSES[6]}]:10249", "203.0.113.9", "localhost:10249", "NODE1", "node1:10249"):
        assert running.ask(path, Host=name).status == 200, name


def test_health_is_told_under_any_name(running):
    for port, path in ((HEALTH, "/healthz"), (HEALTH, "/livez"), (METRICS, "/healthz"), (SERVICE_PORT, "/any")):
        assert running.wait_for(lambda: running.ask(path, port, Host="lb.example.com").status, lambda status: status == 200)


def test_the_log_level_is_not_set_under_a_foreign_name(running):
    assert running.ask("/debug/flags/v", method="PUT", body="2", Host="evil.example").status == 421
    assert running.ask("/debug/flags/v", method="PUT", body="2", Host="localhost").status == 200


@pytest.mark.parametrize("port", [HEALTH, METRICS, SERVICE_PORT])
@pytest.mark.parametrize("head", [
    "GET /healthz HTTP/1.1\\r\\n", "GET /healthz HTTP/1.1\\r\\nHost: a\\r\\nHost: a\\r\\n",
    "GET http://b/healthz HTTP/1.1\\r\\nHost: a\\r\\n",
    "GET /healthz HTTP/1.1\\r\\nHost: a\\r\\nContent-Length: 0\\r\\nContent-Length: 1\\r\\n",
    "GET /healthz HTTP/1.1\\r\\nHost: a\\r\\nContent-Length: 0\\r\\nTransfer-Encoding: chunked\\r\\n"],
    ids=["no Host", "two Hosts", "another host", "two lengths", "length and encoding"])
def test_a_request_with_two_meanings_is_none(running, port, head):
    answer = running.run_client(RAW, port, head + "\\r\\n")
    assert answer.startswith("HTTP/1.1 400 Bad Request\r\n") and "\r\nConnection: close\r\n" in answer


def test_the_host_of_the_target_counts(running):
    served = running.run_client(RAW, METRICS, "GET http://localhost:10249/proxyMode HTTP/1.1\\r\\nHost: LOCALHOST:10249\\r\\n\\r\\n")
    assert served.startswith("HTTP/1.1 200 OK\r\n")
    foreign = running.run_client(RAW, METRICS, "GET http://evil.example/proxyMode HTTP/1.0\\r\\n\\r\\n")
    assert foreign.startswith("HTTP/1.1 421 ")

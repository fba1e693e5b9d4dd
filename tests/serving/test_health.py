# SPDX-License-Identifier: Apache-2.0
"""/healthz, /livez and the health check ports of Services."""

import re
import time

import pytest

from lab.host import ADDRESSES, HEALTH, METRICS, NODE, Pod
from lab.manifests import Endpoint, Service

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z$")


@pytest.fixture(scope="module")
def running(hosts):
    return hosts().start()


@pytest.mark.parametrize("path", ["/healthz", "/livez"])
def test_a_proxy_that_keeps_up_says_so_as_kube_proxy_does(running, path):
    running.write()
    answer = running.wait_for(lambda: running.ask(path, HEALTH), lambda answer: answer.status == 200)
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    body = answer.json()
    keys = ["lastUpdated", "currentTime", "nodeEligible", "healthy", "status"]
    assert list(body) == (keys if path == "/healthz" else [key for key in keys if key != "nodeEligible"])
    assert body["healthy"] is True
    assert list(body["status"]) == ["IPv4", "IPv6"]
    for family in body["status"].values():
        assert list(family) == ["lastUpdated", "healthy"] and family["healthy"] is True
        assert TIME.match(family["lastUpdated"])
    assert TIME.match(body["currentTime"])


@pytest.mark.parametrize("node", [
    {"metadata": {"name": NODE, "deletionTimestamp": "2026-01-01T00:00:00Z"}},
    {"spec": {"taints": [{"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"}]}},
], ids=["being deleted", "marked by the autoscaler"])
def test_a_node_that_goes_is_not_eligible_and_still_alive(running, node):
    running.write()
    running.wait_for(lambda: running.ask("/healthz", HEALTH), lambda answer: answer.status == 200)
    running.write(node=node)
    answer = running.wait_for(lambda: running.ask("/healthz", HEALTH), lambda answer: answer.status == 503)
    body = answer.json()
    assert body["nodeEligible"] is False and body["healthy"] is True
    assert body["lastUpdated"] < body["currentTime"]
    assert running.ask("/livez", HEALTH).status == 200
    running.write(node={"spec": {"taints": [{"key": "other", "effect": "NoSchedule"}]}})
    running.wait_for(lambda: running.ask("/healthz", HEALTH), lambda answer: answer.status == 200)


def test_without_a_node_it_is_not_eligible(host):
    host.write(node=False)
    host.start()
    body = host.ask("/healthz", HEALTH)
    assert body.status == 503 and body.json()["nodeEligible"] is False
    assert host.ask("/livez", HEALTH).status == 200


def test_a_change_that_cannot_be_written_makes_it_ill_until_it_can(host):
    """Twice the sync period after the change, and no earlier; health check ports go down with it."""
    local = Service("web", 10, [Pod("a", 3)], kind="LoadBalancer", externalTrafficPolicy="Local", healthCheckNodePort=31001)
    host.write(local)
    host.start("--iptables-sync-period=1s", "--iptables-variant=nft", "--iptables-writer=restore")
    host.wait_for(lambda: host.ask("/", 31001), lambda answer: answer.status == 200)
    tools = "/usr/sbin/xtables-nft-multi"
    host.node.run("mount", "--bind", "/dev/null", tools)
    try:
        local.port = 81
        begun = time.monotonic()
        host.write(local)
        host.log.wait_line('"Sync failed')
        answer = host.wait_for(lambda: host.ask("/livez", HEALTH), lambda answer: answer.status == 503)
        assert time.monotonic() - begun >= 2, "ill before its time"
        assert answer.json()["healthy"] is False
        assert answer.json()["status"]["IPv4"]["healthy"] is False
        assert host.ask("/healthz", HEALTH).status == 503
        port = host.ask("/", 31001)
        assert port.status == 503 and port.json()["serviceProxyHealthy"] is False
    finally:
        host.node.run("umount", tools)
    host.wait_for(lambda: host.ask("/livez", HEALTH), lambda answer: answer.status == 200)
    host.wait_for(lambda: host.ask("/", 31001), lambda answer: answer.status == 200)
    metrics = host.metrics()
    assert metrics['kubeproxy_proxy_livez_total{code="503"}'] >= 1
    assert metrics['kubeproxy_proxy_healthz_total{code="503"}'] == 1
    assert metrics['kubeproxy_sync_proxy_rules_iptables_partial_restore_failures_total{ip_family="IPv4"}'] >= 1


def test_other_paths_are_not_found(running):
    assert running.ask("/", HEALTH).status == 404
    assert running.ask("/healthz/", HEALTH).status == 404


# -- families


def test_both_servers_answer_over_both_families_where_the_address_is_0_0_0_0(host):
    """As kube-proxy's do; the log names what was given."""
    host.start("--metrics-bind-address=0.0.0.0")
    for address in ("127.0.0.1", "::1", *ADDRESSES.values()):
        assert host.ask("/livez", HEALTH, address).status == 200, address
        assert host.ask("/metrics", METRICS, address).status == 200, address
    for port in (HEALTH, METRICS):
        host.log.wait_line(f'"Listening".*address="0.0.0.0:{port}"')


def test_servers_of_one_address_keep_to_it(host):
    host.start(f"--healthz-bind-address={ADDRESSES[4]}", f"--metrics-bind-address=[{ADDRESSES[6]}]:{METRICS}")
    addresses = ("127.0.0.1", "::1", *ADDRESSES.values())
    assert [host.ask("/livez", HEALTH, address).status for address in addresses] == [0, 0, 200, 0]
    assert [host.ask("/metrics", METRICS, address).status for address in addresses] == [0, 0, 0, 200]


def test_both_servers_answer_where_ipv6_is_turned_off(host):
    host.node.run("sysctl", "-q", "net.ipv6.conf.all.disable_ipv6=1")
    host.start("--metrics-bind-address=0.0.0.0", wait=False)
    host.log.wait_line('"First sync done" ipFamily="IPv4"')
    for port, path in ((HEALTH, "/livez"), (METRICS, "/metrics")):
        host.wait_for(lambda: host.ask(path, port, ADDRESSES[4]), lambda answer: answer.status == 200)
        assert host.ask(path, port, "::1").status == 0


# -- health check ports


def health_of(host, port, address="127.0.0.1"):
    return lambda: host.ask("/any/path", port, address)


def test_a_health_check_port_tells_of_local_endpoints(running):
    web = Service("web", 20, [Pod("a", 3), Pod("b", 4), Pod("c", 5, "elsewhere")], kind="LoadBalancer",
                  externalTrafficPolicy="Local", healthCheckNodePort=31020)
    running.write(web)
    answer = running.wait_for(health_of(running, 31020), lambda answer: answer.status == 200)
    assert answer.body == ('{\n\t"service": {\n\t\t"namespace": "default",\n\t\t"name": "web"\n\t},\n'
                           '\t"localEndpoints": 2,\n\t"serviceProxyHealthy": true\n}')
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["X-Load-Balancing-Endpoint-Weight"] == "2"
    assert running.ask("/", 31020, ADDRESSES[4], "POST").status == 200
    running.wait_for(health_of(running, 31020, "::1"), lambda answer: answer.status == 200)  # IPv6 has a server of its own
    web.pods[0] = Endpoint(web.pods[0], "terminating")
    running.write(web)
    running.wait_for(health_of(running, 31020), lambda answer: answer.json()["localEndpoints"] == 1)
    web.pods = web.pods[2:]
    running.write(web)
    answer = running.wait_for(health_of(running, 31020), lambda answer: answer.status == 503)
    assert answer.json()["localEndpoints"] == 0
    assert answer.headers["X-Load-Balancing-Endpoint-Weight"] == "0"


def test_health_check_ports_come_go_and_move_with_their_services(running):
    one = Service("one", 21, [Pod("a", 3)], kind="LoadBalancer", externalTrafficPolicy="Local", healthCheckNodePort=31021)
    two = Service("two", 22, [Pod("a", 3)], kind="LoadBalancer", externalTrafficPolicy="Local", healthCheckNodePort=31022)
    running.write(one)
    running.wait_for(health_of(running, 31021), lambda answer: answer.status == 200)
    one.spec["healthCheckNodePort"] = 31023
    two.spec["healthCheckNodePort"] = 31021  # what the other had
    running.write(one, two)
    running.wait_for(health_of(running, 31021), lambda answer: answer.status and answer.json()["service"]["name"] == "two")
    running.wait_for(health_of(running, 31023), lambda answer: answer.status == 200)
    two.spec["externalTrafficPolicy"] = "Cluster"
    running.write(one, two)
    running.wait_for(health_of(running, 31021), lambda answer: answer.status == 0)
    assert running.ask("/", 31023).status == 200
    running.write()
    running.wait_for(health_of(running, 31023), lambda answer: answer.body == "ConnectionRefusedError")


def test_services_that_swap_their_health_check_ports_in_one_step_have_them(host):
    """Whichever is looked at first, the other one still had its port then."""
    one = Service("one", 21, [Pod("a", 3)], kind="LoadBalancer", externalTrafficPolicy="Local", healthCheckNodePort=31021)
    two = Service("two", 22, [Pod("a", 3)], kind="LoadBalancer", externalTrafficPolicy="Local", healthCheckNodePort=31022)
    host.write(one, two)
    host.start()
    host.wait_for(health_of(host, 31021), lambda answer: answer.status == 200)
    one.spec["healthCheckNodePort"], two.spec["healthCheckNodePort"] = 31022, 31021
    host.write(one, two)
    for address in ("127.0.0.1", "::1"):
        for port, name in ((31021, "two"), (31022, "one")):
            host.wait_for(health_of(host, port, address), lambda answer: answer.status and answer.json()["service"]["name"] == name)
    assert not [line for line in host.log.lines if "A health check port cannot be opened" in line]


def test_a_port_that_is_taken_is_reported_once_and_opened_later(host):
    holder = host.node.agent.start("run", argv=["python3", "-c", "import socket, time\n"
                                                "s = socket.create_server(('0.0.0.0', 31030))\n"
                                                "open('/run/held', 'w').close()\n"
                                                "c, a = s.accept()"])
    host.wait_for(lambda: host.node.run("test", "-e", "/run/held", check=False)[0], lambda code: code == 0)
    web = Service("web", 23, [Pod("a", 3)], kind="LoadBalancer", externalTrafficPolicy="Local", healthCheckNodePort=31030)
    host.write(web)
    host.start()
    host.log.wait_line("A health check port cannot be opened.*default/web.*31030")
    host.wait_for(health_of(host, 31030, "::1"), lambda answer: answer.status == 200)  # IPv6 has it
    host.node.run("python3", "-c", "import socket; socket.create_connection(('127.0.0.1', 31030))")  # lets go of it
    holder.result(60)
    web.port = 81  # any good sync tries again
    host.write(web)
    host.wait_for(health_of(host, 31030), lambda answer: answer.status == 200)
    assert sum("A health check port cannot be opened" in line for line in host.log.lines) == 1


def test_health_check_ports_keep_to_the_addresses_of_node_ports(host):
    web = Service("web", 24, [Pod("a", 3)], kind="LoadBalancer", externalTrafficPolicy="Local", healthCheckNodePort=31040)
    host.write(web)
    host.start("--nodeport-addresses=192.0.2.0/24,2001:db8:ffff::/64")
    host.wait_for(health_of(host, 31040, ADDRESSES[4]), lambda answer: answer.status == 200)
    assert host.ask("/", 31040).status == 0
    assert host.ask("/", 31040, ADDRESSES[6]).status == 0, "no address of the family fits"


def test_health_check_ports_follow_the_words_of_node_ports(host):
    web = Service("web", 24, [Pod("a", 3)], kind="LoadBalancer", externalTrafficPolicy="Local", healthCheckNodePort=31050)
    host.write(web)
    host.start("--nodeport-addresses=localhost")
    for address in ("127.0.0.1", "::1"):
        host.wait_for(health_of(host, 31050, address), lambda answer: answer.status == 200)
    for address in ADDRESSES.values():
        assert host.ask("/", 31050, address).status == 0

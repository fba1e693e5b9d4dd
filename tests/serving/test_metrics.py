# SPDX-License-Identifier: Apache-2.0
"""The metrics server: the numbers, what Prometheus' own tools say of them, and the other pages."""

import os

import pytest

from lab import scrape
from lab.host import METRICS, Pod
from lab.manifests import Service
from lab.prometheus import promtool
from lab.topology import wait_for

HERE = os.path.dirname(os.path.abspath(__file__))


@pytest.fixture(scope="module", params=["iptables", "nftables"])
def mode(request):
    return request.param


@pytest.fixture(scope="module")
def running(hosts, mode):
    """After a start and a change, both asked for their health."""
    host = hosts()
    web = Service("web", 10, [Pod("a", 3)], proto="UDP", kind="NodePort")
    host.write(web)
    host.start(f"--proxy-mode={mode}")
    web.pods.append(Pod("b", 4, "elsewhere"))
    host.write(web)
    for family in ("IPv4", "IPv6"):
        host.log.wait_line(f'"Sync done" ipFamily="{family}" full=false')
    for path in ("/healthz", "/livez"):
        host.ask(path, 10256)
    host.wait_reconciled()
    return host


def golden(mode):
    """Of kube-proxy's metrics those that the mode has; see tests/cluster/test_metrics.py."""
    with open(os.path.join(HERE, "kube-proxy.metrics"), encoding="utf-8") as file:
        rows = [line.rstrip("\n").split(" ", 2) for line in file if not line.startswith("#")]
    return {name: words for modes, name, words in rows if mode in modes.strip("?").split(",")}


def test_every_metric_is_kube_proxys_own(running, mode):
    described = scrape.describe(running.ask("/metrics").body)
    wanted = golden(mode)
    assert {name: words for name, words in described.items() if wanted.get(name) != words} == {}
    # nothing failed, nothing was triggered by an annotation, and a kernel may have no nfacct
    missing = set(wanted) - set(described)
    assert {name for name in missing if "failures" not in name and "nfacct" not in name and "packets" not in name} == {
        "kubeproxy_network_programming_duration_seconds"}


def test_promtool_finds_nothing_to_fix(running):
    """It minds kube-proxy's own names, of which two gauges end in _total; beside those nothing."""
    page = running.ask("/metrics").body
    done = promtool("check", "metrics", stdin=page)
    complaints = [line for line in (done.stdout + done.stderr).splitlines() if line and not line.startswith("kubeproxy_")]
    assert complaints == []
    assert promtool("check", "metrics", stdin=page + "nonsense{\n").returncode == 1, "it looks"


def test_numbers_follow_what_happens(running, mode):
    before = running.metrics()
    assert before["kubeproxy_sync_proxy_rules_service_changes_total"] == 4 - 2  # one Service, two families
    assert before["kubeproxy_sync_proxy_rules_endpoint_changes_total"] == 4  # two slices, set twice
    assert before["kubeproxy_sync_proxy_rules_endpoint_changes_pending"] == 0
    assert before['kubeproxy_proxy_healthz_total{code="200"}'] >= 1
    for family in ("IPv4", "IPv6"):
        full = before[f'kubeproxy_sync_full_proxy_rules_duration_seconds_count{{ip_family="{family}"}}']
        partial = before[f'kubeproxy_sync_partial_proxy_rules_duration_seconds_count{{ip_family="{family}"}}']
        assert full >= 1 and partial >= 1
        assert before[f'kubeproxy_sync_proxy_rules_duration_seconds_count{{ip_family="{family}"}}'] == full + partial
        assert before[f'kubeproxy_sync_proxy_rules_last_timestamp_seconds{{ip_family="{family}"}}'] >= \
            before[f'kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds{{ip_family="{family}"}}']
    if mode == "iptables":
        assert before['kubeproxy_sync_proxy_rules_iptables_total{ip_family="IPv4",table="nat"}'] > 10


def test_services_that_ask_for_what_is_not_theirs_are_counted(hosts, mode):
    host = hosts()
    dns = Service("dns", 11, [Pod("a", 3)])
    evil = Service("evil", 12, [Pod("b", 4)], externalIPs=[dns.cluster_ip[4]])
    host.write(dns, evil)
    host.start(f"--proxy-mode={mode}")
    numbers = scrape.values(host.ask("/metrics").body)
    found = {labels: value for (name, labels), value in numbers.items() if name == "portolan_address_conflicts"}
    host.stop()
    assert {labels for labels, value in found.items() if value} == {(("ip_family", "IPv4"), ("kind", "cluster_ip"))}
    assert len(found) == 6


def test_the_process_is_described(running):
    metrics = running.metrics()
    assert metrics["process_resident_memory_bytes"] == pytest.approx(running.status("VmRSS:") * 1024, rel=0.2)
    assert metrics["process_open_fds"] > 5
    assert metrics["portolan_conntrack_max_entries"] >= metrics["portolan_conntrack_entries"] >= 0


def test_other_pages(running, mode):
    assert running.ask("/healthz").body == "ok"
    answer = running.ask("/proxyMode")
    assert (answer.body, answer.headers["Content-Type"]) == (mode, "text/plain; charset=utf-8")
    assert running.ask("/configz").json()["kubeproxy.config.k8s.io"]["mode"] == mode
    assert f"\nproxy-mode={mode}\n" in running.ask("/flagz").body
    assert "/metrics" in running.ask("/statusz").body
    assert "process_start_time_seconds" in running.ask("/metrics/slis").body
    for path in ("/debug/pprof/", "/debug/pprof/heap"):
        answer = running.ask(path)
        assert answer.status == 404 and "no profiles" in answer.body
    assert running.ask("/elsewhere").status == 404
    answer = running.ask("/metrics", method="HEAD")
    assert answer.status == 200 and answer.body == ""


@pytest.mark.parametrize("kind", ["Flagz", "Statusz"])
def test_zpages_are_objects_for_those_who_ask_for_them(running, kind):
    path = f"/{kind.lower()}"
    for version, deprecated in (("v1beta1", False), ("v1alpha1", True)):
        answer = running.ask(path, Accept=f"application/json;as={kind};v={version};g=config.k8s.io, text/plain")
        assert (answer.status, answer.headers["Content-Type"]) == (200, "application/json")
        assert ("Warning" in answer.headers) == deprecated
        found = answer.json()
        assert list(found)[:3] == ["kind", "apiVersion", "metadata"]
        assert (found["kind"], found["apiVersion"]) == (kind, f"config.k8s.io/{version}")
        assert found["metadata"] == {"name": "kube-proxy"}
    if kind == "Flagz":
        assert found["flags"]["v"] == "2" and found["flags"]["conntrack-max-per-core"] == "0"
    else:
        assert found["uptimeSeconds"] >= 0 and "/metrics" in found["paths"] and found["emulationVersion"] == "1.37"
    for accept in ("*/*", "text/plain", "", "application/json, text/*;q=0.5"):
        answer = running.ask(path, Accept=accept)
        assert answer.status == 200 and answer.body.startswith(f"\nkube-proxy {kind.lower()}\n")
    for accept in ("application/json", "application/vnd.kubernetes.protobuf", f"application/json;as={kind};v=v9;g=config.k8s.io",
                   f"application/json;as=Other;v=v1beta1;g=config.k8s.io", ";;,,;=,as=;g=;v="):
        answer = running.ask(path, Accept=accept)
        assert answer.status == 406 and answer.json()["reason"] == "NotAcceptable"


def test_the_log_level_is_set_where_kube_proxy_lets_it(running, host):
    assert running.ask("/debug/flags/v", method="PUT", body="4").status == 404, "without --profiling"
    host.start("--profiling", "--v=0")
    assert host.ask("/debug/flags/v").status == 406
    for body in ("", "x", "-1", "99999999999", "4" * 100):
        assert host.ask("/debug/flags/v", method="PUT", body=body).status == 400
    host.write(Service("web", 10, [Pod("a", 3)]))
    assert host.ask("/debug/flags/v", method="PUT", body="2").status == 200
    host.write(Service("web", 10, [Pod("a", 4)]))
    host.log.wait_line('"Sync done"')


def test_gates_are_those_of_the_newest_version(running):
    """All of them, and none that only an older one has; tests/cluster/test_metrics.py holds each value against kube-proxy."""
    gates = {name: value for name, value in running.metrics().items() if name.startswith("kubernetes_feature_enabled{")}
    assert len(gates) == 254
    assert gates['kubernetes_feature_enabled{name="KubeProxyIPVS",stage="DEPRECATED"}'] == 1
    assert gates['kubernetes_feature_enabled{name="KubeProxyNFTablesLocalhostNodePorts",stage="ALPHA"}'] == 0
    assert gates['kubernetes_feature_enabled{name="HostnameOverride",stage=""}'] == 1
    assert not any("SidecarContainers" in name for name in gates)


def test_flags_of_an_older_kube_proxy_are_taken_and_not_shown(host):
    host.start("--boot-id-file=/x", "--machine-id-file=/y")
    flags = host.ask("/flagz").body
    assert "\nbind-address=" in flags and "\nmasquerade-all=" in flags
    assert "boot-id-file" not in flags and "machine-id-file" not in flags


def test_pages_behind_gates(host):
    host.start("--feature-gates=ComponentFlagz=false,ComponentStatusz=false")
    assert host.ask("/flagz").status == host.ask("/statusz").status == 404
    assert host.ask("/metrics").status == 200


# -- addresses


def test_an_address_that_is_taken_is_tried_again(host):
    script = ("import socket\ns = socket.create_server(('127.0.0.1', 10249))\nopen('/run/held', 'w').close()\ns.accept()")
    holder = host.node.agent.start("run", argv=["python3", "-c", script])
    wait_for(lambda: host.node.run("test", "-e", "/run/held", check=False)[0] == 0, what="the port is taken")
    host.start()
    host.log.wait_line('"A server cannot start, trying again every 5 s" server="metrics".*127.0.0.1:10249')
    assert host.ask("/healthz", 10256).status == 200, "the other one is not concerned"
    host.node.run("python3", "-c", "import socket; socket.create_connection(('127.0.0.1', 10249))")  # lets go of it
    holder.result(60)
    host.log.wait_line('"Listening" server="metrics"')
    assert host.ask("/healthz").body == "ok"


@pytest.mark.parametrize("port", [METRICS, 10256])
def test_with_hard_fail_it_ends(host, port):
    script = f"import socket\ns = socket.create_server(('0.0.0.0', {port}))\nopen('/run/held', 'w').close()\ns.accept()"
    host.node.agent.start("run", argv=["python3", "-c", script])
    wait_for(lambda: host.node.run("test", "-e", "/run/held", check=False)[0] == 0, what="the port is taken")
    host.start("--bind-address-hard-fail", wait=False)
    assert host.wait() == 1
    assert "A server cannot start" in "\n".join(host.log.lines)
    assert not any("First sync done" in line for line in host.log.lines)


def test_addresses_as_flags_say(host):
    host.start("--metrics-bind-address=[::]:9000", "--healthz-bind-address=192.0.2.11:9001")
    assert host.ask("/healthz", 9000).body == "ok", "IPv4 too"
    assert host.ask("/healthz", 9000, "::1").body == "ok"
    assert host.ask("/livez", 9001, "192.0.2.11").status == 200
    assert host.ask("/livez", 9001).status == 0
    assert host.ask("/metrics").status == 0
    host.stop()
    host.start("--healthz-port=0")
    assert host.ask("/livez", 10256).status == 0


# -- clients that are no friends

CROWD = """
import json, socket, sys
held = [socket.create_connection(("127.0.0.1", 10249)) for _ in range(int(sys.argv[1]))]
with socket.create_connection(("127.0.0.1", 10249), timeout=20) as late:
    late.sendall(b"GET /proxyMode HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n")
    answer = late.recv(4096).decode()
print(json.dumps(answer.split("\\r\\n")[0]))
"""

HUGE = """
import json, socket
with socket.create_connection(("127.0.0.1", 10249), timeout=20) as one:
    try:
        one.sendall(b"GET / HTTP/1.1\\r\\n" + b"X-Long: " + b"x" * 1000000)
    except OSError:
        pass
    try:
        answer = one.recv(4096).decode()
    except ConnectionResetError:
        answer = "reset"
print(json.dumps(answer.split("\\r\\n")[0]))
"""

LORIS = """
import json, select, socket, time
begin = time.monotonic()
with socket.create_connection(("127.0.0.1", 10249)) as one:
    one.sendall(b"GET /metrics HTTP/1.1\\r\\n")
    while not select.select([one], [], [], 0.5)[0] and time.monotonic() - begin < 30:
        one.sendall(b"X")  # one letter at a time
    ended = one.recv(100) == b""
print(json.dumps([ended, time.monotonic() - begin]))
"""


@pytest.fixture(scope="module")
def victim(hosts):
    return hosts().start()


def test_a_crowd_that_says_nothing_keeps_nobody_out(victim):
    assert victim.run_client(CROWD, 600) == "HTTP/1.1 200 OK"
    assert victim.metrics()["process_open_fds"] < 300


def test_huge_headers_are_refused(victim):
    assert victim.run_client(HUGE) in ("HTTP/1.1 431 Request Header Fields Too Large", "reset")
    assert victim.ask("/healthz").body == "ok"


def test_a_client_that_trickles_is_cut_off(victim):
    ended, seconds = victim.run_client(LORIS)
    assert ended and 8 < seconds < 15


FLOOD = """
import http.client, json, sys, threading
errors, per_thread = [], int(sys.argv[1])
def work():
    connection = http.client.HTTPConnection("127.0.0.1", 10249, timeout=60)
    for _ in range(per_thread):
        try:
            connection.request("GET", "/metrics")
            answer = connection.getresponse()
            answer.read()
            if answer.status != 200:
                errors.append(answer.status)
        except OSError as error:
            errors.append(repr(error))
            return
threads = [threading.Thread(target=work) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(json.dumps(errors))
"""


def test_memory_does_not_grow_with_scrapes(victim):
    assert victim.run_client(FLOOD, 100) == []
    warm = victim.status("VmRSS:")
    assert victim.run_client(FLOOD, 500) == []
    if "PORTOLAN_SANITIZED" not in os.environ:  # a sanitizer keeps what was freed, and finds leaks itself
        assert victim.status("VmRSS:") < warm + 1024

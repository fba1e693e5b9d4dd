# SPDX-License-Identifier: Apache-2.0
"""What the person on call is given: alerts, the dashboard, and the list of log lines, held to what the program does."""

import glob
import json
import os
import re

import pytest

from host import ADDRESSES, HEALTH, Pod
from lab.manifests import Service
from lab.prometheus import Prometheus, promtool

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ALERTS = f"{ROOT}/deploy/portolan-alerts.yaml"
DASHBOARD = f"{ROOT}/deploy/portolan-dashboard.json"

METRIC = re.compile(r"\b(?:kubeproxy|portolan|process|rest_client)_[a-z_]+\b")
#: Nothing is told of what has not happened; these take a failure, an API server or its trigger time, or traffic.
NOT_YET = {"kubeproxy_sync_proxy_rules_iptables_restore_failures_total", "kubeproxy_sync_proxy_rules_nftables_sync_failures_total",
           "portolan_healthz_probe_failures_total", "portolan_repairs_total", "rest_client_requests_total",
           "kubeproxy_network_programming_duration_seconds_bucket", "portolan_service_connections_total",
           "portolan_service_bytes_total"}


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


@pytest.fixture(scope="module")
def exported(hosts):
    """Every name that a scrape has, in both modes."""
    host = hosts()
    names = set()
    for mode in ("iptables", "nftables"):
        host.write(Service("web", 10, [Pod("a", 3)], proto="UDP"))
        host.start(f"--proxy-mode={mode}")
        host.write(Service("web", 10, [Pod("a", 4)], proto="UDP"))
        host.log.wait_line('"Sync done".*full=false')
        for path in ("/healthz", "/livez"):
            host.ask(path, 10256)
        page = host.ask("/metrics").body
        names |= {re.split(r"[{ ]", line)[0] for line in page.splitlines() if not line.startswith("#")}
        names |= {line.split()[2] for line in page.splitlines() if line.startswith("# TYPE")}
        host.stop()
    return names


def questions():
    """Of the dashboard's panels."""
    return [target["expr"] for panel in json.loads(read(DASHBOARD))["panels"] for target in panel["targets"]]


def expressions():
    return "\n".join([line for line in read(ALERTS).splitlines() if not line.lstrip().startswith("#")] + questions())


def test_every_metric_of_alerts_and_dashboard_is_exported(exported):
    named = set(METRIC.findall(expressions()))
    assert len(named) > 20
    assert named - exported - NOT_YET == set()
    in_the_source = "".join(read(path) for path in glob.glob(f"{ROOT}/src/**/*.c", recursive=True))
    assert [name for name in NOT_YET if f'"{name.removesuffix("_bucket")}"' not in in_the_source] == []


def test_promtool_takes_the_alerts():
    done = promtool("check", "rules", ALERTS)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_dashboard_is_whole():
    dashboard = json.loads(read(DASHBOARD))
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(ids)) == len(ids)
    for panel in dashboard["panels"]:
        assert panel["title"] and panel["targets"] and panel["gridPos"]["w"] > 0
        for target in panel["targets"]:
            assert target["expr"].count("(") == target["expr"].count(")")


def test_prometheus_answers_all_that_dashboard_and_alerts_ask(hosts):
    """Of a node where nothing is wrong: each panel has something to show but for what has not happened, no alert is raised."""
    host = hosts()
    here = Pod("here", 3)
    here.address = dict(ADDRESSES)
    host.node.ip("route add 10.96.0.0/16 dev eth0")
    web, names = Service("web", 10, [here], target=HEALTH, families=(4,)), Service("names", 11, [here], proto="UDP", families=(4,))
    host.write(web, names)
    host.start("--proxy-mode=iptables", "--service-metrics")
    prometheus = Prometheus(host.node, f"{host.folder}/prometheus", [ALERTS])
    try:
        prometheus.wait_scrapes(2)
        host.ask("/livez", HEALTH)
        assert host.ask("/healthz", web.port, web.cluster_ip[4]).status == 200
        names.pods = [Pod("there", 4)]
        host.write(web, names)
        host.log.wait_line('"Sync done".*full=false')
        prometheus.wait_scrapes(4)  # the numbers of Services are a round old
        assert prometheus.ask("label/instance/values", **{"match[]": "portolan_build_info"}) == ["127.0.0.1:10249"]
        not_yet = NOT_YET - {"portolan_service_connections_total", "portolan_service_bytes_total"}
        for question in questions():
            found = prometheus.query(question.replace("$instance", ".*").replace("$__rate_interval", "1m"))
            assert found or set(METRIC.findall(question)) <= not_yet, question
        rules = [rule for group in prometheus.ask("rules")["groups"] for rule in group["rules"]]
        assert len(rules) == len(re.findall(r"\balert: ", read(ALERTS)))
        assert {(rule["name"], rule["health"], rule["state"]) for rule in rules} == {(rule["name"], "ok", "inactive") for rule in rules}
    finally:
        prometheus.close()


def test_every_alert_is_explained():
    document = read(f"{ROOT}/docs/operations.md")
    assert [name for name in re.findall(r"alert: (\w+)", read(ALERTS)) if name not in document] == []


CALL = re.compile(r'\b(?:log_error|log_warning|fail)\(([^;]*?)(?:,\s*KV\(|\);)', re.S)
LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')


def test_every_warning_and_error_is_explained():
    """Of a message that is put together, each literal up to its first comma or placeholder has to be there."""
    document = " ".join(read(f"{ROOT}/docs/operations.md").split())
    messages = set()
    for path in [*glob.glob(f"{ROOT}/src/cli/*.c"), *glob.glob(f"{ROOT}/src/backends/**/*.c", recursive=True)]:
        for call in CALL.findall(read(path)):
            joined = re.sub(r'"\s*"', "", call)  # a literal over several lines
            messages |= {text for text in LITERAL.findall(joined) if " " in text and text[0].isupper()}
    assert len(messages) > 30
    assert sorted(text for text in messages if text.split(";")[0] not in document) == []

# SPDX-License-Identifier: Apache-2.0
"""What the person on call is given: alerts, the dashboard, and the list of log lines, held to what the program does."""

import glob
import json
import os
import re

import pytest

from host import Pod
from lab.manifests import Service
from test_metrics import promtool

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


def expressions():
    texts = [line for line in read(ALERTS).splitlines() if not line.lstrip().startswith("#")]
    for panel in json.loads(read(DASHBOARD))["panels"]:
        texts += [target["expr"] for target in panel["targets"]]
    return "\n".join(texts)


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

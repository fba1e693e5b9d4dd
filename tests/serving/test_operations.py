# SPDX-License-Identifier: Apache-2.0
"""What the person on call is given: alerts, the dashboard, and the list of log lines, held to what the program does."""

import glob
import json
import os
import re

import pytest

from lab.host import ADDRESSES, HEALTH, Pod
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
        host.wait_reconciled()
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


#: All that is logged unasked for: up to its key-value pairs. A debug line is, where its level depends.
CALL = re.compile(r'\b(log_error|log_warning|log_info|LOG_CALL|log_debug(?=\([^,]*\?)|fail)\('
                  r'((?:[^;"]|"(?:[^"\\]|\\.)*")*?)(?:,\s*KV\(|\);)', re.S)
#: Those that get their message from elsewhere: from fail(), from a variable called message, from a source.
ELSEWHERE = {"message", "LOG_SEVERITY_INFO, important ? 0 : 2, message", "severity, 0, text"}
VARIABLE = re.compile(r"\bconst char \*message =\s([^;]*);", re.S)
#: What sources report, to be logged as it is.
REPORT = re.compile(r"\b(?:say|notice|add_notice|report|snprintf\(text, size(?:of\(text\))?,)[\s(]([^;]*);", re.S)
#: Parts of reports whose lines are told apart without them.
PUT_IN = {", keeping the previous version", "too many files", ": did you mean ", "(no name)", "(no apiVersion)",
          " without endpoints"}
FAILURE = re.compile(r'\[API_FAILURE_\w+\] = \{"([^"]+)", "([^"]*)"')
LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')


def literals(code):
    return LITERAL.findall(re.sub(r'"\s*"', "", code))  # one may be on several lines


def logged():
    """The messages of the source, each up to a semicolon."""
    messages = set()
    for path in glob.glob(f"{ROOT}/src/**/*.c", recursive=True):
        text = read(path)
        for name, call in CALL.findall(text):
            found = [message for message in literals(call) if message[0].isupper()]
            assert found or name == "fail" or call in ELSEWHERE, f"{path}: {call}"
            messages.update(message.split(";")[0] for message in found)
        for value in VARIABLE.findall(text):
            messages.update(literals(value))
    return messages


def reported():
    """The formats of what sources tell, with an ellipsis for what is put in."""
    formats = set()
    for path in glob.glob(f"{ROOT}/src/sources/*.c"):
        text = read(path)
        if "report(" not in text and "notice(" not in text:
            continue
        formats.update(f"{before} ...{behind}" for before, behind in FAILURE.findall(text))
        for call in REPORT.findall(text):
            formats.update(re.sub(r"%[a-z]", "...", message) for message in literals(call))
    return {text for text in formats - PUT_IN if re.search("[a-z]{2} [a-z]{2}", text)}


def explained():
    """The lines in the tables of the document."""
    section = re.search(r"^## What the log says$(.*?)^## ", read(f"{ROOT}/docs/operations.md"), re.S | re.M).group(1)
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    return [text for row in rows for text in re.findall("`([^`]+)`", row)]


def is_of(line, text):
    """The document has the beginning of a report, with an ellipsis for what varies."""
    return re.match(".*".join(map(re.escape, line.split("..."))), text)


def test_every_line_of_the_log_is_explained():
    lines = explained()
    messages, reports = logged(), reported()
    assert len(messages) > 70 and len(reports) > 20
    assert sorted(messages - set(lines)) == []
    assert sorted(text for text in reports if not any(is_of(line, text) for line in lines)) == []


def test_every_explained_line_can_be_logged():
    """And is there once."""
    lines = explained()
    messages, reports = logged(), reported()
    assert [line for line in lines if line not in messages and not any(is_of(line, text) for text in reports)] == []
    assert [line for line in lines if lines.count(line) > 1] == []

# SPDX-License-Identifier: Apache-2.0
"""`portolan conntrack`: the flows of a Service, by backend, while they are there."""

import json

import pytest

from lab.daemon import program
from lab.manifests import Service
from lab.topology import NODE


def run_conntrack(cluster, *words):
    code, out, err = cluster.node.run(program(), "conntrack", *words, *cluster.daemon.flags, check=False)
    assert code in (0, 1), f"{code} {err} {out}"
    return code, out


def read_flows(cluster, *words):
    code, out = run_conntrack(cluster, *words, "-o", "json")
    found = json.loads(out)
    assert found["kind"] == "FlowList" and found["complete"]
    return code, found


@pytest.fixture
def counted(cluster):
    assert not cluster.node.sysctl(net__netfilter__nf_conntrack_acct=1)
    return cluster


def test_a_connection_is_told_while_it_lasts(counted, family):
    cluster = counted
    web = cluster.service(7, cluster.pods, kind="NodePort")
    talk = cluster.client.talk(NODE[family], web.node_port)
    answer = talk.ask()
    try:
        code, found = read_flows(cluster, f"default/{web.name}:main", "--flows")
        flow = next(flow for flow in found["flows"] if flow["state"] == "ESTABLISHED")
        backend = next(pod for pod in cluster.pods if pod.name == answer.pod)
        front, endpoint = ((f"[{NODE[6]}]:{web.node_port}", f"[{backend.address[6]}]:8080") if family == 6 else
                           (f"{NODE[4]}:{web.node_port}", f"{backend.address[4]}:8080"))
        assert (flow["front"], flow["backend"], flow["endpoint"]) == (front, endpoint, True)
        assert flow["timeoutSeconds"] > 0 and flow["packets"]["to"] >= 3 and flow["bytes"]["from"] > 100
        row = next(row for row in found["backends"] if row["backend"] == endpoint)
        assert row["states"]["ESTABLISHED"] == 1 and row["bytes"]["to"] >= flow["bytes"]["to"]
        assert code == 0 and found["total"]["flows"] == sum(row["flows"] for row in found["backends"])
        # the endpoint goes, the connection stays for now
        cluster.service(7, [pod for pod in cluster.pods if pod is not backend], kind="NodePort")
        code, found = read_flows(cluster, f":{web.node_port}")
        row = next(row for row in found["backends"] if row["backend"] == endpoint)
        assert code == 1 and not row["endpoint"] and row["states"]["ESTABLISHED"] == 1
        assert "not an endpoint any more" in run_conntrack(cluster, f"service/default/{web.name}")[1]
    finally:
        talk.close()


def test_all_ports_and_protocols(counted):
    cluster = counted
    dns = cluster.serve(Service("dns", 9, cluster.pods[:1], proto="UDP"))
    assert cluster.pods[1].ask(dns.cluster_ip[4], dns.port, "UDP").pod == cluster.pods[0].name
    code, found = read_flows(cluster, "dns")
    assert code == 0 and found["total"]["flows"] == 1
    assert set(found["total"]["states"]) <= {"REPLIED", "ASSURED"}
    assert found["backends"][0]["packets"] == {"to": 1, "from": 1}
    assert "flows" not in found

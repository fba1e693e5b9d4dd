# SPDX-License-Identifier: Apache-2.0
"""What `explain` says is what packets do: random Services, random clients, both families.

For each question the backends that answered, the source addresses that they saw and the way it failed are compared with the
prediction, and the kernel must have the rules that the prediction was read from. PORTOLAN_EXPLAIN_STATES makes it longer,
PORTOLAN_EXPLAIN_SEED another one.
"""

import json
import os
import random
from collections import namedtuple

import pytest

from lab.check import describe
from lab.daemon import program
from lab.manifests import ZONE, Endpoint, Service
from lab.topology import CLIENT, FAMILIES, NODE

STATES = int(os.environ.get("PORTOLAN_EXPLAIN_STATES", "2"))
SEED = int(os.environ.get("PORTOLAN_EXPLAIN_SEED", "1"))
QUESTIONS = 12  # of each state
KINDS = ("ClusterIP", "NodePort", "LoadBalancer", "LoadBalancer")
CONDITIONS = ["ready"] * 5 + ["notready", "terminating", "gone"]
RANGES = ["192.0.2.0/24", "198.18.0.0/15", "10.244.1.12/32", "2001:db8:2::/64", "fd00:10:244:1::12/128"]

Question = namedtuple("Question", "service family sender address port")


def run_explain(cluster, *words):
    """Exit status and the explanation, from inside the node with the daemon's own flags."""
    code, out, err = cluster.node.run(program(), "explain", *words, "-o", "json", *cluster.daemon.flags, check=False)
    assert code in (0, 1), f"{code} {err} {out}"
    return code, json.loads(out)


def random_service(draw, number, cluster):
    pods = draw.sample(cluster.pods + cluster.remote_pods, draw.choice([0, 1, 2, 3, 5]))
    hinted = draw.random() < 0.3
    endpoints = [Endpoint(pod, draw.choice(CONDITIONS), zones=[draw.choice([ZONE, "zone-2"])] if hinted else ())
                 for pod in pods]
    kind = draw.choice(KINDS)
    spec = {"internalTrafficPolicy": draw.choice(["Cluster", "Cluster", "Local"])}
    if kind != "ClusterIP":
        spec["externalTrafficPolicy"] = draw.choice(["Cluster", "Local"])
    if kind == "LoadBalancer" and draw.random() < 0.5:
        spec["loadBalancerSourceRanges"] = draw.sample(RANGES, 2)
    return Service(f"random-{number}", number, endpoints, proto=draw.choice(["TCP", "UDP"]), kind=kind,
                   external=draw.random() < 0.3, affinity=draw.choice([0, 0, 0, 600]), **spec)


def targets(service, family):
    yield service.cluster_ip[family], service.port
    if service.kind != "ClusterIP":
        yield NODE[family], service.node_port
    if service.kind == "LoadBalancer":
        yield service.load_balancer_ip[family], service.port
    if service.external:
        yield service.external_ip[family], service.port


def random_questions(draw, services, cluster):
    senders = [cluster.pods[0], cluster.pods[1], cluster.node, cluster.client]
    everything = [Question(service, family, sender, *target) for service in services for family in FAMILIES
                  for target in targets(service, family) for sender in senders]
    return draw.sample(everything, min(QUESTIONS, len(everything)))


def sender_address(question, cluster):
    if question.sender is cluster.node:
        return NODE[question.family]
    if question.sender is cluster.client:
        return CLIENT[question.family]
    return question.sender.address[question.family]


def predict(question, cluster):
    host = f"[{question.address}]" if question.family == 6 else question.address
    return run_explain(cluster, f"{host}:{question.port}", "--kernel", "--proto", question.service.proto.lower(),
                       "--from", sender_address(question, cluster))


def check_reached(question, found, cluster):
    family, service = question.family, question.service
    pods = {f"[{pod.address[6]}]:8080" if family == 6 else f"{pod.address[4]}:8080": pod.name
            for pod in cluster.pods + cluster.remote_pods}
    masqueraded = {pods[outcome["endpoint"]]: outcome["masquerade"] for outcome in found["outcomes"]}
    answers = question.sender.request(question.address, question.port, service.proto, count=20 * len(masqueraded),
                                      parallel=8)
    assert not any(answer.error for answer in answers), describe(answers)
    seen = {answer.pod for answer in answers}
    if service.affinity:
        assert len(seen) == 1 and seen <= set(masqueraded), (seen, masqueraded)
    else:
        assert seen == set(masqueraded)
    own = sender_address(question, cluster)
    for answer in answers:
        assert (answer.source != own) == masqueraded[answer.pod], (answer, own, masqueraded)


def check_refused(question, found):
    dropped = found["verdict"] == "dropped"
    answers = question.sender.request(question.address, question.port, question.service.proto, count=2, parallel=2,
                                      **({"timeout": 0.3} if dropped else {}))
    failures = {answer.error for answer in answers}
    if found["verdict"] == "rejected":
        assert failures <= {"refused", "prohibited"}, describe(answers)
    else:
        # what the node itself drops of its own datagrams is told to who sends them
        assert failures <= {"timeout", "prohibited"}, describe(answers)


def check(question, cluster):
    code, found = predict(question, cluster)
    assert found["kernel"]["state"] == "same", found["kernel"]
    assert (code == 0) == (found["verdict"] == "backend")
    if found["verdict"] == "backend":
        check_reached(question, found, cluster)
    elif found["verdict"] != "passed":
        check_refused(question, found)
    return found["verdict"]


def test_predictions_come_true(cluster):
    draw = random.Random(SEED)
    verdicts = []
    for state in range(STATES):
        services = [random_service(draw, 100 + 10 * state + i, cluster) for i in range(4)]
        cluster.serve(*services)
        for question in random_questions(draw, services, cluster):
            try:
                verdicts.append(check(question, cluster))
            except AssertionError as error:
                service = question.service.service()
                raise AssertionError(f"seed {SEED}, state {state}, {question.sender.name} to {question.address}:"
                                     f"{question.port}, {json.dumps(service['spec'])}") from error
    assert "backend" in verdicts and {"rejected", "dropped"} & set(verdicts)


def test_a_service_is_found_by_its_name(cluster, family):
    web = cluster.service(60, cluster.pods, kind="NodePort")
    _, by_name = run_explain(cluster, f"service/default/{web.name}:main", "--ip-family", f"ipv{family}")
    assert by_name["packet"]["destination"] == web.cluster_ip[family]
    assert [outcome["share"] for outcome in by_name["outcomes"]] == ["1/3"] * 3
    _, by_port = run_explain(cluster, f":{web.node_port}", "--ip-family", f"ipv{family}")
    assert by_port["packet"]["destination"] == NODE[family]
    assert by_port["service"]["entry"] == "nodePort"


@pytest.mark.only("iptables")
def test_a_missing_rule_is_named_where_it_is_missing(cluster):
    web = cluster.service(62, cluster.pods)
    words = [program(), "explain", f"{web.cluster_ip[4]}:80", "--kernel", *cluster.daemon.flags]
    assert cluster.node.run(*words, check=False)[0] == 0
    cluster.daemon.kill()  # or it would repair the rule
    _, found = run_explain(cluster, f"{web.cluster_ip[4]}:80")
    chain = found["outcomes"][1]["steps"][0]["target"]
    cluster.node.run("iptables", "-t", "nat", "-F", chain)
    cluster.node.run("iptables", "-t", "nat", "-A", chain, "-j", "RETURN")
    code, out, _ = cluster.node.run(*words, check=False)
    assert code == 3
    assert out.count("kernel: this rule is missing") == 2  # the hairpin rule, and the DNAT
    assert f"a rule that is not planned: -A {chain} -j RETURN" in " ".join(out.split())


@pytest.mark.only("nftables")
def test_a_missing_element_is_named_where_it_is_missing(cluster):
    web = cluster.service(62, cluster.pods)
    words = [program(), "explain", f"{web.cluster_ip[4]}:80", "--kernel", *cluster.daemon.flags]
    assert cluster.node.run(*words, check=False)[0] == 0
    cluster.daemon.kill()
    key = f"{web.cluster_ip[4]} . tcp . 80"
    cluster.node.run("nft", "delete", "element", "ip", "kube-proxy", "endpoints", f"{{ {key} . 1 }}")
    code, out, _ = cluster.node.run(*words, check=False)
    assert code == 3 and out.count("kernel: this element") == 1
    cluster.node.run("nft", "delete", "element", "ip", "kube-proxy", "service-ips", f"{{ {key} }}")
    code, out, _ = cluster.node.run(*words, check=False)
    assert code == 3 and "kernel: this element is missing" in out


@pytest.mark.parametrize("words,code", [(["10.96.0.250:80"], 1), (["nonsense"], 2), ([], 2)])
def test_exit_status(cluster, words, code):
    cluster.service(61, cluster.pods)
    assert cluster.node.run(program(), "explain", *words, *cluster.daemon.flags, check=False)[0] == code

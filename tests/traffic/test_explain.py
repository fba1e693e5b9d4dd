# SPDX-License-Identifier: Apache-2.0
"""What `explain` says is what packets do: random Services, random clients, both families.

For each question the backends that answered, the source addresses that they saw and the way it failed are compared with the
prediction, and the kernel must have the rules that the prediction was read from. PORTOLAN_EXPLAIN_STATES makes it longer,
PORTOLAN_SEED another one.
"""

import json
import os
import random
from collections import namedtuple

import pytest

from lab.check import describe
from lab.daemon import program
from lab.manifests import ZONE, Endpoint, Service
from lab.seeds import seed
from lab.topology import CLIENT, FAMILIES, NODE

STATES = int(os.environ.get("PORTOLAN_EXPLAIN_STATES", "2"))
SEED = seed(1)
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
    # the first connection alone, or several of a new client could each find another pod before it is remembered
    answers = question.sender.request(question.address, question.port, service.proto, count=1)
    answers += question.sender.request(question.address, question.port, service.proto, count=20 * len(masqueraded),
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


@pytest.fixture
def meddled(cluster):
    """meddled(tool, *words) changes a rule behind the daemon's back and is what `explain --kernel` then says of Service 62."""
    web = cluster.service(62, cluster.pods)
    cluster.daemon.stop()  # or it would repair the rule
    cluster.node.run("sh", "-c", "iptables-save >/run/before")

    def explain_after(*words):
        before = run_question(cluster, web)
        assert before[0] == 0 and "has the rules that are named here" in before[1]
        cluster.node.run(*words)
        return run_question(cluster, web)

    yield explain_after
    cluster.node.run("sh", "-c", "iptables-restore </run/before")  # rules of others are not the daemon's to remove
    cluster.daemon.start()


def run_question(cluster, service):
    code, out, _ = cluster.node.run(program(), "explain", f"{service.cluster_ip[4]}:80", "--from", CLIENT[4], "--kernel",
                                    *cluster.daemon.flags, check=False)
    return code, " ".join(out.split())


def rule_handle(cluster, chain, words):
    listed = cluster.node.run("nft", "-a", "list", "chain", "ip", "kube-proxy", chain)
    return next(line.rsplit(" ", 1)[1] for line in listed.splitlines() if words in line)


@pytest.mark.only("nftables")
def test_a_rule_replaced_by_a_drop_is_a_difference(cluster, meddled):
    handle = rule_handle(cluster, "services", "vmap @service-ips")
    code, out = meddled("nft", "replace", "rule", "ip", "kube-proxy", "services", "handle", handle, "drop")
    assert code == 3
    assert "kernel: this rule is missing" in out
    assert "chain services has a rule that is not planned: drop" in out


@pytest.mark.only("nftables")
@pytest.mark.parametrize("chain", ["services", "filter-forward", "nat-prerouting"])
def test_a_foreign_rule_before_ours_is_a_difference(meddled, chain):
    code, out = meddled("nft", "insert", "rule", "ip", "kube-proxy", chain, "ip", "saddr", "192.0.2.77", "accept")
    assert code == 3
    assert f"chain {chain} has a rule that is not planned: ip saddr 192.0.2.77 accept" in out


@pytest.mark.only("nftables")
def test_a_foreign_base_chain_on_the_way_is_a_difference(meddled):
    code, out = meddled("nft", "add chain ip kube-proxy late { type filter hook forward priority 5; policy drop; }")
    assert code == 3
    assert "there is a chain late that is not planned: type filter hook forward priority 5; policy drop;" in out


@pytest.mark.only("nftables")
def test_a_foreign_chain_off_the_way_is_no_difference(meddled):
    code, out = meddled("nft", "add chain ip kube-proxy late { type filter hook input priority 5; policy drop; }")
    assert code == 0, out


@pytest.mark.only("nftables")
def test_an_element_with_another_verdict_is_a_difference(cluster):
    refused = cluster.service(63, [])
    cluster.daemon.stop()
    key = f"{refused.cluster_ip[4]} . tcp . 80"
    assert run_question(cluster, refused)[0] == 1
    cluster.node.run("nft", f"delete element ip kube-proxy no-endpoint-services {{ {key} }}; "
                            f"add element ip kube-proxy no-endpoint-services {{ {key} : accept }}")
    code, out = run_question(cluster, refused)
    cluster.daemon.start()
    assert code == 3 and "kernel: this element is missing" in out and f"not planned: {key} : accept" in out


@pytest.mark.only("nftables")
def test_an_element_of_another_service_is_no_difference(meddled):
    code, out = meddled("nft", "add element ip kube-proxy service-ips { 10.96.0.99 . tcp . 80 : drop }")
    assert code == 0, out


@pytest.mark.only("iptables")
@pytest.mark.parametrize("variant", ["nft", "legacy"])
def test_a_filter_rule_replaced_by_a_drop_is_a_difference(clusters, variant):
    cluster = clusters(f"--iptables-variant={variant}")
    web = cluster.service(62, cluster.pods)
    cluster.daemon.stop()
    assert run_question(cluster, web)[0] == 0
    cluster.node.run(f"iptables-{variant}", "-R", "KUBE-FORWARD", "2", "-j", "DROP")
    code, out = run_question(cluster, web)
    cluster.daemon.start()
    assert code == 3
    assert "chain KUBE-FORWARD has a rule that is not planned: -A KUBE-FORWARD -j DROP" in out


@pytest.mark.only("iptables")
@pytest.mark.parametrize("table,chain", [("filter", "KUBE-PROXY-FIREWALL"), ("nat", "KUBE-SERVICES")])
def test_a_foreign_rule_in_a_chain_of_ours_is_a_difference(meddled, table, chain):
    code, out = meddled("iptables", "-t", table, "-I", chain, "-s", "192.0.2.77", "-j", "ACCEPT")
    assert code == 3
    assert f"chain {chain} has a rule that is not planned: -A {chain} -s 192.0.2.77/32 -j ACCEPT" in out


@pytest.mark.only("iptables")
def test_what_the_packet_does_not_meet_is_no_difference(meddled):
    code, out = meddled("sh", "-c", "iptables -t nat -I KUBE-NODEPORTS -j ACCEPT && iptables -t nat -A PREROUTING -j ACCEPT && "
                                    "iptables -t nat -I OUTPUT -j ACCEPT && iptables -I INPUT -j DROP")
    assert code == 0 and "another program" not in out, out


@pytest.mark.only("iptables")
@pytest.mark.parametrize("table,chain,words", [
    ("nat", "PREROUTING", "-j ACCEPT"), ("nat", "PREROUTING", "-p tcp -j DNAT --to-destination 10.244.1.99:80"),
    ("nat", "POSTROUTING", "-j RETURN"), ("filter", "FORWARD", "-s 192.0.2.0/24 -j DROP"), ("filter", "FORWARD", "-g OTHERS"),
])
def test_a_rule_of_another_program_that_may_take_the_packet_is_a_difference(meddled, table, chain, words):
    code, out = meddled("sh", "-c", f"iptables -t {table} -N OTHERS && iptables -t {table} -I {chain} {words}")
    assert code == 3, out
    assert f"a rule of another program stands before ours in {table} {chain} and may take the packet away: -A {chain} {words}" in out
    assert "But the kernel's rules differ" in out


@pytest.mark.only("iptables")
@pytest.mark.parametrize("table,chain,words", [
    ("nat", "PREROUTING", "-j OTHERS"), ("filter", "FORWARD", "-j OTHERS"), ("nat", "POSTROUTING", "-j MARK --set-xmark 0x1/0x1"),
])
def test_a_rule_of_another_program_that_lets_the_packet_go_on_is_a_note(meddled, table, chain, words):
    code, out = meddled("sh", "-c", f"iptables -t {table} -N OTHERS && iptables -t {table} -I {chain} {words}")
    assert code == 0, out
    assert f"a rule of another program stands before ours in {table} {chain}: -A {chain} {words}" in out


@pytest.mark.only("iptables")
def test_a_rule_for_known_connections_is_in_no_new_one_s_way(meddled):
    code, out = meddled("iptables", "-I", "FORWARD", "-m", "conntrack", "--ctstate", "RELATED,ESTABLISHED", "-j", "ACCEPT")
    assert code == 0 and "another program" not in out, out


@pytest.mark.parametrize("words,code", [(["10.96.0.250:80"], 1), (["nonsense"], 2), ([], 2)])
def test_exit_status(cluster, words, code):
    cluster.service(61, cluster.pods)
    assert cluster.node.run(program(), "explain", *words, *cluster.daemon.flags, check=False)[0] == code

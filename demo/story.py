# SPDX-License-Identifier: Apache-2.0
"""The scenes of the demo, in the order in which they are played."""

import base64
import hashlib
import os
import re
import time

from lab.daemon import SOURCE, SYNCED, Daemon, program, save
from lab.topology import BRIDGE, CLIENT, NODE, Lab

EXAMPLES = os.path.join(SOURCE, "examples")
FILES = ("node.yaml", "web-clusterip.yaml", "web-nodeport.yaml", "web-loadbalancer.yaml", "pods.yaml")
SHOWN = FILES[1:4]
CLUSTER_IP = {4: "10.96.10.10", 6: "fd00:10:96::10:10"}
NODE_PORT = 30080
BALANCER_IP = "198.51.100.7"
REQUESTS = 300

PICTURE = """
      client                     node1                     Services
    192.0.2.100 ──────── eth0 192.0.2.11                     web           10.96.10.10:80 and IPv6
                              cni0 10.244.1.1                web-nodeport  192.0.2.11:30080
                       ┌──────────┼──────────┐               web-lb        198.51.100.7:80
                     pod-a      pod-b      pod-c
                      .11        .12        .13            No machine has the addresses of web and web-lb:
                                                           they exist in rules only.
"""


def chain_hash(text):
    """The sixteen characters in the names of a service port's chains."""
    return base64.b32encode(hashlib.sha256(text.encode()).digest()).decode()[:16]


def example(name):
    with open(os.path.join(EXAMPLES, name), encoding="utf-8") as file:
        return file.read()


def without_pod(text, pod):
    return "".join(line for line in text.splitlines(keepends=True) if f"name: {pod}}}" not in line)


def failed(answers):
    return sum(1 for answer in answers if answer.error)


class Demo:
    """A lab with the examples in force; closed with `with`."""

    def __init__(self, screen):
        self.screen = screen
        self.lab = None

    def __enter__(self):
        return self

    def __exit__(self, *_exc):
        if self.lab:
            self.lab.close()

    def build(self, **daemon):
        self.lab = Lab(pods=3)
        self.pods = {pod.name: pod for pod in self.lab.pods}
        self.daemon = Daemon(self.lab, marker=False, **daemon)
        for name in FILES:
            self.daemon.write(name, example(name))
        self.daemon.start()

    def play(self):
        self.show_lab()
        self.show_manifests()
        self.show_start()
        self.show_shares()
        self.show_chains()
        self.show_leaving()
        self.show_hairpin()
        self.show_affinity()
        self.show_end()

    def show_lab(self):
        self.screen.line(self.screen.paint("1", "Portolan: kube-proxy in C, seen at work on one node"))
        self.screen.line(PICTURE.rstrip("\n"))

    def show_manifests(self):
        self.screen.title("What is wanted: manifests in a folder")
        for name in SHOWN:
            self.screen.note(f"examples/{name}")
            self.screen.yaml(example(name), "     ")
            self.screen.line()
        self.screen.note("examples/pods.yaml (a part of it)")
        self.screen.yaml("endpoints:" + example("pods.yaml").split("endpoints:")[1].split("---")[0], "     ")

    def show_start(self):
        self.screen.title("Portolan writes the rules")
        self.screen.command("portolan run --manifests examples --hostname-override node1 --cluster-cidr 10.244.0.0/16,...")
        begin = time.monotonic()
        self.build()
        for line in self.daemon.log.lines:
            if SYNCED.search(line):
                self.screen.note(re.sub(r"^\S+ \S+ +\d+ ", "", line))
        self.screen.check(True, f"lab built and both families in force after {time.monotonic() - begin:.1f} s")

    def ask_all(self, place, name, address, port, seen=None):
        answers = place.request(address, port, count=REQUESTS, parallel=2)
        where = f"[{address}]" if ":" in address else address
        self.screen.line(f"   {self.screen.paint('1', name)} asks http://{where}:{port} {REQUESTS} times")
        self.screen.shares(answers)
        self.screen.check(not failed(answers), "every request was answered")
        self.screen.check({answer.pod for answer in answers} == set(self.pods), "all three pods took part")
        if seen:
            self.screen.check({answer.source for answer in answers} == {seen}, f"the pods saw {seen}: masqueraded")

    def show_shares(self):
        self.screen.title("Requests, and which pod answers")
        self.ask_all(self.pods["pod-a"], "pod-a", CLUSTER_IP[4], 80)
        self.ask_all(self.lab.node, "The node", CLUSTER_IP[4], 80, BRIDGE[4])
        self.ask_all(self.lab.client, "The outside client", NODE[4], NODE_PORT, BRIDGE[4])
        self.ask_all(self.lab.node, "The node, on localhost,", "127.0.0.1", NODE_PORT, BRIDGE[4])
        self.ask_all(self.pods["pod-a"], "pod-a, over IPv6,", CLUSTER_IP[6], 80)

    def show_chains(self):
        self.screen.title("The chains: the very ones that kube-proxy makes")
        rules = [line for line in save(self.lab, 4, "nat").splitlines() if line.startswith("-A")]
        service = f"KUBE-SVC-{chain_hash('default/web:httptcp')}"
        endpoints = {
            pod.name: f"KUBE-SEP-{chain_hash(f'default/web:httptcp{pod.address[4]}:8080')}" for pod in self.pods.values()
        }
        self.screen.command("iptables-save -t nat")
        shown = [line for line in rules if line.startswith("-A KUBE-SERVICES") and re.search("default/web:|nodeports", line)]
        shown += [line for line in rules if line.startswith(f"-A {service} ")]
        shown += [line for line in rules if line.startswith(f"-A {endpoints['pod-a']} ")]
        shown += [line for line in rules if line.startswith("-A KUBE-NODEPORTS") and str(NODE_PORT) in line]
        for line in shown:
            self.screen.rule(line)
        self.screen.note(f"... {len(rules) - len(shown)} more")
        self.screen.check(any(f"-j {service}" in line for line in rules), f"10.96.10.10:80 leads to {service}")
        for pod, chain in endpoints.items():
            want = f"-A {chain} -p tcp"
            ok = any(line.startswith(want) and line.endswith(f"{self.pods[pod].address[4]}:8080") for line in rules)
            self.screen.check(ok, f"{chain} leads to {pod}")

    def change_pods(self, text):
        since = len(self.daemon.log.lines)
        begin = time.monotonic()
        self.daemon.write("pods.yaml", text)
        self.daemon.wait_synced(since)
        return time.monotonic() - begin

    def show_leaving(self):
        self.screen.title("A pod leaves and comes back, under load")
        loads = [self.pods["pod-a"].load(CLUSTER_IP[4], 80), self.lab.client.load(NODE[4], NODE_PORT)]
        for load in loads:
            load.wait(100)
        self.show_change("pod-c is taken out of pods.yaml", without_pod(example("pods.yaml"), "pod-c"))
        left = time.monotonic()
        for load in loads:
            load.wait(2)
        self.pods["pod-c"].stop()
        self.screen.note("... and killed, once the rules are without it")
        for load in loads:
            load.wait(REQUESTS)
        self.pods["pod-c"].start()
        returning = time.monotonic()
        self.show_change("pod-c is back, and in pods.yaml again", example("pods.yaml"))
        back = time.monotonic()
        for load in loads:
            load.wait(REQUESTS)
        self.judge_leaving([answer for load in loads for answer in load.stop()], left, returning, back)

    def show_change(self, what, text):
        seconds = self.change_pods(text)
        self.screen.line(f"   {what}: in force after {seconds * 1000:.0f} ms")

    def judge_leaving(self, answers, left, returning, back):
        away = [answer for answer in answers if left < answer.start and answer.start + answer.seconds < returning]
        after = [answer for answer in answers if answer.start > back]
        self.screen.line(f"   {self.screen.paint('1', 'While it was away')}")
        self.screen.shares(away)
        self.screen.check({answer.pod for answer in away} == {"pod-a", "pod-b"}, "nobody was sent to pod-c")
        self.screen.line(f"   {self.screen.paint('1', 'After its return')}")
        self.screen.shares(after)
        self.screen.check({answer.pod for answer in after} == set(self.pods), "all three pods take part again")
        self.screen.check(not failed(answers), f"of {len(answers)} requests none failed")

    def show_hairpin(self):
        self.screen.title("Hairpin: a pod reaches itself through the virtual IP")
        pod = self.pods["pod-a"]
        answers = pod.request(CLUSTER_IP[4], 80, count=60)
        own = {answer.source for answer in answers if answer.pod == "pod-a"}
        other = {answer.source for answer in answers if answer.pod != "pod-a"}
        self.screen.line(f"   pod-a asked; pod-b and pod-c saw {', '.join(sorted(other))}, pod-a itself saw {', '.join(own)}")
        self.screen.check(not failed(answers) and own == {BRIDGE[4]}, "what comes back to its sender is masqueraded")
        self.screen.check(other == {pod.address[4]}, "what goes to another pod is not")

    def show_affinity(self):
        self.screen.title("Session affinity: a client stays with its pod")
        used = set()
        for host in range(1, 9):
            client = self.lab.distant(4, host)
            answers = self.lab.client.request(BALANCER_IP, 80, count=20, sources=[client])
            pods = {answer.pod for answer in answers}
            used |= pods
            names = ", ".join(self.screen.pod(pod) for pod in sorted(map(str, pods)))
            self.screen.line(f"     {client:12} → {BALANCER_IP}   20 × {names}")
            if len(pods) != 1 or failed(answers):
                self.screen.check(False, f"{client} should have had one pod")
        self.screen.check(True, "each client had one pod for all of its requests")
        self.screen.check(used <= set(self.pods), f"{len(used)} pods shared the clients")

    def show_end(self):
        self.screen.title("The end: rules outlive the program, until they are cleaned up")
        code = self.daemon.stop()
        answers = self.lab.client.request(NODE[4], NODE_PORT, count=50)
        self.screen.check(code == 0 and not failed(answers), "Portolan has ended and requests are still answered")
        self.screen.command("portolan cleanup")
        self.lab.node.run(program(), "cleanup")
        left = [line for line in save(self.lab, 4).splitlines() + save(self.lab, 6).splitlines() if "KUBE-S" in line]
        self.screen.check(not left, "no service chain is left")
        answers = self.lab.client.request(NODE[4], NODE_PORT, count=1, timeout=1)
        self.screen.check(failed(answers) == 1, f"and {CLIENT[4]} finds nobody at port {NODE_PORT}")

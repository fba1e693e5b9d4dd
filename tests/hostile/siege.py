# SPDX-License-Identifier: Apache-2.0
"""A node with bystander Services, a tenant and an outsider who mean harm, and the promises that hold meanwhile.

    lab/fake_api.py  an API server that admits everything     on the node, the tenant writes to it
    outsider.py      any packet to the node                   in the client's namespace
    watcher.py       bystanders, asked all the time           in the client's namespace; health on the node
"""
import json
import os
import random
import re
import signal

from lab import arm, fake_api, manifests
from lab.daemon import program
from lab.log import PATIENCE, SLOWNESS
from lab.topology import CLUSTER_CIDR, NODE, POD_CIDRS, Lab, wait_for
from tenant import Tenant

KUBECONFIG = "/run/lab/kubeconfig"
HEALTH, METRICS = 10256, 10249
OLD = 1_000_000_000  # seconds: creationTimestamp of a bystander
DESCRIPTORS = 1024  # as many may the daemon have: few enough to be used up
STICKY_CLIENTS = 6
FLAGS = {"iptables": [], "nftables": ["--affinity-clients=64"]}  # as many clients may a service port remember: a flood fills that


class Siege(Lab):
    def __init__(self, mode, seed, *flags):
        super().__init__(pods=4)
        self.mode, self.seed, self.draw = mode, seed, random.Random(seed)
        try:
            self.api = fake_api.spawn(self.node)
            self.watchers = [arm.spawn(self.client, "watcher"), arm.spawn(self.node, "watcher")]
            self.mover = arm.spawn(self.client, "watcher")
            self.outsider = arm.spawn(self.client, "outsider", node=NODE[4], seed=seed)
            self._make_bystanders()
            self.tenant = Tenant(mode, self.draw, self.bystanders, self.pods[3])
            self._start_daemon(flags)
        except BaseException:
            self.close()
            raise

    # -- the scene

    def _make_bystanders(self):
        a, b, c, _evil = self.pods
        self.web = manifests.Service("web", 11, [a, b])
        self.sticky = manifests.Service("sticky", 12, [a, b, c], affinity=600)
        self.dns = manifests.Service("kube-dns", 10, [b, c], proto="UDP", port=53)
        self.shop = manifests.Service("shop", 21, [a, c], kind="LoadBalancer", external=True, externalTrafficPolicy="Local",
                                      healthCheckNodePort=32021)
        self.moving = manifests.Service("moving", 13, [a])
        self.bystanders = [self.web, self.sticky, self.dns, self.shop, self.moving]
        node = manifests.node("node1", NODE.values(), POD_CIDRS)
        self.api.call("apply", items=[node, *(item for service in self.bystanders for item in self._objects(service))])

    def _objects(self, service):
        return [{**item, "metadata": {**item["metadata"], "creationTimestamp": {"seconds": OLD}}} for item in service.objects()]

    def _start_daemon(self, flags):
        user = {"clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:6443"}}], "users": [{"name": "u", "user": {}}],
                "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}], "current-context": "x",
                "apiVersion": "v1", "kind": "Config"}
        self.node.agent.call("write_file", path=KUBECONFIG, text=json.dumps(user))
        self.flags = ["--kubeconfig", KUBECONFIG, "--hostname-override=node1", f"--proxy-mode={self.mode}", f"--cluster-cidr={CLUSTER_CIDR}",
                      "--conntrack-max-per-core=0", f"--metrics-bind-address=0.0.0.0:{METRICS}", *FLAGS[self.mode], *flags]
        self.start()

    def start(self):
        self.pid_of_daemon, self.log = self.node.spawn("prlimit", f"--nofile=256:{DESCRIPTORS}", program(), "run", *self.flags)
        for service in self.bystanders[:1] + self.bystanders[-1:]:
            for address in service.cluster_ip.values():
                wait_for(lambda address=address: self.client.ask(address, 80).pod, 60, what="a bystander was served")

    # -- what must hold

    def questions(self):
        def names(service):
            return [pod.name for pod in service.pods]

        for family in (4, 6):
            for service, address in ((self.web, self.web.cluster_ip), (self.dns, self.dns.cluster_ip), (self.shop, self.shop.load_balancer_ip),
                                     (self.shop, self.shop.external_ip), (self.shop, self.shop.cluster_ip)):
                yield {"name": f"{service.name} {address[family]}", "address": address[family], "port": service.port,
                       "proto": service.proto, "pods": names(service)}
            yield {"name": f"NodePort IPv{family}", "address": NODE[family], "port": self.shop.node_port, "pods": names(self.shop)}
            for client in range(1, STICKY_CLIENTS + 1):
                source = self.distant(family, client)
                yield {"name": f"sticky from {source}", "address": self.sticky.cluster_ip[family], "port": 80, "source": source,
                       "pods": names(self.sticky), "same": True}

    def targets(self):
        """Where odd packets go: [address, port, protocol] of all that a client reaches, and a port that no Service has."""
        for family in (4, 6):
            for service in self.bystanders:
                yield service.cluster_ip[family], service.port, service.proto
            for address in (self.shop.load_balancer_ip, self.shop.external_ip):
                yield address[family], self.shop.port, "TCP"
            yield self.shop.cluster_ip[family], 9, "TCP"
            for port in (self.shop.node_port, HEALTH, METRICS, self.shop.spec["healthCheckNodePort"]):
                yield NODE[family], port, "TCP"

    def pages(self, outside):
        """Who has a Service's health check port may be kept from it by a client who takes all connections."""
        ports = [(HEALTH, "/livez"), (HEALTH, "/healthz")] + ([] if outside else [(self.shop.spec["healthCheckNodePort"], "/")])
        return [{"name": f"{port}{path}", "address": NODE[4], "port": port, "path": path} for port, path in ports]

    def watch(self, outside=False):
        self.watchers[0].call("begin", questions=list(self.questions()), pid=self.pid_of_daemon)
        self.watchers[1].call("begin", questions=self.pages(outside), pid=self.pid_of_daemon)

    def watched(self):
        """What the watchers found: packets, and pages."""
        return [watcher.call("end") for watcher in self.watchers]

    def move(self):
        """A bystander's endpoint becomes another one: seconds until a client meets it, its own and the whole."""
        pod = self.pods[1 if self.moving.pods == [self.pods[0]] else 0]
        self.moving.pods = [pod]
        self.api.call("apply", items=[self.moving.slice(family) for family in (4, 6)])
        return self.mover.call("wait_pod", address=self.moving.cluster_ip[4], port=80, pod=pod.name, patience=PATIENCE,
                               pid=self.pid_of_daemon)

    def status(self, key):
        text = self.node.run("cat", f"/proc/{self.pid_of_daemon}/status")
        return int(re.search(rf"^{key}:\s+(\d+)", text, re.M)[1])

    def worked(self):
        """Seconds of a processor that the daemon has used."""
        user, system = self.node.run("cat", f"/proc/{self.pid_of_daemon}/stat").rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def descriptors(self):
        return len(self.node.run("ls", f"/proc/{self.pid_of_daemon}/fd").split())

    def difference(self):
        """What `portolan diff` says; empty when the kernel has what a new start would write."""
        code, out, err = self.node.run(program(), "diff", *self.flags, check=False)
        assert code in (0, 1), err
        return out

    def stop(self):
        self.node.agent.call("kill", pid=self.pid_of_daemon, number=signal.SIGTERM)
        return self.node.agent.call("wait", pid=self.pid_of_daemon, timeout=PATIENCE)


def slow(seconds):
    """A bound, on a machine and with a build as slow as they say they are."""
    return seconds * SLOWNESS * (5 if "PORTOLAN_SANITIZED" in os.environ else 1)

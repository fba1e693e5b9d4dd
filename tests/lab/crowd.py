# SPDX-License-Identifier: Apache-2.0
"""A node with many Services that change, and an ear for what happens to its rules.

Service number i has the cluster IP 10.96.x.y and five endpoints of its own; its first endpoint says how often the Service
was changed: 10.200.0.0 + the number of the change. Only small files are written for a change, one for each Service that
ever changes; all the others are in one large file.

The ear is a process in the namespace that listens to nf_tables' notifications and tells, for each number of a change, when
the rules first held it. Both clocks are CLOCK_MONOTONIC.

On a virtual machine the host may take a processor away for a while: the kernel knows how long, as steal time. Steal is a
process that notes it, so that a change that was late can be told from one that nobody could have made earlier.
"""
import bisect
import ipaddress
import itertools
import json
import os
import re
import sys
import time

from lab import manifests
from lab.host import ADDRESSES, Host

ENDPOINTS = 5
SERVICES_FROM = int(ipaddress.ip_address("10.96.0.0"))
PODS_FROM = int(ipaddress.ip_address("10.128.0.0"))
CHANGES_FROM = int(ipaddress.ip_address("10.200.0.0"))

EAR = """
import re, socket, sys, time
NETLINK_NETFILTER, NFNLGRP_NFTABLES, SOL_NETLINK, ADD_MEMBERSHIP, RCVBUFFORCE = 12, 7, 270, 1, 33
ear = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER)
ear.setsockopt(socket.SOL_SOCKET, RCVBUFFORCE, 1 << 29)
ear.bind((0, 0))
ear.setsockopt(SOL_NETLINK, ADD_MEMBERSHIP, NFNLGRP_NFTABLES)
print("listening", flush=True)
mark, seen = re.compile(b"\\x0a[\\xc8-\\xcf]..", re.S), set()
while True:
    data, when = ear.recv(1 << 18), time.monotonic()
    for found in mark.findall(data):
        number = int.from_bytes(found, "big") - 0x0ac80000
        if number not in seen:
            seen.add(number)
            print("change", number, when, flush=True)
"""

STEAL = """
import time
def steal():
    with open("/proc/stat") as file:
        return [line.split()[8] for line in file if line[:3] == "cpu" and line[3] != " "]
while True:
    print("steal", time.monotonic(), *steal(), flush=True)
    time.sleep(0.005)
"""
MEMORY = "/dev/shm"  # a disk's writes would be measured, too


def text(number):
    return str(ipaddress.ip_address(number))


def service(number, change=0, endpoints=ENDPOINTS, port=80):
    """A Service and its EndpointSlice, after that change; 0: as it was made."""
    name = f"s{number:05}"
    addresses = [text(PODS_FROM + number * ENDPOINTS + place + 1) for place in range(endpoints)]
    if change and addresses:
        addresses[0] = text(CHANGES_FROM + change)
    ready = {"ready": True, "serving": True, "terminating": False}
    return [
        manifests.object_of("Service", "v1", name, spec={
            "clusterIP": text(SERVICES_FROM + number + 1), "ports": [{"name": "http", "port": port, "targetPort": 8080}]}),
        manifests.object_of("EndpointSlice", "discovery.k8s.io/v1", f"{name}-a", labels={"kubernetes.io/service-name": name},
                            addressType="IPv4", ports=[{"name": "http", "port": 8080, "protocol": "TCP"}],
                            endpoints=[{"addresses": [address], "conditions": ready, "nodeName": "elsewhere"}
                                       for address in addresses]),
    ]  # fmt: skip


class Crowd(Host):
    """moving: how many of the services have a file of their own."""

    def __init__(self, services, moving, mode):
        super().__init__(MEMORY if os.path.isdir(MEMORY) else None)
        self.services, self.moving, self.mode = services, moving, mode
        self.ear = self.steal = None
        self.n_changes = 0
        self.made = {}  # when which change was written, and of which Service
        os.makedirs(f"{self.folder}/manifests")
        fixed = [item for number in range(moving, services) for item in service(number)]
        node = manifests.node("node1", ADDRESSES.values(), ["10.244.1.0/24", "fd00:10:244:1::/64"])
        self.write_file("fixed", [node, *fixed])
        for number in range(moving):
            self.write_file(f"s{number:05}", service(number))
        self.objects = [None]  # they are written

    def begin(self, *flags, patience=120, before=()):
        self.start(f"--proxy-mode={self.mode}", "--conntrack-tcp-timeout-established=0s", "--conntrack-tcp-timeout-close-wait=0s",
                   *flags, wait=False, least=None, before=before)
        for family in ("IPv4", "IPv6"):
            self.log.wait_line(f'"First sync done" ipFamily="{family}"', timeout=patience)
        return self

    def write_file(self, name, items):
        """The time just before it is there."""
        path = f"{self.folder}/manifests/{name}.json"
        with open(f"{self.folder}/new", "w", encoding="utf-8") as file:
            json.dump({"apiVersion": "v1", "kind": "List", "items": items}, file)
        when = time.monotonic()
        os.rename(f"{self.folder}/new", path)
        return when

    def change(self, number, **more):
        """Another first endpoint; the number of the change."""
        self.n_changes += 1
        items = service(number, self.n_changes, **more)
        self.made[self.n_changes] = self.write_file(f"s{number:05}", items), number
        return self.n_changes

    def remove(self, number):
        path = f"{self.folder}/manifests/s{number:05}.json"
        if os.path.exists(path):
            os.unlink(path)

    # -- what happens to the rules

    def listen(self):
        self.ear, self.steal = self._watch(EAR), self._watch(STEAL)
        self.ear.wait_line("listening")
        self.steal.wait_line("steal")

    def _watch(self, program):
        """It comes first: else it would measure how long it waits for a processor."""
        return self.node.spawn("nice", "-n", "-10", sys.executable, "-c", program)[1]

    def heard(self):
        """When the rules held which change."""
        words = [line.split() for line in list(self.ear.lines) if line.startswith("change ")]
        return {int(number): float(when) for _change, number, when in words}

    def wait_heard(self, number, patience=60):
        self.ear.wait_line(rf"^change {number} ", timeout=patience)

    def lateness_ms(self, first=1):
        """Of all changes from that one on: how late, and for how much of that time the host had taken a processor away, one or the
        other. One that was never written on its own is as late as the next of its Service."""
        heard, late, next_of = self.heard(), [], {}
        times, stolen = self._stolen()
        for number, (made, service_number) in reversed(self.made.items()):
            if number in heard:
                next_of[service_number] = heard[number]
            if number < first or service_number not in next_of:
                continue
            seen = next_of[service_number]
            before = stolen[max(bisect.bisect_right(times, made) - 1, 0)]
            after = stolen[min(bisect.bisect_left(times, seen), len(stolen) - 1)]
            late.append(((seen - made) * 1000, min(after - before, seen - made) * 1000))
        return late

    def _stolen(self):
        """Times, and for how many seconds until then a processor was away. From one note to the next they are away together."""
        notes = [[float(word) for word in line.split()[1:]] for line in list(self.steal.lines)]
        steps = [max(b - a for a, b in zip(earlier[1:], later[1:])) for earlier, later in itertools.pairwise(notes)]
        ticks = itertools.accumulate(steps, initial=0)
        return [when for when, *_ticks in notes], [n / os.sysconf("SC_CLK_TCK") for n in ticks]

    # -- what the daemon is like

    def resident_kib(self):
        return self.status("VmRSS:")

    def descriptors(self):
        return len(self.node.run("ls", f"/proc/{self.pid_of_daemon}/fd").split())

    def log_count(self, pattern, since=0):
        return sum(bool(re.search(pattern, line)) for line in self.log.lines[since:])

# SPDX-License-Identifier: Apache-2.0
"""A node without pods: one namespace, the daemon in it, and HTTP clients beside the daemon.

A client is a few lines of Python that the namespace's agent runs; it says in JSON what it got.
"""

import json
import os
import shutil
import signal
import sys
import tempfile
import time

from lab import manifests
from lab.daemon import program
from lab.log import PATIENCE
from lab.topology import Lab, Namespace

NODE = "node1"
ADDRESSES = {4: "192.0.2.11", 6: "2001:db8:2::11"}
METRICS = 10249
HEALTH = 10256


class Pod:
    def __init__(self, name, number, node=NODE):
        self.name, self.node = name, node
        self.address = {4: f"10.244.{1 if node == NODE else 2}.{number}", 6: f"fd00:10:244::{number:x}"}


class Host(Lab):
    """A lab of one namespace."""

    def __init__(self, files_in=None):
        """files_in: the folder for its files; None: where temporary files go."""
        self._start_holder()
        self.folder = tempfile.mkdtemp(prefix="portolan-serving-", dir=files_in)
        try:
            self.node = Namespace(self, "node", own_network=False)
            self.node.ip("link set lo up", "link add eth0 type bridge", "link set eth0 addrgenmode none",
                         f"addr add {ADDRESSES[4]}/24 dev eth0", f"addr add {ADDRESSES[6]}/64 dev eth0 nodad",
                         "link set eth0 up")
        except BaseException:
            self.close()
            raise
        self.pid_of_daemon = self.log = self.arguments = None
        self.objects = []

    def close(self):
        super().close()
        shutil.rmtree(self.folder, ignore_errors=True)

    # -- the daemon

    def start(self, *flags, wait=True, least="0s", before=()):
        """least: --iptables-min-sync-period; None: none is given. before: a program that runs the daemon, and its arguments."""
        os.makedirs(f"{self.folder}/manifests", exist_ok=True)
        if not self.objects:
            self.write()
        argv = [*before, program(), "run", "--manifests", f"{self.folder}/manifests", f"--hostname-override={NODE}", "--v=2",
                *([f"--iptables-min-sync-period={least}"] if least else []), "--conntrack-max-per-core=0",
                "--cluster-cidr=10.244.0.0/16,fd00:10:244::/48", *flags]
        self.arguments = argv
        self.pid_of_daemon, self.log = self.node.spawn(*argv)
        if wait:
            for family in ("IPv4", "IPv6"):
                self.log.wait_line(f'"First sync done" ipFamily="{family}"')
        return self

    def stop(self, number=signal.SIGTERM):
        self.signal(number)
        return self.wait()

    def signal(self, number):
        self.node.agent.call("kill", pid=self.pid_of_daemon, number=number)

    def wait(self):
        """Its exit code; then the log is whole."""
        code = self.node.agent.call("wait", pid=self.pid_of_daemon, timeout=30)
        assert code is not None, "the daemon did not end"
        self.log.wait(lambda: self.log.ended, "the end of the log")
        return code

    def status(self, key):
        """A number of /proc/PID/status."""
        text = self.node.run("cat", f"/proc/{self.pid_of_daemon}/status")
        return int(next(line for line in text.splitlines() if line.startswith(key)).split()[1])

    # -- what it serves

    def write(self, *services, node=None):
        """Everything, in one step; node: changes of the Node's metadata and spec, or False for none."""
        objects = []
        if node is not False:
            made = manifests.node(NODE, ADDRESSES.values(), ["10.244.1.0/24", "fd00:10:244:1::/64"])
            for part, fields in (node or {}).items():
                made[part] = {**made[part], **fields}
            objects.append(made)
        for service in services:
            objects += service.objects()
        self.objects = objects or [None]
        path = f"{self.folder}/manifests"
        os.makedirs(path, exist_ok=True)
        with open(f"{path}.new", "w", encoding="utf-8") as file:
            file.write(manifests.text(objects))
        os.rename(f"{path}.new", f"{path}/all.json")

    # -- clients

    def ask(self, path, port=METRICS, address="127.0.0.1", method="GET", body="", **headers):
        return self.node.ask_http(path, port, address, method=method, headers=headers, body=body or None)

    def run_client(self, code, *argv, timeout=300):
        """What a client prints, as JSON."""
        return json.loads(self.node.run(sys.executable, "-c", code, *map(str, argv), timeout=timeout))

    def wait_for(self, question, condition, patience=PATIENCE):
        """Asks until the answer is as it should be."""
        deadline = time.monotonic() + patience
        while not condition(answer := question()):
            assert time.monotonic() < deadline, f"still {answer!r}\n" + "\n".join(self.log.lines[-20:])
            time.sleep(0.02)
        return answer

    def wait_reconciled(self):
        """Until connections of both families were looked at, which comes a moment after a sync."""
        self.wait_for(lambda: self.ask("/metrics").body.count("\nkubeproxy_conntrack_reconciler_sync_duration_seconds_count{"),
                      lambda families: families == 2)

    def metrics(self):
        """Values by name and labels, as they are printed."""
        lines = self.ask("/metrics").body.splitlines()
        return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))}

# SPDX-License-Identifier: Apache-2.0
"""Portolan in the lab's node, fed from a folder there.

Nobody sleeps: to know that what a test asked for is in force, every file written also holds a marker, a Service
whose port is the file's generation. The marker's endpoint is the client namespace; once the node reaches it over
both families, so is everything that was written with it. Without the rule a connection is refused at once. The
question is asked after each line that the daemon logs. Without markers (the demo) the log's word is taken.
"""

import os
import re
import signal

from lab import manifests, topology
from lab.log import PATIENCE

FOLDER = "/run/lab/manifests"
SOURCE = os.path.dirname(os.path.dirname(topology.HERE))
SYNCED = re.compile(r'"(?:First sync done|Sync done|Sync works again)" ipFamily="IPv([46])"')
FIRST_MARKER_PORT = 1000

#: How Portolan writes rules in iptables mode, unless a test says it: netlink, restore, or what it chooses.
WRITER = os.environ.get("PORTOLAN_TEST_WRITER", "auto")

#: What a lab needs and a test seldom cares about.
FLAGS = (
    "--manifests", FOLDER,
    "--hostname-override=node1",
    "--iptables-min-sync-period=0s",
    "--conntrack-max-per-core=0",  # the limit is the whole machine's, a namespace cannot set it
    "--v=2",
)  # fmt: skip


def program():
    return os.environ.get("PORTOLAN") or os.path.join(SOURCE, "build", "portolan")


class Daemon:
    """One life of the daemon after another, over the same folder, with the same flags."""

    def __init__(self, lab, *flags, mode="iptables", env=None, marker=True, log_file=None,
                 detector=("--cluster-cidr", topology.CLUSTER_CIDR)):
        self.lab = lab
        self.flags = [*FLAGS, f"--proxy-mode={mode}", *detector, *flags]
        self.mode = mode
        self.env = env
        self.marker = marker
        self.log_file = log_file
        self.generation = 0
        self.pid = None
        self.log = None

    def start(self, wait=True):
        self.pid, self.log = self.lab.node.spawn(program(), "run", *self.flags, env=self.env, log_file=self.log_file)
        if wait:
            self.wait_synced()  # the marker alone may be a former life's
            self.wait_in_force()
        return self

    def stop(self, number=signal.SIGTERM):
        """Its exit code; negative for a signal."""
        self.lab.node.agent.call("kill", pid=self.pid, number=number)
        code = self.lab.node.agent.call("wait", within=PATIENCE + 5, pid=self.pid, timeout=PATIENCE)
        if code is None:
            raise TimeoutError(f"the daemon did not end after signal {number}")
        self.pid = None
        return code

    def kill(self):
        return self.stop(signal.SIGKILL)

    def write(self, name, text, **more):
        self.lab.node.agent.call("write_file", path=f"{FOLDER}/{name}", text=text, **more)

    def remove(self, name):
        self.lab.node.agent.call("remove_file", path=f"{FOLDER}/{name}")

    def write_services(self, *services, extra=()):
        """Everything that the lab is to serve from now on, in one file."""
        self.generation += 1
        objects = [manifests.node("node1", topology.NODE.values(), topology.POD_CIDRS)]
        for service in services:
            objects += service.objects()
        if self.marker:
            objects += self._marker()
        self.write("lab.json", manifests.text(objects + list(extra)))

    def serve(self, *services, extra=()):
        """The same, and waits until it is in force and the log has said so, which comes a moment later."""
        since = len(self.log.lines)
        self.write_services(*services, extra=extra)
        if self.marker:
            self.wait_in_force()
            self.wait_synced(since)

    def _marker(self):
        class Outside:
            name = "marker"
            node = "elsewhere"
            address = topology.CLIENT

        marker = manifests.Service("marker", 0, [Outside], port=self._marker_port(), target=topology.MARKER_PORT)
        marker.cluster_ip = dict(topology.MARKER)
        return marker.objects()

    def _marker_port(self):
        return FIRST_MARKER_PORT + self.generation

    def in_force(self):
        return all(self.lab.node.ask(ip, self._marker_port()).pod == "marker" for ip in topology.MARKER.values())

    def wait_synced(self, since=0):
        """Until both families have been synced after the line number `since` of the log."""

        def both():
            return {match[1] for line in self.log.lines[since:] if (match := SYNCED.search(line))} == {"4", "6"}

        self.log.wait(both, "both families had synced")

    def wait_in_force(self, timeout=PATIENCE):
        if self.marker:
            self.log.wait(self.in_force, "what was asked for came into force", timeout)

    def render(self, *flags):
        """What `portolan render` prints for the folder and the flags of this daemon."""
        mine = [flag for flag in self.flags if not flag.startswith("--v=")]
        return self.lab.node.run(program(), "render", *mine, *flags)


def save(lab, family, table=None):
    tool = "iptables-save" if family == 4 else "ip6tables-save"
    return lab.node.run(tool, *(["-t", table] if table else []))

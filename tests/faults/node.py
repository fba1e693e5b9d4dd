# SPDX-License-Identifier: Apache-2.0
"""A node of its own for each test: a network namespace, tools that can be told to fail, a manifest folder, the daemon.

       PATH ──> bin/iptables-restore, ...   a script for each tool: does what the test asks for, then becomes
                      │                     the real one
                      v
               control/NAME.fail            fail until the file is removed
               control/NAME.fail-once       fail once
               control/NAME.block           a fifo: wait until something is written to it, then go on
               control/log                  one line for each call, "NAME words"; "blocked NAME" and "failed NAME"

The namespace has one service address (10.96.0.10) and one pod address (10.244.0.5) on its loopback interface, where a
server answers, so that a test can see whether what worked still works.
"""

import os
import shutil
import subprocess

import pytest

from lab import iptables_listing
from lab.child import PATIENCE, Child
from lab.daemon import program
from lab.topology import wait_for

PORTOLAN = program()

FAMILIES = {4: "iptables", 6: "ip6tables"}
TOOLS = [family + kind for family in FAMILIES.values() for kind in ("", "-save", "-restore")]
SYSTEM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"

SCRIPT = """#!/bin/sh
name=${0##*/}
control=${0%/bin/*}/control
echo "$name $*" >>$control/log
if [ -e $control/$name.fail ] || rm $control/$name.fail-once 2>/dev/null; then
	case $name in *-restore) cat >/dev/null;; esac
	echo "failed $name" >>$control/log
	echo "$name: line 1 failed" >&2
	exit 1
fi
if [ -p $control/$name.block ]; then
	echo "blocked $name" >>$control/log
	read word <$control/$name.block
fi
exec @REAL@/$name "$@"
"""

SERVER = """
import socket
server = socket.create_server(("10.244.0.5", 8080))
print("listening", flush=True)
while True:
    server.accept()[0].sendall(b"pod")
"""

CLIENT = """
import socket, sys
with socket.create_connection((sys.argv[1], 80), timeout=20) as connection:
    sys.exit(connection.recv(16) != b"pod")
"""


def until(condition, what, patience=30):
    return wait_for(condition, patience, step=0.01, what=what)


def service(name, cluster_ip, endpoints, port=80, target=8080):
    """A Service with its EndpointSlice, as YAML."""
    text = f"""---
apiVersion: v1
kind: Service
metadata: {{name: {name}, namespace: default}}
spec:
  clusterIP: "{cluster_ip}"
  ports: [{{name: http, port: {port}, targetPort: {target}}}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: {name}-1, namespace: default, labels: {{kubernetes.io/service-name: {name}}}}}
addressType: {"IPv6" if ":" in cluster_ip else "IPv4"}
ports: [{{name: http, port: {target}, protocol: TCP}}]
endpoints:
"""
    for address in endpoints:
        text += f"- {{addresses: [\"{address}\"], conditions: {{ready: true}}, nodeName: n1}}\n"
    return text


WEB = service("web", "10.96.0.10", ["10.244.0.5"])


#: Asks nf_tables for its generation (NFT_MSG_GETGEN) and prints it.
GENERATION = """
import socket, struct
ask = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12)
ask.send(struct.pack("=IHHII4x", 20, 10 << 8 | 16, 1, 1, 0))
print(struct.unpack_from(">I", ask.recv(4096), 24)[0])
"""


class Node:
    def __init__(self, folder, real="/usr/sbin", writer="restore"):
        self.folder = str(folder)
        self.manifests = self.path("manifests")
        self.real = real
        self.daemons = []
        self.server = None
        for name in ("bin", "control", "manifests"):
            os.mkdir(self.path(name))
        for tool in TOOLS:
            self.restore_tool(tool)
        self.env = {**os.environ, "PATH": f"{self.path('bin')}:{SYSTEM_PATH}"}
        self.flags = [
            "--manifests", self.manifests, "--hostname-override", "n1", "--cluster-cidr", "10.244.0.0/16",
            "--iptables-sync-period", "300ms", "--iptables-min-sync-period", "0s", "--v", "2",
            "--iptables-writer", writer, "--conntrack-max-per-core", "0",
        ]  # fmt: skip
        self._make_namespace()

    def path(self, *names):
        return os.path.join(self.folder, *names)

    # -- the namespace --

    def _make_namespace(self):
        """A process that does nothing keeps it, and goes with us."""
        self.holder = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "sh", "-c", "echo made; exec sleep infinity"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        if self.holder.stdout.readline() != "made\n":
            reason = self.holder.stderr.read().strip()
            self.close()
            pytest.skip(f"no network namespace: {reason}")
        self.run("ip", "link", "set", "lo", "up")
        self.run("ip", "address", "add", "10.244.0.5/32", "dev", "lo")
        self.run("ip", "route", "add", "local", "10.96.0.0/16", "dev", "lo")  # refused at once without a rule

    def inside(self, command):
        return ["nsenter", "--target", str(self.holder.pid), "--net", "--", *command]

    def run(self, *command, check=True, **more):
        """Runs a command in the namespace with the real tools; returns its output."""
        done = subprocess.run(
            self.inside(command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
            env={**os.environ, "PATH": f"{self.real}:{SYSTEM_PATH}"}, timeout=PATIENCE, **more,
        )  # fmt: skip
        if check and done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {done.stdout}")
        return done.stdout

    def close(self):
        for daemon in self.daemons:
            daemon.close()
        if self.server:
            self.server.kill()
            self.server.wait()
            self.server.stdout.close()
        self.holder.kill()
        self.holder.wait()
        self.holder.stdout.close()
        self.holder.stderr.close()

    # -- the daemon --

    def start(self, *flags, before=(), binary=PORTOLAN):
        """before: words that start it, such as setpriv's."""
        self.daemons.append(Child(self.inside([*before, binary, "run", *self.flags, *flags]), self.env))
        return self.daemons[-1]

    # -- the tools --

    def restore_tool(self, name):
        path = self.path("bin", name)
        with open(path + ".new", "w", encoding="ascii") as file:
            file.write(SCRIPT.replace("@REAL@", self.real))
        os.chmod(path + ".new", 0o755)
        os.rename(path + ".new", path)

    def remove_tool(self, name):
        os.unlink(self.path("bin", name))

    def control(self, name, kind):
        open(self.path("control", f"{name}.{kind}"), "w", encoding="ascii").close()

    def uncontrol(self, name, kind):
        os.unlink(self.path("control", f"{name}.{kind}"))

    def block(self, name):
        os.mkfifo(self.path("control", f"{name}.block"))

    def release(self, name):
        """Lets the tool that waits go on, and those to come not wait."""
        path = self.path("control", f"{name}.block")
        with open(path, "w", encoding="ascii") as fifo:
            os.unlink(path)
            fifo.write("go\n")

    def calls(self, text):
        """How often the log of the tools holds a line that starts with this."""
        try:
            with open(self.path("control", "log"), encoding="utf-8") as file:
                return sum(line.startswith(text) for line in file)
        except FileNotFoundError:
            return 0

    def wait_calls(self, text, count):
        until(lambda: self.calls(text) >= count, f"{count} lines '{text}' in the tools' log")

    # -- manifests --

    def write(self, name, text):
        path = os.path.join(self.manifests, name)
        with open(path + ".new", "w", encoding="utf-8") as file:
            file.write(text)
        os.rename(path + ".new", path)

    def remove(self, name):
        os.unlink(os.path.join(self.manifests, name))

    def hide_manifests(self):
        os.rename(self.manifests, self.path("hidden"))

    def show_manifests(self):
        os.rename(self.path("hidden"), self.manifests)

    def drop_manifests(self):
        shutil.rmtree(self.manifests)

    # -- what is there --

    def saved(self):
        """The rules of each family, in a form that can be compared."""
        return {family: iptables_listing.lines(self.run(os.path.join(self.real, f"{tool}-save"))) for family, tool in FAMILIES.items()}

    def chains(self):
        """How many chains of Services there are."""
        return self.run("nft", "-t", "list", "table", "ip", "nat", check=False).count("chain KUBE-S")

    def generation(self):
        """It grows with every transaction that changes something."""
        return int(self.run("/usr/bin/python3", "-c", GENERATION))

    def wanted(self):
        """What the same manifests render to."""
        return {family: iptables_listing.lines(self.render(family)) for family in FAMILIES}

    def render(self, family):
        command = self.inside([PORTOLAN, "render", *self.flags, "--format=save", f"--ip-family=ipv{family}"])
        return subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True, stderr=subprocess.DEVNULL, timeout=PATIENCE,
                              env=self.env).stdout

    def wait_right(self):
        """Until the kernel holds what the manifests ask for, canaries and all."""
        wanted = self.wanted()
        try:
            until(lambda: self.saved() == wanted, "the rules were right")
        except TimeoutError:
            assert self.saved() == wanted
            raise
        return wanted

    # -- traffic --

    def serve(self):
        """A pod that answers."""
        self.server = subprocess.Popen(
            self.inside(["/usr/bin/python3", "-c", SERVER]), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
        )
        assert self.server.stdout.readline() == "listening\n"

    def ask(self, cluster_ip="10.96.0.10"):
        """Does the pod answer on the Service's address?"""
        client = self.inside(["/usr/bin/python3", "-c", CLIENT, cluster_ip])
        return subprocess.run(client, stderr=subprocess.DEVNULL, check=False, timeout=PATIENCE).returncode == 0

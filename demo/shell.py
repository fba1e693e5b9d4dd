# SPDX-License-Identifier: Apache-2.0
"""The demo left standing: a shell in the node's namespaces, with a few words to play with."""

import os
import shutil
import signal
import subprocess
import termios

from lab.daemon import FOLDER, SOURCE, program
from lab.topology import HERE

BIN = "/run/lab/bin"
LOG = "/run/lab/portolan.log"

GET = """#!/bin/sh
# get ADDRESS[:PORT] [COUNT]: who answers?
PYTHONPATH={tests} exec /usr/bin/python3 -B {demo}/get.py "$@"
"""
ENTER = """#!/bin/sh
# {name} COMMAND: runs it there
exec ip netns exec {name} "$@"
"""

HELP = """
You are root of the node. The rules are in force, and Portolan follows the files in $MANIFESTS
({folder}).

  get 10.96.10.10 100                   who answers the ClusterIP, out of a hundred requests
  pod-a get 10.96.10.10                 the same from a pod (pod-a, pod-b, pod-c)
  client get 192.0.2.11:30080 100       the NodePort from outside
  client get 198.51.100.7 20            the LoadBalancer: one pod for one client
  get [fd00:10:96::10:10]:80            IPv6

  iptables-save -t nat | grep web       the rules
  vi $MANIFESTS/pods.yaml               take a line away and ask again
  tail -f {log}         what Portolan says about it
  portolan render --manifests $MANIFESTS --node-name node1

`exit` ends the shell, and with it everything here.
"""


def prepare(stage):
    write = stage.lab.node.agent
    words = {"get": GET.format(tests=os.path.dirname(HERE), demo=os.path.join(SOURCE, "demo"))}
    for name in [*stage.pods, "client"]:
        words[name] = ENTER.format(name=name)
    words["portolan"] = f'#!/bin/sh\nexec {program()} "$@"\n'
    for name, text in words.items():
        write.call("write_file", path=f"{BIN}/{name}", text=text, mode=0o755)


def namespace_flags(pid):
    flags = ["--mount", "--pid", "--net", "--uts", "--ipc"]
    if os.readlink(f"/proc/{pid}/ns/user") != os.readlink("/proc/self/ns/user"):
        flags = ["--user", "--preserve-credentials", *flags]
    return flags


class Terminal:
    """Gives the terminal back as it was, also when the shell on it was killed."""

    def __enter__(self):
        try:
            self.modes = termios.tcgetattr(0)
        except termios.error:
            self.modes = None
        signal.signal(signal.SIGINT, lambda _number, _frame: None)  # Ctrl-C is for the shell's commands

    def __exit__(self, *_exc):
        if self.modes is None:
            return
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # the shell's process group may still hold the terminal
        os.tcsetpgrp(0, os.getpgrp())
        termios.tcsetattr(0, termios.TCSADRAIN, self.modes)


def run(screen, stage):
    """Until the shell ends. The signals that end the demo end the lab, and the shell with it."""
    prepare(stage)
    screen.line(HELP.format(folder=FOLDER, log=LOG))
    path = os.pathsep.join([BIN, os.environ.get("PATH", ""), "/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/bin", "/bin"])
    words = [shutil.which("bash"), "--norc", "--noprofile"] if shutil.which("bash") else ["/bin/sh"]
    with Terminal():
        child = subprocess.Popen(
            [shutil.which("nsenter", path=path), "--target", str(stage.lab.pid), *namespace_flags(stage.lab.pid), "--", *words],
            env={**os.environ, "PATH": path, "PS1": "node1 # ", "MANIFESTS": FOLDER},
        )
        try:
            child.wait()
        finally:
            stage.lab.close()
            child.wait()

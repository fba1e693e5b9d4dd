# SPDX-License-Identifier: Apache-2.0
"""A password in the URL of an API server or of a proxy is for these alone: it is in no log line and on no page."""

import json
import os
import sys

import pytest

from lab.daemon import SOURCE, program
from lab.fake_api import PORT
from lab.host import HEALTH, METRICS, NODE

#: Asks for everything that an unprivileged client can have.
PAGES = [(METRICS, path) for path in ("/metrics", "/configz", "/flagz", "/statusz", "/healthz", "/proxyMode", "/metrics/slis")] + \
    [(HEALTH, path) for path in ("/healthz", "/livez", "/", "/status", "/status.json")]
SECRET = "geheim"
#: "user:geheim", as a header has it.
BASIC = "Basic dXNlcjpnZWhlaW0="
#: An API server, and a proxy, that lets nobody read anything but the Node, for which a start waits; says how it was asked.
FORBID = f"""
import sys, threading
sys.path.insert(0, {os.path.join(SOURCE, "tests")!r})
from lab import fake_api
tell = fake_api.Handler.do_GET
def do_GET(self):
    print(self.path, self.headers["Authorization"], self.headers["Proxy-Authorization"], file=sys.stderr, flush=True)
    tell(self) if "/nodes" in self.path else self.answer(403)
fake_api.Handler.do_GET = do_GET
fake_api.State({os.path.join(SOURCE, "src/sources/k8s.proto")!r}).apply([{{
    "kind": "Node", "metadata": {{"name": {NODE!r}}}, "status": {{"addresses": [{{"type": "InternalIP", "address": "192.0.2.1"}}]}}}}])
print("ready", file=sys.stderr, flush=True)
threading.Event().wait()
"""


def kubeconfig(folder, server, **cluster):
    path = f"{folder}/kubeconfig"
    with open(path, "w", encoding="ascii") as file:
        json.dump({
            "apiVersion": "v1", "kind": "Config", "current-context": "x", "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
            "clusters": [{"name": "x", "cluster": {"server": server, **cluster}}], "users": [{"name": "x", "user": {}}]}, file)
    return f"--kubeconfig={path}"


def flags_of(kind, folder):
    url = f"http://user:{SECRET}@127.0.0.1:{PORT}"
    return {
        "master": lambda: [f"--master={url}"],
        "kubeconfig": lambda: [kubeconfig(folder, url + "/prefix/")],
        "proxy": lambda: [kubeconfig(folder, "http://192.0.2.99:6443", **{"proxy-url": url})],
    }[kind]()


@pytest.mark.parametrize("kind, asked, label", [
    ("master", f"^/api/v1/services.* {BASIC} None", f"127.0.0.1:{PORT}"),
    ("kubeconfig", f"^/prefix/api/v1/services.* {BASIC} None", f"127.0.0.1:{PORT}"),
    ("proxy", f"^http://192.0.2.99:6443/api/v1/services.* None {BASIC}", "192.0.2.99:6443"),
])
def test_a_password_in_a_url_is_told_to_its_server_alone(host, kind, asked, label):
    _, server = host.node.spawn(sys.executable, "-c", FORBID)
    server.wait_line("ready")
    host.pid_of_daemon, host.log = host.node.spawn(
        program(), "run", *flags_of(kind, host.folder), f"--hostname-override={NODE}", "--v=9", "--conntrack-max-per-core=0")
    server.wait_line(asked)
    host.log.wait_line(f"The API server http://{label}[^ ]* does not let us read")
    host.wait_for(lambda: host.ask("/metrics").body, lambda body: f'host="{label}"' in body)
    for port, path in PAGES:
        answer = host.ask(path, port)
        assert SECRET not in f"{answer.headers} {answer.body}", path
    assert "master=http://127.0.0.1" in host.ask("/flagz").body or kind != "master"
    assert host.stop() == 0
    assert not [line for line in host.log.lines if SECRET in line]


@pytest.mark.parametrize("url", [f"ftp://user:{SECRET}@k", f"https://user:{SECRET}@k:x", f"https://user:{SECRET}%4@k", f"user:{SECRET}@k k"])
def test_nor_when_the_url_is_wrong(host, url):
    for flags in ([f"--master={url}"], [kubeconfig(host.folder, url)]):
        pid, log = host.node.spawn(program(), "run", *flags, f"--hostname-override={NODE}", "--v=9", "--conntrack-max-per-core=0")
        assert host.node.agent.call("wait", pid=pid, timeout=30) != 0
        log.wait(lambda: log.ended, "its end")
        assert "server" in "".join(log.lines) and SECRET not in "".join(log.lines), log.lines

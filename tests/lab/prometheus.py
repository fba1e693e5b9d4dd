# SPDX-License-Identifier: Apache-2.0
"""Prometheus itself, from Debian's package: promtool, and a server that scrapes a daemon."""
import json
import os
import signal
import subprocess
import urllib.parse

import pytest

from lab.topology import wait_for

HERE = os.path.dirname(os.path.abspath(__file__))
PORT = 9090


def program(name):
    """Its path. The test is skipped where it cannot be had; in CI it fails."""
    found = subprocess.run([os.path.join(HERE, "prometheus-programs")], capture_output=True, text=True, check=False)
    if found.returncode == 77 and os.environ.get("CI") != "true":
        pytest.skip(found.stderr.strip())
    assert found.returncode == 0, found.stderr
    return os.path.join(found.stdout.strip(), name)


def promtool(*argv, stdin=None):
    return subprocess.run([program("promtool"), *argv], input=stdin, capture_output=True, text=True, check=False)


class Prometheus:
    """Scrapes 127.0.0.1:10249 of a namespace once a second."""

    def __init__(self, node, folder, rules=()):
        self.node = node
        os.makedirs(folder)
        with open(f"{folder}/prometheus.json", "w", encoding="utf-8") as file:  # JSON is YAML, too
            json.dump({"global": {"scrape_interval": "1s", "evaluation_interval": "1s"}, "rule_files": list(rules),
                       "scrape_configs": [{"job_name": "portolan", "static_configs": [{"targets": ["127.0.0.1:10249"]}]}]}, file)
        self.pid, self.log = node.spawn(
            program("prometheus"), f"--config.file={folder}/prometheus.json", f"--storage.tsdb.path={folder}/data",
            f"--web.listen-address=127.0.0.1:{PORT}")
        self.log.wait_line("Server is ready", timeout=60)

    def ask(self, path, **query):
        """The data of an answer."""
        answer = self.node.ask_http(f"/api/v1/{path}?{urllib.parse.urlencode(query)}", PORT).json()
        assert answer["status"] == "success" and not answer.get("warnings"), f"{query}: {answer}"
        return answer["data"]

    def query(self, expression):
        """Values by labels."""
        return {tuple(sorted(one["metric"].items())): float(one["value"][1])
                for one in self.ask("query", query=expression)["result"]}

    def wait_scrapes(self, n):
        """That so many have come in from now on."""
        wanted = self._scrapes() + n
        wait_for(lambda: self._scrapes() >= wanted, timeout=60, step=0.1, what=f"{n} scrapes came in")

    def _scrapes(self):
        return sum(self.query('count_over_time(up{job="portolan"}[10m])').values())

    def close(self):
        self.node.agent.call("kill", pid=self.pid, number=signal.SIGKILL)
        self.node.agent.call("wait", pid=self.pid, timeout=10)

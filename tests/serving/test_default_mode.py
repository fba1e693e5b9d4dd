# SPDX-License-Identifier: Apache-2.0
"""Who gives no mode is told that it will not stay what it is: by a line of the log, and by an Event of the Node."""

import pytest

from lab import fake_api, manifests
from lab.daemon import program
from lab.host import ADDRESSES, NODE

LINE = r'^E.*"No mode is given, using iptables" reason="the default becomes nftables in Kubernetes 1\.40; .*mode: iptables'


class Started:
    """A daemon below an API server, which has told the Node of its start. That is the last Event of a start."""

    def __init__(self, host, *flags):
        api = fake_api.spawn(host.node)
        api.call("apply", items=[manifests.node(NODE, [ADDRESSES[4]], [])])
        host.pid_of_daemon, host.log = host.node.spawn(
            program(), "run", f"--master=http://127.0.0.1:{fake_api.PORT}", f"--hostname-override={NODE}",
            "--conntrack-max-per-core=0", *flags)
        self.log = host.log
        host.wait_for(lambda: [event["reason"] for event in api.call("told")["events"]], lambda reasons: "Starting" in reasons)
        self.events = [event for event in api.call("told")["events"] if event["reason"] == "KubeProxyDefaultMode"]
        assert host.stop() == 0

    def lines(self):
        return sum("No mode is given" in line for line in self.log.lines)


@pytest.mark.parametrize("flags", [(), ("--proxy-mode=",)], ids=["none", "empty"])
def test_no_mode_is_told_once(host, flags):
    started = Started(host, *flags)
    started.log.wait_line(LINE)
    assert started.lines() == 1
    assert len(started.events) == 1
    event = started.events[0]
    assert (event["type"], event["action"]) == ("Warning", "StartKubeProxy")
    assert (event["regarding"]["kind"], event["regarding"]["name"]) == ("Node", NODE)
    assert event["note"].startswith("No mode is given, using iptables: the default becomes nftables in Kubernetes 1.40")


@pytest.mark.parametrize("mode", ["iptables", "nftables"])
def test_a_mode_that_is_given_is_not(host, mode):
    started = Started(host, f"--proxy-mode={mode}")
    assert started.lines() == 0 and started.events == []

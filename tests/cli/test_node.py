# SPDX-License-Identifier: Apache-2.0
"""The Node, as it changes while the daemon runs: other addresses and its deletion end it, as they end kube-proxy; nothing else does.

Rules stay, and the next start stands on what the Node is by then.
"""

import os

import pytest

from lab import fake_api
from lab.daemon import program
from lab.host import ADDRESSES, NODE, Pod
from lab.manifests import Service

V4, V6 = ADDRESSES[4], ADDRESSES[6]
WEB = Service("web", 7, [Pod("a", 9)], kind="NodePort")
MORE = Service("more", 8, [Pod("a", 9)])
DELETED = f'"The Node was deleted, a new start is needed" err="{NODE}"'


def changed(before, now):
    return f'"The Node\'s addresses changed, a new start is needed" err="at the start: {before}; now: {now}"'


def addresses(*list_, kind="InternalIP"):
    return {"status": {"addresses": [{"type": kind, "address": address} for address in list_]}}


def rules(host):
    return [line for tool in ("iptables-save", "ip6tables-save") for line in host.node.run(tool).splitlines() if line.startswith("-A")]


def assert_ends(host, change, words):
    """It ends with 1 and these words last, and leaves the rules as they are."""
    before = rules(host)
    assert any(WEB.cluster_ip[4] in rule for rule in before)
    change()
    assert host.wait() == 1
    assert words in host.log.lines[-1]
    assert rules(host) == before


def assert_goes_on(host, change):
    """A Service of the same step, or a later one, is served; and it ends when it is told to."""
    change()
    host.wait_for(lambda: rules(host), lambda found: any(MORE.cluster_ip[4] in rule for rule in found))
    assert host.stop() == 0


ENDS = {
    "another address": (addresses("192.0.2.99", V6), f"192.0.2.99,{V6}"),
    "another address of the second family": (addresses(V4, "2001:db8:2::99"), f"{V4},2001:db8:2::99"),
    "the other family first": (addresses(V6, V4), f"{V6},{V4}"),
    "one family less": (addresses(V4), V4),
    "none any more": (addresses(), "none"),
    "only a name": (addresses("node1.example", kind="Hostname"), "none"),
}


@pytest.mark.parametrize("name", ENDS)
def test_other_addresses_end_it(host, name):
    change, now = ENDS[name]
    host.write(WEB)
    host.start()
    assert_ends(host, lambda: host.write(WEB, node=change), changed(f"{V4},{V6}", now))


def test_bind_address_hides_nothing(host):
    host.write(WEB)
    host.start(f"--bind-address={V4}")
    assert_ends(host, lambda: host.write(WEB, node=addresses("192.0.2.99", V6)), changed(f"{V4},{V6}", f"192.0.2.99,{V6}"))


@pytest.mark.parametrize("mode", ["iptables", "nftables"])
def test_the_next_start_uses_the_new_address(host, mode):
    """nftables mode lists the addresses of NodePorts itself."""
    host.write(WEB)
    flags = [f"--proxy-mode={mode}", "--nodeport-addresses=primary"]
    host.start(*flags)
    host.node.ip("addr add 192.0.2.99/24 dev eth0")
    host.write(WEB, node=addresses("192.0.2.99", V6))
    assert host.wait() == 1
    host.start(*flags)
    found = "\n".join(rules(host)) + host.node.run("nft", "list", "ruleset")
    assert "192.0.2.99" in found and V4 not in found.replace("192.0.2.99", "")
    assert host.stop() == 0


def test_addresses_that_come_late_end_it(host):
    """From a folder they are not waited for; from an API server for 30 s, see unit/test_node_wait.c."""
    host.write(WEB, node=addresses())
    host.start()
    assert_ends(host, lambda: host.write(WEB), changed("none", f"{V4},{V6}"))


def test_a_node_that_comes_late_ends_it_when_it_has_addresses(host):
    host.write(WEB, node=False)
    host.start()
    host.write(WEB, MORE, node=addresses())
    host.wait_for(lambda: rules(host), lambda found: any(MORE.cluster_ip[4] in rule for rule in found))
    assert_ends(host, lambda: host.write(WEB, MORE), changed("none", f"{V4},{V6}"))


def test_its_deletion_ends_it(host):
    host.write(WEB)
    host.start()
    assert_ends(host, lambda: host.write(WEB, node=False), DELETED)


GOES_ON = {
    "a further address of a family": addresses(V4, "192.0.2.99", V6),
    "an address outside": {"status": {"addresses": [*addresses(V4, V6)["status"]["addresses"], {"type": "ExternalIP", "address": "203.0.113.5"}]}},
    "a name": {"status": {"addresses": [{"type": "Hostname", "address": "node1.example"}, *addresses(V4, V6)["status"]["addresses"]]}},
    "a condition": {"status": {**addresses(V4, V6)["status"], "conditions": [{"type": "Ready", "status": "False"}]}},
    "a label": {"metadata": {"name": NODE, "labels": {"topology.kubernetes.io/zone": "zone-z", "a": "b"}}},
    "a taint": {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}},
    "other podCIDRs": {"spec": {"podCIDRs": ["10.244.77.0/24"]}},
    "the begin of its deletion": {"metadata": {"name": NODE, "deletionTimestamp": "2026-01-02T03:04:05Z", "labels": {}}},
}


@pytest.mark.parametrize("name", GOES_ON)
def test_all_else_that_changes_does_not_end_it(host, name):
    host.write(WEB)
    host.start()
    assert_goes_on(host, lambda: host.write(WEB, MORE, node=GOES_ON[name]))


def test_pod_cidrs_come_first_in_mode_node_cidr(host):
    host.write(WEB)
    host.start("--detect-local-mode=NodeCIDR")
    both = {**addresses("192.0.2.99"), "spec": {"podCIDRs": ["10.244.77.0/24"]}}
    assert_ends(host, lambda: host.write(WEB, node=both), '"The Node\'s podCIDRs changed, a new start is needed"')


# ---- while another instance is waited for

@pytest.fixture
def second(host):
    """A daemon that waits for the host's own to end: second.start(configuration), second.assert_ends(words)."""
    class Second:
        config = f"{host.folder}/config"
        pid = log = None

        def configure(self, text):
            with open(f"{self.config}.new", "w", encoding="utf-8") as file:
                file.write("apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: iptables\n"
                           "healthzBindAddress: 127.0.0.1:20256\nmetricsBindAddress: 127.0.0.1:20249\n" + text)
            os.rename(f"{self.config}.new", self.config)

        def start(self, text):
            """Returns when it knows the Node: its loop, which answers, runs once the folder was read."""
            self.configure(text)
            self.pid, self.log = host.node.spawn(*host.arguments, f"--config={self.config}")
            self.log.wait_line("Another instance runs on this node, waiting for it to end")
            host.wait_for(lambda: host.ask("/healthz", 20256).status, lambda status: status == 503)

        def assert_ends(self, words):
            assert host.node.agent.call("wait", pid=self.pid, timeout=30) == 1
            self.log.wait_line(words)

    host.write(WEB)
    host.start()
    return Second()


def test_pod_cidrs_count_while_another_instance_is_waited_for(host, second):
    second.start("detectLocalMode: NodeCIDR\n")
    host.write(WEB, MORE, node={"spec": {"podCIDRs": []}})
    second.assert_ends("The Node's podCIDRs changed, a new start is needed")
    assert_goes_on(host, lambda: None)


def test_a_configuration_that_needs_pod_cidrs_needs_a_new_start_to_wait_for_them(host, second):
    host.write(WEB, node={"spec": {"podCIDRs": []}})
    second.start("clusterCIDR: 10.244.0.0/16\n")
    second.configure("detectLocalMode: NodeCIDR\n")
    second.assert_ends('a new start is needed.*detectLocalMode')
    assert_goes_on(host, lambda: host.write(WEB, MORE))


# ---- below an API server

class Server:
    """An API server in the daemon's namespace, see lab/fake_api.py, that has the Node and a Service."""

    def __init__(self, host, refuses=None):
        """refuses: a kind that may not be read yet; then nothing is waited for."""
        self.host, self.api = host, fake_api.spawn(host.node)
        host.write(WEB)
        self.items = host.objects
        self.node = next(item for item in self.items if item["kind"] == "Node")
        self.api.call("apply", items=self.items)
        self.api.call("refuse", kind=refuses)
        self.start()
        if not refuses:
            self.wait_for_first_syncs()

    def wait_for_first_syncs(self):
        for family in (4, 6):
            self.host.log.wait_line(f'"First sync done" ipFamily="IPv{family}"')

    def start(self):
        self.host.pid_of_daemon, self.host.log = self.host.node.spawn(
            program(), "run", f"--master=http://127.0.0.1:{fake_api.PORT}", f"--hostname-override={NODE}", "--v=2",
            "--iptables-min-sync-period=0s", "--conntrack-max-per-core=0")

    def show_none(self, *kinds):
        """In lists; what watches told before stands."""
        for kind in kinds:
            self.api.call("show", kind=kind, count=0)

    def list_nodes_anew(self):
        self.show_none("Node")
        self.api.call("expire", kind="Node")


def test_rights_that_come_a_moment_late_cost_no_restart(host):
    """A cluster that is being made binds the role when nodes are up already."""
    server = Server(host, refuses="Node")
    host.log.wait_line("does not let us read about the Node")
    host.log.wait_line('"Waiting for the Node\'s addresses" node="node1" seconds=30')
    assert not rules(host)
    server.api.call("refuse", kind=None)
    server.wait_for_first_syncs()
    assert host.log.find("lets us follow the Node again")
    assert_goes_on(host, lambda: server.api.call("apply", items=MORE.objects()))


def test_a_watch_tells_of_its_deletion(host):
    server = Server(host)
    assert_ends(host, lambda: server.api.call("remove", items=[server.node]), DELETED)


def test_a_list_without_it_is_its_deletion(host):
    server = Server(host)
    assert_ends(host, server.list_nodes_anew, DELETED)


def test_a_list_that_is_not_complete_is_none(host):
    """Every page names a next one: the list of Nodes has no end, and what it lacks is not known."""
    server = Server(host)
    server.api.call("page", token="next")
    server.list_nodes_anew()
    host.wait_for(lambda: server.api.call("told")["lists"]["Node"], lambda lists: lists > 3)
    assert_goes_on(host, lambda: server.api.call("apply", items=MORE.objects()))


def test_a_server_that_lost_everything_ends_it_and_changes_no_rule_in_its_next_life(host):
    """The deletion is believed, as kube-proxy believes it; the first list of the next life has nothing at all, and is not."""
    server = Server(host)
    server.show_none("Service", "EndpointSlice")
    assert_ends(host, server.list_nodes_anew, DELETED)
    before = rules(host)
    server.start()
    host.log.wait_line("The first list of the API server has no Services")
    assert host.stop() == 0
    assert rules(host) == before

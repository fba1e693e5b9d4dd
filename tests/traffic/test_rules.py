# SPDX-License-Identifier: Apache-2.0
"""The kernel holds what the dry run promises: iptables-save equals `portolan render --format=save`."""

import pytest

from lab import iptables_listing
from lab.check import served
from lab.daemon import program, save
from lab.manifests import Endpoint, Service, cluster_ip
from lab.random_cluster import Cluster
from lab.topology import FAMILIES, wait_for

FLAGS = {
    "netlink": {"flags": ("--iptables-writer=netlink",)},
    "restore": {"flags": ("--iptables-writer=restore",)},
    "masquerade-all": {"flags": ("--masquerade-all",)},
    "bridge": {"detector": ("--detect-local-mode=BridgeInterface", "--pod-bridge-interface=cni0")},
    "no-detector": {"detector": ()},
    "no-localhost": {"flags": ("--iptables-localhost-nodeports=false", "--iptables-masquerade-bit=7")},
    "node-port-addresses": {"flags": ("--nodeport-addresses=192.0.2.0/24,2001:db8:2::/64",)},
}


pytestmark = pytest.mark.only("iptables")  # compares iptables-save


def differences(cluster):
    """Those of both families, in words."""
    found = []
    for family in FAMILIES:
        kernel = save(cluster.lab, family)
        assert len(kernel.splitlines()) > 25
        promised = cluster.daemon.render("--format=save", f"--ip-family=ipv{family}")
        found.append(iptables_listing.difference(promised, kernel, names=("promised", "kernel")))
    return "".join(found)


def some_services(cluster):
    local = {"externalTrafficPolicy": "Local", "healthCheckNodePort": 32000}
    return [
        Service("plain", 110, cluster.pods + cluster.remote_pods),
        Service("datagrams", 111, cluster.pods, proto="UDP", kind="NodePort"),
        Service("streams", 112, cluster.pods, proto="SCTP", external=True),
        Service("balanced", 113, cluster.pods, kind="LoadBalancer", loadBalancerSourceRanges=["192.0.2.0/24", "2001:db8::/32"]),
        Service("local", 114, cluster.pods[:1] + cluster.remote_pods, kind="LoadBalancer", affinity=60, external=True, **local),
        Service("far", 115, cluster.remote_pods, kind="NodePort", externalTrafficPolicy="Local", internalTrafficPolicy="Local"),
        Service("empty", 116, [], kind="LoadBalancer", external=True),
        Service("ending", 117, [Endpoint(pod, "terminating") for pod in cluster.pods]),
        Service("old", 118, cluster.pods, families=(4,)),
        Service("young", 119, cluster.pods, families=(6,)),
    ]


@pytest.mark.parametrize("name", FLAGS)
def test_first_sync_equals_the_dry_run(clusters, name):
    more = dict(FLAGS[name])
    cluster = clusters(*more.pop("flags", ()), **more)
    cluster.daemon.write_services(*some_services(cluster))
    cluster.daemon.stop()
    cluster.node.run("iptables-restore", stdin="*filter\nCOMMIT\n*nat\nCOMMIT\n*mangle\nCOMMIT\n")
    cluster.node.run("ip6tables-restore", stdin="*filter\nCOMMIT\n*nat\nCOMMIT\n*mangle\nCOMMIT\n")
    cluster.daemon.start()
    canaries_are_there(cluster)
    assert not differences(cluster)


def canaries_are_there(cluster):
    """They follow the first sync, and nobody announces them."""
    wait_for(lambda: all(save(cluster.lab, family).count("KUBE-PROXY-CANARY") == 3 for family in (4, 6)), what="six canaries")


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("writer", ["netlink", "restore"])
def test_many_changes_end_where_a_first_sync_would(clusters, writer, seed):
    """Partial syncs, one after the other; after each the kernel holds neither less nor more."""
    cluster = clusters(f"--iptables-writer={writer}")
    canaries_are_there(cluster)
    drawn = Cluster(seed, services=6)
    for step in range(12):
        drawn.step()
        cluster.serve(extra=drawn.objects())
        assert not differences(cluster), f"seed {seed}, step {step}"


def test_foreign_rules_are_left_alone(cluster, family):
    tool = "iptables" if family == 4 else "ip6tables"
    mine = ["-p", "tcp", "--dport", "4711", "-j", "ACCEPT"]
    cluster.node.run(tool, "-N", "SOMEBODY")
    cluster.node.run(tool, "-A", "SOMEBODY", *mine)
    cluster.node.run(tool, "-A", "INPUT", "-j", "SOMEBODY")
    try:
        web = cluster.service(126, cluster.pods)
        cluster.daemon.stop()
        cluster.daemon.start()
        assert served(cluster.node.request(web.cluster_ip[family], web.port))
        cluster.node.run(tool, "-C", "SOMEBODY", *mine)
        cluster.node.run(tool, "-C", "INPUT", "-j", "SOMEBODY")
    finally:
        cluster.node.run(tool, "-D", "INPUT", "-j", "SOMEBODY")
        cluster.node.run(tool, "-F", "SOMEBODY")
        cluster.node.run(tool, "-X", "SOMEBODY")


def test_cleanup_removes_all_but_what_is_shared_with_kubelet(clusters, family):
    cluster = clusters(pods=2)
    cluster.serve(*some_services(cluster))
    cluster.daemon.stop()
    cluster.node.run(program(), "cleanup")
    left = [line for line in iptables_listing.lines(save(cluster.lab, family)) if "KUBE-" in line]
    assert not [line for line in left if "KUBE-FIREWALL" not in line]
    cluster.daemon.start()
    assert served(cluster.node.request(cluster_ip(family, 110), 80))

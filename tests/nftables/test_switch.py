# SPDX-License-Identifier: Apache-2.0
"""From one mode to the other and back, on a node that is at work."""
import json

import pytest

from lab.check import describe, names, served
from lab.daemon import program
from lab.manifests import Service
from lab.topology import NODE, wait_for

TOOLS = {4: 'iptables-save', 6: 'ip6tables-save'}


def tables(cluster):
    """The nf_tables that this node has, but for those of iptables."""
    found = json.loads(cluster.node.run('nft', '-j', 'list', 'tables'))['nftables']
    return {(thing['table']['family'], thing['table']['name']) for thing in found if 'table' in thing}


def has_our_table(cluster):
    return 'kube-proxy' in {name for _family, name in tables(cluster)}


def kube_chains(cluster):
    """Chains of iptables mode; those of kubelet, which no proxy removes, are not among them."""
    lines = [line for tool in TOOLS.values() for line in cluster.node.run(tool).splitlines()]
    kept = (':KUBE-FIREWALL ', ':KUBE-KUBELET-CANARY ')
    return [line for line in lines if line.startswith(':KUBE-') and not line.startswith(kept)]


def change_mode(cluster, mode):
    daemon = cluster.daemon
    daemon.stop()
    daemon.mode = mode
    daemon.flags = [f'--proxy-mode={mode}' if flag.startswith('--proxy-mode') else flag for flag in daemon.flags]
    daemon.start()


@pytest.fixture
def moving(clusters):
    cluster = clusters('--nodeport-addresses=0.0.0.0/0,::/0', mode='iptables')
    yield cluster
    if cluster.daemon.mode != 'iptables':
        cluster.repair()
        change_mode(cluster, 'iptables')


def test_a_change_of_the_mode_loses_no_connection(moving):
    web = moving.serve(Service('web', 70, moving.pods, kind='NodePort'))
    loads = [moving.pods[0].load(web.cluster_ip[family], 80) for family in (4, 6)]
    loads += [moving.client.load(NODE[family], web.node_port) for family in (4, 6)]
    talk = moving.pods[1].talk(web.cluster_ip[4], 80)
    first = talk.ask()
    for mode in ('nftables', 'iptables', 'nftables', 'iptables'):
        change_mode(moving, mode)
        for load in loads:
            load.wait(20)
        if mode == 'nftables':
            assert {('ip', 'kube-proxy'), ('ip6', 'kube-proxy')} <= tables(moving)
            wait_for(lambda: not kube_chains(moving), what='the rules of iptables mode are gone')
        else:
            wait_for(lambda: not has_our_table(moving), what='the table of nftables mode is gone')
            assert kube_chains(moving)
        for load in loads:
            load.wait(5)
    last = talk.ask()
    talk.close()
    answers = [load.stop() for load in loads]
    for some in answers:
        assert served(some) <= names(moving.pods), describe(some)
    assert served([first, last]) == {first.pod}


@pytest.mark.parametrize('last', ['nftables', 'iptables'])
def test_cleanup_leaves_nothing_of_either_mode(moving, last):
    moving.serve(Service('web', 71, moving.pods, kind='LoadBalancer', affinity=50))
    change_mode(moving, last)
    moving.daemon.stop()
    code, _out, err = moving.node.run(program(), 'cleanup', check=False)
    assert code == 0, err
    assert not has_our_table(moving)
    assert kube_chains(moving) == []


def test_cleanup_removes_both_modes_at_once_and_kube_proxys_table(moving):
    """As after a change of the mode that was not carried through, or a kube-proxy that was taken away."""
    moving.serve(Service('web', 72, moving.pods))
    moving.daemon.stop()
    script = ''.join(f'add table {name} kube-proxy\nadd chain {name} kube-proxy service-X\n' for name in ('ip', 'ip6'))
    moving.node.run('nft', '-f', '-', stdin=script + 'add table ip other\n')
    assert kube_chains(moving)
    moving.node.run(program(), 'cleanup')
    assert not has_our_table(moving)
    assert ('ip', 'other') in tables(moving)
    assert kube_chains(moving) == []
    moving.node.run('nft', 'delete', 'table', 'ip', 'other')


def test_a_table_of_kube_proxy_is_replaced(clusters):
    """Containers of the same names and other types, as kube-proxy's nftables mode leaves them."""
    cluster = clusters()
    web = cluster.serve(Service('web', 73, cluster.pods))
    cluster.daemon.stop()
    for name, kind in (('ip', 'ipv4_addr'), ('ip6', 'ipv6_addr')):
        cluster.node.run('nft', 'delete', 'table', name, 'kube-proxy')
        cluster.node.run('nft', '-f', '-', stdin=f'''table {name} kube-proxy {{
            comment "rules for kube-proxy"
            map service-ips {{ type {kind} . inet_proto . inet_service : verdict; }}
            set endpoints {{ type {kind}; }}
            set affinity {{ type {kind}; flags dynamic,timeout; timeout 10s; }}
            chain services {{ {name} daddr . meta l4proto . th dport vmap @service-ips; }}
            chain service-ABCD-default/old/tcp/p80 {{ drop; }}
            chain nat-prerouting {{ type nat hook prerouting priority -100; policy accept; jump services; }}
        }}
        ''')
    cluster.daemon.start()
    for family in (4, 6):
        assert served(cluster.pods[0].request(web.cluster_ip[family], 80, count=10)) <= names(cluster.pods)
    assert 'default/old' not in cluster.node.run('nft', 'list', 'ruleset')

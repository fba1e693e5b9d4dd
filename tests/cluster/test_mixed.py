# SPDX-License-Identifier: Apache-2.0
"""One node and many hands: rules by iptables-restore, then kube-proxy, then Portolan, then kube-proxy, then Portolan.

Each finds the rules of the one before right. What Portolan changes is counted in transactions: nf_tables has a number that
grows with each. Over kube-proxy's rules it may only move entries behind those of cluster IPs, since kube-proxy leaves their order to
chance; over its own it changes nothing. kube-proxy always writes its rules again, but must find the jumps of the base chains, and add no
second ones.
"""
import re
import subprocess

import pytest

from lab import iptables_listing as rules
from lab.daemon import program
from lab.objects import addresses, away, here, port
from lab.topology import wait_for
from proxies import FAMILIES, PATIENCE, SYNCED, TOOLS, Mirror, Pair, marker_chain
from stage import CLUSTER_CIDR, NODE
from world import World

CIDR = f'--cluster-cidr={CLUSTER_CIDR}'
FOREIGN = '-A INPUT -p tcp -m tcp --dport 4711 -j ACCEPT'

#: Asks nf_tables for its generation (NFT_MSG_GETGEN).
GENERATION = '''
import socket, struct
ask = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12)
ask.send(struct.pack("=IHHII4x", 20, 10 << 8 | 16, 1, 1, 0))
print(struct.unpack_from(">I", ask.recv(4096), 24)[0])
'''


class Node:
    """A node on which one proxy runs after the other."""

    def __init__(self, stage):
        self.pair = Pair(stage, CIDR, writer='netlink')
        self.kube_proxy, self.portolan = self.pair.proxies
        self.portolan.namespace = self.namespace = self.kube_proxy.namespace
        self.stage = stage

    def generation(self):
        return int(self.namespace.run('/usr/bin/python3', '-c', GENERATION))

    def listing(self):
        """Chains and rules as iptables-save shows them, in order, without counters and times."""
        lines = []
        for family in FAMILIES:
            text = self.namespace.run(f'{TOOLS[family]}-save')
            lines += [f'{family} ' + re.sub(r' \[\d+:\d+\]$', '', line) for line in text.splitlines() if line[:1] != '#']
        return lines

    def run(self, proxy):
        """One life, until it has written all that there is."""
        proxy.start()
        if proxy is self.kube_proxy:
            for family in FAMILIES:
                chain = marker_chain(family, self.pair.markers.generation)
                proxy.process.log.wait(lambda family=family, chain=chain: proxy.has_chain(family, chain), 'the marker was there', PATIENCE)
                proxy.process.log.wait_line(SYNCED[proxy.name].format(family), timeout=PATIENCE)
            self.wait_canaries()
        else:
            for family in FAMILIES:
                proxy.process.log.wait_line(SYNCED[proxy.name].format(family), timeout=PATIENCE)
        lines = list(proxy.process.log.lines)
        proxy.stop()
        return lines

    def wait_canaries(self):
        """kube-proxy says nothing of them."""
        wait_for(lambda: sum('KUBE-PROXY-CANARY' in line for line in self.listing()) == 6, PATIENCE, what='six canaries')


@pytest.fixture(scope='module')
def node(stage):
    node = Node(stage)
    world = World(node.pair, 'mixed')
    world.service('plain', port('http'), port('dns', 'UDP', 53))
    world.service('node', port('http'), type='NodePort', externalIPs=addresses('external', [1]))
    world.service('local', port('http'), type='LoadBalancer', externalTrafficPolicy='Local', sessionAffinity='ClientIP')
    world.service('empty', port('http'))
    for name in ('plain', 'node', 'local'):
        world.pods(name, here(1), away(2), away(3), ports=[port('http', number=8080), port('dns', 'UDP', 5353)])
    node.pair.markers.write()
    return node


def by_hand(node):
    """What a dry run prints, given to iptables-restore, beside a rule of somebody else."""
    mirror = Mirror(node.stage.api, node.stage.path('manifests-mixed'))
    mirror.update()
    for family in FAMILIES:
        done = subprocess.run([program(), 'render', '--manifests', mirror.folder, f'--node-name={NODE}', CIDR,
                               f'--ip-family=ipv{family}'], check=True, text=True, stdout=subprocess.PIPE)
        node.namespace.run(TOOLS[family], *FOREIGN.split())
        # rules that count may name counters which nobody has made yet
        text = re.sub(r' -m nfacct --nfacct-name \S+', '', done.stdout)
        node.namespace.run(f'{TOOLS[family]}-restore', '--noflush', stdin=text)


def jumps(listing):
    return [line for line in listing if re.match(r'\d -A [A-Z]+ .*-j KUBE-', line)]


def own_rules(listing):
    return sorted(line for line in listing if re.match(r'\d (:|-A )KUBE-', line))


def without_services(listing):
    """All that Portolan must leave as it is."""
    return [line for line in listing if ' -A KUBE-SERVICES ' not in line]


def take_over(node):
    """Portolan over the rules of kube-proxy: moves what stands before a cluster IP, and once more finds nothing to do."""
    first, before = node.listing(), node.generation()
    lines = node.run(node.portolan)
    assert node.generation() <= before + 2 * len(FAMILIES), 'entries that come, and those that leave:\n' + '\n'.join(lines)
    moved = node.listing()
    assert own_rules(moved) == own_rules(first)
    assert without_services(moved) == without_services(first)
    for family in FAMILIES:
        assert rules.cluster_ips_lead([line for line in moved if line.startswith(f'{family} -A KUBE-SERVICES ')
                                       and ' endpoints"' not in line])
    before = node.generation()
    lines = node.run(node.portolan)
    assert node.generation() == before, 'Portolan changed rules that were right:\n' + '\n'.join(lines)
    assert node.listing() == moved


def test_each_takes_over_from_the_other(node):
    by_hand(node)
    node.run(node.kube_proxy)
    first = node.listing()
    take_over(node)

    node.run(node.kube_proxy)
    second = node.listing()
    assert own_rules(second) == own_rules(first), 'kube-proxy found the rules as it had left them'
    assert jumps(second) == jumps(first), 'and the jumps too'
    assert sum(FOREIGN in line for line in second) == len(FAMILIES)

    take_over(node)


def test_rules_that_portolan_wrote_are_kube_proxys_own(node):
    """From an empty host: Portolan first. kube-proxy makes no second jump, and finds nothing to delete."""
    for family in ('ip', 'ip6'):
        for table in ('filter', 'nat', 'mangle'):
            node.namespace.run('nft', 'delete', 'table', family, table)
    node.run(node.portolan)
    first = node.listing()
    node.run(node.kube_proxy)
    assert own_rules(node.listing()) == own_rules(first)
    assert jumps(node.listing()) == jumps(first)
    take_over(node)

# SPDX-License-Identifier: Apache-2.0
"""kube-proxy and Portolan take turns on one node: each over what the other left, while clients connect. No connection fails."""
import json

import pytest

from lab.check import served
from lab.daemon import program
from lab.objects import port
from proxies import FAMILIES, PATIENCE, SYNCED, Pair
from stage import NODE
from test_settings import CIDRS
from world import World

NAMES = {4: 'ip', 6: 'ip6'}
GATE = 'KubeProxyNFTablesLocalhostNodePorts'
#: The mode, the program beside Portolan, and flags of that one.
CASES = {
    'iptables': ('iptables', 'kube-proxy', []),
    'iptables, the version before': ('iptables', 'kube-proxy-previous', []),
    'nftables': ('nftables', 'kube-proxy', []),
    'nftables, the version before': ('nftables', 'kube-proxy-previous', []),
    'nftables, NodePorts of localhost': (
        'nftables', 'kube-proxy', [f'--feature-gates={GATE}=true', '--nodeport-addresses=127.0.0.0/8,192.0.2.0/24,2001:db8:2::/64']),
}


class Relay:
    """A node on which the two take turns, and a Service whose endpoint is the node itself."""

    PORT = 9090

    def __init__(self, stage, mode, peer='kube-proxy', more=()):
        pair = Pair(stage, f'--proxy-mode={mode}', CIDRS, source='api', peer=peer, more=more)
        self.proxies = {proxy.name: proxy for proxy in pair.proxies}
        self.node = self.proxies['portolan'].namespace
        self.proxies['kube-proxy'].namespace = self.node
        self.world = World(type('Plain', (), {'api': stage.api}), 'relay')
        made = self.world.service('web', port('http'), type='NodePort')['spec']
        self.addresses = sorted(made['clusterIPs'], key=lambda ip: ':' in ip)
        self.node_port = made['ports'][0]['nodePort']
        for family, own in zip(FAMILIES, ('203.0.113.11', '2001:db8:3::11')):
            endpoint = {'addresses': [own], 'nodeName': NODE, 'conditions': {'ready': True}}
            self.world.raw_slice(f'web-{family}', family, [endpoint], 'web', [port('http', number=self.PORT)])
        self.node.ip('route add 10.96.0.0/12 dev lo src 192.0.2.11', 'route add fd00:10:96::/108 dev lo src 2001:db8:2::11')
        self.node.agent.call('serve_pod', pod='web', addresses=['203.0.113.11', '2001:db8:3::11'], ports=[self.PORT])
        self.running = None

    def start(self, name):
        """Kills whoever runs; returns when the other has written the rules of both families."""
        if self.running:
            self.running.kill()
        self.running = self.proxies[name]
        self.running.start()
        for family in FAMILIES:
            self.running.process.log.wait_line(SYNCED[name].format(family), timeout=PATIENCE)
        assert not self.running.process.log.find('(?i)sync failed|failed to execute')

    def objects(self):
        """Names of all that is in the tables of nftables mode."""
        found = set()
        for word in NAMES.values():
            code, text, _err = self.node.run('nft', '-j', 'list', 'table', word, 'kube-proxy', check=False)
            for entry in json.loads(text)['nftables'] if code == 0 else ():
                kind, thing = next(iter(entry.items()))
                if kind in ('chain', 'set', 'map', 'counter'):
                    found.add((word, kind, thing['name']))
        return found

    def names(self):
        return {name for _word, _kind, name in self.objects()}

    def close(self):
        if self.running:
            self.running.kill()
        self.world.close()


@pytest.fixture
def relays(stage):
    """relays(...) is a Relay that ends with the test."""
    made = []

    def make(*words):
        made.append(Relay(stage, *words))
        return made[-1]

    yield make
    for relay in made:
        relay.close()


@pytest.mark.parametrize('case', CASES)
def test_one_takes_over_from_the_other_without_a_gap(relays, case):
    mode, peer, more = CASES[case]
    relay = relays(mode, peer, more)
    relay.start('kube-proxy')
    targets = [(ip, 80) for ip in relay.addresses] + [('192.0.2.11', relay.node_port), ('2001:db8:2::11', relay.node_port)]
    assert all(served(relay.node.request(*target)) == {'web'} for target in targets)
    loads = [relay.node.load(*target) for target in targets]
    for name in ('portolan', 'kube-proxy', 'portolan'):
        if mode == 'nftables':
            found = relay.names()
            assert ('localhost-nodeport-rejected-udp' in found) == (name == 'portolan' and bool(more))
        relay.start(name)
        for load in loads:
            load.wait(50)
    assert all(served(load.stop()) == {'web'} for load in loads)
    assert not [name for name in relay.names() if '/' in name or name == 'firewall-ips' or name.startswith('localhost-nodeport')]


def test_after_a_cleanup_kube_proxy_finds_nothing_of_ours(relays):
    relay = relays('nftables')
    relay.start('kube-proxy')
    fresh = relay.objects()
    relay.start('portolan')
    assert relay.objects() & fresh != fresh
    relay.running.kill()
    relay.node.run(program(), 'cleanup')
    assert relay.objects() == set()
    relay.start('kube-proxy')
    assert relay.objects() == fresh
    assert all(served(relay.node.request(ip, 80)) == {'web'} for ip in relay.addresses)

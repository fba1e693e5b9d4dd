# SPDX-License-Identifier: Apache-2.0
"""Random manifests: Portolan and the oracle must write the same text, byte for byte.

Each seed makes a cluster of its own. A failure names the seed; `PORTOLAN_SEED=N pytest tests/golden/test_random.py` runs
that one alone.
"""
import os
import random
import re

import pytest

import oracle
from harness import endpoint, node_object, run_render, same, service, slice_of, write_objects
from lab.iptables_evaluator import check_jumps

SEEDS = [int(os.environ['PORTOLAN_SEED'])] if 'PORTOLAN_SEED' in os.environ else range(1, 61)
ZONES = ('east', 'west', 'north')
NODES = ('node', 'other', 'third')


class Cluster:
    """Objects drawn from a seed: every field that rules depend on takes every kind of value."""

    def __init__(self, seed):
        self.draw = random.Random(seed)
        self.node_ports = iter(range(30000, 32768))
        self.objects = []
        for key in self.keys():
            self.add_service(key)
        self.objects.append(node_object('node', self.draw.choice([
            ['192.0.2.11'], ['192.0.2.11', '2001:db8::11'], ['2001:db8::11'], []]),
            self.draw.choice([None, *ZONES]), ['10.244.1.0/24', 'fd00:10:244:1::/64']))
        self.draw.shuffle(self.objects)

    def chance(self, percent):
        return self.draw.random() * 100 < percent

    def keys(self):
        parts = ('a', 'b', 'a-b', 'ab', 'a1', 'shop', 'x-1')
        return self.draw.sample([f'{ns}/{name}' for ns in parts for name in parts], self.draw.randint(0, 12))

    def address(self, family, group):
        four = {'cluster': '10.96', 'pod': '10.244', 'external': '203.0', 'vip': '198.51'}[group]
        six = {'cluster': 'fd00:10:96', 'pod': 'fd00:10:244:1', 'external': '2001:db8:8', 'vip': '2001:db8:7'}[group]
        a, b = self.draw.randint(0, 3), self.draw.randint(1, 254)
        return f'{four}.{a}.{b}' if family == 4 else f'{six}::{a}:{b:x}'

    def add_service(self, key):
        families = self.draw.choice([[4], [4], [6], [4, 6], [6, 4]])
        kind = self.draw.choice(['ClusterIP', 'NodePort', 'LoadBalancer', 'LoadBalancer'])
        ports = self.ports(kind)
        spec = {'type': kind, 'ipFamilies': [f'IPv{f}' for f in families]}
        if self.chance(30):
            spec['externalIPs'] = [self.address(self.draw.choice([4, 6]), 'external')
                                   for _ in range(self.draw.randint(1, 3))]
        if self.chance(40):
            spec['externalTrafficPolicy'] = self.draw.choice(['Local', 'Cluster'])
        if self.chance(40):
            spec['internalTrafficPolicy'] = self.draw.choice(['Local', 'Cluster'])
        if self.chance(30):
            spec['sessionAffinity'] = 'ClientIP'
            if self.chance(50):
                spec['sessionAffinityConfig'] = {'clientIP': {'timeoutSeconds': self.draw.randint(1, 86400)}}
        status = []
        if kind == 'LoadBalancer':
            if spec.get('externalTrafficPolicy') == 'Local':
                spec['healthCheckNodePort'] = next(self.node_ports)
            if self.chance(40):
                spec['loadBalancerSourceRanges'] = self.draw.sample(
                    ['192.0.2.0/24', ' 203.0.113.9/28', '2001:db8::/64 ', '0.0.0.0/0', '198.18.0.0/15', '::/0',
                     '2600::/16'], self.draw.randint(1, 3))
            for _ in range(self.draw.randint(0, 3)):
                status.append({'ip': self.address(self.draw.choice([4, 4, 6]), 'vip'),
                               **self.draw.choice([{}, {}, {'ipMode': 'VIP'}, {'ipMode': 'Proxy'}])})
        self.objects.append(service(key, [self.address(f, 'cluster') for f in families], ports, status, **spec))
        for family in families:
            self.add_slices(key, family, ports)

    def ports(self, kind):
        ports, taken = [], set()
        for number in range(self.draw.randint(1, 3)):
            protocol = self.draw.choice(['TCP', 'TCP', 'UDP', 'SCTP'])
            name = self.draw.choice(['http', 'dns', 'a-b', 'p1', 'p'])
            if name in taken:
                continue
            taken.add(name)
            port = {'name': name, 'protocol': protocol, 'port': 80 + number}
            if kind != 'ClusterIP' and self.chance(80):
                port['nodePort'] = next(self.node_ports)
            ports.append(port)
        if len(ports) == 1 and self.chance(30):
            del ports[0]['name']
        if self.chance(20) and ports[0]['protocol'] == 'TCP':
            del ports[0]['protocol']
        return ports

    def add_slices(self, key, family, ports):
        hinted = self.chance(30)
        used = set()
        for number in range(self.draw.choice([0, 1, 1, 1, 2])):
            endpoints = []
            for _ in range(self.draw.choice([0, 1, 2, 3, 4, 7])):
                address = self.address(family, 'pod')
                if address not in used:
                    used.add(address)
                    endpoints.append(self.endpoint(address, hinted))
            targets = [{**{k: v for k, v in p.items() if k != 'nodePort'}, 'port': p['port'] + 8000}
                       for p in ports if self.chance(95)]
            piece = slice_of(key, endpoints, targets or ports, f'{family}-{number}')
            piece['addressType'] = f'IPv{family}'
            self.objects.append(piece)

    def endpoint(self, address, hinted):
        more = self.draw.choice([{}, {}, {'ready': True}, {'ready': False}, {'ready': True, 'serving': True},
                                 {'ready': False, 'serving': True, 'terminating': True},
                                 {'ready': False, 'serving': False, 'terminating': True},
                                 {'ready': None, 'serving': None, 'terminating': None}])
        if hinted and self.chance(90):
            more = dict(more, zones=self.draw.sample(ZONES, self.draw.randint(1, 2)))
            if self.chance(70):
                more['nodes'] = self.draw.sample(NODES, self.draw.randint(1, 2))
        return endpoint(address, self.draw.choice([*NODES, '']), **more)

    def arguments(self):
        chosen = ['--node-name=node', self.draw.choice([
            '--cluster-cidr=10.244.0.0/16,fd00:10:244::/48', '--cluster-cidr=10.244.0.0/16', '--masquerade-all',
            '--detect-local-mode=NodeCIDR', '--masquerade-all=false'])]
        if self.chance(15):
            chosen += ['--detect-local-mode=BridgeInterface', '--pod-bridge-interface=cni0']
        if self.chance(15):
            chosen.append(f'--iptables-masquerade-bit={self.draw.randint(0, 31)}')
        if self.chance(15):
            chosen.append('--iptables-localhost-nodeports=false')
        if self.chance(10):
            chosen.append('--feature-gates=AllowServiceExternalIPs=false')
        if self.chance(10):
            chosen.append(f"--bind-address={self.draw.choice(['203.0.113.5', '2001:db8::5'])}")
        return chosen


class Contested(Cluster):
    """Everybody wants the same few addresses and node ports, and other Services' cluster IPs above all."""

    def __init__(self, seed):
        super().__init__(seed)
        for thing in self.objects:
            if thing['kind'] == 'Service' and self.chance(80):
                thing['metadata']['creationTimestamp'] = f'2026-01-0{self.draw.randint(1, 3)}T00:00:00Z'

    def address(self, family, group):
        if group == 'pod':
            return super().address(family, group)
        if group in ('external', 'vip') and self.chance(50):
            group = 'cluster'
        four, six = {'cluster': ('10.96.0', 'fd00:10:96')}.get(group, ('198.51.100', '2001:db8:7'))
        last = self.draw.randint(1, 6)
        return f'{four}.{last}' if family == 4 else f'{six}::{last}'

    def ports(self, kind):
        ports = super().ports(kind)
        if 'nodePort' in ports[0] and self.chance(30):
            ports[0]['nodePort'] = 29999
        return ports


@pytest.mark.parametrize('seed', SEEDS)
def test_what_is_contested_goes_where_the_oracle_says(seed, tmp_path):
    cluster = Contested(seed)
    arguments = cluster.arguments()
    write_objects(tmp_path, cluster.objects)
    objects = oracle.load(tmp_path)
    for family in oracle.FAMILIES:
        expected = oracle.render(objects, oracle.settings_from(arguments), family)
        print(f'seed {seed}: IPv{family}, {" ".join(arguments)}')
        same(expected, run_render(tmp_path, family, arguments), ('oracle', 'portolan render'))
        entries = [re.sub('--comment "[^"]*"|-j .*', '', line) for line in expected.splitlines()
                   if line.startswith('-A KUBE-SERVICES ') and 'cluster IP' in line]
        assert len(entries) == len(set(entries))


@pytest.mark.parametrize('seed', SEEDS)
def test_portolan_agrees_with_the_oracle(seed, tmp_path):
    cluster = Cluster(seed)
    arguments = cluster.arguments()
    write_objects(tmp_path, cluster.objects)
    objects = oracle.load(tmp_path)
    for family in oracle.FAMILIES:
        expected = oracle.render(objects, oracle.settings_from(arguments), family)
        print(f'seed {seed}: IPv{family}, {" ".join(arguments)}')
        same(expected, run_render(tmp_path, family, arguments), ('oracle', 'portolan render'))
        same(oracle.save(expected, family), run_render(tmp_path, family, arguments, 'save'), ('oracle', 'portolan render'))
        if 'AllowServiceExternalIPs=false' not in ' '.join(arguments):
            assert check_jumps(expected) == []

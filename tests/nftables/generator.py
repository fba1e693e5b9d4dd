# SPDX-License-Identifier: Apache-2.0
"""Random clusters that change at random, and random packets for them.

Addresses and ports come from small pools, so that what one Service gives up another one soon has, in the same step
sometimes; external addresses may be asked for twice.
"""
import random

from lab.nft_evaluator import Packet
from lab import topology

FAMILIES = (4, 6)
NODE, OTHER = 'node1', 'node2'
ZONES = ('zone-1', 'zone-2')
RANGES = {4: ['192.0.2.0/24', '203.0.113.0/25', '203.0.113.64/26', '203.0.113.7/32', '10.244.0.0/16', '0.0.0.0/0'],
          6: ['2001:db8:2::/64', '2001:db8:113::/120', '2001:db8:113::7/128', 'fd00:10:244::/48', '::/0']}
PREFIX = {'cluster': ('10.96.0.{}', 'fd00:10:96::{:x}'), 'external': ('198.18.0.{}', '2001:db8:18::{:x}'),
          'vip': ('198.51.100.{}', '2001:db8:51::{:x}'), 'here': ('10.244.1.{}', 'fd00:10:244:1::{:x}'),
          'there': ('10.244.2.{}', 'fd00:10:244:2::{:x}')}
CONDITIONS = [{'ready': True}] * 6 + [{'ready': False}, {'ready': False, 'serving': True, 'terminating': True},
                                      {'ready': False, 'serving': False, 'terminating': True}, {}]


def address(what, number, family):
    if what == 'host':
        return topology.NODE[family]
    return PREFIX[what][FAMILIES.index(family)].format(number)


class Service:
    def __init__(self, draw, name, cluster):
        self.draw, self.name, self.cluster = draw, name, cluster
        self.number = cluster.take('cluster')
        self.created = f'2026-01-0{draw.randint(1, 3)}T00:00:00Z'
        self.families = draw.choice([(4,), (6,), (4, 6), (4, 6), (6, 4)])
        self.endpoints, self.ports = [], []
        self.kind, self.policy, self.inner, self.sticky = 'ClusterIP', None, None, 0
        self.external, self.vips, self.ranges = [], [], []
        for change in (self.new_ports, self.new_kind, self.new_policies, self.new_affinity, self.new_addresses,
                       self.new_endpoints):
            change()

    def chance(self, percent):
        return self.draw.random() * 100 < percent

    # ---- changes -----------------------------------------------------------------------------

    def new_ports(self):
        for port in self.ports:
            self.cluster.give('nodeport', port['nodePort'])
        names = self.draw.sample(['http', 'dns', 'a', 'b'], self.draw.choice([1, 1, 1, 2, 3]))
        self.ports = [{'name': name, 'protocol': self.draw.choice(['TCP', 'TCP', 'UDP', 'SCTP']), 'port': 80 + i,
                       'nodePort': self.cluster.take('nodeport')} for i, name in enumerate(names)]
        if len(self.ports) > 1 and self.chance(30):
            self.ports[1].update(port=80, protocol='UDP' if self.ports[0]['protocol'] == 'TCP' else 'TCP')

    def new_kind(self):
        self.kind = self.draw.choice(['ClusterIP', 'NodePort', 'LoadBalancer', 'LoadBalancer'])

    def new_policies(self):
        self.policy = self.draw.choice([None, 'Cluster', 'Local', 'Local'])
        self.inner = self.draw.choice([None, None, 'Cluster', 'Local'])

    def new_affinity(self):
        self.sticky = self.draw.choice([0, 0, 30, 10800, self.draw.randint(1, 86400)])

    def new_addresses(self):
        self.external = self.draw.sample(range(1, 12), self.draw.choice([0, 0, 0, 1, 2]))
        self.vips = self.draw.sample(range(1, 12), self.draw.choice([0, 1, 1, 2]))
        self.ranges = self.draw.sample(RANGES[4] + RANGES[6], self.draw.choice([0, 0, 1, 2, 4]))

    def new_endpoints(self):
        self.endpoints = [self.endpoint(pod) for pod in self.pods(self.draw.choice([0, 1, 1, 2, 3, 4, 7, 19]))]

    def one_endpoint(self):
        """One comes, goes or changes its state."""
        if self.endpoints and self.chance(60):
            gone = self.draw.randrange(len(self.endpoints))
            old = self.endpoints.pop(gone)
            if self.chance(40):
                self.endpoints.insert(gone, self.endpoint(old['pod']))
        else:
            self.endpoints += [self.endpoint(pod) for pod in self.pods(1)]

    def pods(self, count):
        taken = {endpoint['pod'] for endpoint in self.endpoints}
        pool = [('here', n) for n in range(11, 25)] + [('there', n) for n in range(11, 31)] + [('host', 0)]
        pool = [pod for pod in pool if pod not in taken]
        return self.draw.sample(pool, min(count, len(pool)))

    def endpoint(self, pod):
        made = {'pod': pod, 'conditions': self.draw.choice(CONDITIONS), 'hints': {}}
        if self.cluster.hinted and self.chance(95):
            made['hints'] = {'forZones': [{'name': zone} for zone in self.draw.sample(ZONES, self.draw.randint(1, 2))]}
            if self.chance(60):
                made['hints']['forNodes'] = [{'name': name} for name in self.draw.sample((NODE, OTHER), 1)]
        return made

    # ---- objects -----------------------------------------------------------------------------

    def objects(self):
        ips = [address('cluster', self.number, family) for family in self.families]
        ports = [{key: value for key, value in port.items() if key != 'nodePort' or self.kind != 'ClusterIP'}
                 for port in self.ports]
        spec = {'type': self.kind, 'clusterIP': ips[0], 'clusterIPs': ips, 'ports': ports,
                'ipFamilies': [f'IPv{family}' for family in self.families]}
        if self.external:
            spec['externalIPs'] = [address('external', n, family) for n in self.external for family in self.families]
        if self.policy and (self.kind != 'ClusterIP' or self.external):
            spec['externalTrafficPolicy'] = self.policy
        if self.inner:
            spec['internalTrafficPolicy'] = self.inner
        if self.sticky:
            spec['sessionAffinity'] = 'ClientIP'
            spec['sessionAffinityConfig'] = {'clientIP': {'timeoutSeconds': self.sticky}}
        status = {}
        if self.kind == 'LoadBalancer':
            spec['loadBalancerSourceRanges'] = self.ranges
            status = {'loadBalancer': {'ingress': [{'ip': address('vip', n, family)}
                                                   for n in self.vips for family in self.families]}}
        metadata = {'namespace': 'default', 'name': self.name, 'creationTimestamp': self.created}
        yield {'apiVersion': 'v1', 'kind': 'Service', 'metadata': metadata, 'spec': spec, 'status': status}
        for family in self.families:
            yield self.slice(family)

    def slice(self, family):
        nodes = {'here': NODE, 'there': OTHER, 'host': NODE}
        endpoints = [{'addresses': [address(*e['pod'], family)], 'conditions': e['conditions'], 'hints': e['hints'],
                      'nodeName': nodes[e['pod'][0]]} for e in self.endpoints]
        return {'apiVersion': 'discovery.k8s.io/v1', 'kind': 'EndpointSlice', 'addressType': f'IPv{family}',
                'metadata': {'namespace': 'default', 'name': f'{self.name}-{family}',
                             'labels': {'kubernetes.io/service-name': self.name}},
                'ports': [{'name': p['name'], 'protocol': p['protocol'], 'port': 8000 + p['port']} for p in self.ports],
                'endpoints': endpoints}


class Cluster:
    """A state; change() makes the next one of it."""

    def __init__(self, seed):
        self.draw = random.Random(seed)
        self.free = {'cluster': list(range(1, 30)), 'nodeport': list(range(30000, 30060))}
        self.hinted = self.draw.random() < 0.4
        self.services, self.made = {}, 0
        for _ in range(self.draw.randint(2, 8)):
            self.add()

    def take(self, pool):
        return self.free[pool].pop(self.draw.randrange(min(4, len(self.free[pool]))))

    def give(self, pool, number):
        self.free[pool].insert(0, number)

    def add(self):
        self.made += 1
        name = f's{self.made}'
        self.services[name] = Service(self.draw, name, self)

    def remove(self, name):
        gone = self.services.pop(name)
        self.give('cluster', gone.number)
        for port in gone.ports:
            self.give('nodeport', port['nodePort'])

    def change(self):
        for _ in range(self.draw.choice([1, 1, 1, 2, 5])):
            roll = self.draw.random()
            if not self.services or (roll < 0.15 and len(self.services) < 12):
                self.add()
            elif roll < 0.25:
                self.remove(self.draw.choice(sorted(self.services)))
            elif roll < 0.3:
                self.remove(self.draw.choice(sorted(self.services)))
                self.add()
            else:
                one = self.services[self.draw.choice(sorted(self.services))]
                self.draw.choice([one.one_endpoint] * 6 + [one.new_endpoints, one.new_affinity, one.new_policies,
                                                           one.new_kind, one.new_addresses, one.new_ports])()

    def objects(self):
        return [thing for name in sorted(self.services) for thing in self.services[name].objects()]

    # ---- packets -----------------------------------------------------------------------------

    def sources(self, family):
        """(address, interface)"""
        distant = topology.DISTANT[family] + ('7' if family == 4 else '7')
        return [(distant, 'eth0'), (topology.DISTANT[family] + '64', 'eth0'), (topology.CLIENT[family], 'eth0'),
                (topology.NODE[family], None), (topology.BRIDGE[family], None), (address('vip', 1, family), 'eth0'),
                (address('here', self.draw.randint(11, 24), family), 'cni0'),
                (address('here', self.draw.randint(11, 24), family), 'cni0'),
                (address('there', self.draw.randint(11, 30), family), 'eth1')]

    def packets(self, reference, count):
        family = reference.family
        keys = sorted(reference.keys(), key=str)
        for _ in range(count):
            source, interface = self.draw.choice(self.sources(family))
            if keys and self.draw.random() < 0.85:
                destination, protocol, port = self.draw.choice(keys)
            else:
                destination = self.draw.choice([
                    address('cluster', self.draw.randint(1, 40), family), address('external', self.draw.randint(1, 12), family),
                    topology.NODE[family], topology.BRIDGE[family], address('vip', self.draw.randint(1, 12), family)])
                protocol, port = self.draw.choice(['tcp', 'udp', 'sctp']), self.draw.choice([80, 81, 30000, 30001, 9])
            yield Packet(source, str(destination), protocol, port, interface)

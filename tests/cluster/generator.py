# SPDX-License-Identifier: Apache-2.0
"""Random clusters and random changes to them, the same for the same seed.

Every field that rules depend on takes every kind of value that an API server lets through. Three things that kube-proxy
leaves to chance are left out: the same endpoint, not terminating, in two slices; a slice that is given to
another Service while kube-proxy runs (it keeps the endpoints for the old one until it is started again, so
that change asks for a start); and an external address of two Services, of which Portolan writes the older one's entries alone.
"""
import copy
import random

import stage
from api import Refusal, key_of
from objects import BOTH, STATES, Pod, addresses, port, service, slice_of

NAMESPACES = ('a', 'a-b', 'shop')
ZONES = ('east', 'west', 'north')
NODES = (stage.NODE, 'elsewhere', 'third', None)
PORT_NAMES = ('http', 'https', 'dns', 'a-b', 'p', 'p-1')
PROTOCOLS = ('TCP', 'TCP', 'TCP', 'UDP', 'UDP', 'SCTP')
COUNTS = (0, 0, 1, 1, 1, 2, 2, 3, 5)
RANGES = ('192.0.2.0/24', '203.0.113.8/29', '2001:db8:2::/64', '0.0.0.0/0', '198.18.0.0/15', '::/0', '2600::/16')
PROXY_NAME = 'service.kubernetes.io/service-proxy-name'
HEADLESS = 'service.kubernetes.io/headless'
OWNER = 'kubernetes.io/service-name'


class Owner:
    """A Service as we think of it, and the slices that are there for it; either may be there without the other."""

    def __init__(self, draw, number, namespace, name):
        self.draw, self.namespace, self.name = draw, namespace, name
        self.mine = range(20 * number, 20 * number + 20)  # numbers of addresses that no other Service has
        self.exists = False
        self.slices = {}  # name: [family, pods, labels]
        self.next_slice = 0
        self.next_pod = draw.randrange(200)
        self.roll_all()

    def chance(self, percent):
        return self.draw.random() * 100 < percent

    def roll_all(self):
        self.families = list(self.draw.choice([(4,), (6,), (4, 6), (4, 6), (6, 4)]))
        self.labels, self.targets = {}, {}
        for part in (self.roll_ports, self.roll_type, self.roll_external, self.roll_policies, self.roll_affinity,
                     self.roll_balancer):
            part()

    # Each of these changes one thing that a user might.

    def roll_ports(self):
        names = self.draw.sample(PORT_NAMES, self.draw.choice([1, 1, 1, 2, 3]))
        if len(names) == 1 and self.chance(30):
            names = ['']
        self.ports = [(name, self.draw.choice(PROTOCOLS), self.draw.randint(1, 4) * 1000 + i) for i, name in enumerate(names)]
        self.roll_targets()

    def roll_targets(self):
        """Which of the ports the slices have, and where; some ports may have no pods."""
        self.targets = {p[:2]: self.draw.randint(8000, 8009) for p in self.ports if self.chance(92)}

    def roll_type(self):
        self.type = self.draw.choice(['ClusterIP', 'ClusterIP', 'NodePort', 'LoadBalancer', 'LoadBalancer'])
        self.no_node_ports = self.chance(20)

    def roll_odd_type(self):
        self.type = 'ExternalName'

    def roll_external(self):
        self.external = addresses('external', self.draw.sample(self.mine, self.draw.choice([0, 0, 1, 2])))

    def roll_policies(self):
        self.etp = self.draw.choice(['Cluster', 'Local'])
        self.itp = self.draw.choice(['Cluster', 'Cluster', 'Local'])

    def roll_affinity(self):
        self.affinity = self.draw.choice([0, 0, 0, 10800, self.draw.randint(1, 86400)])

    def roll_balancer(self):
        self.ranges = self.draw.sample(RANGES, self.draw.choice([0, 0, 1, 2, 3]))
        ips = self.draw.sample(addresses('vip', self.mine), self.draw.choice([0, 1, 2, 3]))
        self.ingress = [{'ip': ip, **self.draw.choice([{}, {}, {'ipMode': 'VIP'}, {'ipMode': 'Proxy'}])} for ip in ips]

    def roll_families(self):
        """The first one has to stay."""
        first = self.families[0]
        self.families = [first] if len(self.families) == 2 else [first, 10 - first]

    def roll_labels(self):
        self.labels = self.draw.choice([{}, {'colour': self.draw.choice(['blue', 'red'])}, {PROXY_NAME: 'another'}])

    CHANGES = (roll_ports, roll_targets, roll_type, roll_external, roll_policies, roll_affinity, roll_balancer, roll_families,
               roll_labels)

    def object(self):
        if self.type == 'ExternalName':
            return service(self.namespace, self.name, [port(*p) for p in self.ports], labels=self.labels,
                           type='ExternalName', externalName='example.org')
        spec = {'type': self.type, 'internalTrafficPolicy': self.itp}
        if self.external:
            spec['externalIPs'] = self.external
        if self.external or self.type != 'ClusterIP':
            spec['externalTrafficPolicy'] = self.etp
        if self.affinity:
            spec['sessionAffinity'] = 'ClientIP'
            spec['sessionAffinityConfig'] = {'clientIP': {'timeoutSeconds': self.affinity}}
        if self.type == 'LoadBalancer':
            spec['allocateLoadBalancerNodePorts'] = not self.no_node_ports
            spec['loadBalancerSourceRanges'] = self.ranges
            spec['ingress'] = self.ingress
        return service(self.namespace, self.name, [port(*p) for p in self.ports], self.families, self.labels, **spec)

    # Slices.

    def pod(self):
        self.next_pod += 1
        state = self.draw.choice(['ready', 'ready', 'ready', 'ready', *STATES])
        zones, nodes = [], []
        if self.hinted and self.chance(95):
            zones = self.draw.sample(ZONES, self.draw.randint(1, 2))
        if self.hinted and self.chance(40):
            nodes = self.draw.sample(NODES[:3], self.draw.randint(1, 2))
        return Pod(self.next_pod, self.draw.choice(NODES), state, zones, nodes)

    def pods(self):
        self.hinted = self.chance(35)
        return [self.pod() for _ in range(self.draw.choice(COUNTS))]

    def add_slice(self):
        self.next_slice += 1
        name = f'{self.name}-{self.next_slice}'
        self.slices[name] = [self.draw.choice(self.families if self.chance(90) else BOTH), self.pods(), {}]
        return name

    def slice_object(self, name):
        family, pods, labels = self.slices[name]
        ports = [port(name, protocol, number) if name else port('', protocol, number) | {'name': ''}
                 for (name, protocol), number in self.targets.items()]
        return slice_of(self.namespace, name, family, pods, ports or [port('nothing')], self.name, labels)


class Cluster:
    """The cluster and what is done to it. start() fills it; step() changes it and says what it did."""

    def __init__(self, api, seed, services):
        self.api, self.draw, self.size = api, random.Random(seed), services
        self.owners = []
        self.known = set()
        self.number = 0
        self.refused, self.written, self.said = 0, 0, []
        self.restarts = []

    # What the API server is told.

    def put(self, thing):
        key = key_of(thing)
        self.written += 1
        self.said.append(f'{"replace" if key in self.known else "create"} {"/".join(key)}')
        try:
            if key in self.known:
                self.api.replace(thing)
            else:
                self.api.create(thing)
                self.known.add(key)
        except Refusal as refusal:
            if refusal.status not in (400, 409, 422):
                raise
            self.refused += 1
            self.said[-1] += f', refused: {refusal}'

    def delete(self, kind, owner, name):
        key = kind, owner.namespace, name
        if key in self.known:
            self.said.append(f'delete {"/".join(key)}')
            self.api.delete(key)
            self.known.discard(key)

    def put_service(self, owner):
        owner.exists = True
        self.put(owner.object())

    def put_slice(self, owner, name):
        self.put(owner.slice_object(name))

    def put_slices(self, owner):
        for name in owner.slices:
            self.put_slice(owner, name)

    # The beginning.

    def new_owner(self):
        self.number += 1
        owner = Owner(self.draw, self.number, self.draw.choice(NAMESPACES),
                      f'{self.draw.choice(["s", "s-", "web"])}{self.number}'.strip('-'))
        for _ in range(self.draw.choice([0, 1, 1, 2, 3])):
            owner.add_slice()
        self.owners.append(owner)
        return owner

    def start(self):
        things = []
        for _ in range(self.size):
            owner = self.new_owner()
            owner.exists = True
            things += [owner.object(), *(owner.slice_object(name) for name in owner.slices)]
        self.api.create_all(things)
        self.known |= {key_of(thing) for thing in things}

    # The changes.

    def living(self):
        return self.draw.choice([owner for owner in self.owners if owner.exists])

    def add_service(self):
        owner = self.new_owner()
        actions = [lambda: self.put_service(owner), lambda: self.put_slices(owner)]
        self.draw.shuffle(actions)
        for action in actions[:1 if owner.chance(15) else 2]:
            action()

    def remove_service(self):
        owner = self.living()
        actions = [lambda: self.delete('Service', owner, owner.name)]
        if not owner.chance(30):
            actions.append(lambda: self.remove_slices(owner))
        self.draw.shuffle(actions)
        for action in actions:
            action()
        owner.exists = False

    def remove_slices(self, owner):
        for name in list(owner.slices):
            self.delete('EndpointSlice', owner, name)
            del owner.slices[name]

    def revive_service(self):
        """One whose slices may have stayed."""
        dead = [owner for owner in self.owners if not owner.exists]
        if dead:
            owner = self.draw.choice(dead)
            owner.roll_all()
            self.put_service(owner)
            self.put_slices(owner)

    def change_service(self):
        owner = self.living()
        change = self.draw.choice(Owner.CHANGES)
        change(owner)
        self.said.append(f'{change.__name__} of {owner.namespace}/{owner.name}')
        actions = [lambda: self.put_service(owner)]
        if change in (Owner.roll_ports, Owner.roll_targets):
            actions.append(lambda: self.put_slices(owner))
        self.draw.shuffle(actions)
        for action in actions:
            action()

    def change_type_oddly(self):
        owner = self.living()
        if owner.type == 'ExternalName':
            owner.roll_type()
        else:
            owner.roll_odd_type()
        self.put_service(owner)

    def pick_slice(self):
        owner = self.draw.choice([owner for owner in self.owners if owner.slices])
        return owner, self.draw.choice(sorted(owner.slices))

    def add_slice(self):
        owner = self.living()
        self.put_slice(owner, owner.add_slice())

    def remove_slice(self):
        owner, name = self.pick_slice()
        self.delete('EndpointSlice', owner, name)
        del owner.slices[name]

    def change_slice(self):
        owner, name = self.pick_slice()
        owner.slices[name][1] = owner.pods()
        self.put_slice(owner, name)

    def change_one_pod(self):
        owner, name = self.pick_slice()
        pods = owner.slices[name][1]
        if not pods or owner.chance(30):
            owner.hinted = owner.chance(30)
            pods.append(owner.pod())
        elif owner.chance(40):
            pods.pop(self.draw.randrange(len(pods)))
        else:
            pod = self.draw.choice(pods)
            pod.state, pod.node = self.draw.choice(list(STATES)), self.draw.choice(NODES)
        self.put_slice(owner, name)

    def reorder_slice(self):
        owner, name = self.pick_slice()
        self.draw.shuffle(owner.slices[name][1])
        self.put_slice(owner, name)

    def move_pods(self):
        """From one slice to another of the same family; written in either order, for a while in both or in none."""
        owner, name = self.pick_slice()
        others = [n for n in sorted(owner.slices) if n != name and owner.slices[n][0] == owner.slices[name][0]]
        if not others or not owner.slices[name][1]:
            return self.change_one_pod()
        other = self.draw.choice(others)
        owner.slices[other][1].append(owner.slices[name][1].pop())
        for touched in self.draw.sample([name, other], 2):
            self.put_slice(owner, touched)
        return None

    def shadow_pod(self):
        """A ready pod appears in a second slice as terminating, which changes nothing."""
        owner, name = self.pick_slice()
        ready = [pod for pod in owner.slices[name][1] if pod.state == 'ready']
        if not ready:
            return self.change_one_pod()
        twin = copy.copy(self.draw.choice(ready))
        twin.state = self.draw.choice(['terminating', 'gone'])
        other = owner.add_slice()
        owner.slices[other][0], owner.slices[other][1] = owner.slices[name][0], [twin]
        self.put_slice(owner, other)
        self.delete('EndpointSlice', owner, other)  # it must not outlive the pod that outweighs it
        del owner.slices[other]
        return None

    def hide_slice(self):
        owner, name = self.pick_slice()
        labels = owner.slices[name][2]
        if labels.pop(HEADLESS, None) is None:
            labels[HEADLESS] = ''
        self.put_slice(owner, name)

    def give_slice_away(self):
        owner, name = self.pick_slice()
        other = self.living()
        if other.namespace != owner.namespace or name in other.slices:
            return self.change_slice()
        other.slices[name] = owner.slices.pop(name)
        other.slices[name][1] = other.pods()
        self.put_slice(other, name)
        self.restarts.append('kube-proxy')
        return None

    def change_zone(self):
        zone = self.draw.choice([None, *ZONES])
        self.said.append(f'zone {zone}')
        self.api.patch(('Node', '', stage.NODE), {'metadata': {'labels': {'topology.kubernetes.io/zone': zone}}})

    def restart(self):
        self.restarts.append(self.draw.choice(['kube-proxy', 'portolan']))

    CHANGES = {
        add_service: 10, remove_service: 8, revive_service: 5, change_service: 30, change_type_oddly: 3, add_slice: 6,
        remove_slice: 6, change_slice: 10, change_one_pod: 20, reorder_slice: 3, move_pods: 6, shadow_pod: 3, hide_slice: 3,
        change_zone: 3, give_slice_away: 1, restart: 1,
    }

    def step(self):
        """A few changes; the names of proxies that must be started again afterwards."""
        self.said, self.restarts = [], []
        for change in self.draw.choices(list(self.CHANGES), list(self.CHANGES.values()), k=self.draw.choice([1, 1, 2, 3, 8])):
            change(self)
        while sum(owner.exists for owner in self.owners) < self.size:
            self.add_service()
        self.said += [f'restart {name}' for name in self.restarts]
        return sorted(set(self.restarts))

    def clear(self):
        self.api.delete_all(self.known)
        self.known.clear()
        self.change_zone_to_none()

    def change_zone_to_none(self):
        self.api.patch(('Node', '', stage.NODE), {'metadata': {'labels': {'topology.kubernetes.io/zone': None}}})

# SPDX-License-Identifier: Apache-2.0
"""Random clusters and random changes to them, the same for the same seed: the one generator of all suites in Python.

Every field that rules depend on takes every kind of value that an API server lets through. The words of Cluster() say what a suite needs:

    services    how many there are, at the least
    counts      endpoints of a slice
    allocated   the API server gives cluster IPs, node ports and times of creation, and judges what is written; kube-proxy is the
                other opinion. Without, they come from small pools, so that what one Service gives up another soon has; fields may be
                left out, or untidy; and the oracle is the other opinion.
    shared      external and load balancer addresses are asked for by several Services
    contested   so are cluster IPs and a node port, and a few addresses are for everything
    host_network  some pods have the node's own address

    cluster = Cluster(seed, services=5)
    cluster.objects()        all that there is
    cluster.step()           a few changes; cluster.writes are the objects that were put and deleted, in an order that may be
                             another than that of a tidy controller; cluster.said has them in words

Three things that kube-proxy leaves to chance are left out: the same endpoint, not terminating, in two slices; a slice that is given to
another Service while kube-proxy runs (it keeps the endpoints for the old one until it is started again, so that change asks for a start);
and an external address of two Services, of which Portolan writes the older one's entries alone (that is what `shared` asks for).
An endpoint's address tells on which node it is, but for an API server, below which it may move.
"""
import copy
import random

from lab.manifests import ZONE
from lab.objects import BOTH, HOST, NODE, STATES, Pod, address, addresses, port, service, slice_of

NAMESPACES = ('a', 'a-b', 'ab', 'shop')
NAMES = ('a', 'a-b', 's', 'web', 'x-1-')
ZONES = (ZONE, 'zone-2', 'zone-3')
NODES = (NODE, 'elsewhere', 'third', None)
PODS_OF_NODE = 40
PORT_NAMES = ('http', 'https', 'dns', 'a-b', 'p', 'p-1')
PROTOCOLS = ('TCP', 'TCP', 'TCP', 'UDP', 'UDP', 'SCTP')
COUNTS = (0, 0, 1, 1, 1, 2, 2, 3, 5)
RANGES = ('192.0.2.0/24', '203.0.113.8/29', '203.0.113.64/26', '2001:db8:2::/64', '2001:db8:113::/120', '10.244.0.0/16',
          'fd00:10:244::/48', '0.0.0.0/0', '198.18.0.0/15', '::/0', '2600::/16')
UNTIDY_RANGES = (' 203.0.113.9/28', '2001:db8::/64 ')
FREE = {'cluster': range(1, 250), 'nodeport': range(30000, 31000)}
CONTESTED_NODE_PORT = 29999
SHARED, CONTESTED = range(1, 12), range(1, 7)
PROXY_NAME = 'service.kubernetes.io/service-proxy-name'
HEADLESS = 'service.kubernetes.io/headless'


class Owner:
    """A Service as we think of it, and the slices that are there for it; either may be there without the other."""

    def __init__(self, cluster, number, namespace, name):
        self.cluster, self.draw, self.namespace, self.name = cluster, cluster.draw, namespace, name
        self.mine = SHARED if cluster.shared else range(20 * number, 20 * number + 20)  # numbers of its addresses
        self.created = f'2026-01-0{self.draw.randint(1, 3)}T00:00:00Z'
        self.cluster_ip = cluster.take('cluster')
        self.exists = False
        self.ports = []
        self.slices = {}  # name: [family, pods, labels]
        self.next_slice = 0
        self.roll_all()

    def chance(self, percent):
        return self.draw.random() * 100 < percent

    def choice(self, *values):
        """One of them; or None, where it may be left out."""
        return self.draw.choice([*values, *([] if self.cluster.allocated else [None])])

    def roll_all(self):
        self.families = list(self.draw.choice([(4,), (6,), (4, 6), (4, 6), (6, 4)]))
        self.labels = {}
        for part in (self.roll_ports, self.roll_type, self.roll_external, self.roll_policies, self.roll_affinity,
                     self.roll_balancer):
            part()

    def gone(self):
        """What it had is for others."""
        self.exists = False
        self.cluster.give('cluster', self.cluster_ip)
        self.cluster_ip = None
        self.give_node_ports()

    def give_node_ports(self):
        for *_rest, node_port in self.ports:
            self.cluster.give('nodeport', node_port)
        self.ports = []

    # Each of these changes one thing that a user might.

    def roll_ports(self):
        self.give_node_ports()
        names = self.draw.sample(PORT_NAMES, self.draw.choice([1, 1, 1, 2, 3]))
        if len(names) == 1 and self.chance(30):
            names = ['']
        self.ports = [(name, self.draw.choice(PROTOCOLS), self.draw.randint(1, 4) * 1000 + i, self.cluster.take('nodeport'))
                      for i, name in enumerate(names)]
        if len(self.ports) > 1 and self.ports[0][1] != self.ports[1][1] and self.chance(50):  # as DNS does
            self.ports[1] = (*self.ports[1][:2], self.ports[0][2], self.ports[1][3])
        if self.cluster.contested and self.chance(30):
            self.ports[0] = (*self.ports[0][:3], CONTESTED_NODE_PORT)
        self.protocol_unsaid = self.chance(20)
        self.roll_targets()

    def roll_targets(self):
        """Which of the ports the slices have, and where; some ports may have no pods."""
        self.targets = {p[:2]: self.draw.randint(8000, 8009) for p in self.ports if self.chance(92)}

    def roll_type(self):
        self.type = self.draw.choice(['ClusterIP', 'ClusterIP', 'NodePort', 'LoadBalancer', 'LoadBalancer'])
        self.no_node_ports = self.chance(20)

    def roll_odd_type(self):
        self.type = 'ExternalName'

    def some_addresses(self, what, count):
        if self.cluster.contested:
            return [address(self.draw.choice([what, 'cluster']), self.draw.choice(CONTESTED), self.draw.choice(BOTH))
                    for _ in range(count)]
        return self.draw.sample(addresses(what, self.mine), count)

    def roll_external(self):
        self.external = self.some_addresses('external', self.draw.choice([0, 0, 1, 2, 3]))

    def roll_policies(self):
        self.etp = self.choice('Cluster', 'Local', 'Local')
        self.itp = self.choice('Cluster', 'Cluster', 'Local')

    def roll_affinity(self):
        self.affinity = self.choice(0, 0, 0, 10800, self.draw.randint(1, 86400))

    def roll_balancer(self):
        ranges = RANGES if self.cluster.allocated else RANGES + UNTIDY_RANGES
        self.ranges = self.draw.sample(ranges, self.draw.choice([0, 0, 1, 2, 4]))
        ips = self.some_addresses('vip', self.draw.choice([0, 1, 2, 3]))
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
        made_ports = [port(name, protocol, number, None if self.cluster.allocated or self.type == 'ClusterIP' else node_port)
                      for name, protocol, number, node_port in self.ports]
        if self.type == 'ExternalName':
            return service(self.namespace, self.name, made_ports, labels=self.labels, type='ExternalName', externalName='example.org')
        spec = {'type': self.type}
        if self.itp:
            spec['internalTrafficPolicy'] = self.itp
        if self.external:
            spec['externalIPs'] = self.external
        if self.etp and (self.external or self.type != 'ClusterIP'):
            spec['externalTrafficPolicy'] = self.etp
        if self.affinity != 0:
            spec['sessionAffinity'] = 'ClientIP'
            if self.affinity:
                spec['sessionAffinityConfig'] = {'clientIP': {'timeoutSeconds': self.affinity}}
        if self.type == 'LoadBalancer':
            spec['allocateLoadBalancerNodePorts'] = not self.no_node_ports
            spec['loadBalancerSourceRanges'] = self.ranges
            spec['ingress'] = self.ingress
        made = service(self.namespace, self.name, made_ports, self.families, self.labels, **spec)
        return made if self.cluster.allocated else self._allocated(made)

    def _allocated(self, made):
        """With what an API server would give it."""
        ips = [address('cluster', self.cluster_ip, family) for family in self.families]
        made['metadata']['creationTimestamp'] = self.created
        made['spec'].update(clusterIP=ips[0], clusterIPs=ips)
        if self.protocol_unsaid and self.ports[0][1] == 'TCP':
            del made['spec']['ports'][0]['protocol']
        if self.no_node_ports and self.type == 'LoadBalancer':
            for one in made['spec']['ports']:
                del one['nodePort']
        if self.type == 'LoadBalancer' and self.etp == 'Local':
            made['spec']['healthCheckNodePort'] = 32000 + self.cluster_ip
        return made

    # Slices.

    def pod(self):
        """One that none of the slices has."""
        taken = {pod.number for _family, pods, _labels in self.slices.values() for pod in pods}
        number = self.draw.choice([n for n in self.cluster.pods if n not in taken])
        state = self.draw.choice(['ready'] * 8 + [*STATES])
        zones, nodes = [], []
        if self.hinted and self.chance(95):
            zones = self.draw.sample(ZONES, self.draw.randint(1, 2))
        if self.hinted and self.chance(40):
            nodes = self.draw.sample(NODES[:3], self.draw.randint(1, 2))
        return Pod(number, NODE if number == HOST else NODES[number // 250], state, zones, nodes)

    def fill(self, name):
        """Other pods for a slice."""
        self.hinted = self.chance(35)
        pods = self.slices[name][1] = []
        for _ in range(self.draw.choice(self.cluster.counts)):
            pods.append(self.pod())

    def add_slice(self, family=None):
        self.next_slice += 1
        name = f'{self.name}-{self.next_slice}'
        self.slices[name] = [family or self.draw.choice(self.families if self.chance(90) else BOTH), [], {}]
        self.fill(name)
        return name

    def slice_object(self, name):
        family, pods, labels = self.slices[name]
        ports = [port(name, protocol, number) if name else port('', protocol, number) | {'name': ''}
                 for (name, protocol), number in self.targets.items()]
        return slice_of(self.namespace, name, family, pods, ports or [port('nothing')], self.name, labels)


class Cluster:
    def __init__(self, seed, services, counts=COUNTS, allocated=False, shared=False, contested=False, host_network=False):
        self.draw, self.size, self.counts = random.Random(seed), services, counts
        self.allocated, self.shared, self.contested = allocated, shared, contested
        self.pods = [250 * node + number for node in range(len(NODES)) for number in range(PODS_OF_NODE)] + [HOST] * host_network
        self.free = {pool: list(numbers) for pool, numbers in FREE.items()}
        self.owners, self.number = [], 0
        self.writes, self.said, self.restarts = [], [], []
        for _ in range(services):
            self.new_owner().exists = True

    def objects(self):
        made = [owner.object() for owner in self.owners if owner.exists]
        return made + [owner.slice_object(name) for owner in self.owners for name in owner.slices]

    def new_owner(self):
        self.number += 1
        owner = Owner(self, self.number, self.draw.choice(NAMESPACES),
                      f'{self.draw.choice(NAMES)}{self.number}')
        for family in owner.families:
            for _ in range(self.draw.choice([0, 1, 1, 1, 1, 1, 2])):
                owner.add_slice(family)
        self.owners.append(owner)
        return owner

    def take(self, pool):
        """A number; one that was given back soon comes again."""
        if self.contested and pool == 'cluster':
            return self.draw.choice(CONTESTED)
        return None if self.allocated else self.free[pool].pop(self.draw.randrange(min(4, len(self.free[pool]))))

    def give(self, pool, number):
        if number is not None and not self.contested:
            self.free[pool].insert(0, number)

    # What is written.

    def put_service(self, owner):
        if owner.cluster_ip is None:
            owner.cluster_ip = self.take('cluster')
        owner.exists = True
        self.writes.append(('put', owner.object()))

    def put_slices(self, owner, *names):
        for name in names or owner.slices:
            self.writes.append(('put', owner.slice_object(name)))

    def delete(self, kind, owner, name):
        self.writes.append(('delete', (kind, owner.namespace, name)))

    def remove_slice_of(self, owner, name):
        self.delete('EndpointSlice', owner, name)
        del owner.slices[name]

    def in_any_order(self, *actions):
        for action in self.draw.sample(actions, len(actions)):
            action()

    # The changes.

    def living(self):
        return self.draw.choice([owner for owner in self.owners if owner.exists])

    def add_service(self):
        owner = self.new_owner()
        if owner.chance(85):
            self.in_any_order(lambda: self.put_service(owner), lambda: self.put_slices(owner))
        elif owner.chance(50):
            self.put_service(owner)
            owner.slices.clear()
        else:
            owner.gone()
            self.put_slices(owner)

    def remove_service(self):
        owner = self.living()

        def remove_slices():
            for name in list(owner.slices):
                self.remove_slice_of(owner, name)

        self.in_any_order(lambda: self.delete('Service', owner, owner.name), *([] if owner.chance(30) else [remove_slices]))
        owner.gone()

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
        with_slices = change in (Owner.roll_ports, Owner.roll_targets)
        self.in_any_order(lambda: self.put_service(owner), *([lambda: self.put_slices(owner)] if with_slices else []))

    def change_type_oddly(self):
        owner = self.living()
        if owner.type == 'ExternalName':
            owner.roll_type()
        else:
            owner.roll_odd_type()
        self.put_service(owner)

    def say_again(self):
        """An equal copy of a Service: nothing may come of it."""
        self.put_service(self.living())

    def pick_slice(self):
        owner = self.draw.choice([owner for owner in self.owners if owner.slices])
        return owner, self.draw.choice(sorted(owner.slices))

    def add_slice(self):
        owner = self.living()
        self.put_slices(owner, owner.add_slice())

    def remove_slice(self):
        self.remove_slice_of(*self.pick_slice())

    def change_slice(self):
        owner, name = self.pick_slice()
        owner.fill(name)
        self.put_slices(owner, name)

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
            pod.state = self.draw.choice(list(STATES))
            if self.allocated:
                pod.node = self.draw.choice(NODES)
        self.put_slices(owner, name)

    def reorder_slice(self):
        owner, name = self.pick_slice()
        self.draw.shuffle(owner.slices[name][1])
        self.put_slices(owner, name)

    def move_pods(self):
        """From one slice to another of the same family; written in either order, for a while in both or in none."""
        owner, name = self.pick_slice()
        others = [n for n in sorted(owner.slices) if n != name and owner.slices[n][0] == owner.slices[name][0]]
        if not others or not owner.slices[name][1]:
            return self.change_one_pod()
        other = self.draw.choice(others)
        owner.slices[other][1].append(owner.slices[name][1].pop())
        return self.put_slices(owner, *self.draw.sample([name, other], 2))

    def shadow_pod(self):
        """A ready pod appears in a second slice as terminating, which changes nothing."""
        owner, name = self.pick_slice()
        ready = [pod for pod in owner.slices[name][1] if pod.state == 'ready']
        if not ready:
            return self.change_one_pod()
        twin = copy.copy(self.draw.choice(ready))
        twin.state = self.draw.choice(['terminating', 'gone'])
        other = owner.add_slice()
        owner.slices[other][:2] = owner.slices[name][0], [twin]
        self.put_slices(owner, other)
        return self.remove_slice_of(owner, other)  # it must not outlive the pod that outweighs it

    def hide_slice(self):
        owner, name = self.pick_slice()
        labels = owner.slices[name][2]
        if labels.pop(HEADLESS, None) is None:
            labels[HEADLESS] = ''
        self.put_slices(owner, name)

    def give_slice_away(self):
        owner, name = self.pick_slice()
        other = self.living()
        if other.namespace != owner.namespace or name in other.slices:
            return self.change_slice()
        other.slices[name] = owner.slices.pop(name)
        other.fill(name)
        self.restarts.append('kube-proxy')
        return self.put_slices(other, name)

    def change_zone(self):
        self.writes.append(('zone', self.draw.choice([None, *ZONES])))

    def restart(self):
        self.restarts.append(self.draw.choice(['kube-proxy', 'portolan']))

    CHANGES = {
        add_service: 10, remove_service: 8, revive_service: 5, change_service: 30, change_type_oddly: 3, say_again: 3, add_slice: 6,
        remove_slice: 6, change_slice: 10, change_one_pod: 20, reorder_slice: 3, move_pods: 6, shadow_pod: 3, hide_slice: 3,
    }
    #: The Node, and programs: whoever has an API server has them, too.
    OTHER_CHANGES = {change_zone: 3, give_slice_away: 1, restart: 1}

    def step(self):
        """A few changes; the names of proxies that must be started again afterwards."""
        self.writes, self.said, self.restarts = [], [], []
        changes = self.CHANGES | (self.OTHER_CHANGES if self.allocated else {})
        for change in self.draw.choices(list(changes), list(changes.values()), k=self.draw.choice([1, 1, 2, 3, 8])):
            if self.owners and any(owner.exists for owner in self.owners) and any(owner.slices for owner in self.owners):
                change(self)
        while sum(owner.exists for owner in self.owners) < self.size:
            self.add_service()
        self.said += [f'restart {name}' for name in self.restarts]
        return sorted(set(self.restarts))

# SPDX-License-Identifier: Apache-2.0
"""A scenario's hand on the cluster: writes objects into a namespace of its own, and takes them away again."""
from api import Refusal, key_of
from lab import objects
from proxies import forget


def ensure(api, thing):
    """Creates what may be there already."""
    try:
        api.create(thing)
    except Refusal as refusal:
        if refusal.status != 409:
            raise


class World:
    def __init__(self, pair, namespace):
        self.pair, self.api, self.namespace = pair, pair.api, namespace
        self.known = set()
        ensure(self.api, objects.namespace(namespace))

    def put(self, thing):
        """Creates it, or makes the one that is there like it."""
        key = key_of(thing)
        if key in self.known:
            return self.api.replace(thing)
        self.known.add(key)
        return self.api.create(thing)

    def service(self, name, *ports, **more):
        return self.put(objects.service(self.namespace, name, list(ports) or None, **more))

    def slice(self, name, family, pods, *ports, **more):
        return self.put(objects.slice_of(self.namespace, name, family, pods, list(ports) or None, **more))

    def raw_slice(self, name, family, endpoints, owner, ports=None):
        thing = objects.slice_of(self.namespace, name, family, [], ports, owner)
        return self.put({**thing, 'endpoints': endpoints, 'ports': thing['ports'] if ports is None else ports})

    @staticmethod
    def pods_of(numbers, family):
        """Endpoints as the API has them, to be made worse."""
        return [objects.away(number).endpoint(family) for number in numbers]

    def pods(self, owner, *pods, ports=(), families=objects.BOTH, suffix=''):
        """The slices of a Service, one for each family, named after it."""
        for family in families:
            self.slice(f'{owner}-{family}{suffix}', family, pods, *ports, owner=owner)

    def label(self, kind, name, **labels):
        """Underscores stand for what Python cannot write; None removes one."""
        names = {'proxy_name': 'service.kubernetes.io/service-proxy-name', 'headless': 'service.kubernetes.io/headless',
                 'owner': 'kubernetes.io/service-name'}
        change = {names.get(label, label): value for label, value in labels.items()}
        self.api.patch((kind, self.namespace, name), {'metadata': {'labels': change}})

    def remove(self, kind, *names):
        for name in names:
            key = kind, self.namespace, name
            self.api.delete(key)
            self.known.discard(key)

    def remove_pods(self, owner, families=objects.BOTH, suffix=''):
        self.remove('EndpointSlice', *(f'{owner}-{family}{suffix}' for family in families))

    def restart(self, name):
        """Kills one of the two and starts it again over the rules that it left."""
        self.pair.restart(name)

    def zone(self, name):
        self.api.patch(('Node', '', objects.NODE), {'metadata': {'labels': {'topology.kubernetes.io/zone': name}}})

    def close(self):
        forget(self.api, self.known)
        self.known.clear()


PORTS = [objects.port('http'), objects.port('dns', 'UDP', 53)]
TARGETS = [objects.port('http', number=8080), objects.port('dns', 'UDP', 5353)]


def everything(w):
    """Each kind of Service, in each condition; no two ask for the same address, since proxies and modes differ in who
    gets it."""
    ranges = ['203.0.113.0/24', '2001:db8:3::/64']
    kinds = {
        'plain': {}, 'inner': {'internalTrafficPolicy': 'Local'}, 'sticky': {'sessionAffinity': 'ClientIP'},
        'external': {'externalIPs': 2}, 'node': {'type': 'NodePort'},
        'node-local': {'type': 'NodePort', 'externalTrafficPolicy': 'Local', 'sessionAffinity': 'ClientIP'},
        'balancer': {'type': 'LoadBalancer', 'ingress': 2},
        'ranges': {'type': 'LoadBalancer', 'ingress': 2, 'loadBalancerSourceRanges': ranges},
        'local': {'type': 'LoadBalancer', 'ingress': 1, 'externalTrafficPolicy': 'Local', 'internalTrafficPolicy': 'Local',
                  'externalIPs': 1, 'loadBalancerSourceRanges': ['192.0.2.0/24', '2001:db8:2::/64']},
        'both': {'type': 'LoadBalancer', 'ingress': 1, 'externalIPs': 1, 'sessionAffinity': 'ClientIP'},
    }
    pods = {'both': [objects.here(1), objects.away(2), objects.away(3)], 'away': [objects.away(2), objects.away(3)], 'none': [],
            'ending': [objects.here(1, state='terminating'), objects.away(2, state='notready'), objects.Pod(4, None)]}
    numbers = iter(range(20, 200))
    for kind, spec in kinds.items():
        for where, list_ in pods.items():
            asked = {'externalIPs': 'external', 'ingress': 'vip'}
            own = {name: objects.addresses(asked[name], [next(numbers) for _ in range(value)]) if name in asked else value
                   for name, value in spec.items()}
            w.service(f'{kind}-{where}', *PORTS, **own)
            w.pods(f'{kind}-{where}', *list_, ports=TARGETS)

# SPDX-License-Identifier: Apache-2.0
"""Services, EndpointSlices and Nodes, from few words.

Pods, external addresses and load balancer addresses have a number that gives them an address in each family, so that a
dual-stack Service and its two slices can be written at once.
"""
from lab import topology

BOTH = (4, 6)
NODE = 'node1'
PREFIXES = {'pod': ('10.244.{}.{}', 'fd00:10:244:{}::{:x}'), 'external': ('198.18.{}.{}', '2001:db8:18:{}::{:x}'),
            'vip': ('198.51.{}.{}', '2001:db8:51:{}::{:x}'), 'cluster': ('10.96.{}.{}', 'fd00:10:96::{}:{:x}')}
STATES = {
    'ready': {'ready': True, 'serving': True, 'terminating': False},
    'notready': {'ready': False, 'serving': False, 'terminating': False},
    'serving': {'ready': False, 'serving': True, 'terminating': False},  # what nobody should use
    'terminating': {'ready': False, 'serving': True, 'terminating': True},
    'gone': {'ready': False, 'serving': False, 'terminating': True},
    'unsaid': {},
    'null': {'ready': None, 'serving': None, 'terminating': None},
}


HOST = -1  # a pod in the node's own network


def address(what, number, family):
    if number == HOST:
        return topology.NODE[family]
    return PREFIXES[what][BOTH.index(family)].format(1 + number // 250, 1 + number % 250)


def addresses(what, numbers, families=BOTH):
    return [address(what, number, family) for number in numbers for family in families]


def port(name='http', protocol='TCP', number=80, node_port=None):
    made = {'protocol': protocol, 'port': number, **({'name': name} if name else {})}
    return {**made, 'nodePort': node_port} if node_port else made


def service(namespace, name, ports=None, families=BOTH, labels=None, ingress=(), **spec):
    """families in order; ingress: load balancer addresses, as text or as the API has them."""
    if spec.get('type') == 'ExternalName':
        families = ()
    elif 'ipFamilies' not in spec:
        spec['ipFamilies'] = [f'IPv{family}' for family in families]
        spec['ipFamilyPolicy'] = 'RequireDualStack' if len(families) == 2 else 'SingleStack'
    made = {'apiVersion': 'v1', 'kind': 'Service', 'metadata': {'namespace': namespace, 'name': name, 'labels': labels or {}},
            'spec': {'ports': ports or [port()], **spec}}
    if spec.get('type') == 'LoadBalancer':
        entries = [{'ip': entry} if isinstance(entry, str) else entry for entry in ingress]
        made['status'] = {'loadBalancer': {'ingress': entries}}
    return made


class Pod:
    """An endpoint in all families. state is a key of STATES; zones and nodes are hints."""

    def __init__(self, number, node='elsewhere', state='ready', zones=(), nodes=()):
        self.number, self.node, self.state, self.zones, self.nodes = number, node, state, list(zones), list(nodes)

    def endpoint(self, family):
        made = {'addresses': [address('pod', self.number, family)], 'conditions': dict(STATES[self.state])}
        if self.node:
            made['nodeName'] = self.node
        hints = {}
        if self.zones:
            hints['forZones'] = [{'name': zone} for zone in self.zones]
        if self.nodes:
            hints['forNodes'] = [{'name': node} for node in self.nodes]
        return {**made, 'hints': hints} if hints else made


def here(number, **more):
    return Pod(number, NODE, **more)


def away(number, **more):
    return Pod(number, 'elsewhere', **more)


def slice_of(namespace, name, family, pods, ports=None, owner=None, labels=None):
    """owner is the Service; ports are those of the pods."""
    all_labels = {**({'kubernetes.io/service-name': owner} if owner else {}), **(labels or {})}
    return {'apiVersion': 'discovery.k8s.io/v1', 'kind': 'EndpointSlice', 'addressType': f'IPv{family}',
            'metadata': {'namespace': namespace, 'name': name, 'labels': all_labels},
            'endpoints': [pod.endpoint(family) for pod in pods], 'ports': ports or [port(number=8080)]}


def namespace(name):
    return {'apiVersion': 'v1', 'kind': 'Namespace', 'metadata': {'name': name}}


def node(zone=None, addresses=tuple(topology.NODE.values()), pod_cidrs=topology.POD_CIDRS):
    return {'apiVersion': 'v1', 'kind': 'Node',
            'metadata': {'name': NODE, 'labels': {'topology.kubernetes.io/zone': zone} if zone else {}},
            'spec': {'podCIDR': pod_cidrs[0], 'podCIDRs': list(pod_cidrs)},
            'status': {'addresses': [{'type': 'InternalIP', 'address': text} for text in addresses]}}

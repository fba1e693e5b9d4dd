# SPDX-License-Identifier: Apache-2.0
"""What should become of a packet, from the objects alone: kube-proxy's nftables mode in plain words.

Which endpoints a service port has comes from the golden tests' oracle, which was written from the specification. Here
is what the mode makes of them; no chain, map or slot is known to this file.
"""
from dataclasses import dataclass, field
from fractions import Fraction
from ipaddress import ip_address, ip_network

import oracle
from lab.nft_evaluator import Outcome

CLUSTER, EXTERNAL, BALANCER = 'cluster', 'external', 'balancer'


@dataclass
class Settings:
    node_name: str
    zone: str
    addresses: dict                    # family: the node's addresses that are not loopback, primary first
    pods: object = None                # packet -> whether its source is a pod; None: nobody knows
    masquerade_all: bool = False
    nodeports: list = None             # networks; None: the primary address only
    service_networks: list = field(default_factory=list)


class Port:
    """A service port, its endpoints, and what follows from both."""

    def __init__(self, port, endpoints, settings):
        self.port = port
        self.choice = oracle.choose(port, endpoints, settings.node_name, settings.zone)

    @property
    def has(self):
        return self.choice.has


class Reference:
    def __init__(self, objects, settings, family):
        self.settings, self.family = settings, family
        lists = oracle.endpoint_lists(objects, family, settings.node_name)
        ages = {oracle.key_of(thing): thing['metadata'].get('creationTimestamp') or '' for thing in objects
                if thing['kind'] == 'Service'}
        ports = sorted(oracle.service_ports(objects, family), key=lambda p: (ages[p.key], p.key.split('/')))
        self.cluster_ips = {p.cluster_ip for p in ports}
        self.destinations, self.nodeports = {}, {}
        for port in ports:
            made = Port(port, lists.get((port.key, port.name, port.protocol), []), settings)
            for address, kind in self._addresses(port):
                # the oldest Service keeps a destination; another port of the same one may add to what it is
                owner, kinds = self.destinations.setdefault((address, port.protocol.lower(), port.port), (made, set()))
                if owner is made:
                    kinds.add(kind)
            if port.node_port:
                self.nodeports.setdefault((port.protocol.lower(), port.node_port), made)

    @staticmethod
    def _addresses(port):
        return ([(port.cluster_ip, CLUSTER)] + [(ip, EXTERNAL) for ip in port.external_ips]
                + [(ip, BALANCER) for ip in port.vips])

    def keys(self):
        """Every (address, protocol, port) that somebody might ask for."""
        node = [ip_address(text) for text in self.settings.addresses[self.family]]
        return list(self.destinations) + [(ip, *key) for key in self.nodeports for ip in node]

    def find(self, packet):
        """(service port, kinds of the destination), (service port, {'nodeport'}) or (None, None)"""
        address = ip_address(packet.destination)
        found = self.destinations.get((address, packet.protocol, packet.port))
        if found:
            return found
        if self.serves_nodeports(address) and (packet.protocol, packet.port) in self.nodeports:
            return self.nodeports[packet.protocol, packet.port], {'nodeport'}
        return None, None

    def is_local(self, address):
        return address.is_loopback or str(address) in self.settings.addresses[self.family]

    def serves_nodeports(self, address):
        if address.is_loopback or not self.is_local(address):
            return False
        if self.settings.nodeports is None:
            return str(address) == self.settings.addresses[self.family][0]
        return any(address in ip_network(net) for net in self.settings.nodeports if ip_network(net).version == self.family)

    def is_pod(self, packet):
        return bool(self.settings.pods) and self.settings.pods(packet)

    def admitted(self, packet, made):
        """Source ranges; the addresses of the load balancer itself count when the node may come in."""
        ranges = made.port.ranges
        if not ranges:
            return True
        node = ip_address(self.settings.addresses[self.family][0])
        source = ip_address(packet.source)
        if any(node in net for net in ranges) and source in made.port.vips:
            return True
        return any(source in net for net in ranges)

    def candidates(self, packet, made, kinds):
        """(endpoints, masquerade, affinity's name for the list), or an Outcome."""
        port, choice = made.port, made.choice
        if not choice.has:
            return Outcome('reject')
        if CLUSTER in kinds:
            local, masquerade = port.internal_local, self.from_elsewhere(packet)
        elif not port.external_local:
            local, masquerade = False, True
        elif self.is_pod(packet):
            local, masquerade = False, False
        elif self.is_local(ip_address(packet.source)):
            local, masquerade = False, True
        else:
            local, masquerade = True, False
        endpoints = choice.local if local else choice.cluster
        if ip_address(packet.destination) in self.cluster_ips:
            masquerade = masquerade or self.from_elsewhere(packet)
        if not endpoints:
            return Outcome('drop')
        return endpoints, masquerade, 'local' if local else 'cluster'

    def from_elsewhere(self, packet):
        """Whether traffic to a cluster IP comes from outside of the cluster, as far as anybody can tell."""
        return self.settings.masquerade_all or (bool(self.settings.pods) and not self.settings.pods(packet))

    def outcome(self, packet, endpoint, masquerade):
        hairpin = endpoint.local and endpoint.ip == ip_address(packet.source)
        leaves = packet.interface is None or not self.is_local(endpoint.ip)
        return Outcome('served', str(endpoint.ip), endpoint.port, bool((masquerade or hairpin) and leaves))

    def evaluate(self, packet, memory=None):
        """{Outcome: chance}; memory: what this client is bound to, for each list of endpoints."""
        made, kinds = self.find(packet)
        if made is None:
            return {self.unserved(packet): Fraction(1)}
        if BALANCER in kinds and not self.admitted(packet, made):
            return {Outcome('drop'): Fraction(1)}
        found = self.candidates(packet, made, kinds)
        if isinstance(found, Outcome):
            return {found: Fraction(1)}
        endpoints, masquerade, which = found
        bound = (memory or {}).get(which)
        if made.port.sticky and bound in [(str(e.ip), e.port) for e in endpoints]:
            endpoints = [e for e in endpoints if (str(e.ip), e.port) == bound]
        shares = {}
        for endpoint in endpoints:
            key = self.outcome(packet, endpoint, masquerade)
            shares[key] = shares.get(key, 0) + Fraction(1, len(endpoints))
        return shares

    def unserved(self, packet):
        address = ip_address(packet.destination)
        if self.is_local(address):
            return Outcome('passed')
        if address in self.cluster_ips:
            return Outcome('reject')
        if any(address in ip_network(net) for net in self.settings.service_networks
               if ip_network(net).version == self.family):
            return Outcome('drop')
        return Outcome('passed')

    def memory_of(self, made, outcome):
        """What a client keeps that was served so: for each list, the endpoint if it is one of the list."""
        target = outcome.address, outcome.port
        return {name: target for name, endpoints in (('cluster', made.choice.cluster), ('local', made.choice.local))
                if target in [(str(e.ip), e.port) for e in endpoints]}

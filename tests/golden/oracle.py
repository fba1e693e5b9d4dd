#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A second opinion: the rules of iptables mode, written from the specification alone.

Portolan's rules must be those of kube-proxy v1.37. This file derives them from a manifest folder without sharing a
line, a table or an idea with the C program: it knows no changes and no incremental syncs, it just says what a
first sync writes. The golden files are its output, and random manifests are compared with it.

    render(objects, settings, family)   input of iptables-restore
    save(text, family)                  what iptables-save prints once that is applied to an empty host

Where kube-proxy leaves an order open (it walks a hash map), Portolan fixes it: services by namespace and name,
ports by name and protocol, everything else in the order of the sorted endpoint list. In two things it goes further: the
entries of all cluster IPs stand before those of external and load balancer IPs, and a destination that several Services
ask for has entries of one alone: cluster IPs go before all else, then the older Service, then the name.
"""
import argparse
import base64
import hashlib
import ipaddress
import pathlib
import shlex
import sys
from dataclasses import dataclass

import yaml

FAMILIES = (4, 6)
PROTOCOLS = ('TCP', 'UDP', 'SCTP')
NODEPORTS_NOTE = 'kubernetes service nodeports; NOTE: this must be the last rule in this chain'


# ---- settings ----------------------------------------------------------------------------------

@dataclass
class Settings:
    node_name: str = 'node'
    cluster_cidr: str = ''
    detect_local_mode: str = 'ClusterCIDR'
    pod_bridge_interface: str = ''
    pod_interface_name_prefix: str = ''
    masquerade_all: bool = False
    masquerade_bit: int = 14
    localhost_nodeports: bool = True
    nodeport_addresses: str = ''
    bind_address: str = '0.0.0.0'
    allow_external_ips: bool = True
    # facts of the host that a dry run takes for granted
    be_liberal: bool = False
    nfacct: bool = True

    @property
    def mark(self):
        return f'0x{1 << self.masquerade_bit:08x}'


def settings_from(arguments):
    """Settings from the flags that `portolan render` is given."""
    def yes(text):
        return text.lower() in ('true', 't', '1')

    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument('--node-name', '--hostname-override', dest='node_name', default='node')
    parser.add_argument('--cluster-cidr', default='')
    parser.add_argument('--detect-local-mode', default='ClusterCIDR')
    parser.add_argument('--pod-bridge-interface', default='')
    parser.add_argument('--pod-interface-name-prefix', default='')
    parser.add_argument('--masquerade-all', nargs='?', const=True, default=False, type=yes)
    parser.add_argument('--iptables-masquerade-bit', dest='masquerade_bit', type=int, default=14)
    parser.add_argument('--iptables-localhost-nodeports', dest='localhost_nodeports', nargs='?',
                        const=True, default=True, type=yes)
    parser.add_argument('--nodeport-addresses', default='')
    parser.add_argument('--bind-address', default='0.0.0.0')
    parser.add_argument('--feature-gates', default='')
    values = vars(parser.parse_args(list(arguments)))
    gates = dict(g.split('=') for g in values.pop('feature_gates').split(',') if g)
    return Settings(**values, allow_external_ips=yes(gates.get('AllowServiceExternalIPs', 'true')))


# ---- addresses ---------------------------------------------------------------------------------

def parse_ip(text):
    """An address, or None. Octets are decimal whatever zeros they start with; mapped IPv4 is IPv4."""
    head, colon, tail = text.rpartition(':')
    if '.' in tail:
        octets = tail.split('.')
        if not all(octet.isdecimal() for octet in octets):
            return None
        tail = '.'.join(str(int(octet, 10)) for octet in octets)
    try:
        ip = ipaddress.ip_address(head + colon + tail)
    except ValueError:
        return None
    return getattr(ip, 'ipv4_mapped', None) or ip


def parse_net(text):
    address, slash, length = text.partition('/')
    ip = parse_ip(address)
    if ip is None or not slash or not length.isdecimal() or int(length) > ip.max_prefixlen:
        return None
    return ipaddress.ip_network(f'{ip}/{int(length)}', strict=False)


def of_family(values, family):
    return [v for v in values if v is not None and v.version == family]


# ---- objects -----------------------------------------------------------------------------------

def load(folder):
    """All objects of a manifest folder, Lists unfolded."""
    objects = []

    def add(document):
        if not document:
            return
        if document['kind'].endswith('List'):
            for item in document.get('items') or ():
                item.setdefault('kind', document['kind'][:-4])
                add(item)
        else:
            objects.append(document)

    for path in sorted(pathlib.Path(folder).iterdir()):
        if path.suffix in ('.yaml', '.yml', '.json'):
            for document in yaml.safe_load_all(path.read_text()):
                add(document)
    return objects


def key_of(thing):
    meta = thing['metadata']
    return f"{meta.get('namespace') or 'default'}/{meta['name']}"


def slices_from_endpoints(thing):
    """An Endpoints object as the EndpointSlices that mirror it."""
    slices = []
    for subset in thing.get('subsets') or ():
        for family in FAMILIES:
            endpoints = []
            for field_name, ready in (('addresses', True), ('notReadyAddresses', False)):
                for entry in subset.get(field_name) or ():
                    if of_family([parse_ip(entry['ip'])], family):
                        endpoints.append({'addresses': [entry['ip']], 'nodeName': entry.get('nodeName'),
                                          'conditions': {'ready': ready}})
            ports = [{'name': p.get('name') or '', 'protocol': p.get('protocol') or 'TCP', 'port': p['port']}
                     for p in subset.get('ports') or ()]
            if endpoints:
                slices.append({'kind': 'EndpointSlice', 'addressType': f'IPv{family}', 'ports': ports,
                               'endpoints': endpoints,
                               'metadata': {'namespace': thing['metadata'].get('namespace'),
                                            'name': f"{thing['metadata']['name']}-{len(slices)}",
                                            'labels': {'kubernetes.io/service-name': thing['metadata']['name']}}})
    return slices


@dataclass(frozen=True)
class Endpoint:
    ip: object
    port: int
    ready: bool
    serving: bool
    terminating: bool
    local: bool
    zones: frozenset
    nodes: frozenset

    def __str__(self):
        return f'[{self.ip}]:{self.port}' if self.ip.version == 6 else f'{self.ip}:{self.port}'

    @property
    def fallback(self):
        return self.serving and self.terminating


def make_endpoint(entry, ip, port, node_name):
    conditions = entry.get('conditions') or {}
    hints = entry.get('hints') or {}

    def condition(name, default):
        value = conditions.get(name)
        return default if value is None else value

    return Endpoint(ip, port, ready=condition('ready', True), serving=condition('serving', True),
                    terminating=condition('terminating', False), local=entry.get('nodeName') == node_name,
                    zones=frozenset(z['name'] for z in hints.get('forZones') or ()),
                    nodes=frozenset(n['name'] for n in hints.get('forNodes') or ()))


def endpoint_lists(objects, family, node_name):
    """{(service key, port name, protocol): sorted endpoints}, all slices merged."""
    slices = {}
    for thing in objects:
        if thing['kind'] == 'Endpoints':
            for piece in slices_from_endpoints(thing):
                slices[key_of(piece)] = piece
        elif thing['kind'] == 'EndpointSlice':
            slices[key_of(thing)] = thing
    merged = {}
    for thing in slices.values():
        labels = thing['metadata'].get('labels') or {}
        owner = labels.get('kubernetes.io/service-name')
        if not owner or 'service.kubernetes.io/headless' in labels or thing['addressType'] != f'IPv{family}':
            continue
        service = f"{thing['metadata'].get('namespace') or 'default'}/{owner}"
        for port in thing.get('ports') or ():
            if not port.get('port'):
                continue
            # what the API server would fill in: no name is "", no protocol is TCP
            key = (service, port.get('name') or '', port.get('protocol') or 'TCP')
            by_address = merged.setdefault(key, {})
            for entry in thing.get('endpoints') or ():
                for ip in of_family([parse_ip(a) for a in (entry.get('addresses') or ())[:1]], family):
                    endpoint = make_endpoint(entry, ip, port['port'], node_name)
                    if str(endpoint) not in by_address or not endpoint.terminating:
                        by_address[str(endpoint)] = endpoint
    return {key: [by[text] for text in sorted(by, key=str.encode)] for key, by in merged.items()}


@dataclass
class ServicePort:
    """One port of one Service in one family, with what is derived from the object."""
    key: str
    name: str
    protocol: str
    port: int
    node_port: int
    cluster_ip: object
    external_ips: list
    vips: list
    ranges: list
    sticky: int
    health_port: int
    external_local: bool
    internal_local: bool
    created: str

    @property
    def id(self):
        return f'{self.key}:{self.name}' if self.name else self.key

    @property
    def accessible(self):
        return bool(self.node_port or self.vips or self.external_ips)

    @property
    def uses_cluster(self):
        return not self.internal_local or self.accessible

    @property
    def uses_local(self):
        return self.internal_local or (self.external_local and self.accessible)


def cluster_ip_of(spec, family):
    ips = spec.get('clusterIPs') or [spec.get('clusterIP')]
    families = spec.get('ipFamilies') or [f'IPv{parse_ip(ip).version}' for ip in ips if parse_ip(ip)]
    for name, ip in zip(families, ips):
        if name == f'IPv{family}':
            return parse_ip(ip)
    return None


def source_ranges_of(spec, family):
    nets = of_family([parse_net(t.strip()) for t in spec.get('loadBalancerSourceRanges') or ()], family)
    return [] if any(net.prefixlen == 0 for net in nets) else nets


def service_ports(objects, family):
    """Every service port that has rules in this family, in the order of writing."""
    ports = []
    for thing in objects:
        spec = thing.get('spec') or {}
        labels = thing['metadata'].get('labels') or {}
        if thing['kind'] != 'Service' or spec.get('type') == 'ExternalName':
            continue
        if spec.get('clusterIP') in (None, '', 'None') and spec.get('clusterIPs') in (None, []):
            continue
        if spec.get('clusterIP') == 'None' or 'service.kubernetes.io/service-proxy-name' in labels:
            continue
        cluster_ip = cluster_ip_of(spec, family)
        if cluster_ip is None:
            continue
        kind = spec.get('type') or 'ClusterIP'
        local = (spec.get('externalTrafficPolicy') == 'Local'
                 and (kind in ('LoadBalancer', 'NodePort') or bool(spec.get('externalIPs'))))
        ingress = ((thing.get('status') or {}).get('loadBalancer') or {}).get('ingress') or ()
        sticky = 0
        if spec.get('sessionAffinity') == 'ClientIP':
            config = (spec.get('sessionAffinityConfig') or {}).get('clientIP') or {}
            sticky = config.get('timeoutSeconds') or 10800
        for port in spec.get('ports') or ():
            ports.append(ServicePort(
                key=key_of(thing), name=port.get('name') or '', protocol=port.get('protocol') or 'TCP',
                port=port['port'], node_port=port.get('nodePort') or 0, cluster_ip=cluster_ip,
                external_ips=of_family([parse_ip(t) for t in spec.get('externalIPs') or ()], family),
                vips=of_family([parse_ip(i['ip']) for i in ingress
                                if i.get('ip') and i.get('ipMode', 'VIP') == 'VIP'], family),
                ranges=source_ranges_of(spec, family), sticky=sticky,
                health_port=(spec.get('healthCheckNodePort') or 0) if local and kind == 'LoadBalancer' else 0,
                external_local=local, internal_local=spec.get('internalTrafficPolicy') == 'Local',
                created=str(thing['metadata'].get('creationTimestamp') or '')))
    return sorted(ports, key=lambda p: (*p.key.split('/'), p.name, PROTOCOLS.index(p.protocol)))


def node_facts(objects, settings, family):
    """(zone, address of this node in the family, all its addresses as a dry run takes them from the Node)"""
    zone, ips = '', []
    for thing in objects:
        if thing['kind'] == 'Node' and thing['metadata']['name'] == settings.node_name:
            zone = (thing['metadata'].get('labels') or {}).get('topology.kubernetes.io/zone') or ''
            listed = (thing.get('status') or {}).get('addresses') or ()
            ips = [parse_ip(a['address']) for kind in ('InternalIP', 'ExternalIP')
                   for a in listed if a['type'] == kind]
    loopback = ipaddress.ip_address('127.0.0.1' if family == 4 else '::1')
    own = of_family(ips, family)
    bound = parse_ip(settings.bind_address)
    if bound is not None and bound.version == family and not bound.is_unspecified:
        own.insert(0, bound)
    return zone, own[0] if own else loopback, {*own, loopback}


# ---- which endpoints ---------------------------------------------------------------------------

@dataclass
class Choice:
    cluster: list
    local: list
    reachable: list
    has: bool


def choose(port, endpoints, node_name, zone):
    ready = [e for e in endpoints if e.ready]
    cluster, local, mode, has = [], [], None, False
    if port.uses_cluster:
        if ready and all(e.nodes for e in ready) and any(node_name in e.nodes for e in ready):
            mode, cluster = 'node', [e for e in ready if node_name in e.nodes]
        elif ready and zone and all(e.zones for e in ready) and any(zone in e.zones for e in ready):
            mode, cluster = 'zone', [e for e in ready if zone in e.zones]
        else:
            cluster = ready
        cluster = cluster or [e for e in endpoints if e.fallback]
        has = bool(cluster)
    local_fell_back = False
    if port.uses_local:
        local = [e for e in ready if e.local]
        if not local:
            local = [e for e in endpoints if e.local and e.fallback]
            local_fell_back = bool(local)
        has = has or any(e.ready or e.fallback for e in endpoints)
    if not port.uses_local:
        reachable = cluster
    elif not port.uses_cluster:
        reachable = local
    elif mode is None and not local_fell_back:
        reachable = cluster
    else:
        reachable = [e for e in endpoints if e in cluster or e in local]
    return Choice(cluster, local, reachable, has)


# ---- rules -------------------------------------------------------------------------------------

def digest(text):
    return base64.b32encode(hashlib.sha256(text.encode()).digest()).decode()[:16]


class Text:
    """The two sections of a restore text while they grow."""

    def __init__(self):
        self.chains = {'filter': [], 'nat': []}
        self.rules = {'filter': [], 'nat': []}

    def chain(self, table, name):
        self.chains[table].append(f':{name} - [0:0]')

    def rule(self, table, chain, *words):
        self.rules[table].append(' '.join(['-A', chain, *(str(w) for w in words if w != '')]))

    def __str__(self):
        lines = []
        for table in ('filter', 'nat'):
            lines += [f'*{table}', *self.chains[table], *self.rules[table], 'COMMIT']
        return '\n'.join(lines) + '\n'


def comment(text):
    return f'-m comment --comment "{text}"' if ' ' in text else f'-m comment --comment {text}'


def node_port_nets(settings, family, node_ip):
    """The CIDRs of the family that limit node ports; [] means all addresses."""
    words = {'primary': [] if node_ip.is_loopback else [str(node_ip) + ('/32' if family == 4 else '/128')],
             'localhost': ['127.0.0.0/8', '::1/128'], 'all': ['0.0.0.0/0', '::/0']}
    cidrs = [cidr for t in settings.nodeport_addresses.split(',') if t for cidr in words.get(t, [t])]
    nets = of_family([parse_net(cidr) for cidr in cidrs], family)
    return [] if any(net.prefixlen == 0 for net in nets) else nets


def detector(settings, family, objects):
    """(words for local traffic, words for other traffic), or None."""
    if settings.detect_local_mode == 'BridgeInterface':
        match = f'-i {settings.pod_bridge_interface}'
    elif settings.detect_local_mode == 'InterfaceNamePrefix':
        match = f'-i {settings.pod_interface_name_prefix}+'
    else:
        cidrs = settings.cluster_cidr.split(',')
        if settings.detect_local_mode == 'NodeCIDR':
            cidrs = [c for o in objects if o['kind'] == 'Node' and o['metadata']['name'] == settings.node_name
                     for c in o['spec'].get('podCIDRs') or ()]
        nets = of_family([parse_net(c) for c in cidrs if c], family)
        if not nets:
            return None
        match = f'-s {nets[0]}'
    return match, f'! {match}'


def owners_of(ports, allow_external_ips):
    """{destination: key of the Service that has it}; a destination is an address or None, a protocol and a port."""
    asked = {}
    for p in ports:
        rank = (p.created, *p.key.split('/'))
        asked.setdefault((p.cluster_ip, p.protocol, p.port), []).append((False, *rank))
        for ip in (p.external_ips if allow_external_ips else []) + p.vips:
            asked.setdefault((ip, p.protocol, p.port), []).append((True, *rank))
        if p.node_port:
            asked.setdefault((None, p.protocol, p.node_port), []).append((True, *rank))
    return {destination: '/'.join(min(ranks)[2:]) for destination, ranks in asked.items()}


class Renderer:
    def __init__(self, objects, settings, family):
        self.settings, self.family, self.out = settings, family, Text()
        self.zone, self.node_ip, self.addresses = node_facts(objects, settings, family)
        self.lists = endpoint_lists(objects, family, settings.node_name)
        self.ports = service_ports(objects, family)
        self.owners = owners_of(self.ports, settings.allow_external_ips)
        self.detector = detector(settings, family, objects)
        self.node_port_nets = node_port_nets(settings, family, self.node_ip)
        loopback = ipaddress.ip_network('127.0.0.0/8')
        self.localhost = (settings.localhost_nodeports and family == 4 and
                          (not self.node_port_nets or any(n.overlaps(loopback) for n in self.node_port_nets)))
        self.large = sum(len(self.endpoints(p)) for p in self.ports) > 1000

    def endpoints(self, port):
        return self.lists.get((port.key, port.name, port.protocol), [])

    def run(self):
        out, mark = self.out, self.settings.mark
        for name in ('SERVICES', 'EXTERNAL-SERVICES', 'FORWARD', 'NODEPORTS', 'PROXY-FIREWALL'):
            out.chain('filter', f'KUBE-{name}')
        for name in ('SERVICES', 'NODEPORTS', 'POSTROUTING', 'MARK-MASQ'):
            out.chain('nat', f'KUBE-{name}')
        out.rule('nat', 'KUBE-POSTROUTING', f'-m mark ! --mark {mark}/{mark} -j RETURN')
        out.rule('nat', 'KUBE-POSTROUTING', f'-j MARK --xor-mark {mark}')
        out.rule('nat', 'KUBE-POSTROUTING', comment('kubernetes service traffic requiring SNAT'),
                 '-j MASQUERADE', '--random-fully')
        out.rule('nat', 'KUBE-MARK-MASQ', f'-j MARK --or-mark {mark}')
        if self.localhost:
            out.chain('filter', 'KUBE-FIREWALL')
            out.rule('filter', 'KUBE-FIREWALL', comment('block incoming localnet connections'),
                     '-d 127.0.0.0/8 ! -s 127.0.0.0/8',
                     '-m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP')
        ports = [PortRules(self, port) for port in self.ports]
        for port in ports:
            port.cluster_ip()
        for port in ports:
            port.write()
        if not self.settings.be_liberal:
            counted = '-m nfacct --nfacct-name ct_state_invalid_dropped_pkts' if self.settings.nfacct else ''
            out.rule('filter', 'KUBE-FORWARD', '-m conntrack --ctstate INVALID', counted, '-j DROP')
        out.rule('filter', 'KUBE-FORWARD', comment('kubernetes forwarding rules'),
                 f'-m mark --mark {mark}/{mark} -j ACCEPT')
        out.rule('filter', 'KUBE-FORWARD', comment('kubernetes forwarding conntrack rule'),
                 '-m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT')
        self.tail()
        return str(out)

    def tail(self):
        def rule(words):
            self.out.rule('nat', 'KUBE-SERVICES', comment(NODEPORTS_NOTE), words, '-j KUBE-NODEPORTS')

        if not self.node_port_nets:
            spared = '' if self.localhost else f" ! -d {'127.0.0.0/8' if self.family == 4 else '::1/128'}"
            rule(f'-m addrtype --dst-type LOCAL{spared}')
            return
        for ip in sorted(ip for ip in self.addresses if any(ip in net for net in self.node_port_nets)):
            if not ip.is_loopback or self.localhost:
                rule(f'-d {ip}')


class PortRules:
    """The rules of one service port, step by step: group A in shared chains, group B in its own."""

    def __init__(self, whole, port):
        self.whole, self.port, self.out = whole, port, whole.out
        self.use = choose(port, whole.endpoints(port), whole.settings.node_name, whole.zone)
        self.proto = port.protocol.lower()
        suffix = digest(port.id + self.proto)
        self.svc, self.svl, self.ext, self.fw = (f'KUBE-{kind}-{suffix}' for kind in ('SVC', 'SVL', 'EXT', 'FW'))
        has = self.use.has
        self.intern = self.svl if port.internal_local else self.svc
        self.has_int = has and not (port.internal_local and not self.use.local)
        self.policy = self.svl if port.external_local else self.svc
        self.has_ext = has and not (port.external_local and not self.use.local)
        self.use_ext = has and port.accessible
        self.use_fw = has and bool(port.vips) and bool(port.ranges)
        self.why, self.target = ((f'{port.id} has no local endpoints', 'DROP') if has else
                                 (f'{port.id} has no endpoints', 'REJECT'))

    def match(self, words, proto=None):
        proto = proto or self.proto
        return f'-m {proto} -p {proto} {words}'

    def to(self, ip):
        return self.match(f'-d {ip} --dport {self.port.port}')

    def sep(self, endpoint):
        return f'KUBE-SEP-{digest(self.port.id + self.proto + str(endpoint))}'

    def write(self):
        self.shared()
        self.masquerade_internal()
        if self.use_ext:
            self.external_chain()
        if self.use_fw:
            self.firewall_chain()
        if self.use.cluster and self.port.uses_cluster:
            self.out.chain('nat', self.svc)
            self.spread(self.svc, self.use.cluster)
        if self.use.local and self.port.uses_local:
            self.out.chain('nat', self.svl)
            self.spread(self.svl, self.use.local)
        for endpoint in self.use.reachable:
            self.endpoint_chain(endpoint)

    def owns(self, ip, number=None):
        port = self.port
        return self.whole.owners[ip, port.protocol, number or port.port] == port.key

    def cluster_ip(self):
        port, rule = self.port, self.out.rule
        if not self.owns(port.cluster_ip):
            return
        if self.has_int:
            rule('nat', 'KUBE-SERVICES', comment(f'{port.id} cluster IP'), self.to(port.cluster_ip),
                 '-j', self.intern)
        else:
            rule('filter', 'KUBE-SERVICES', comment(self.why), self.to(port.cluster_ip), '-j', self.target)

    def shared(self):
        port, rule, refuse = self.port, self.out.rule, (comment(self.why), )
        vips = [ip for ip in port.vips if self.owns(ip)]
        for ip in filter(self.owns, port.external_ips) if self.whole.settings.allow_external_ips else ():
            if self.use.has:
                rule('nat', 'KUBE-SERVICES', comment(f'{port.id} external IP'), self.to(ip), '-j', self.ext)
            if not self.has_ext:
                rule('filter', 'KUBE-EXTERNAL-SERVICES', *refuse, self.to(ip), '-j', self.target)
        for ip in vips if self.use.has else ():
            rule('nat', 'KUBE-SERVICES', comment(f'{port.id} loadbalancer IP'), self.to(ip),
                 '-j', self.fw if self.use_fw else self.ext)
            if self.use_fw:
                rule('filter', 'KUBE-PROXY-FIREWALL', comment(f'{port.id} traffic not accepted by {self.fw}'),
                     self.to(ip), '-j DROP')
        for ip in vips if not self.has_ext else ():
            rule('filter', 'KUBE-EXTERNAL-SERVICES', *refuse, self.to(ip), '-j', self.target)
        if port.node_port and self.owns(None, port.node_port):
            self.node_port()
        if port.health_port:
            rule('filter', 'KUBE-NODEPORTS', comment(f'{port.id} health check node port'),
                 self.match(f'--dport {port.health_port}', 'tcp'), '-j ACCEPT')

    def node_port(self):
        port, rule = self.port, self.out.rule
        if self.use.has and self.whole.localhost and self.whole.settings.nfacct:
            rule('nat', 'KUBE-NODEPORTS', comment(port.id),
                 self.match(f'-d 127.0.0.0/8 --dport {port.node_port}'),
                 '-m nfacct --nfacct-name localhost_nps_accepted_pkts', '-j', self.ext)
        if self.use.has:
            rule('nat', 'KUBE-NODEPORTS', comment(port.id), self.match(f'--dport {port.node_port}'),
                 '-j', self.ext)
        if not self.has_ext:
            rule('filter', 'KUBE-EXTERNAL-SERVICES', comment(self.why), '-m addrtype --dst-type LOCAL',
                 self.match(f'--dport {port.node_port}'), '-j', self.target)

    def masquerade_internal(self):
        if not self.has_int:
            return
        if self.whole.settings.masquerade_all:
            which = ''
        elif self.whole.detector:
            which = self.whole.detector[1]
        else:
            return
        self.out.rule('nat', self.intern, comment(f'{self.port.id} cluster IP'),
                      self.to(self.port.cluster_ip), which, '-j KUBE-MARK-MASQ')

    def external_chain(self):
        what, from_node = f'for {self.port.id} external destinations', '-m addrtype --src-type LOCAL'
        self.out.chain('nat', self.ext)

        def rule(*words):
            self.out.rule('nat', self.ext, *words)

        if not self.port.external_local:
            rule(comment(f'masquerade traffic {what}'), '-j KUBE-MARK-MASQ')
        else:
            if self.whole.detector:
                rule(comment(f'pod traffic {what}'), self.whole.detector[0], '-j', self.svc)
            rule(comment(f'masquerade LOCAL traffic {what}'), from_node, '-j KUBE-MARK-MASQ')
            rule(comment(f'route LOCAL traffic {what}'), from_node, '-j', self.svc)
        if self.has_ext:
            rule('-j', self.policy)

    def firewall_chain(self):
        allowed = comment(f'{self.port.id} loadbalancer IP')
        self.out.chain('nat', self.fw)
        sources = list(self.port.ranges)
        if any(self.whole.node_ip in net for net in sources):
            sources += self.port.vips
        for source in sources:
            self.out.rule('nat', self.fw, allowed, f'-s {source}', '-j', self.ext)
        self.out.rule('nat', self.fw,
                      comment(f'other traffic to {self.port.id} will be dropped by KUBE-PROXY-FIREWALL'))

    def spread(self, chain, endpoints):
        def rule(endpoint, *words):
            name = '' if self.whole.large else comment(f'{self.port.id} -> {endpoint}')
            self.out.rule('nat', chain, name, *words, '-j', self.sep(endpoint))

        if self.port.sticky:
            for endpoint in endpoints:
                rule(endpoint, f'-m recent --name {self.sep(endpoint)} --rcheck',
                     f'--seconds {self.port.sticky} --reap')
        for left, endpoint in zip(range(len(endpoints), 0, -1), endpoints):
            rule(endpoint, f'-m statistic --mode random --probability {1 / left:.10f}' if left > 1 else '')

    def endpoint_chain(self, endpoint):
        chain, name = self.sep(endpoint), '' if self.whole.large else comment(self.port.id)
        self.out.chain('nat', chain)
        self.out.rule('nat', chain, name, f'-s {endpoint.ip}', '-j KUBE-MARK-MASQ')
        self.out.rule('nat', chain, name, f'-m recent --name {chain} --set' if self.port.sticky else '',
                      f'-m {self.proto} -p {self.proto}', f'-j DNAT --to-destination {endpoint}')


def render(objects, settings, family):
    return Renderer(objects, settings, family).run()


# ---- what iptables-save shows ------------------------------------------------------------------

JUMPS = (  # table, from, to, words: each is put before those that are there already
    ('filter', 'INPUT', 'KUBE-EXTERNAL-SERVICES', 'NEW', 'kubernetes externally-visible service portals'),
    ('filter', 'FORWARD', 'KUBE-EXTERNAL-SERVICES', 'NEW', 'kubernetes externally-visible service portals'),
    ('filter', 'INPUT', 'KUBE-NODEPORTS', '', 'kubernetes health check service ports'),
    ('filter', 'FORWARD', 'KUBE-SERVICES', 'NEW', 'kubernetes service portals'),
    ('filter', 'OUTPUT', 'KUBE-SERVICES', 'NEW', 'kubernetes service portals'),
    ('filter', 'FORWARD', 'KUBE-FORWARD', '', 'kubernetes forwarding rules'),
    ('filter', 'INPUT', 'KUBE-PROXY-FIREWALL', 'NEW', 'kubernetes load balancer firewall'),
    ('filter', 'OUTPUT', 'KUBE-PROXY-FIREWALL', 'NEW', 'kubernetes load balancer firewall'),
    ('filter', 'FORWARD', 'KUBE-PROXY-FIREWALL', 'NEW', 'kubernetes load balancer firewall'),
    ('nat', 'OUTPUT', 'KUBE-SERVICES', '', 'kubernetes service portals'),
    ('nat', 'PREROUTING', 'KUBE-SERVICES', '', 'kubernetes service portals'),
    ('nat', 'POSTROUTING', 'KUBE-POSTROUTING', '', 'kubernetes postrouting rules'),
    ('filter', 'INPUT', 'KUBE-FIREWALL', '', ''),
    ('filter', 'OUTPUT', 'KUBE-FIREWALL', '', ''),
)
BASE_CHAINS = {'mangle': ('PREROUTING', 'INPUT', 'FORWARD', 'OUTPUT', 'POSTROUTING'),
               'filter': ('INPUT', 'FORWARD', 'OUTPUT'), 'nat': ('PREROUTING', 'INPUT', 'OUTPUT', 'POSTROUTING')}
CANARY = 'KUBE-PROXY-CANARY'    # one in each of the three tables: when it goes, somebody flushed


def jump_words(row):
    state, text = row[3], row[4]
    words = [f'-m conntrack --ctstate {state}'] if state else []
    words += [comment(text)] if text else []
    return ' '.join(['-A', row[1], *words, '-j', row[2]])


def saved_rule(line, family):
    """One restore line in iptables-save's order and spelling."""
    words = shlex.split(line)
    front = {}          # -s, -d, -i, -p
    matches, target = [], []
    at, invert = 2, ''
    while at < len(words):
        word = words[at]
        if word == '!':
            invert, at = '! ', at + 1
            continue
        value = words[at + 1] if at + 1 < len(words) else ''
        if word in ('-s', '-d', '-i', '-p'):
            if word in ('-s', '-d') and '/' not in value:
                value += '/32' if family == 4 else '/128'
            front[word] = f'{invert}{word} {value}'
            at += 2
        elif word == '-m':
            matches.append([value])
            at += 2
        elif word == '-j':
            target, at = words[at + 1:], len(words)
        elif word == '--dport':
            next(m for m in matches if m[0] in ('tcp', 'udp', 'sctp')).append(f'{invert}--dport {value}')
            at += 2
        else:
            flag = not value or value.startswith('-') or value == '!'
            matches[-1].append(f'{invert}{word}' + ('' if flag else f' {value}'))
            at += 1 if flag else 2
        invert = ''
    shown = [words[0], words[1], *(front[w] for w in ('-s', '-d', '-i', '-p') if w in front)]
    shown += [saved_match(m, family) for m in matches]
    return ' '.join(shown + saved_target(target, family))


def saved_match(match, family):
    name, options = match[0], match[1:]
    if name == 'comment':
        text = options[0].split(' ', 1)[1]
        bare = all(c.isascii() and (c.isalnum() or c in '_-') for c in text)
        options = [f'--comment {text}' if bare else f'--comment "{text}"']
    elif name == 'mark':
        head, number = options[0].rsplit(' ', 1)
        value, mask = (int(n, 16) for n in number.split('/'))
        options = [f'{head} {value:#x}/{mask:#x}']
    elif name == 'statistic':
        chance = float(options[1].split()[1])
        # the kernel keeps a 31-bit integer; the tool prints it as a fraction with 11 decimals
        options = [options[0], f'--probability {round(chance * 0x80000000) / 0x80000000:.11f}']
    elif name == 'recent':
        mask = '255.255.255.255' if family == 4 else 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'
        options = [*options[1:], options[0], f'--mask {mask}', '--rsource']
    elif name == 'nfacct':
        options = [options[0].replace(' ', '  ')]
    return ' '.join(['-m', name, *options])


def saved_target(target, family):
    if not target:
        return []
    if target[0] == 'REJECT':
        target = ['REJECT', '--reject-with', 'icmp-port-unreachable' if family == 4 else 'icmp6-port-unreachable']
    elif target[0] == 'MARK':
        value = int(target[2], 16)
        target = ['MARK', '--set-xmark', f"{value:#x}/{value if target[1] == '--or-mark' else 0:#x}"]
    return ['-j', *target]


def save(text, family):
    chains = {table: {CANARY} for table in BASE_CHAINS}
    rules = {table: [] for table in BASE_CHAINS}
    table = None
    for line in text.splitlines():
        if line.startswith('*'):
            table = line[1:]
        elif line.startswith(':'):
            chains[table].add(line[1:].split()[0])
        elif line.startswith('-A'):
            rules[table].append(line)
    for row in JUMPS:
        chains[row[0]].add(row[2])
        rules[row[0]].insert(0, jump_words(row))
    lines = []
    for table, base in BASE_CHAINS.items():
        order = [*base, *sorted(chains[table])]
        lines.append(f'*{table}')
        lines += [f":{c} {'ACCEPT' if c in base else '-'} [0:0]" for c in order]
        for chain in order:
            lines += [saved_rule(r, family) for r in rules[table] if r.split()[1] == chain]
        lines.append('COMMIT')
    return '\n'.join(lines) + '\n'


def main():
    """oracle.py 4|6 FOLDER [flags]: prints the restore text."""
    print(render(load(sys.argv[2]), settings_from(sys.argv[3:]), int(sys.argv[1])), end='')


if __name__ == '__main__':
    main()

# SPDX-License-Identifier: Apache-2.0
"""Random clusters in nftables mode: packets must fare as they do in iptables mode, where the oracle says how.

The modes differ where kube-proxy's do (docs/modes.md); `expected` says where, and nothing else may differ.
"""
import ipaddress
import random

import pytest

import oracle
from harness import run_render, write_objects
from lab import iptables_evaluator as iptables, nft_dump, nft_evaluator as nft
from lab.iptables_evaluator import Flow
from lab.seeds import seeds
from test_random import Drawn

SEEDS = seeds(range(101, 161))
EVERYWHERE = '--nodeport-addresses=0.0.0.0/0,::/0'   # what iptables mode does by itself
NODE = {4: '192.0.2.11', 6: '2001:db8::11'}
CLIENTS = {4: ['203.0.113.2', '198.18.0.7', '10.244.1.9', '10.243.1.9'],
           6: ['2600::1', '2001:db8:9::7', 'fd00:10:244:1::9', 'fd00:10:243::9']}
REJECTED, UNTOUCHED = Flow('REJECT', (), False), Flow('ACCEPT', (), False)
VERDICTS = {'served': 'ACCEPT', 'passed': 'ACCEPT', 'drop': 'DROP', 'reject': 'REJECT'}


class Destinations:
    """All that a packet can be sent to, as kube-proxy's objects have it."""

    def __init__(self, objects, arguments, family):
        self.found = []   # (address, port, protocol, service port)
        hidden = '--feature-gates=AllowServiceExternalIPs=false' in arguments
        for port in oracle.service_ports(objects, family):
            protocol = port.protocol.lower()
            addresses = [port.cluster_ip, *([] if hidden else port.external_ips), *port.vips]
            self.found += [(str(a), port.port, protocol, port) for a in addresses]
            if port.node_port:
                self.found.append((NODE[family], port.node_port, protocol, port))
        self.contested = set()
        seen = {}
        for address, number, protocol, port in self.found:
            if seen.setdefault((address, number, protocol), port) is not port:
                self.contested.add((address, number, protocol))


def flow_of(table, source, address, port, protocol, interface, family):
    """What becomes of a packet in nftables mode, as the evaluator of iptables rules tells it: without chances."""
    found = nft.evaluate(table, nft.Packet(source, address, protocol, port, interface), [NODE[family]])
    return Flow.of([(VERDICTS[end.verdict], iptables.Packet(source, end.address, end.port, translated=end.verdict == 'served',
                                                           masqueraded=end.masqueraded)) for end in found])


def firewalled(port, address, source):
    """In nftables mode ranges hold without endpoints too."""
    if not port.ranges or address not in {str(v) for v in port.vips}:
        return False
    return not any(ipaddress.ip_address(source) in ipaddress.ip_network(str(net)) for net in port.ranges)


def expected(flow, port, packet, own):
    if own and flow == UNTOUCHED:
        flow = REJECTED   # iptables mode lets the node's own packets to external addresses out where nobody serves them
    if flow == REJECTED and firewalled(port, packet.destination, packet.source):
        return Flow('DROP', (), False)
    return flow


def local_endpoints(objects, family):
    """Pods of this node. Chance gives an address to pods of two nodes at times: not those."""
    found = [e for entries in oracle.endpoint_lists(objects, family, 'node1').values() for e in entries]
    return sorted({str(e.ip) for e in found if e.local} - {str(e.ip) for e in found if not e.local})


@pytest.mark.parametrize('seed', SEEDS)
def test_packets_fare_as_in_iptables_mode(seed, tmp_path):
    cluster = Drawn(seed)
    arguments = cluster.arguments()
    write_objects(tmp_path, cluster.objects)
    objects = oracle.load(tmp_path)
    draw = random.Random(seed)
    for family in oracle.FAMILIES:
        script = run_render(tmp_path, family, [*arguments, EVERYWHERE, '--proxy-mode=nftables'])
        table = nft_dump.loaded(script, family)
        rules = iptables.Rules(oracle.render(objects, oracle.settings_from(arguments), family))
        assert nft_dump.picks_agree(table) == []
        targets = Destinations(objects, arguments, family)
        sources = [*CLIENTS[family], NODE[family], *local_endpoints(objects, family)[:3]]
        for address, number, protocol, port in targets.found:
            if (address, number, protocol) in targets.contested:
                continue
            for source in sources:
                own = source == NODE[family]
                packet = iptables.Packet(source, address, number, protocol, '' if own else draw.choice(['cni0', 'eth0']))
                mine = flow_of(table, source, address, number, protocol, packet.interface or None, family)
                theirs = expected(rules.trace(packet, [NODE[family]]), port, packet, own)
                assert mine == theirs, f'seed {seed}, IPv{family}, {" ".join(arguments)}: {packet}'


@pytest.mark.parametrize('seed', list(SEEDS)[:10])
def test_unused_ports_of_cluster_ips_are_refused(seed, tmp_path):
    cluster = Drawn(seed)
    write_objects(tmp_path, cluster.objects)
    objects = oracle.load(tmp_path)
    for family in oracle.FAMILIES:
        table = nft_dump.loaded(run_render(tmp_path, family, ['--node-name=node1', '--proxy-mode=nftables']), family)
        for port in oracle.service_ports(objects, family):
            for source, interface in ((CLIENTS[family][0], 'eth0'), (NODE[family], None)):
                assert flow_of(table, source, str(port.cluster_ip), 9, 'tcp', interface, family) == REJECTED
        assert flow_of(table, *CLIENTS[family][:2], 80, 'tcp', 'eth0', family) == UNTOUCHED

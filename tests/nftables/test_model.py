# SPDX-License-Identifier: Apache-2.0
"""Random clusters that change at random: the kernel's maps are right after each step.

Three questions are asked of what the kernel holds, both families: is it what a program that starts now would have
written; is it consistent in itself; and does it do with random packets what the objects ask for? The last is
answered by walking the rules as the kernel would (lab/nft_evaluator.py), and from the objects alone (reference.py).

A failure names the seed; PORTOLAN_SEED=N runs that one alone, PORTOLAN_STEPS=N makes it longer.
"""
import os
from ipaddress import ip_address, ip_network

import pytest

from lab import manifests, topology
from lab import nft_dump as dump
from lab.daemon import FLAGS, program
from lab.nft_evaluator import Packet, evaluate, updates
from lab.objects import address
from lab.random_cluster import SHARED, Cluster
from lab.seeds import seeds
from lab.topology import FAMILIES
from lab.twin import Twin
from reference import Reference, Settings

SEEDS = seeds(range(1, 10))
STEPS = int(os.environ.get('PORTOLAN_STEPS', '8'))
COUNTS = (0, 1, 1, 2, 3, 4, 7, 19)  # endpoints of a slice
PACKETS = 40
ADDRESSES = {family: [topology.NODE[family], topology.BRIDGE[family], topology.UPLINK[family]] for family in FAMILIES}


def in_networks(*texts):
    return lambda packet: any(ip_address(packet.source) in ip_network(text) for text in texts
                              if ip_network(text).version == ip_address(packet.source).version)


CIDRS = ('--cluster-cidr', topology.CLUSTER_CIDR)
IN_CIDRS = in_networks(*topology.CLUSTER_CIDR.split(','))
#: flags, and what they mean
SETTINGS = [
    (CIDRS, {'pods': IN_CIDRS}),
    (CIDRS, {'pods': IN_CIDRS}),
    ((), {}),
    ((*CIDRS, '--masquerade-all'), {'pods': IN_CIDRS, 'masquerade_all': True}),
    (('--detect-local-mode=NodeCIDR',), {'pods': in_networks(*topology.POD_CIDRS)}),
    (('--detect-local-mode=BridgeInterface', '--pod-bridge-interface=cni0'), {'pods': lambda p: p.interface == 'cni0'}),
    (('--detect-local-mode=InterfaceNamePrefix', '--pod-interface-name-prefix=cn'),
     {'pods': lambda p: (p.interface or '').startswith('cn')}),
    ((*CIDRS, '--nodeport-addresses=0.0.0.0/0,::/0'), {'pods': IN_CIDRS, 'nodeports': ['0.0.0.0/0', '::/0']}),
    ((*CIDRS, '--nodeport-addresses=10.244.1.0/24,fd00:10:244:1::/64'),
     {'pods': IN_CIDRS, 'nodeports': ['10.244.1.0/24', 'fd00:10:244:1::/64']}),
]


def sources(draw, family):
    """(address, interface)"""
    pods = [(address('pod', 250 * node + draw.randrange(40), family), interface) for node, interface in ((0, 'cni0'), (0, 'cni0'), (1, 'eth1'))]
    return [(topology.DISTANT[family] + '7', 'eth0'), (topology.DISTANT[family] + '64', 'eth0'), (topology.CLIENT[family], 'eth0'),
            (topology.NODE[family], None), (topology.BRIDGE[family], None), (address('vip', 1, family), 'eth0'), *pods]


def packets(draw, reference, count):
    """Random ones, most of them to a destination that a Service has."""
    family = reference.family
    keys = sorted(reference.keys(), key=str)
    for _ in range(count):
        source, interface = draw.choice(sources(draw, family))
        if keys and draw.random() < 0.85:
            destination, protocol, port = draw.choice(keys)
        else:
            destination = draw.choice([address(what, draw.choice(SHARED), family) for what in ('cluster', 'external', 'vip')]
                                      + [topology.NODE[family], topology.BRIDGE[family]])
            protocol, port = draw.choice(['tcp', 'udp', 'sctp']), draw.choice([1000, 2001, 30000, 30001, 9])
        yield Packet(source, str(destination), protocol, port, interface)


@pytest.fixture(scope='module')
def stage(clusters):
    """The cluster, and its twin."""
    cluster = clusters(pods=1, remote_pods=1)
    return cluster, Twin(cluster.lab, eth0=topology.NODE, cni0=topology.BRIDGE, eth1=topology.UPLINK)


def fresh_tables(cluster, twin):
    return twin.after_first_sync([program(), 'run', *cluster.daemon.flags], dump.read_both)


def settings_of(seed):
    flags, meaning = SETTINGS[seed % len(SETTINGS)]
    return flags, Settings(node_name='node1', zone=manifests.ZONE, addresses=ADDRESSES, **meaning)


def begin(cluster, flags, state):
    """A new life of the daemon, with new flags, over what the last one left."""
    if cluster.daemon.pid is not None:
        cluster.daemon.stop()
    cluster.daemon.flags = [*FLAGS, '--proxy-mode=nftables', *flags]
    cluster.daemon.write_services(extra=state.objects())
    cluster.daemon.start()


def objects_of(cluster, state):
    return state.objects() + cluster.daemon._marker()  # pylint: disable=protected-access


def check_packets(state, tables, reference, family, where):
    table = tables[family]
    table.forget()
    for packet in packets(state.draw, reference, PACKETS):
        expected = reference.evaluate(packet)
        got = evaluate(table, packet, ADDRESSES[family])
        assert got == expected, f'{where}, {packet}\nrules: {got}\nobjects: {expected}'
        check_memory(state, table, reference, packet, family, where)


def check_memory(state, table, reference, packet, family, where):
    """A client of a service port with affinity comes again, by every way that there is."""
    made, _kinds = reference.find(packet)
    ways = [way for way in updates(table, packet, ADDRESSES[family]) if way[0].verdict == 'served']
    if made is None or not ways:
        return
    first, written = state.draw.choice(ways)
    memory = reference.memory_of(made, first) if made.port.sticky else {}
    assert bool(written) == bool(memory), f'{where}, {packet}: {written}'
    if not written:
        return
    table.remember(written)
    for address, protocol, port in reference.keys():
        again = packet._replace(destination=str(address), protocol=protocol, port=port)
        if reference.find(again)[0] is made:
            got = evaluate(table, again, ADDRESSES[family])
            assert got == reference.evaluate(again, memory), f'{where}, {packet}, then {again}: {got}'
    table.forget()


def check_tables(grown, fresh, where):
    for family in FAMILIES:
        wrong = dump.differences_of_grown(grown[family], fresh[family])
        assert not wrong, f'{where}, IPv{family}, after changes / after a first sync:\n' + '\n'.join(wrong)


@pytest.mark.parametrize('seed', SEEDS)
def test_maps_follow_random_changes(stage, seed):
    cluster, twin = stage
    state = Cluster(seed, services=2 + seed % 7, counts=COUNTS, shared=True, host_network=True)
    flags, settings = settings_of(seed)
    begin(cluster, flags, state)
    for step in range(STEPS):
        where = f'seed {seed}, step {step}'
        grown = dump.read_both(cluster.node)
        check_tables(grown, fresh_tables(cluster, twin), where)
        for family in FAMILIES:
            check_packets(state, grown, Reference(objects_of(cluster, state), settings, family), family, where)
        state.step()
        since = len(cluster.daemon.log.lines)
        cluster.daemon.serve(extra=state.objects())
        assert not [line for line in cluster.daemon.log.lines[since:] if 'full=true' in line], f'{where}: a change led to a full sync'
    check_restart(cluster, twin, seed)


def check_restart(cluster, twin, seed):
    """The chains that were made on the way are gone too."""
    cluster.daemon.stop()
    cluster.daemon.start()
    fresh = fresh_tables(cluster, twin)
    for family in FAMILIES:
        again = dump.read(cluster.node, family)
        assert set(dump.canonical_rules(again)) == set(dump.canonical_rules(fresh[family])), f'seed {seed}'
        assert dump.differences(dump.canonical(again), dump.canonical(fresh[family])) == [], f'seed {seed}'

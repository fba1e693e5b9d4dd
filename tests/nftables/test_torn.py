# SPDX-License-Identifier: Apache-2.0
"""A commit may fall between any two lookups of one packet: whatever it reads before and after, it finds an endpoint.

The kernel takes the rules once for each base chain and elements at each lookup. So a packet that a commit overtakes
walks the old rules, reads the first maps on its way as they were and the others as they are now, and finds a chain that the
commit made without a rule. Here every such moment is tried, by walking the listings of before and after.
"""
import copy

import pytest

from lab import nft_dump as dump
from lab.manifests import Service
from lab.nft_evaluator import ONE, Machine, State, ip_address, outcome, updates, Packet
from lab.topology import NODE

#: In the order in which a packet asks them; names end at a number.
WAY = ('cluster-ips', 'nodeport-ips', 'service-ips', 'service-nodeports', 'affinity-ids', 'nodeport-affinity-ids', 'recalls',
       'clients-', 'member-endpoints', 'cluster-picks', 'nodeport-cluster-picks', 'endpoints', 'nodeport-endpoints')


class TornContainers:
    """The first `cut` of WAY as they were, the others as they are; one that there was not, or is not, as it was in its time."""

    def __init__(self, before, after, cut):
        self._first, self._then, self._cut = (before, after), (after, before), cut

    def __getitem__(self, name):
        place = next(i for i, prefix in enumerate(WAY) if name == prefix or (prefix[-1] == '-' and name.startswith(prefix)))
        one, other = self._first if place < self._cut else self._then
        return one.get(name) or other[name]


def torn(before, after, cut):
    table = copy.copy(before)
    table.rules = {**{name: [] for name in after.rules}, **before.rules}
    table.containers = TornContainers(before.containers, after.containers, cut)
    return table


def ends(table, packet, node):
    """What becomes of a new packet at the hook where it is translated."""
    state = State(ip_address(packet.source), ip_address(packet.destination), packet.protocol, packet.port, packet.interface)
    return {outcome(state, end) for _chance, state, end in Machine(table, node).hook('prerouting', [(ONE, state, None)], 'nat')}


def pods_of(service, family):
    return {pod.address[family] for pod in service.pods}


def packets(cluster, web, family):
    source = cluster.lab.distant(family, 1)
    return [Packet(source, web.cluster_ip[family], 'tcp', 80), Packet(source, web.load_balancer_ip[family], 'tcp', 80),
            Packet(source, NODE[family], 'tcp', web.node_port)]


#: (endpoints, affinity) before and after; endpoints are places in the list of all pods
CHANGES = {
    'fewer': (([0, 1, 2, 3, 4], 0), ([1], 0)),
    'more': (([1], 0), ([4, 3, 2, 1, 0], 0)),
    'others': (([0, 1], 0), ([2, 3], 0)),
    'affinity begins': (([0, 1, 2], 0), ([0, 1, 2], 100)),
    'affinity ends': (([0, 1, 2], 100), ([0, 1, 2], 0)),
    'affinity ends with all endpoints': (([0, 1, 2], 100), ([3], 0)),
    'affinity, fewer': (([0, 1, 2, 3], 100), ([2], 100)),
    'affinity, others': (([0], 100), ([1, 2, 3], 100)),
}


@pytest.mark.parametrize('change', CHANGES)
def test_a_packet_that_a_commit_overtakes_is_served(cluster, family, change):
    pods = cluster.pods + cluster.remote_pods
    web = Service('web', 94, [], kind='LoadBalancer')
    tables, allowed = [], set()
    for places, affinity in CHANGES[change]:
        web.pods, web.affinity = [pods[place] for place in places], affinity
        cluster.serve(web)
        tables.append(dump.read(cluster.node, family))
        allowed |= pods_of(web, family)
    before, after = tables
    asked = packets(cluster, web, family)
    for known in (False, True):
        if known and CHANGES[change][0][1]:
            before.remember(next(written for _end, written in updates(before, asked[0], [NODE[family]]) if written))
        for packet in asked:
            for cut in range(len(WAY) + 1):
                for end in ends(torn(before, after, cut), packet, [NODE[family]]):
                    assert end.verdict == 'served' and end.address in allowed, \
                        f'{packet}, a client that is {"" if known else "not "}known, commit before {WAY[cut:cut + 1]}: {end}'

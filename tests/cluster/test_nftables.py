# SPDX-License-Identifier: Apache-2.0
"""The nftables modes of kube-proxy and Portolan below the same API server: packets must have the same fate.

The tables look nothing alike, so they are compared by what they do: every packet of a grid is led through what
the two kernels hold (lab/nft_evaluator.py), and ends at the same endpoints with the same chances, with the same
source address, or is refused or dropped by both.
"""
import json
import os
import random
import re
import time

import pytest

from lab.nft_evaluator import Packet, Table, evaluate, updates
from lab.objects import addresses, away, here, service
from lab.topology import wait_for
from proxies import FAMILIES, PATIENCE, SYNCED, Pair, forget
from test_settings import CIDRS
from world import PORTS, TARGETS, World

PACKETS = int(os.environ.get('PORTOLAN_PACKETS', '250'))
MODE = '--proxy-mode=nftables'
NAMES = {4: 'ip', 6: 'ip6'}
LOCAL = {4: ['192.0.2.11', '203.0.113.11', '203.0.113.12'], 6: ['2001:db8:2::11', '2001:db8:3::11']}
#: source and interface: outside (within and without the source ranges), a pod here, a pod elsewhere, the node
SOURCES = {
    4: [('198.51.200.9', 'eth0'), ('203.0.113.99', 'eth1'), ('10.244.1.2', 'cni0'), ('10.244.3.9', 'eth0'),
        ('192.0.2.11', None), ('203.0.113.11', None)],
    6: [('2001:db8:ffff::9', 'eth0'), ('2001:db8:3::99', 'eth1'), ('fd00:10:244:1::2', 'cni0'), ('fd00:10:244:3::9', 'eth0'),
        ('2001:db8:2::11', None), ('2001:db8:3::11', None)],
}
NOBODYS = {4: ['198.18.9.9', '192.0.2.11', '203.0.113.12'],
           6: ['2001:db8:18:9::9', '2001:db8:2::11', '2001:db8:3::11']}

#: Of the service network, and nobody's.
UNALLOCATED = {4: '10.97.7.7', 6: 'fd00:10:96::f:7777'}


class NftPair(Pair):
    def tables(self, family):
        """Of both, once they have seen everything written so far."""
        return [self._table(proxy, family) for proxy in self.proxies]

    def _table(self, proxy, family):
        number = self.markers.generation
        words = {'kube-proxy': f'default/marker/tcp/m{number}', 'portolan': f'"default/marker:m{number}" : goto pick-1'}[proxy.name]

        def seen():
            code, out, _err = proxy.namespace.run('nft', 'list', 'table', NAMES[family], 'kube-proxy', check=False)
            return code == 0 and words in out

        proxy.process.log.wait(seen, f'{proxy.name} had seen the last change (IPv{family})', PATIENCE)
        return Table(json.loads(proxy.namespace.run('nft', '-j', 'list', 'table', NAMES[family], 'kube-proxy')))

    def agree(self):
        self.markers.write()
        if self.mirror:
            self.mirror.update()
        self.know_ranges()
        return sum(compare(*self.tables(family), family) for family in self.families)

    def know_ranges(self):
        """ServiceCIDRs that reach kube-proxy after its first sync get into the rules an hour later; so it is started again."""
        for _ in range(5):
            for family in self.families:  # what is there may be a former life's
                self.proxies[0].process.log.wait_line(SYNCED['kube-proxy'].format(family), timeout=PATIENCE)
            if all(ranges(self._table(self.proxies[0], family)) for family in self.families):
                return
            self.restart('kube-proxy')
        raise AssertionError('kube-proxy never knows of ServiceCIDRs in time')


def ranges(table):
    """The rules behind the one for ports that nobody has."""
    return table.rules['cluster-ips-check'][1:]


def destinations(tables, family):
    """All that either knows, and some that neither does."""
    found = set()
    for table in tables:
        for name in ('service-ips', 'no-endpoint-services'):
            found |= {(str(ip), protocol, number) for ip, protocol, number in table.containers[name].values}
        for name in ('service-nodeports', 'no-endpoint-nodeports'):
            found |= {(ip, *key) for ip in LOCAL[family] for key in table.containers[name].values}
        found |= {(str(ip), 'tcp', 9999) for ip in list(table.containers['cluster-ips'].values)[:3]}
    return sorted(found) + [(ip, 'tcp', 80) for ip in [*NOBODYS[family], UNALLOCATED[family]]]


def compare(theirs, ours, family):
    """How many packets were compared: PORTOLAN_PACKETS of them, drawn from the grid; 0 is all."""
    wrong = []
    theirs.forget(), ours.forget()
    packets = [Packet(source, *destination, interface) for destination in destinations((theirs, ours), family)
               for source, interface in SOURCES[family]]
    if PACKETS:
        packets = random.Random(len(packets)).sample(packets, PACKETS)
    for packet in packets:
        fates = [evaluate(table, packet, LOCAL[family]) for table in (theirs, ours)]
        if fates[0] != fates[1]:
            wrong.append(f'{packet}\n  kube-proxy: {fates[0]}\n  portolan:   {fates[1]}')
        else:
            wrong += compare_memory(theirs, ours, packet, family)
    assert not wrong, f'IPv{family}, {len(wrong)} of {len(packets)} packets:\n' + '\n'.join(wrong[:10])
    return len(packets)


def compare_memory(theirs, ours, packet, family):
    """A client that was served comes again."""
    fates = []
    first = min((way[0] for way in updates(theirs, packet, LOCAL[family]) if way[1]), default=None)
    for table in (theirs, ours):
        written = next((way[1] for way in updates(table, packet, LOCAL[family]) if way[0] == first and way[1]), ())
        table.remember(written)
        fates.append((bool(written), evaluate(table, packet, LOCAL[family])))
        table.forget()
    return [] if fates[0] == fates[1] else [f'{packet}, again\n  kube-proxy: {fates[0]}\n  portolan:   {fates[1]}']


@pytest.mark.parametrize('flags', [[CIDRS], [], [CIDRS, '--nodeport-addresses=0.0.0.0/0,::/0']],
                         ids=['cluster CIDR', 'no detector', 'node ports everywhere'])
def test_packets_have_the_same_fate(stage, filled, flags):
    """Without a detector also when each has started over the table of the other."""
    with NftPair(stage, MODE, *flags) as pair:
        if not flags:
            pair.markers.write()
            for family in FAMILIES:
                pair.tables(family)
            pair.swap()
        assert pair.agree() >= 500


def test_packets_have_the_same_fate_after_changes(stage, filled):
    with NftPair(stage, MODE, CIDRS) as pair:
        pair.agree()
        filled.zone('east')
        filled.pods('plain-both', *(away(n, zones=['east' if n % 2 else 'west']) for n in range(1, 30)),
                    ports=TARGETS)
        filled.pods('local-both', away(2), here(3), here(4, state='terminating'),
                    ports=TARGETS)
        filled.service('sticky-both', *PORTS, type='NodePort', externalTrafficPolicy='Local',
                       externalIPs=addresses('external', [9]), sessionAffinity='ClientIP')
        filled.remove('Service', 'ranges-both')
        pair.agree()
        filled.pods('sticky-both', ports=TARGETS)
        filled.service('node-none', *PORTS, internalTrafficPolicy='Local')
        pair.agree()


def verdicts(pair, address, family):
    """What the two do with packets from everywhere."""
    packets = [Packet(source, address, 'tcp', 80, interface) for source, interface in SOURCES[family]]
    return [{way.verdict for packet in packets for way in evaluate(table, packet, LOCAL[family])} for table in pair.tables(family)]


def test_packets_to_cluster_ips_that_nobody_has_are_dropped(stage, filled):
    """Also those of a ServiceCIDR that comes later, which kube-proxy notices with its next start, and no longer when it goes."""
    more = {4: '10.200.0.9', 6: 'fd00:10:200::9'}
    cidr = {'apiVersion': 'networking.k8s.io/v1', 'kind': 'ServiceCIDR', 'metadata': {'name': 'more'},
            'spec': {'cidrs': ['10.200.0.0/16', 'fd00:10:200::/108']}}
    changes = ((lambda: stage.api.create(cidr), 'drop'), (lambda: stage.api.delete(('ServiceCIDR', '', 'more')), 'passed'))
    with NftPair(stage, MODE, CIDRS, source='api') as pair:
        pair.markers.write()
        pair.know_ranges()
        for family in FAMILIES:
            assert verdicts(pair, UNALLOCATED[family], family) == [{'drop'}, {'drop'}]
            assert verdicts(pair, more[family], family) == [{'passed'}, {'passed'}]
        for change, verdict in changes:
            change()
            for family in FAMILIES:
                pair.proxies[1].process.log.wait(lambda family=family: verdicts(pair, more[family], family)[1] == {verdict},
                                                 f'Portolan had seen the change (IPv{family})', PATIENCE)
            pair.restart('kube-proxy')
            pair.markers.write()
            pair.know_ranges()
            assert all(verdicts(pair, more[family], family)[0] == {verdict} for family in FAMILIES)


def test_a_service_with_more_clients_than_are_remembered_gets_an_event(stage, filled):
    """What a packet notes when there is no room for its client is noted by hand here."""
    world = World(type('Plain', (), {'api': stage.api}), 'crowded')
    world.service('shop', PORTS[0], sessionAffinity='ClientIP')
    endpoint = {'addresses': ['10.244.9.9'], 'conditions': {'ready': True}}
    world.raw_slice('shop-4', 4, [endpoint], 'shop', PORTS[:1])
    proxy = NftPair(stage, MODE, CIDRS, source='api').proxies[1]
    proxy.start()
    log = proxy.process.log

    def port():
        _code, listed, _err = proxy.namespace.run('nft', 'list', 'map', 'ip', 'kube-proxy', 'members', check=False)
        return re.search(r'(1000:\w+) \. 10\.244\.9\.9 \. \d+ :', listed)

    try:
        number = log.wait(port, 'the Service was served', PATIENCE)[1]
        proxy.namespace.run('nft', 'add', 'element', 'ip', 'kube-proxy', 'full-clients', f'{{ {number} timeout 60s }}')
        line = log.wait_line('"A Service with affinity has more clients than are remembered.*')[0]
        assert 'service="crowded/shop" servicePort="crowded/shop:http" clients=65536' in line
        event = wait_for(lambda: told(stage.api, 'AffinityFull', 'crowded'), PATIENCE, what='the Event has arrived')
        assert event['type'] == 'Warning' and event['note'].startswith('crowded/shop:http has session affinity and more clients than the 65536 ')
        assert (event['regarding']['kind'], event['regarding']['name']) == ('Service', 'shop')
    finally:
        proxy.kill()
        world.close()


def younger_than(older, service):
    """Creates the Service, in a later second, since that is how exactly its age is known."""
    made = older['metadata']['creationTimestamp']
    wait_for(lambda: time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime()) > made, what='a second has passed')
    return service.api.create(service.thing)


def told(api, reason, namespace='conflict'):
    events = api.call('GET', f'/apis/events.k8s.io/v1/namespaces/{namespace}/events')['items']
    return next((event for event in events if event['reason'] == reason), None)


def test_the_younger_of_two_services_with_one_address_gets_an_event_and_takes_over(stage, filled):
    class Younger:
        api = stage.api
        thing = service('conflict', 'ant', PORTS[:1], externalIPs=['198.18.77.7'])

    world = World(Younger, 'conflict')
    older = world.service('zebra', PORTS[0], externalIPs=['198.18.77.7'])
    proxy = NftPair(stage, MODE, CIDRS, source='api').proxies[1]
    proxy.start()
    log = proxy.process.log

    def owner(name):
        _code, listed, _err = proxy.namespace.run('nft', 'list', 'table', 'ip', 'kube-proxy', check=False)
        return f'198.18.77.7 . tcp . 80 comment "conflict/{name}:http"' in listed

    try:
        log.wait(lambda: owner('zebra'), 'the older Service was served', PATIENCE)
        younger_than(older, Younger)
        line = log.wait_line('"Two Services ask for the same destination, the older one has it".*')[0]
        assert 'destination="198.18.77.7:80/tcp" service="conflict/ant" owner="conflict/zebra"' in line
        event = wait_for(lambda: told(stage.api, 'DestinationInUse'), PATIENCE, what='the Event has arrived')
        assert event['type'] == 'Warning'
        assert event['note'] == '198.18.77.7:80/tcp belongs to Service conflict/zebra, which goes first'
        assert (event['regarding']['kind'], event['regarding']['name']) == ('Service', 'ant')
        assert owner('zebra') and not owner('ant')
        world.remove('Service', 'zebra')
        log.wait(lambda: owner('ant'), 'the younger Service had taken over', PATIENCE)
    finally:
        proxy.kill()
        world.close()
        forget(stage.api, [('Service', 'conflict', 'ant')])


@pytest.mark.parametrize('mode', ['iptables', 'nftables'])
def test_a_claim_on_a_cluster_ip_is_told_without_the_owner_to_another_tenant(stage, filled, mode):
    thief, owner = (World(stage, f'{name}-{mode}') for name in ('thief', 'owner'))
    address = owner.service('dns', PORTS[0])['spec']['clusterIP']
    thief.service('evil', PORTS[0], externalIPs=[address])
    proxy = NftPair(stage, f'--proxy-mode={mode}', CIDRS, source='api').proxies[1]
    proxy.start()
    try:
        line = proxy.process.log.wait_line('"A Service asks for the cluster IP of another one".*')[0]
        assert f'destination="{address}" service="thief-{mode}/evil" owner="owner-{mode}/dns"' in line
        event = wait_for(lambda: told(stage.api, 'ClusterIPOfAnotherService', f'thief-{mode}'), PATIENCE, what='the Event has arrived')
        assert event['note'] == f'{address} is the cluster IP of another Service, which keeps its ports'
        assert (event['regarding']['kind'], event['regarding']['name']) == ('Service', 'evil')
        assert 'owner-' not in str(event)
    finally:
        proxy.kill()
        thief.close()
        owner.close()


def test_a_difference_is_seen(stage, filled):
    pair, other = NftPair(stage, MODE, CIDRS), NftPair(stage, MODE, CIDRS, '--masquerade-all')
    pair.proxies[1] = other.proxies[1]
    with pair, pytest.raises(AssertionError, match='packets:'):
        pair.agree()

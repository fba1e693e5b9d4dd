# SPDX-License-Identifier: Apache-2.0
"""What becomes of packets: the promises of iptables mode, proven on the rendered rules with the tracer.

Every flow is followed through Portolan's rules and through the oracle's, in both families. Addresses:

    outside            node                                pods elsewhere
    CLIENT ----------- NODE_IP, SECOND_IP ---------------- 10.180.1.x (remote)
                        10.180.0.x (local), POD (a client)
"""
import pytest

import oracle
from harness import NODE, endpoint, node_object, run_render, service, slice_of, write_objects
from lab.iptables_evaluator import Flow, Packet, Rules, check_jumps, parse


class World:
    """Addresses of one family, and rules made of objects."""

    def __init__(self, family, folder):
        self.family, self.folder = family, folder
        self.v4 = family == 4
        self.node_ip = self.pick('192.168.0.2', 'fd00:192:168::2')
        self.second_ip = self.pick('192.168.1.2', '2001:db8::1:2')
        self.pod = self.pick('10.0.0.2', 'fd00:10::2')
        self.client = self.pick('203.0.113.2', '2600:5200::1')
        self.blocked = self.pick('203.0.113.130', '2600:5200::130')
        self.localhost = self.pick('127.0.0.1', '::1')
        self.vip = self.pick('1.2.3.4', '2001:db8::aa:4')
        self.vip2 = self.pick('5.6.7.8', '2001:db8::aa:8')
        self.external_ip = self.pick('192.168.99.11', '2001:db8::99:11')
        self.cidr = self.pick('10.0.0.0/8', 'fd00:10::/32')

    def pick(self, four, six):
        return four if self.v4 else six

    def cluster_ip(self, last):
        return self.pick(f'172.30.0.{last}', f'fd00:172:30::{last}')

    def pod_ip(self, where, last):
        return self.pick(f'10.180.{where}.{last}', f'fd00:10:180:{where + 1}::{last}')

    def local(self, last=1, **more):
        return endpoint(self.pod_ip(0, last), NODE, **more)

    def remote(self, last=1, **more):
        return endpoint(self.pod_ip(1, last), 'remote', **more)

    def shown(self, where, last, port=80):
        ip = self.pod_ip(where, last)
        return f'{ip}:{port}' if self.v4 else f'[{ip}]:{port}'

    def rules(self, *objects, detect=True, arguments=(), contested=False):
        """contested: nothing need lead to the chains of a Service that does not get what it asks for."""
        write_objects(self.folder, [node_object(NODE, [self.node_ip, self.second_ip]), *objects])
        flags = [f'--node-name={NODE}', *([f'--cluster-cidr={self.cidr}'] if detect else []), *arguments]
        text = run_render(self.folder, self.family, flags)
        second = oracle.render(oracle.load(self.folder), oracle.settings_from(flags), self.family)
        assert [wrong for wrong in check_jumps(text) if not contested or 'nothing jumps' not in wrong] == []
        return Flows(self, text, second)


class Flows:
    """The same packet through both sets of rules."""

    def __init__(self, world, text, second):
        self.world, self.text, self.both = world, text, (Rules(text), Rules(second))

    def __call__(self, source, destination, port, protocol='tcp', **more):
        nodes = {self.world.node_ip, self.world.second_ip}
        packet = Packet(source, destination, port, protocol, more.pop('interface', ''))
        mine, other = (rules.trace(packet, nodes, **more) for rules in self.both)
        assert mine == other
        return mine


def to(*targets, masq=False):
    return Flow('ACCEPT', tuple(sorted(targets)), masq)


DROPPED, REJECTED, UNTOUCHED = Flow('DROP', (), False), Flow('REJECT', (), False), Flow('ACCEPT', (), False)


@pytest.fixture(params=[4, 6], ids=['ipv4', 'ipv6'])
def world(request, tmp_path):
    return World(request.param, tmp_path)


@pytest.fixture
def ipv4(tmp_path):
    return World(4, tmp_path)


def ports(node_port=0, **more):
    return [{'name': 'p80', 'port': 80, 'protocol': 'TCP', **({'nodePort': node_port} if node_port else {}), **more}]


class TestNoEndpointsReject:
    def everywhere(self, world):
        return world.rules(service('ns1/svc1', world.cluster_ip(41), ports(3001), [world.vip], type='LoadBalancer',
                                   externalIPs=[world.external_ip]))

    @pytest.mark.parametrize('source', ['pod', 'client'])
    @pytest.mark.parametrize('where', ['cluster_ip', 'external_ip', 'node_port', 'vip'])
    def test_refused_at_once(self, world, source, where):
        flows = self.everywhere(world)
        destination = {'cluster_ip': (world.cluster_ip(41), 80), 'external_ip': (world.external_ip, 80),
                       'node_port': (world.node_ip, 3001), 'vip': (world.vip, 80)}[where]
        assert flows(getattr(world, source), *destination) == REJECTED


class TestClusterIPGeneral:
    def make(self, world):
        both = [{'name': 'http', 'port': 80, 'protocol': 'TCP'}, {'name': 'https', 'port': 443, 'protocol': 'TCP'},
                {'name': 'dns', 'port': 53, 'protocol': 'UDP'}, {'name': 'dns-tcp', 'port': 53, 'protocol': 'TCP'},
                {'name': 'dns-sctp', 'port': 53, 'protocol': 'SCTP'}]
        targets = [dict(p, port={80: 80, 443: 8443, 53: 5353}[p['port']]) for p in both]
        targets[3]['port'], targets[4]['port'] = 5354, 5355
        return world.rules(
            service('ns1/svc1', world.cluster_ip(41)), slice_of('ns1/svc1', [world.local(1)]),
            service('ns2/svc2', world.cluster_ip(42), both),
            slice_of('ns2/svc2', [world.local(2), world.remote(2)], targets))

    def test_simple(self, world):
        assert self.make(world)(world.pod, world.cluster_ip(41), 80) == to(world.shown(0, 1))

    def test_hairpin_is_masqueraded(self, world):
        assert self.make(world)(world.pod_ip(0, 1), world.cluster_ip(41), 80) == to(world.shown(0, 1), masq=True)

    def test_several_endpoints(self, world):
        assert self.make(world)(world.pod, world.cluster_ip(42), 80) == to(world.shown(0, 2), world.shown(1, 2))

    def test_target_port_differs_from_port(self, world):
        assert self.make(world)(world.pod, world.cluster_ip(42), 443) == to(
            world.shown(0, 2, 8443), world.shown(1, 2, 8443))

    @pytest.mark.parametrize('protocol,port', [('udp', 5353), ('tcp', 5354), ('sctp', 5355)])
    def test_protocols_on_one_port_are_independent(self, world, protocol, port):
        assert self.make(world)(world.pod, world.cluster_ip(42), 53, protocol) == to(
            world.shown(0, 2, port), world.shown(1, 2, port))

    def test_wrong_protocol_is_not_matched(self, world):
        assert self.make(world)(world.pod, world.cluster_ip(42), 80, 'udp') == UNTOUCHED

    def test_port_of_another_service_is_not_matched(self, world):
        assert self.make(world)(world.pod, world.cluster_ip(41), 443) == UNTOUCHED


class TestLoadBalancer:
    def make(self, world):
        ranges = world.pick([' 192.168.0.0/24 ', '203.0.113.0/25'], [' fd00:192:168::/64 ', '2600:5200::/121'])
        return world.rules(
            service('ns1/svc1', world.cluster_ip(41), ports(3001), [world.vip, world.vip2], type='LoadBalancer',
                    loadBalancerSourceRanges=ranges),
            slice_of('ns1/svc1', [world.remote(1)]))

    def test_cluster_ip_is_unaffected_by_ranges(self, world):
        assert self.make(world)(world.pod, world.cluster_ip(41), 80) == to(world.shown(1, 1))

    def test_node_port_bypasses_ranges_and_is_masqueraded(self, world):
        for source in (world.client, world.blocked):
            assert self.make(world)(source, world.node_ip, 3001) == to(world.shown(1, 1), masq=True)

    def test_allowed_outsider_reaches_each_vip(self, world):
        for vip in (world.vip, world.vip2):
            assert self.make(world)(world.client, vip, 80) == to(world.shown(1, 1), masq=True)

    def test_blocked_outsider_is_dropped(self, world):
        for vip in (world.vip, world.vip2):
            assert self.make(world)(world.blocked, vip, 80) == DROPPED

    def test_pod_outside_the_ranges_is_dropped(self, world):
        assert self.make(world)(world.pod, world.vip, 80) == DROPPED

    def test_node_inside_the_ranges_is_allowed(self, world):
        assert self.make(world)(world.node_ip, world.vip, 80) == to(world.shown(1, 1), masq=True)

    def test_source_that_is_the_vip_itself_is_allowed(self, world):
        assert self.make(world)(world.vip, world.vip, 80) == to(world.shown(1, 1), masq=True)
        assert self.make(world)(world.vip2, world.vip2, 80) == to(world.shown(1, 1), masq=True)


class TestNodePorts:
    def make(self, world, *arguments):
        return world.rules(service('ns1/svc1', world.cluster_ip(41), ports(3001), type='NodePort'),
                           slice_of('ns1/svc1', [world.local(1), world.remote(1)]), arguments=arguments)

    def both(self, world, masq=True):
        return to(world.shown(0, 1), world.shown(1, 1), masq=masq)

    def test_all_addresses_answer(self, world):
        flows = self.make(world)
        for address in (world.node_ip, world.second_ip):
            assert flows(world.client, address, 3001) == self.both(world)
            assert flows(world.pod, address, 3001) == self.both(world)
            assert flows(world.node_ip, address, 3001) == self.both(world)

    def test_addresses_of_others_do_not(self, world):
        assert self.make(world)(world.client, world.external_ip, 3001) == UNTOUCHED

    def test_cidrs_of_the_other_family_are_ignored(self, world):
        other = world.pick('2001:db8::/64', '192.168.1.0/24')
        assert self.make(world, f'--nodeport-addresses={other}')(world.client, world.node_ip, 3001) == self.both(world)

    def test_zero_cidr_means_all(self, world):
        flows = self.make(world, '--nodeport-addresses=0.0.0.0/0,::/0,192.168.1.0/24')
        assert flows(world.client, world.second_ip, 3001) == self.both(world)

    def test_cidrs_select_addresses(self, world):
        cidr = world.pick('192.168.1.0/24', '2001:db8::1:0/112')
        flows = self.make(world, f'--nodeport-addresses={cidr}')
        assert flows(world.client, world.second_ip, 3001) == self.both(world)
        assert flows(world.client, world.node_ip, 3001) == UNTOUCHED

    def test_primary_selects_the_first_address(self, world):
        flows = self.make(world, '--nodeport-addresses=primary')
        assert flows(world.client, world.node_ip, 3001) == self.both(world)
        assert flows(world.client, world.second_ip, 3001) == UNTOUCHED

    def test_cidr_without_an_address_of_this_node_answers_nowhere(self, world):
        cidr = world.pick('198.51.100.0/24', '2001:db8:77::/64')
        assert self.make(world, f'--nodeport-addresses={cidr}')(world.client, world.node_ip, 3001) == UNTOUCHED

    def test_localhost_answers_masqueraded_with_ipv4_only(self, world):
        expected = self.both(world) if world.v4 else UNTOUCHED
        assert self.make(world)(world.localhost, world.localhost, 3001) == expected

    def test_localhost_is_ignored_when_switched_off(self, world):
        flows = self.make(world, '--iptables-localhost-nodeports=false')
        assert flows(world.localhost, world.localhost, 3001) == UNTOUCHED
        assert flows(world.client, world.node_ip, 3001) == self.both(world)

    def test_anti_martian_rule_only_with_ipv4_and_localhost_on(self, world):
        rule = ('-A KUBE-FIREWALL -m comment --comment "block incoming localnet connections" -d 127.0.0.0/8 ! -s '
                '127.0.0.0/8 -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP')
        assert (rule in parse(self.make(world).text)['filter'].rules) == world.v4
        off = parse(self.make(world, '--iptables-localhost-nodeports=false').text)['filter']
        assert rule not in off.rules and 'KUBE-FIREWALL' not in off.chains

    def test_martian_to_localhost_is_dropped(self, ipv4):
        """A stranger on the wire who sends to 127.0.0.1, where route_localnet lets it in."""
        assert self.make(ipv4)(ipv4.client, '127.0.0.1', 22) == DROPPED


class TestHealthCheckNodePort:
    def make(self, world, *arguments):
        return world.rules(service('ns1/svc1', world.cluster_ip(41), ports(3001), [world.vip], type='LoadBalancer',
                                   externalTrafficPolicy='Local', healthCheckNodePort=30000), arguments=arguments)

    def test_accepted_without_any_endpoint(self, world):
        rules = parse(self.make(world).text)['filter'].rules
        assert ('-A KUBE-NODEPORTS -m comment --comment "ns1/svc1:p80 health check node port" -m tcp -p tcp '
                '--dport 30000 -j ACCEPT') in rules
        assert self.make(world)(world.client, world.node_ip, 30000) == UNTOUCHED

    def test_accepted_with_node_ports_limited_to_loopback(self, ipv4):
        text = self.make(ipv4, '--nodeport-addresses=127.0.0.0/8').text
        assert any('health check node port' in rule for rule in parse(text)['filter'].rules)

    def test_gone_with_the_service(self, world):
        assert 'health check' not in world.rules().text


class ExternalTrafficPolicy:
    """A Service with every kind of external address, and flows to each of them."""
    KINDS = pytest.mark.parametrize('kind', ['external_ip', 'vip', 'node_port'])

    def make(self, world, policy, *endpoints):
        return world.rules(
            service('ns1/svc1', world.cluster_ip(41), ports(3001), [world.vip], type='LoadBalancer',
                    externalIPs=[world.external_ip], externalTrafficPolicy=policy, healthCheckNodePort=30000),
            slice_of('ns1/svc1', list(endpoints) or [world.local(1), world.remote(1)]))

    def external(self, world, kind):
        return {'external_ip': (world.external_ip, 80), 'vip': (world.vip, 80), 'node_port': (world.node_ip, 3001)}[kind]

    def all(self, world, masq=False):
        return to(world.shown(0, 1), world.shown(1, 1), masq=masq)


class TestExternalTrafficPolicyLocal(ExternalTrafficPolicy):
    def test_pod_to_cluster_ip_reaches_all(self, world):
        assert self.make(world, 'Local')(world.pod, world.cluster_ip(41), 80) == self.all(world)

    @ExternalTrafficPolicy.KINDS
    def test_pod_reaches_all_unmasqueraded(self, world, kind):
        assert self.make(world, 'Local')(world.pod, *self.external(world, kind)) == self.all(world)

    @ExternalTrafficPolicy.KINDS
    def test_outsider_reaches_the_local_one_unmasqueraded(self, world, kind):
        assert self.make(world, 'Local')(world.client, *self.external(world, kind)) == to(world.shown(0, 1))

    @ExternalTrafficPolicy.KINDS
    def test_only_remote_endpoints_drop_outsiders(self, world, kind):
        flows = self.make(world, 'Local', world.remote(1))
        assert flows(world.client, *self.external(world, kind)) == DROPPED
        assert flows(world.pod, *self.external(world, kind)) == to(world.shown(1, 1))
        assert flows(world.node_ip, *self.external(world, kind)) == to(world.shown(1, 1), masq=True)


class TestExternalTrafficPolicyCluster(ExternalTrafficPolicy):
    def test_pod_to_cluster_ip_reaches_all_unmasqueraded(self, world):
        assert self.make(world, 'Cluster')(world.pod, world.cluster_ip(41), 80) == self.all(world)

    @ExternalTrafficPolicy.KINDS
    def test_pod_reaches_all_masqueraded(self, world, kind):
        assert self.make(world, 'Cluster')(world.pod, *self.external(world, kind)) == self.all(world, masq=True)

    @ExternalTrafficPolicy.KINDS
    def test_outsider_reaches_all_masqueraded(self, world, kind):
        assert self.make(world, 'Cluster')(world.client, *self.external(world, kind)) == self.all(world, masq=True)

    @ExternalTrafficPolicy.KINDS
    def test_remote_endpoints_will_do(self, world, kind):
        flows = self.make(world, 'Cluster', world.remote(1))
        for source in (world.client, world.pod, world.node_ip):
            assert flows(source, *self.external(world, kind)) == to(world.shown(1, 1), masq=True)


class TestInternalTrafficPolicy:
    def make(self, world, policy, *endpoints):
        slices = [slice_of('ns1/svc1', list(endpoints))] if endpoints else []
        return world.rules(service('ns1/svc1', world.cluster_ip(41), internalTrafficPolicy=policy), *slices)

    def test_cluster_uses_all(self, world):
        flows = self.make(world, 'Cluster', world.local(1), world.remote(1), world.remote(2))
        assert flows(world.pod, world.cluster_ip(41), 80) == to(
            world.shown(0, 1), world.shown(1, 1), world.shown(1, 2))

    def test_local_uses_the_local_one(self, world):
        flows = self.make(world, 'Local', world.local(1), world.remote(1))
        assert flows(world.pod, world.cluster_ip(41), 80) == to(world.shown(0, 1))

    def test_local_uses_several_local_ones(self, world):
        flows = self.make(world, 'Local', world.local(1), world.local(2), world.remote(1))
        assert flows(world.pod, world.cluster_ip(41), 80) == to(world.shown(0, 1), world.shown(0, 2))

    def test_local_with_only_remote_ones_drops(self, world):
        flows = self.make(world, 'Local', world.remote(1))
        assert flows(world.pod, world.cluster_ip(41), 80) == DROPPED
        assert flows(world.node_ip, world.cluster_ip(41), 80) == DROPPED

    @pytest.mark.parametrize('policy', ['Cluster', 'Local'])
    def test_without_slices_refused(self, world, policy):
        assert self.make(world, policy)(world.pod, world.cluster_ip(41), 80) == REJECTED


TERMINATING = {'ready': False, 'serving': True, 'terminating': True}
GONE = {'ready': False, 'serving': False, 'terminating': True}


class TestTerminatingEndpointsTrafficPolicyLocal:
    def make(self, world, *endpoints):
        return world.rules(
            service('ns1/svc1', world.cluster_ip(41), ports(3001), [world.vip], type='LoadBalancer',
                    externalTrafficPolicy='Local', healthCheckNodePort=30000),
            slice_of('ns1/svc1', list(endpoints)))

    def test_local_ready_is_preferred(self, world):
        flows = self.make(world, world.local(1), world.local(2, **TERMINATING), world.remote(1, **TERMINATING))
        assert flows(world.pod, world.cluster_ip(41), 80) == to(world.shown(0, 1))
        assert flows(world.client, world.vip, 80) == to(world.shown(0, 1))

    def test_only_local_terminating_serves_external_traffic(self, world):
        flows = self.make(world, world.local(1, **TERMINATING), world.local(2, **GONE), world.remote(1))
        assert flows(world.pod, world.cluster_ip(41), 80) == to(world.shown(1, 1))
        assert flows(world.client, world.vip, 80) == to(world.shown(0, 1))

    def test_only_remote_terminating_drops_external_traffic(self, world):
        flows = self.make(world, world.remote(1, **TERMINATING), world.remote(2, **GONE))
        assert flows(world.pod, world.cluster_ip(41), 80) == to(world.shown(1, 1))
        assert flows(world.client, world.vip, 80) == DROPPED

    def test_nothing_usable_is_refused(self, world):
        flows = self.make(world, world.local(1, **GONE), world.remote(1, **GONE))
        assert flows(world.pod, world.cluster_ip(41), 80) == REJECTED
        assert flows(world.client, world.vip, 80) == REJECTED


class TestTerminatingEndpointsTrafficPolicyCluster:
    def make(self, world, *endpoints):
        return world.rules(
            service('ns1/svc1', world.cluster_ip(41), ports(3001), [world.vip], type='LoadBalancer'),
            slice_of('ns1/svc1', list(endpoints)))

    def check(self, world, flows, *targets):
        assert flows(world.pod, world.cluster_ip(41), 80) == to(*targets)
        assert flows(world.client, world.vip, 80) == to(*targets, masq=True)

    def test_ready_is_preferred(self, world):
        flows = self.make(world, world.local(1), world.local(2, **TERMINATING), world.remote(1),
                          world.remote(2, **GONE))
        self.check(world, flows, world.shown(0, 1), world.shown(1, 1))

    def test_all_serving_terminating_ones_without_ready(self, world):
        flows = self.make(world, world.local(1, **TERMINATING), world.local(2, **GONE), world.remote(1, **TERMINATING))
        self.check(world, flows, world.shown(0, 1), world.shown(1, 1))

    def test_remote_terminating_ones_will_do(self, world):
        flows = self.make(world, world.remote(1, **TERMINATING), world.remote(2, **GONE))
        self.check(world, flows, world.shown(1, 1))

    def test_nothing_usable_is_refused(self, world):
        flows = self.make(world, world.local(1, **GONE), world.remote(1, **GONE))
        assert flows(world.pod, world.cluster_ip(41), 80) == REJECTED
        assert flows(world.client, world.vip, 80) == REJECTED


class TestInternalExternalMasquerade:
    """Who is masqueraded: 10 flows to each of three Services (both policies Cluster, external Local, internal Local)."""
    SOURCES = {'pod': 'pod', 'node': 'node_ip', 'localhost': 'localhost', 'external': 'client'}
    #        source, destination          to all or to the local one, masqueraded
    CLUSTER = {('pod', 'cluster_ip'): ('all', False), ('pod', 'node_port'): ('all', True),
               ('pod', 'vip'): ('all', True), ('node', 'cluster_ip'): ('all', True),
               ('node', 'node_port'): ('all', True), ('localhost', 'node_port'): ('all', True),
               ('node', 'vip'): ('all', True), ('external', 'cluster_ip'): ('all', True),
               ('external', 'node_port'): ('all', True), ('external', 'vip'): ('all', True)}
    ETP_LOCAL = CLUSTER | {('pod', 'node_port'): ('all', False), ('pod', 'vip'): ('all', False),
                           ('external', 'node_port'): ('local', False), ('external', 'vip'): ('local', False)}
    ITP_LOCAL = CLUSTER | {('pod', 'cluster_ip'): ('local', False), ('node', 'cluster_ip'): ('local', True),
                           ('external', 'cluster_ip'): ('local', True)}
    TABLES = {'cluster': CLUSTER, 'external_local': ETP_LOCAL, 'internal_local': ITP_LOCAL}
    POLICY = {'cluster': {}, 'external_local': {'externalTrafficPolicy': 'Local', 'healthCheckNodePort': 30000},
              'internal_local': {'internalTrafficPolicy': 'Local'}}

    def make(self, world, policy, **how):
        return world.rules(service('ns1/svc1', world.cluster_ip(41), ports(3001), [world.vip], type='LoadBalancer',
                                   **self.POLICY[policy]),
                           slice_of('ns1/svc1', [world.local(1), world.remote(1)]), **how)

    def follow(self, world, flows, table):
        destinations = {'cluster_ip': (world.cluster_ip(41), 80), 'node_port': (world.node_ip, 3001),
                        'vip': (world.vip, 80)}
        for (source, where), (reach, masq) in table.items():
            destination = destinations[where] if source != 'localhost' else (world.localhost, 3001)
            targets = [world.shown(0, 1)] + ([world.shown(1, 1)] if reach == 'all' else [])
            expected = to(*targets, masq=masq)
            if source == 'localhost' and not world.v4:
                expected = UNTOUCHED
            got = flows(getattr(world, self.SOURCES[source]), *destination)
            assert got == expected, f'{source} to {where}'

    @pytest.mark.parametrize('policy', TABLES)
    def test_base(self, world, policy):
        self.follow(world, self.make(world, policy), self.TABLES[policy])

    @staticmethod
    def blind(table, policy):
        """Without a detector nobody is known to be a pod: nothing to a cluster IP is masqueraded, and pods are treated
        like outsiders."""
        table = {k: (reach, False if k[1] == 'cluster_ip' else masq) for k, (reach, masq) in table.items()}
        if policy == 'external_local':
            table |= {('pod', 'node_port'): ('local', False), ('pod', 'vip'): ('local', False)}
        return table

    @pytest.mark.parametrize('policy', TABLES)
    def test_no_detector(self, world, policy):
        self.follow(world, self.make(world, policy, detect=False), self.blind(self.TABLES[policy], policy))

    @pytest.mark.parametrize('detect', [True, False], ids=['detector', 'no_detector'])
    @pytest.mark.parametrize('policy', TABLES)
    def test_masquerade_all(self, world, policy, detect):
        table = self.TABLES[policy] if detect else self.blind(self.TABLES[policy], policy)
        table = {k: (reach, True if k[1] == 'cluster_ip' else masq) for k, (reach, masq) in table.items()}
        self.follow(world, self.make(world, policy, detect=detect, arguments=['--masquerade-all']), table)


class TestDetectors:
    """The other ways to tell pods from the rest see interfaces, not addresses."""

    def make(self, world, *arguments):
        return world.rules(service('ns1/svc1', world.cluster_ip(41)), slice_of('ns1/svc1', [world.remote(1)]),
                           detect=False, arguments=arguments)

    def test_bridge_interface(self, world):
        flows = self.make(world, '--detect-local-mode=BridgeInterface', '--pod-bridge-interface=cni0')
        assert flows(world.client, world.cluster_ip(41), 80, interface='cni0') == to(world.shown(1, 1))
        assert flows(world.client, world.cluster_ip(41), 80, interface='cni01') == to(world.shown(1, 1), masq=True)

    def test_interface_name_prefix(self, world):
        flows = self.make(world, '--detect-local-mode=InterfaceNamePrefix', '--pod-interface-name-prefix=veth')
        assert flows(world.client, world.cluster_ip(41), 80, interface='veth12') == to(world.shown(1, 1))
        assert flows(world.client, world.cluster_ip(41), 80, interface='eth0') == to(world.shown(1, 1), masq=True)


class TestSessionAffinity:
    def test_a_remembered_client_gets_its_endpoint(self, world):
        flows = world.rules(service('ns1/svc1', world.cluster_ip(41), sessionAffinity='ClientIP'),
                            slice_of('ns1/svc1', [world.local(1), world.remote(1)]))
        chain = f"KUBE-SEP-{oracle.digest('ns1/svc1:p80tcp' + world.shown(1, 1))}"
        assert flows(world.pod, world.cluster_ip(41), 80) == to(world.shown(0, 1), world.shown(1, 1))
        assert flows(world.pod, world.cluster_ip(41), 80, remembered=[chain]) == to(world.shown(1, 1))


class TestLoadBalancerIngressRouteTypeProxy:
    @pytest.mark.parametrize('mode,expected', [('Proxy', 'untouched'), ('VIP', 'served'), (None, 'served')])
    def test_ip_mode(self, world, mode, expected):
        ingress = {'ip': world.vip, **({'ipMode': mode} if mode else {})}
        flows = world.rules(service('ns1/svc1', world.cluster_ip(41), ports(3001), [ingress], type='LoadBalancer'),
                            slice_of('ns1/svc1', [world.remote(1)]))
        served = to(world.shown(1, 1), masq=True)
        assert flows(world.client, world.vip, 80) == (served if expected == 'served' else UNTOUCHED)


@pytest.mark.parametrize('way', ['externalIPs', 'status'])
@pytest.mark.parametrize('created', ['2026-01-01T00:00:00Z', '2026-12-01T00:00:00Z'])
class TestStolenClusterIP:
    """aaa/evil asks for the cluster IP of kube-dns: by an external IP or by its load balancer's status, older or younger."""

    def flows(self, world, way, created, dns=(), evil=None, **more):
        address = world.cluster_ip(10)
        ports = [{'name': 'dns', 'port': 53, 'protocol': 'UDP'}]
        theirs = [{'name': 'dns', 'port': 53, 'protocol': 'UDP'}, {'name': 'more', 'port': 54, 'protocol': 'UDP'}]
        victim = service('kube-system/kube-dns', [address], ports)
        victim['metadata']['creationTimestamp'] = '2026-06-01T00:00:00Z'
        spec = {'externalIPs': [address]} if way == 'externalIPs' else {'type': 'LoadBalancer'}
        thief = service('aaa/evil', [world.cluster_ip(66)], theirs,
                        [] if way == 'externalIPs' else [{'ip': address}], **spec, **more)
        thief['metadata']['creationTimestamp'] = created
        return world.rules(victim, slice_of('kube-system/kube-dns', dns, ports), thief,
                           slice_of('aaa/evil', [world.remote(9)] if evil is None else evil, theirs), contested=True)

    def test_it_goes_to_its_owner(self, world, way, created):
        flows = self.flows(world, way, created, [world.remote(1)])
        assert flows(world.pod, world.cluster_ip(10), 53, 'udp') == to(world.shown(1, 1, 53))
        assert flows(world.pod, world.cluster_ip(66), 53, 'udp') == to(world.shown(1, 9, 53))

    def test_it_is_refused_when_its_owner_has_no_endpoints(self, world, way, created):
        flows = self.flows(world, way, created)
        assert flows(world.pod, world.cluster_ip(10), 53, 'udp') == REJECTED

    def test_a_thief_without_endpoints_refuses_nothing(self, world, way, created):
        flows = self.flows(world, way, created, [world.remote(1)], evil=[])
        assert flows(world.pod, world.cluster_ip(10), 53, 'udp') == to(world.shown(1, 1, 53))

    def test_nor_do_its_source_ranges(self, world, way, created):
        ranges = {} if way == 'externalIPs' else {'loadBalancerSourceRanges': [world.pick('203.0.113.0/25', '2600::/16')]}
        flows = self.flows(world, way, created, [world.remote(1)], **ranges)
        assert flows(world.pod, world.cluster_ip(10), 53, 'udp') == to(world.shown(1, 1, 53))

    def test_another_port_of_it_is_served_as_kube_proxy_does(self, world, way, created):
        flows = self.flows(world, way, created, [world.remote(1)])
        assert flows(world.pod, world.cluster_ip(10), 54, 'udp').targets == (world.shown(1, 9, 54),)

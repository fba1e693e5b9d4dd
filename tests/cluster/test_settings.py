# SPDX-License-Identifier: Apache-2.0
"""Every setting that rules depend on: a fresh start over a cluster of everything, then a change, then another start."""
import pytest

import proxies
from lab.objects import Pod, addresses, away, here, port
from proxies import Pair
from world import World

CIDRS = '--cluster-cidr=10.244.0.0/16,fd00:10:244::/48'
SETTINGS = {
    'no detector': [],
    'cluster CIDR of both families': [CIDRS],
    'cluster CIDR of IPv4': ['--cluster-cidr=10.244.0.0/16'],
    'cluster CIDR of IPv6': ['--cluster-cidr=fd00:10:244::/48', '--bind-address=::'],
    'cluster CIDR with host bits': ['--cluster-cidr=10.244.5.6/16'],
    'node CIDR': ['--detect-local-mode=NodeCIDR'],
    'bridge': ['--detect-local-mode=BridgeInterface', '--pod-bridge-interface=cni0'],
    'interface prefix': ['--detect-local-mode=InterfaceNamePrefix', '--pod-interface-name-prefix=veth'],
    'masquerade all': ['--masquerade-all', CIDRS],
    'masquerade all, no detector': ['--masquerade-all'],
    'masquerade bit 0': ['--iptables-masquerade-bit=0', CIDRS],
    'masquerade bit 31': ['--iptables-masquerade-bit=31', CIDRS],
    'localhost node ports off': ['--iptables-localhost-nodeports=false', CIDRS],
    'node ports on some addresses': ['--nodeport-addresses=203.0.113.0/24,2001:db8:3::/64', CIDRS],
    'node ports on all addresses there are': [
        '--nodeport-addresses=192.0.2.0/24,203.0.113.0/24,127.0.0.0/8,2001:db8::/32,::1/128', CIDRS],
    'node ports on loopback only': ['--nodeport-addresses=127.0.0.0/8', CIDRS],
    'node ports on loopback only, localhost off': [
        '--nodeport-addresses=127.0.0.0/8', '--iptables-localhost-nodeports=false', CIDRS],
    'node ports on one family': ['--nodeport-addresses=203.0.113.11/32', CIDRS],
    'node ports nowhere': ['--nodeport-addresses=198.18.0.0/15', CIDRS],
    'node ports, a zero CIDR among others': ['--nodeport-addresses=203.0.113.0/24,0.0.0.0/0,::/0', CIDRS],
    'node ports on the primary addresses': ['--nodeport-addresses=primary', CIDRS],
    'external IPs not allowed': ['--feature-gates=AllowServiceExternalIPs=false', CIDRS],
    'bind address of another network': ['--bind-address=203.0.113.11', CIDRS],
    'bind address of IPv6': ['--bind-address=2001:db8:3::11', CIDRS],
}


def everything(w):
    """Each kind of Service, in each condition that leads to different rules; no two ask for the same address, since kube-proxy writes
    the rules of both then, and Portolan those of the older one."""
    ranges = ['203.0.113.0/24', '2001:db8:3::/64']
    kinds = {
        'plain': {}, 'inner': {'internalTrafficPolicy': 'Local'}, 'sticky': {'sessionAffinity': 'ClientIP'},
        'external': {'externalIPs': 2}, 'node': {'type': 'NodePort'},
        'node-local': {'type': 'NodePort', 'externalTrafficPolicy': 'Local', 'sessionAffinity': 'ClientIP'},
        'balancer': {'type': 'LoadBalancer', 'ingress': 1},
        'ranges': {'type': 'LoadBalancer', 'ingress': 1, 'loadBalancerSourceRanges': ranges},
        'local': {'type': 'LoadBalancer', 'ingress': 1, 'externalTrafficPolicy': 'Local',
                  'internalTrafficPolicy': 'Local', 'externalIPs': 1,
                  'loadBalancerSourceRanges': ['192.0.2.0/24', '2001:db8:2::/64']},
    }
    pods = {'both': [here(1), away(2), away(3)], 'away': [away(2), away(3)], 'none': [],
            'ending': [here(1, state='terminating'), away(2, state='notready'), Pod(4, None)]}
    numbers = iter(range(20, 200))
    for kind, spec in kinds.items():
        for where, list_ in pods.items():
            asked = {'externalIPs': 'external', 'ingress': 'vip'}
            own = {name: addresses(asked[name], [next(numbers) for _ in range(value)]) if name in asked else value
                   for name, value in spec.items()}
            w.service(f'{kind}-{where}', port('http'), port('dns', 'UDP', 53), **own)
            w.pods(f'{kind}-{where}', *list_, ports=[port('http', number=8080), port('dns', 'UDP', 5353)])


@pytest.fixture(scope='module')
def filled(stage):
    class Plain:
        api = stage.api
    world = World(Plain, 'everything')
    everything(world)
    return world


@pytest.mark.parametrize('name', SETTINGS)
def test_setting(stage, filled, name):
    filled.service('plain-both', port('http'), port('dns', 'UDP', 53))
    with Pair(stage, *SETTINGS[name]) as pair:
        pair.agree()
        filled.service('plain-both', port('http'), port('dns', 'UDP', 53), type='NodePort',
                       externalIPs=addresses('external', [9]))
        pair.agree()


@pytest.mark.parametrize('writer', ['netlink', 'restore'])
def test_every_way_of_writing_rules(stage, filled, writer):
    """A start, changes, another start: whatever the default is for all other tests."""
    with Pair(stage, CIDRS, writer=writer) as pair:
        filled.service('plain-both', port('http'), type='NodePort')
        pair.agree()
        filled.service('plain-both', port('http'), port('dns', 'UDP', 53), externalIPs=addresses('external', [9]))
        pair.agree()
        pair.restart('portolan')
        pair.agree()


def test_no_drop_of_invalid_packets_where_the_host_is_liberal(stage, filled):
    pair = Pair(stage, CIDRS)
    for proxy in pair.proxies:
        assert not proxy.namespace.sysctl(net__netfilter__nf_conntrack_tcp_be_liberal=1)
    with pair:
        assert '--ctstate INVALID' not in pair.agree()


def test_a_start_over_rules_of_the_other(stage, filled):
    """Each takes over what the other left, in the same namespace."""
    with Pair(stage, CIDRS) as pair:
        pair.agree()
        filled.remove('Service', 'plain-none', 'ranges-both')
        pair.swap()
        pair.agree()


def test_a_difference_is_seen(stage, filled, monkeypatch):
    monkeypatch.setattr(proxies, 'PERSISTENCE', 0)
    pair, other = Pair(stage, CIDRS), Pair(stage, CIDRS, '--masquerade-all')
    pair.proxies[1] = other.proxies[1]
    with pair, pytest.raises(AssertionError, match='kube-proxy and Portolan differ'):
        pair.agree()

# SPDX-License-Identifier: Apache-2.0
"""Every setting that rules depend on: a fresh start over a cluster of everything, then a change, then another start."""
import pytest

import proxies
from lab.objects import addresses, port
from proxies import Pair

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
    'node ports on the primary addresses and localhost': ['--nodeport-addresses=primary,localhost', CIDRS],
    'node ports on localhost': ['--nodeport-addresses=localhost', CIDRS],
    'node ports on all, by a word beside a CIDR': ['--nodeport-addresses=203.0.113.0/24,all', CIDRS],
    'external IPs not allowed': ['--feature-gates=AllowServiceExternalIPs=false', CIDRS],
    'bind address of another network': ['--bind-address=203.0.113.11', CIDRS],
    'bind address of IPv6': ['--bind-address=2001:db8:3::11', CIDRS],
}


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

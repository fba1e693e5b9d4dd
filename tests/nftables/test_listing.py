# SPDX-License-Identifier: Apache-2.0
"""What people see: `nft list table` works, says what is what, and can be loaded again.

Some shapes of a map make nft 1.0.6 end with a failed assertion, and then a node's rules cannot be looked at at all. So
every container has two elements or more here.
"""
import json

import pytest

from lab import nft_dump as dump
from lab.daemon import program
from lab.manifests import Service, object_of
from lab.nft_evaluator import Table
from lab.topology import Namespace

FAMILIES = (4, 6)
RANGES = ['192.0.2.0/24', '203.0.113.0/25', '2001:db8:2::/64', '2001:db8:113::/120']


@pytest.fixture(scope='module')
def full(clusters):
    """Every container has elements, those that packets write included."""
    cluster = clusters('--nodeport-addresses=192.0.2.0/24,192.168.9.0/24,2001:db8:2::/64,fd00:192:168:9::/64')
    both = cluster.pods + cluster.remote_pods
    services = [Service(f'plain-{n}', 10 + n, both) for n in range(2)]
    for n in range(2):
        services += [
            Service(f'inner-{n}', 20 + n, both, internalTrafficPolicy='Local'),
            Service(f'balancer-{n}', 30 + n, both, kind='LoadBalancer', external=True, loadBalancerSourceRanges=RANGES),
            Service(f'sticky-{n}', 40 + n, both, kind='LoadBalancer', affinity=100 + n, externalTrafficPolicy='Local'),
            Service(f'none-{n}', 50 + n, [], kind='NodePort'),
        ]
    cluster.serve(*services)
    for service in services:
        if service.affinity:
            for family in FAMILIES:
                sources = [cluster.lab.distant(family, host) for host in range(1, 4)]
                cluster.client.request(service.load_balancer_ip[family], 80, sources=sources)
    for name in dump.NAMES.values():  # as if a map were full
        cluster.node.run('nft', 'add', 'element', name, 'kube-proxy', 'full-clients', '{ 1000:2 timeout 1h, 1000:3 timeout 1h }')
    return cluster


def numbers(namespace, family):
    """Of service ports with affinity."""
    names = dump.read(namespace, family).containers
    return [name.removeprefix('clients-') for name in names if name.startswith('clients-')]


def listing(namespace, family):
    code, out, err = namespace.run('nft', 'list', 'table', dump.NAMES[family], 'kube-proxy', check=False)
    assert code == 0, f'nft ended with {code}: {err}'
    return out


def test_no_container_is_empty_here(full, family):
    table = dump.read(full.node, family)
    few = [name for name, container in table.containers.items() if len(container.values) < 2]
    assert few == []


def test_a_listing_names_services_and_explains_itself(full, family):
    text = listing(full.node, family)
    for words in ('comment "default/plain-0:main" : goto pick-5', 'goto external-local-sticky',
                  'comment "default/none-1:main" : goto reject-chain'):
        assert words in text, words
    table = dump.read(full.node, family)
    assert all(container.comment for container in table.containers.values())
    bare = [name for name, chain in table.chains.items() if not chain.get('comment') and 'hook' not in chain]
    # nft 1.0.6 has no comment of a chain in its JSON, but in its text
    assert all(f'chain {name} {{\n\t\tcomment "' in text for name in bare)


def test_every_command_of_nft_lists_it(full, family):
    name = dump.NAMES[family]
    number = numbers(full.node, family)[0]
    own = [f'remember-{number}', f'recall-{number}', f'local-recall-{number}']
    for words in (['list', 'ruleset'], ['-t', 'list', 'table', name, 'kube-proxy'], ['-a', 'list', 'table', name, 'kube-proxy'],
                  ['-n', 'list', 'table', name, 'kube-proxy'], ['-s', 'list', 'ruleset'], ['-j', 'list', 'ruleset'],
                  ['list', 'sets'], ['list', 'maps'], ['list', 'chains'],
                  *(['list', 'chain', name, 'kube-proxy', chain] for chain in ('services', 'pick-5', *own)),
                  *(['list', 'map', name, 'kube-proxy', one] for one in ('endpoints', f'clients-{number}', 'service-ips'))):
        code, _out, err = full.node.run('nft', *words, check=False)
        assert code == 0, f'nft {" ".join(words)}: {code} {err}'


def without_time(text):
    """Without what goes on while we look: how long entries of packets still have to live."""
    return [line for line in text.splitlines() if ' expires ' not in line and 'elements = { ' not in line or 'timeout' not in line]


def reloaded(full, family, text):
    namespace = Namespace(full.lab, f'reload-{family}')
    code, _out, err = namespace.run('nft', '-f', '-', stdin=text, check=False)
    assert code == 0, f'nft -f ended with {code}: {err[-2000:]}'
    return namespace


def test_a_listing_can_be_loaded_again(full, family):
    text = listing(full.node, family)
    namespace = reloaded(full, family, text)
    again = listing(namespace, family)
    before, after = Table(json.loads(as_json(full.node, family))), Table(json.loads(as_json(namespace, family)))
    assert dump.differences(dump.canonical(before), dump.canonical(after)) == []
    assert before.rules == after.rules
    assert without_time(text) == without_time(again)


def as_json(namespace, family):
    return namespace.run('nft', '-j', 'list', 'table', dump.NAMES[family], 'kube-proxy')


# -- long names


def service_of(number, size):
    """A Service without endpoints, and the name of its port in rules, which has so many bytes."""
    namespace, name = 'n' * 63, f's{number}'.ljust(63 if size > 188 else 60, 's')
    port = 'p' * (size - len(f'{namespace}/{name}:'))
    made = object_of('Service', 'v1', name, namespace, spec={
        'type': 'NodePort', 'clusterIPs': [f'10.96.7.{number}', f'fd00:10:96::7{number}'],
        'ports': [{'name': port, 'port': 80, 'protocol': 'TCP', 'nodePort': 31700 + number}]})
    return made, f'{namespace}/{name}:{port}'


def test_comments_are_cut_to_what_nft_takes(clusters, family):
    """128 bytes; kube-proxy v1.36 wrote longer ones, and with the first of them no rule of the family could be written."""
    cluster = clusters()
    made = [service_of(number, size) for number, size in enumerate((127, 128, 129, 191), 1)]
    assert [len(name) for _object, name in made] == [127, 128, 129, 191]
    cluster.serve(extra=[one for one, _name in made])
    text = listing(cluster.node, family)
    for _object, name in made:
        assert text.count(f'comment "{name[:128]}" : goto reject-chain') == 2, 'its cluster IP and its node port'
    code, out, err = cluster.node.run(program(), 'diff', *cluster.daemon.flags, check=False)
    assert code == 0, out + err
    script = cluster.node.run(program(), 'render', *cluster.daemon.flags, f'--ip-family=ipv{family}')
    again = listing(reloaded(cluster, family, script), family)
    for _object, name in made:
        assert again.count(f'comment "{name[:128]}" : goto reject-chain') == 2

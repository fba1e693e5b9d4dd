# SPDX-License-Identifier: Apache-2.0
"""How many rules a cluster costs, and the shapes that depend on its size."""
import pytest

import oracle
from cases import Case
from harness import HERE, endpoint, node_object, run_render, same, service, slice_of, write_objects
from lab.iptables_evaluator import parse, sort_rules

FLAGS = ['--node-name=node', '--cluster-cidr=10.0.0.0/8']


def cluster(kind, services, endpoints):
    objects = [node_object('node', ['192.168.0.2'])]
    for number in range(services):
        key, more, status = f'ns{number}/svc{number}', {}, ()
        port = {'name': 'p80', 'port': 80, 'protocol': 'TCP'}
        if kind == 'LoadBalancer':
            status = [f'1.2.{number}.4']
            more = {'type': kind, 'externalIPs': [f'1.2.{number}.3'], 'loadBalancerSourceRanges': ['203.0.113.0/25']}
            port['nodePort'] = 30000 + number
        objects.append(service(key, f'172.30.{number}.1', [port], status, **more))
        if endpoints:
            objects.append(slice_of(key, [endpoint(f'10.{number}.{e // 250}.{e % 250 + 1}') for e in range(endpoints)]))
    return objects


def render(folder, *size):
    return run_render(write_objects(folder, cluster(*size)), 4, FLAGS)


CLUSTER_IP = {(0, 0): (4, 5), (1, 0): (5, 5), (1, 1): (4, 10), (1, 2): (4, 13), (1, 10): (4, 37), (10, 0): (14, 5),
              (10, 1): (4, 55), (10, 2): (4, 85), (10, 10): (4, 325)}
LOAD_BALANCER = {(0, 0): (4, 5), (1, 0): (8, 5), (1, 1): (5, 18), (1, 2): (5, 21), (1, 10): (5, 45), (10, 0): (44, 5),
                 (10, 1): (14, 135), (10, 2): (14, 165), (10, 10): (14, 405)}


class TestNumberIptablesRules:
    @staticmethod
    def count(text):
        tables = parse(text)
        return len(tables['filter'].rules), len(tables['nat'].rules)

    @pytest.mark.parametrize('size', CLUSTER_IP, ids=lambda s: f'{s[0]}x{s[1]}')
    def test_cluster_ip(self, size, tmp_path):
        assert self.count(render(tmp_path, 'ClusterIP', *size)) == CLUSTER_IP[size]

    @pytest.mark.parametrize('size', LOAD_BALANCER, ids=lambda s: f'{s[0]}x{s[1]}')
    def test_load_balancer(self, size, tmp_path):
        assert self.count(render(tmp_path, 'LoadBalancer', *size)) == LOAD_BALANCER[size]


class TestLargeCluster:
    """Above 1,000 endpoints the rules of endpoints lose their comments, and only those."""

    @pytest.mark.parametrize('endpoints,comments', [(500, True), (501, False)], ids=['1000', '1002'])
    def test_comments_go_above_a_thousand_endpoints(self, endpoints, comments, tmp_path):
        objects = cluster('LoadBalancer', 2, endpoints)
        text = run_render(write_objects(tmp_path, objects), 4, FLAGS)
        same(oracle.render(objects, oracle.settings_from(FLAGS), 4), text)
        of_endpoints = [r for r in parse(text)['nat'].rules if 'KUBE-SEP-' in r]
        assert len(of_endpoints) == 2 * 3 * endpoints
        assert all(('--comment' in r) == comments for r in of_endpoints)


def test_worked_example_is_that_of_the_specification():
    """Written down by hand in another order of services; order between services is free."""
    case = Case('worked-example')
    book = (HERE / 'worked_example.restore').read_text()
    same(sort_rules(book), sort_rules(run_render(case.manifests, 4, case.arguments)))


def test_probabilities_have_ten_decimals_and_grow(tmp_path):
    text = render(tmp_path, 'ClusterIP', 1, 200)
    shares = [r.split('--probability ')[1].split()[0] for r in parse(text)['nat'].rules if '--probability' in r]
    assert len(shares) == 199 and all(len(s) == 12 for s in shares)
    assert all(float(a) < float(b) for a, b in zip(shares, shares[1:]))

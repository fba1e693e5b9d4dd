# SPDX-License-Identifier: Apache-2.0
"""Random manifests: Portolan and the oracle must write the same text, byte for byte.

Each seed makes a cluster of its own. A failure names the seed; `PORTOLAN_SEED=N pytest tests/golden/test_random.py` runs
that one alone.
"""
import random
import re

import pytest

import oracle
from harness import run_render, same, write_objects
from lab.iptables_evaluator import check_jumps
from lab.objects import NODE, node
from lab.random_cluster import COUNTS, ZONES, Cluster
from lab.seeds import seeds

SEEDS = seeds(range(1, 61))


class Drawn:
    """A cluster with its Node in any order, and flags for it."""

    def __init__(self, seed, **more):
        self.draw = random.Random(seed)
        self.objects = Cluster(seed, self.draw.randint(0, 12), counts=(*COUNTS, 7), **more).objects()
        self.objects.append(node(self.draw.choice([None, *ZONES]), self.draw.choice([
            ['192.0.2.11'], ['192.0.2.11', '2001:db8::11'], ['2001:db8::11'], []])))
        self.draw.shuffle(self.objects)

    def chance(self, percent):
        return self.draw.random() * 100 < percent

    def arguments(self):
        chosen = [f'--node-name={NODE}', self.draw.choice([
            '--cluster-cidr=10.244.0.0/16,fd00:10:244::/48', '--cluster-cidr=10.244.0.0/16', '--masquerade-all',
            '--detect-local-mode=NodeCIDR', '--masquerade-all=false'])]
        if self.chance(15):
            chosen += ['--detect-local-mode=BridgeInterface', '--pod-bridge-interface=cni0']
        if self.chance(15):
            chosen.append(f'--iptables-masquerade-bit={self.draw.randint(0, 31)}')
        if self.chance(15):
            chosen.append('--iptables-localhost-nodeports=false')
        if self.chance(10):
            chosen.append('--feature-gates=AllowServiceExternalIPs=false')
        if self.chance(10):
            chosen.append(f"--bind-address={self.draw.choice(['203.0.113.5', '2001:db8::5'])}")
        return chosen


@pytest.mark.parametrize('seed', SEEDS)
def test_what_is_contested_goes_where_the_oracle_says(seed, tmp_path):
    cluster = Drawn(seed, contested=True)
    arguments = cluster.arguments()
    write_objects(tmp_path, cluster.objects)
    objects = oracle.load(tmp_path)
    for family in oracle.FAMILIES:
        expected = oracle.render(objects, oracle.settings_from(arguments), family)
        print(f'seed {seed}: IPv{family}, {" ".join(arguments)}')
        same(expected, run_render(tmp_path, family, arguments), ('oracle', 'portolan render'))
        entries = [re.sub('--comment "[^"]*"|-j .*', '', line) for line in expected.splitlines()
                   if line.startswith('-A KUBE-SERVICES ') and 'cluster IP' in line]
        assert len(entries) == len(set(entries))


@pytest.mark.parametrize('seed', SEEDS)
def test_portolan_agrees_with_the_oracle(seed, tmp_path):
    cluster = Drawn(seed)
    arguments = cluster.arguments()
    write_objects(tmp_path, cluster.objects)
    objects = oracle.load(tmp_path)
    for family in oracle.FAMILIES:
        expected = oracle.render(objects, oracle.settings_from(arguments), family)
        print(f'seed {seed}: IPv{family}, {" ".join(arguments)}')
        same(expected, run_render(tmp_path, family, arguments), ('oracle', 'portolan render'))
        same(oracle.save(expected, family), run_render(tmp_path, family, arguments, 'save'), ('oracle', 'portolan render'))
        if 'AllowServiceExternalIPs=false' not in ' '.join(arguments):
            assert check_jumps(expected) == []

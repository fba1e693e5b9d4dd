# SPDX-License-Identifier: Apache-2.0
"""Large cluster mode: more than 1000 endpoints. See rules.py for what cannot be compared there."""
import re

import pytest

import sequences
from lab.objects import away, here
from proxies import Pair
from stage import CLUSTER_CIDR
from world import World

FLAGS = (f'--cluster-cidr={CLUSTER_CIDR}', '--iptables-sync-period=2s')


class Plain:
    """A world needs only the API server, as long as nobody is started again."""

    def __init__(self, api):
        self.api = api


@pytest.fixture
def crowd(stage):
    """998 endpoints. The marker has one, and IPv4 has one more, of the API server: just at the limit."""
    world = World(Plain(stage.api), 'crowd')
    world.service('small', type='NodePort', externalTrafficPolicy='Local', sessionAffinity='ClientIP')
    world.pods('small', here(1001), away(1002))
    for number in range(10):
        world.service(f'big-{number}')
        world.pods(f'big-{number}', *(away(number * 100 + i) for i in range(100 if number else 96)))
    yield world
    world.close()


def comments(listing):
    return len(re.findall(r'--comment "crowd/\S+ -> ', listing))


def test_at_the_limit_and_above(stage, crowd):
    with Pair(stage, *FLAGS) as pair:
        # The small one has two rules for each endpoint in the cluster's chain and two in the local one.
        assert comments(pair.agree()) == 2 * (996 + 2 * 2 + 2)
        crowd.service('more')
        # One more than it takes: while the marker changes its port kube-proxy does not count its endpoint.
        crowd.pods('more', away(1010), away(1011), away(1012))
        assert '"crowd/more:http -> ' not in pair.agree(large=True)
        crowd.remove('Service', 'big-3')
        pair.agree(large=True)
        crowd.pods('big-4', away(1))
        pair.agree(large=True)


def test_a_start_in_large_mode_writes_no_comments(stage, crowd):
    crowd.service('more')
    crowd.pods('more', *(away(n) for n in range(1010, 1020)))
    with Pair(stage, *FLAGS) as pair:
        assert comments(pair.agree()) == 0
        crowd.pods('more', *(away(n) for n in range(1010, 1021)))
        assert comments(pair.agree(large=True)) == 0
        crowd.remove('Service', 'big-3', 'big-4')
        pair.agree(large=True)


def test_random_changes_in_large_mode(stage, crowd):
    crowd.service('more')
    crowd.pods('more', *(away(n) for n in range(1010, 1030)))
    assert sequences.run(stage, 7, services=30, steps=15, large=True, flags=FLAGS) == 15

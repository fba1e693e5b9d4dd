# SPDX-License-Identifier: Apache-2.0
"""Shares are even, and a client stays where it was, with as many endpoints and clients as a large cluster has.

Endpoints are addresses of one namespace, which all reach the same socket: it sees the address that was asked for. A
wrong share is one that a fair choice would give less than once in 10^10 runs.
"""
import math

import pytest

from spray import Spray


def upper_tail(value, freedom):
    """A bound for the chance that chi-square is larger (Laurent and Massart): value = k + 2 sqrt(k t) + 2 t."""
    if value <= freedom:
        return 1.0
    root = (-math.sqrt(freedom) + math.sqrt(freedom + 2 * (value - freedom))) / 2
    return math.exp(-root * root)


def is_fair(counts, total, size):
    expected = total / size
    value = sum((counts.get(i, 0) - expected) ** 2 / expected for i in range(size))
    return upper_tail(value, size - 1) > 1e-10


@pytest.fixture(scope='module')
def spray(clusters):
    return Spray(clusters(pods=1, remote_pods=1))


@pytest.mark.parametrize('size', [1, 2, 3, 7, 50, 1000])
def test_every_endpoint_has_the_same_share(spray, size, family):
    spray.serve(size)
    total = max(400, 20 * size)
    answers = spray.ask(family, clients=1, flows=total)
    assert len(answers) == total
    counts = {}
    for endpoint in answers.values():
        counts[endpoint] = counts.get(endpoint, 0) + 1
    assert set(counts) <= set(range(size))
    assert is_fair(counts, total, size), counts


def test_an_unfair_choice_is_seen():
    assert not is_fair({i: 200 if i == 0 else 20 for i in range(50)}, 1180, 50)
    assert not is_fair({0: 700, 1: 300}, 1000, 2)
    assert not is_fair({i: 20 for i in range(1, 1000)} | {1: 400}, 20360, 1000)
    assert is_fair({i: 20 for i in range(50)}, 1000, 50)


def test_ten_thousand_clients_stay_where_they_were(spray, family):
    clients = 10000
    spray.serve(50, affinity=10800)
    first = spray.ask(family, clients=clients, flows=1)
    assert len(first) == clients
    counts = {i: sum(1 for endpoint in first.values() if endpoint == i) for i in range(50)}
    assert is_fair(counts, clients, 50), counts
    for change in ('nothing', 'restart', 'an endpoint more'):
        if change == 'restart':
            spray.restart()
        elif change == 'an endpoint more':
            spray.serve(51, affinity=10800)
        again = spray.ask(family, clients=clients, flows=1)
        moved = [key for key in first if again.get(key) != first[key]]
        assert not moved, f'{change}: {len(moved)} clients moved'
    check_leaving(spray, family, clients, first)


def check_leaving(spray, family, clients, first):
    """The endpoints from 25 on go: their clients move, all others stay."""
    spray.serve(25, affinity=10800)
    again = spray.ask(family, clients=clients, flows=1)
    assert len(again) == clients and set(again.values()) <= set(range(25))
    assert [key for key in first if first[key] < 25 and again[key] != first[key]] == []
    third = spray.ask(family, clients=clients, flows=1)
    assert third == again

# SPDX-License-Identifier: Apache-2.0
"""Rules that change all the time, under clients that connect all the time: no connection fails.

What is counted are syncs that the daemon did, so a fast machine does not test less. PORTOLAN_HAMMER=N makes N of them.
"""
import os
import random
import re

import pytest

from lab.check import describe, names, served
from lab.manifests import Service
from lab.topology import NODE

SYNCS = int(os.environ.get('PORTOLAN_HAMMER', '1000'))
RESTARTS = max(6, SYNCS // 250)
DONE = re.compile(r'"Sync done" ipFamily="IPv[46]"')


@pytest.fixture
def cluster(clusters):
    """The fourth pod is a client only."""
    return clusters(pods=4)


def ways_in(cluster, web, family):
    return [(cluster.pods[3], web.cluster_ip[family], 80), (cluster.client, NODE[family], web.node_port),
            (cluster.client, web.load_balancer_ip[family], 80)]


def test_groups_are_resized_without_a_failed_connection(cluster, loads):
    """Between one endpoint and five, by any way in, policies and affinity switched now and then."""
    draw, pods = random.Random(1), cluster.pods[:3] + cluster.remote_pods
    web = Service('web', 90, pods, kind='LoadBalancer')
    cluster.serve(web)
    running = [loads(*way) for family in (4, 6) for way in ways_in(cluster, web, family)]
    since, writes = len(cluster.daemon.log.lines), 0
    while sum(1 for line in cluster.daemon.log.lines[since:] if DONE.search(line)) < SYNCS:
        web.pods = draw.sample(pods, draw.randint(1, len(pods)))
        if writes % 50 == 49:
            web.affinity = draw.choice([0, 100])
        cluster.daemon.write_services(web)
        writes += 1
        if writes % 20 == 0:
            cluster.daemon.wait_in_force()
    web.pods, web.affinity = pods, 0
    cluster.serve(web)
    for load in running:
        load.wait(20)
    for answers in [load.stop() for load in running]:
        assert served(answers) == names(pods), describe(answers)
    failures = cluster.daemon.log.find(r'"Sync failed', since)
    assert not failures, failures


def test_members_of_affinity_go_without_a_failed_connection(cluster, loads):
    """Clients that are endpoints themselves: one that is sent to itself, after it was taken away, hears nothing."""
    draw, pods = random.Random(2), cluster.pods[:3]
    web = Service('web', 93, pods, affinity=100)
    cluster.serve(web)
    running = [loads(pod, web.cluster_ip[family], 80) for family in (4, 6) for pod in pods]
    since, writes = len(cluster.daemon.log.lines), 0
    while sum(1 for line in cluster.daemon.log.lines[since:] if DONE.search(line)) < SYNCS // 3:
        web.pods = draw.sample(pods, draw.randint(1, len(pods)))
        cluster.daemon.write_services(web)
        writes += 1
        if writes % 20 == 0:
            cluster.daemon.wait_in_force()
    for answers in [load.stop() for load in running]:
        assert served(answers) == names(pods), describe(answers)
    failures = cluster.daemon.log.find(r'"Sync failed', since)
    assert not failures, failures


def test_restarts_under_load_lose_neither_connections_nor_memory(cluster, loads):
    web = Service('web', 91, cluster.pods[:3], kind='LoadBalancer')
    sticky = Service('sticky', 92, cluster.pods[:3] + cluster.remote_pods, kind='LoadBalancer', affinity=10800)
    cluster.serve(web, sticky)
    running = [loads(*way) for family in (4, 6) for way in ways_in(cluster, web, family)]
    bound = [loads(cluster.client, sticky.load_balancer_ip[family], 80, source=cluster.lab.distant(family, host))
             for family in (4, 6) for host in (1, 2, 3)]
    for number in range(RESTARTS):
        (cluster.daemon.kill if number % 2 else cluster.daemon.stop)()
        cluster.daemon.start()
        for load in running + bound:
            load.wait(1)
    for answers in [load.stop() for load in running]:
        assert served(answers) <= names(cluster.pods), describe(answers)
    for answers in [load.stop() for load in bound]:
        assert len(served(answers)) == 1, describe(answers)

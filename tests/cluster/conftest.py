# SPDX-License-Identifier: Apache-2.0
"""kube-proxy and Portolan side by side, below a real API server.

A test file has one control plane; its tests start the pairs of proxies that they need. Where there is no Go tool chain
the tests are skipped as they are where there are no namespaces.
"""
import pytest

from lab import objects
from lab.required import made_or_skipped
from stage import Stage
from world import World, everything


@pytest.fixture(scope='module')
def stage():
    with made_or_skipped(Stage) as stage:
        stage.api.create(objects.node())
        yield stage


@pytest.fixture(scope='module')
def filled(stage):
    """A World with each kind of Service."""
    class Plain:
        api = stage.api
    world = World(Plain, 'everything')
    everything(world)
    return world

# SPDX-License-Identifier: Apache-2.0
"""The nftables mode beyond what the traffic tests of all modes show.

Where the machine gives us no namespaces the tests are skipped, with the reason; PORTOLAN_LAB_REQUIRED=1 makes that a
failure.
"""
import os
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
sys.path[:0] = [TESTS, HERE, os.path.join(TESTS, 'golden')]

from lab.cluster import Cluster  # noqa: E402
from lab.daemon import program  # noqa: E402
from lab.topology import Refused  # noqa: E402


def pytest_sessionstart():
    if not os.access(program(), os.X_OK):
        pytest.exit(f'there is no program {program()}: build it, or set PORTOLAN', returncode=1)


@pytest.fixture(scope='module')
def clusters():
    """clusters(flags, pods=..., ...) is a running Cluster in nftables mode, the same one for the same words."""
    made = {}

    def get(*flags, mode='nftables', **more):
        key = flags, mode, tuple(sorted(more.items()))
        if key not in made:
            try:
                made[key] = Cluster(*flags, mode=mode, **more)
            except Refused as refusal:
                if os.environ.get('PORTOLAN_LAB_REQUIRED'):
                    raise
                pytest.skip(str(refusal))
        made[key].repair()
        return made[key]

    yield get
    for cluster in made.values():
        cluster.close()


@pytest.fixture
def cluster(clusters):
    """Three pods here, two elsewhere."""
    return clusters()


@pytest.fixture(params=[4, 6], ids=['IPv4', 'IPv6'])
def family(request):
    return request.param

# SPDX-License-Identifier: Apache-2.0
"""What all suites share; tests/README.md explains it. A suite's own conftest.py says what is special about that suite."""
import contextlib
import os
import sys

import pytest

TESTS = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, TESTS)

from lab.cluster import Cluster  # noqa: E402
from lab.daemon import program  # noqa: E402
from lab.host import Host  # noqa: E402
from lab.required import made_or_skipped  # noqa: E402


def pytest_sessionstart():
    if not os.access(program(), os.X_OK):
        pytest.exit(f"there is no program {program()}: build it, or set PORTOLAN", returncode=1)


@pytest.fixture(params=[4, 6], ids=["IPv4", "IPv6"])
def family(request):
    return request.param


@pytest.fixture(scope="module")
def clusters(mode):
    """clusters(flags, pods=..., ...) is a running Cluster in the suite's mode, the same one for the same words."""
    made = {}

    def get(*flags, **more):
        key = flags, tuple(sorted(more.items()))
        if key not in made:
            made[key] = made_or_skipped(Cluster, *flags, **{"mode": mode, **more})
        made[key].repair()
        return made[key]

    yield get
    for cluster in made.values():
        cluster.close()


@pytest.fixture
def cluster(clusters):
    """Three pods here, two elsewhere, and the flags that most clusters have."""
    return clusters()


@pytest.fixture
def loads():
    """loads(place, address, port, ...) is a load that has begun, and is over when the test is."""
    running = []

    def begin(place, *target, **more):
        running.append(place.load(*target, **more))
        running[-1].wait(5)
        return running[-1]

    yield begin
    for one in running:
        if one.running:
            one.stop()


@pytest.fixture(scope="module")
def hosts():
    """hosts() is a Host whose daemon is not started yet."""
    with contextlib.ExitStack() as stack:
        yield lambda: stack.enter_context(made_or_skipped(Host))


@pytest.fixture
def host(hosts):
    """One for this test alone."""
    return hosts()

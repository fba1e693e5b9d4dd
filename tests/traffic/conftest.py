# SPDX-License-Identifier: Apache-2.0
"""Real packets through rules that Portolan wrote.

Every test file has labs of its own. Tests of a file share a lab for each set of flags and tell it what to serve,
which replaces what the test before had; so the daemon also lives through many changes.

Every test runs in each proxy mode, or in those that PORTOLAN_TEST_MODES=iptables,nftables names. PORTOLAN_TEST_WRITER=restore
has the rules of iptables mode written by iptables-restore instead of over netlink; test_rules.py does both. Where the machine gives us no
namespaces the tests are skipped, with the reason; PORTOLAN_LAB_REQUIRED=1 makes that a failure.
"""

import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))

from lab.cluster import Cluster  # noqa: E402
from lab.daemon import program  # noqa: E402
from lab.topology import Refused  # noqa: E402

MODES = os.environ.get("PORTOLAN_TEST_MODES", "iptables,nftables").split(",")


def pytest_sessionstart():
    if not os.access(program(), os.X_OK):
        pytest.exit(f"there is no program {program()}: build it, or set PORTOLAN", returncode=1)


def pytest_configure(config):
    config.addinivalue_line("markers", "only(mode): what the test is about exists in that proxy mode alone")


def pytest_collection_modifyitems(items):
    """Leaves a test out of modes that it is not about: there is nothing that it could find there."""
    for item in list(items):
        only = item.get_closest_marker("only")
        if only and item.callspec.params["mode"] != only.args[0]:
            items.remove(item)


@pytest.fixture(scope="module", params=MODES)
def mode(request):
    return request.param


@pytest.fixture(params=[4, 6], ids=["IPv4", "IPv6"])
def family(request):
    return request.param


@pytest.fixture(params=["TCP", "UDP"])
def proto(request):
    return request.param


@pytest.fixture(scope="module")
def clusters(mode):
    """clusters(flags, pods=..., ...) is a running Cluster, the same one for the same words."""
    made = {}

    def get(*flags, **more):
        key = (flags, tuple(sorted(more.items())))
        if key not in made:
            try:
                made[key] = Cluster(*flags, mode=mode, **more)
            except Refused as refusal:
                if os.environ.get("PORTOLAN_LAB_REQUIRED"):
                    raise
                pytest.skip(str(refusal))
        made[key].repair()
        return made[key]

    yield get
    for cluster in made.values():
        cluster.close()


@pytest.fixture
def cluster(clusters):
    """Three pods here, two elsewhere, and the flags that most clusters have."""
    return clusters()

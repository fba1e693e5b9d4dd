# SPDX-License-Identifier: Apache-2.0
"""Real packets through rules that Portolan wrote.

Every test file has labs of its own. Tests of a file share a lab for each set of flags and tell it what to serve,
which replaces what the test before had; so the daemon also lives through many changes.

Every test runs in each proxy mode, or in those that PORTOLAN_TEST_MODES=iptables,nftables names. PORTOLAN_TEST_WRITER=restore
has the rules of iptables mode written by iptables-restore instead of over netlink; test_rules.py does both.
"""

import os

import pytest

MODES = os.environ.get("PORTOLAN_TEST_MODES", "iptables,nftables").split(",")


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


@pytest.fixture(params=["TCP", "UDP"])
def proto(request):
    return request.param

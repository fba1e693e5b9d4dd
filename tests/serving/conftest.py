# SPDX-License-Identifier: Apache-2.0
"""What the daemon answers to those who ask over HTTP: real clients, the real daemon, a namespace for both.

Where the machine gives us no namespaces the tests are skipped, with the reason; with PORTOLAN_LAB_REQUIRED=1 or CI=true that
is a failure.
"""

import os
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), HERE]

from host import Host  # noqa: E402
from lab.topology import Refused  # noqa: E402


@pytest.fixture(scope="module")
def hosts():
    """hosts() is a namespace with a daemon to be started in it."""
    made = []

    def make():
        try:
            made.append(Host())
        except Refused as refusal:
            if os.environ.get("PORTOLAN_LAB_REQUIRED") or os.environ.get("CI") == "true":
                raise
            pytest.skip(str(refusal))
        return made[-1]

    yield make
    for host in made:
        host.close()


@pytest.fixture
def host(hosts):
    """One for this test alone."""
    return hosts()

# SPDX-License-Identifier: Apache-2.0
"""The daemon under load, for a while.

    PORTOLAN_LOAD_SECONDS=N   how long test_load.py asks
    PORTOLAN_SOAK_SECONDS=N   how long test_soak.py goes on, in each mode
    PORTOLAN_QUIET=1          nothing else runs on this machine: the bars are asked for, not only what always holds

Where the machine gives us no namespaces the tests are skipped, with the reason; with PORTOLAN_LAB_REQUIRED=1 or CI=true that
is a failure.
"""
import os
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
sys.path[:0] = [TESTS, os.path.join(TESTS, "serving"), os.path.join(TESTS, "nftables"), os.path.join(TESTS, "golden"), HERE]
sys.path.append(os.path.join(os.path.dirname(TESTS), "bench"))

from crowd import Crowd  # noqa: E402
from lab.topology import Refused  # noqa: E402


@pytest.fixture
def crowds():
    """crowds(services, moving, mode) is a Crowd whose daemon is not started yet."""
    made = []

    def make(*arguments):
        try:
            made.append(Crowd(*arguments))
        except Refused as refusal:
            if os.environ.get("PORTOLAN_LAB_REQUIRED") or os.environ.get("CI") == "true":
                raise
            pytest.skip(str(refusal))
        return made[-1]

    yield make
    for crowd in made:
        crowd.close()

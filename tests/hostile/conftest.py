# SPDX-License-Identifier: Apache-2.0
"""Tenants and clients who mean harm, for a bounded time and with a fixed seed; the bystanders must not notice.

    PORTOLAN_HOSTILE_SECONDS=N   how long each attack lasts
    PORTOLAN_SEED=N              another draw

Where the machine gives us no namespaces the tests are skipped, with the reason; PORTOLAN_LAB_REQUIRED=1 makes that a failure.
"""
import os
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), HERE]

from lab.topology import Refused  # noqa: E402
from siege import Siege  # noqa: E402

SEED = int(os.environ.get("PORTOLAN_SEED") or "15")


@pytest.fixture(scope="module", params=["iptables", "nftables"])
def siege(request):
    try:
        it = Siege(request.param, SEED)
    except Refused as refusal:
        if os.environ.get("PORTOLAN_LAB_REQUIRED"):
            raise
        pytest.skip(str(refusal))
    yield it
    it.close()

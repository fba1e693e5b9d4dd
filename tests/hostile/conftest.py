# SPDX-License-Identifier: Apache-2.0
"""Tenants and clients who mean harm, for a bounded time and with a fixed seed; the bystanders must not notice.

    PORTOLAN_HOSTILE_SECONDS=N   how long each attack lasts
    PORTOLAN_SEED=N              another draw
"""
import pytest

from lab.required import made_or_skipped
from lab.seeds import seed
from siege import Siege


@pytest.fixture(scope="module", params=["iptables", "nftables"])
def siege(request):
    with made_or_skipped(Siege, request.param, seed(15)) as it:
        yield it

# SPDX-License-Identifier: Apache-2.0
"""A minute of soak.py in each mode; `make soak` takes longer. PORTOLAN_SEED=N repeats a run."""
import os
import random

import pytest

from soak import MOVING, SERVICES, Soak

SECONDS = float(os.environ.get("PORTOLAN_SOAK_SECONDS") or ("10" if "PORTOLAN_SANITIZED" in os.environ else "60"))


@pytest.mark.parametrize("mode", ["iptables", "nftables"])
def test_changes_faults_and_foreign_hands_leave_the_right_rules_and_no_leak(crowds, mode):
    seed = int(os.environ.get("PORTOLAN_SEED") or random.SystemRandom().randrange(1, 10**9))
    print(f"PORTOLAN_SEED={seed}")
    services = SERVICES if "PORTOLAN_SANITIZED" not in os.environ else SERVICES // 10
    crowd = crowds(services, min(MOVING, services), mode)
    soak = Soak(crowd.begin(), seed)
    crowd.listen()
    soak.run(SECONDS)

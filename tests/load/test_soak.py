# SPDX-License-Identifier: Apache-2.0
"""soak.py in each mode, with the same draw each time; `make soak` takes longer, and another one. PORTOLAN_SEED=N repeats that."""
import os

import pytest

from lab.seeds import seed
from soak import MOVING, SERVICES, Soak

SEED = seed(16)
#: A deck takes longer in iptables mode.
DECKS = {"iptables": 1, "nftables": 1} if "PORTOLAN_SANITIZED" in os.environ else {"iptables": 2, "nftables": 4}


@pytest.mark.parametrize("mode", ["iptables", "nftables"])
def test_changes_faults_and_foreign_hands_leave_the_right_rules_and_no_leak(crowds, mode):
    print(f"PORTOLAN_SEED={SEED}")
    services = SERVICES if "PORTOLAN_SANITIZED" not in os.environ else SERVICES // 10
    crowd = crowds(services, min(MOVING, services), mode)
    soak = Soak(crowd.begin(), SEED)
    crowd.listen()
    soak.run(DECKS[mode])

# SPDX-License-Identifier: Apache-2.0
"""1,000 scrapes and 1,000 health requests a second while 100 Services a second change.

How late a sync is, is measured from outside: from just before the file of a change is renamed into place until nf_tables
tells of rules that hold it. Where the machine is a virtual one, what its host took away meanwhile is told, and does not
count. On a quiet machine (`make load`) every bar is asked for. On any other the clients and the
daemon share two processors with whoever else is there; what must hold then is that nothing fails, nothing is
forgotten, and no change waits for long.
"""
import json
import os
import threading
import time

import pytest

QUIET = "PORTOLAN_QUIET" in os.environ
SANITIZED = "PORTOLAN_SANITIZED" in os.environ
SECONDS = int(os.environ.get("PORTOLAN_LOAD_SECONDS", "4" if SANITIZED else "12"))
SERVICES, MOVING = 500, 50
RATE, CHANGES = 1000, 100  # a second
LATE_MS = 100 if QUIET else 3000
ANSWERED = 0.99 if QUIET else 0.02
GROWTH_KIB = 512
BUILD = os.path.dirname(os.environ.get("PORTOLAN", ""))
CLIENTS = os.environ.get("PORTOLAN_LOAD_CLIENTS") or os.path.join(BUILD, "tests", "load", "load-clients")


class Load(threading.Thread):
    """Clients in the namespace; what they tell is in `lines` when it has ended."""

    def __init__(self, crowd):
        super().__init__(daemon=True)
        self.crowd, self.lines = crowd, None

    def run(self):
        # whoever asks runs on other machines as a rule: it must not take the processors from the daemon
        argv = ["nice", "-n", "10", CLIENTS, SECONDS, 10249, "/metrics", RATE, 16, 10256, "/healthz", RATE, 16]
        self.lines = json.loads(self.crowd.node.run(*map(str, argv), timeout=SECONDS + 60))


def change_steadily(crowd, warm_up):
    """CHANGES a second until the time is up; the memory after so many seconds, and at the end."""
    begun, number, warm = time.monotonic(), 0, None
    while (due := number / CHANGES) < SECONDS:
        time.sleep(max(0, begun + due - time.monotonic()))  # the pace is what is tested
        crowd.change(number % MOVING)
        number += 1
        if not warm and due >= warm_up:
            warm = crowd.resident_kib()
    return warm, crowd.resident_kib()


@pytest.mark.parametrize("mode", ["iptables", "nftables"])
def test_syncs_are_in_time_while_everybody_asks(crowds, mode):
    crowd = crowds(SERVICES, MOVING, mode)
    crowd.begin()
    crowd.listen()
    load = Load(crowd)
    load.start()
    warm, end = change_steadily(crowd, SECONDS / 3)
    load.join()
    assert load.lines, "the clients failed"
    for number in range(crowd.n_changes - MOVING + 1, crowd.n_changes + 1):
        crowd.wait_heard(number)  # nobody's last change is forgotten
    late = sorted(crowd.lateness_ms())
    latest, taken = max(late, key=lambda one: one[0] - one[1])
    print(f"\n{mode}: {len(late)} changes seen, late by {late[len(late) // 2][0]:.1f} ms (median), "
          f"{late[len(late) * 99 // 100][0]:.1f} (99 %), {late[-1][0]:.1f} (most; the host took {late[-1][1]:.0f} of them); without "
          f"what the host took {latest - taken:.1f} at most; {json.dumps(load.lines)}; {warm} KiB after the warm-up, {end} at the end")
    for line in load.lines:
        assert line["others"] == 0 and line["answered"] >= ANSWERED * RATE * SECONDS, line
    assert latest - taken <= LATE_MS
    if not SANITIZED:  # a sanitizer keeps what was freed, and finds leaks itself
        assert end <= warm + GROWTH_KIB
    assert not crowd.log.find('"Sync failed')

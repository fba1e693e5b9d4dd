# SPDX-License-Identifier: Apache-2.0
"""1,000 scrapes and 1,000 health requests a second while 100 Services a second change.

How late a sync is, is measured from outside: from just before the file of a change is renamed into place until nf_tables
tells of rules that hold it. Where the machine is a virtual one, what its host took away meanwhile is told, and does not
count. On a quiet machine (`make load`) every bar is asked for, and docs/performance.md gets the figures. On any other the clients and the
daemon share two processors with all else that runs there; what must hold then is that nothing fails, nothing is
forgotten, and no change waits for long.
"""
import json
import os
import threading
import time

import pytest

import report

QUIET = "PORTOLAN_QUIET" in os.environ
SANITIZED = "PORTOLAN_SANITIZED" in os.environ
SECONDS = int(os.environ.get("PORTOLAN_LOAD_SECONDS", "4" if SANITIZED else "12"))
SERVICES, MOVING = 500, 50
RATE, CHANGES = 1000, 100  # a second
LATE_MS = 100 if QUIET else 20000 if SANITIZED else 5000
ANSWERED = 0.99 if QUIET else 0.005 if SANITIZED else 0.02
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


class Figures:
    def __init__(self, mode, crowd, load, memory):
        late = sorted(crowd.lateness_ms())
        self.mode, self.lines, self.memory = mode, load.lines, memory
        self.changes = len(late)
        self.median, self.most_of_all, (self.most, self.taken) = late[len(late) // 2][0], late[len(late) * 99 // 100][0], late[-1]
        self.own = max(latest - taken for latest, taken in late)
        self.latest = ["%.0f, of which %.0f taken" % pair for pair in sorted(late, key=lambda pair: pair[1] - pair[0])[:5]]

    def row(self):
        answered = " and ".join(f"{line['answered']:,} of `{line['path']}`" for line in self.lines)
        return (f"| {self.mode} | {self.changes:,} | {self.median:.1f} ms | {self.most_of_all:.1f} ms | {self.most:.1f} ms, the host took "
                f"{self.taken:.0f} | {self.own:.1f} ms | {answered}, within {max(line['longest_ms'] for line in self.lines):.0f} ms | "
                f"{self.memory[0]:,} and {self.memory[1]:,} KiB |")


@pytest.fixture(scope="module")
def page():
    """Rows for docs/performance.md; they are written when all bars are met."""
    rows, where = [], report.machine("load")
    yield rows
    if QUIET and len(rows) == 2:
        report.write("load", "load", "\n".join([
            f"{where} {SECONDS} s of {CHANGES} changes a second, {RATE:,} scrapes and {RATE:,} questions for health a second, "
            f"{SERVICES} services.", "", "| mode | changes | late, median | 99 % | most | most without what the host took (bar: 100 ms) | "
            "answered | memory after the warm-up and at the end |", "|---|---|---|---|---|---|---|---|", *rows]) + "\n")


@pytest.mark.parametrize("mode", ["iptables", "nftables"])
def test_syncs_are_in_time_while_everybody_asks(crowds, page, mode):
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
    figures = Figures(mode, crowd, load, (warm, end))
    print(figures.row(), load.lines)
    for line in load.lines:
        assert line["others"] == 0 and line["answered"] >= ANSWERED * RATE * SECONDS, line
    assert figures.own <= LATE_MS, figures.latest
    if not SANITIZED:  # a sanitizer keeps what was freed, and finds leaks itself
        assert end <= warm + GROWTH_KIB
    assert not crowd.log.find('"Sync failed')
    page.append(figures.row())

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Is one program slower or larger than another? make bench-ab OLD=BINARY [NEW=BINARY] [ARGS=...]

Both serve the same folder of manifests, in namespaces of their own and in turn (old, new, new, old, ...), so that what drifts
hits both. For each life: the first sync from the start of the process, its processor time, memory at its peak and later; then changes
of single Services, from the moment before the file is there until nf_tables tells of the rule, and the processor time of each.
Prints medians of all lives; ends with 1 if the new one is worse by more than --tolerance percent and by more than the noise of
the old one (its own spread between the quartiles).
"""
import argparse
import os
import pathlib
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / 'tests')]

import report  # noqa: E402
from lab.crowd import Crowd  # noqa: E402
from page import cpu_s  # noqa: E402

MOVING = 20
#: (key, words, unit): less is better in all of them.
WHAT = (('start', 'start to first sync', 'ms'), ('start_cpu', 'processor time of that', 'ms'), ('peak', 'memory, peak', 'KiB'),
        ('resident', 'memory after the changes', 'KiB'), ('change', 'change to kernel, median', 'ms'),
        ('late', 'change to kernel, 90 %', 'ms'), ('change_cpu', 'processor time of a change', 'ms'))


def live(program, services, mode, changes):
    """One life of a program: its figures by key."""
    os.environ['PORTOLAN'] = program
    crowd = Crowd(services, MOVING, mode)
    try:
        begun = time.monotonic()
        crowd.begin(patience=300)
        found = {'start': 1000 * (time.monotonic() - begun), 'start_cpu': 1000 * cpu_s(crowd), 'peak': crowd.status('VmHWM:')}
        crowd.listen()
        before = cpu_s(crowd)
        for number in range(changes):
            crowd.wait_heard(crowd.change(number % MOVING))
        found['change_cpu'] = 1000 * (cpu_s(crowd) - before) / changes
        late = sorted(ms for ms, _stolen in crowd.lateness_ms())
        found |= {'change': late[len(late) // 2], 'late': late[len(late) * 9 // 10], 'resident': crowd.resident_kib()}
        return found
    finally:
        crowd.close()


def spread(values):
    quartiles = statistics.quantiles(values, n=4)
    return quartiles[2] - quartiles[0]


def compare(old, new, tolerance):
    """Prints the table; how many figures got worse."""
    worse = 0
    for key, words, unit in WHAT:
        a, b = [[life[key] for life in lives] for lives in (old, new)]
        before, after = statistics.median(a), statistics.median(b)
        bad = after > before * (1 + tolerance / 100) and after - before > spread(a)
        worse += bad
        print(f'  {words:28} {before:10.2f} {after:10.2f} {unit:4} {100 * (after / before - 1) if before else 0:+6.1f} %{"  WORSE" if bad else ""}')
    return worse


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('old')
    parser.add_argument('new')
    parser.add_argument('--services', type=int, default=5000)
    parser.add_argument('--lives', type=int, default=6, help='of each program and mode')
    parser.add_argument('--changes', type=int, default=100)
    parser.add_argument('--tolerance', type=float, default=3)
    parser.add_argument('--modes', default='iptables,nftables')
    arguments = parser.parse_args()
    programs = [os.path.abspath(arguments.old), os.path.abspath(arguments.new)]
    print(report.machine('bench-ab'))
    worse = 0
    for mode in arguments.modes.split(','):
        lives = [[], []]
        for turn in range(2 * arguments.lives):
            which = int(turn % 4 in (1, 2))
            lives[which].append(live(programs[which], arguments.services, mode, arguments.changes))
        print(f'{mode} mode, {arguments.services} services x 5: old, new')
        worse += compare(*lives, arguments.tolerance)
    return 1 if worse else 0


if __name__ == '__main__':
    sys.exit(main())

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What an open status page costs: make bench-page, which writes a part of docs/performance.md.

Portolan serves a folder of manifests in a namespace. Services change, one after another, and for each the time is taken from
just before its file is renamed into place until nf_tables tells of rules that hold the change. Rounds with and
without readers take turns: three that follow the page's stream of events, as three browsers would, and one that asks for the way of
a packet each second.
"""
import argparse
import os
import pathlib
import random
import re
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / 'tests')]

import report  # noqa: E402
from lab.crowd import SERVICES_FROM, Crowd, text  # noqa: E402

READERS, MOVING = 3, 20
BAR = 1.10
SYNCS = 'kubeproxy_sync_proxy_rules_duration_seconds'

# Readers and the one who asks, until it is ended: lines "reading" when all streams have begun, then how much was read, when asked to end.
READ = """
import http.client, signal, sys, threading, time
readers, destination = int(sys.argv[1]), sys.argv[2]
counts, asked, begun = [0] * readers, 0, threading.Barrier(readers + 1)
def follow(place):
    connection = http.client.HTTPConnection("127.0.0.1", 10249)
    connection.request("GET", "/status/events", headers={"Accept": "text/event-stream"})
    answer = connection.getresponse()
    assert answer.status == 200, answer.status
    counts[place] += len(answer.read1(65536))
    begun.wait()
    while data := answer.read1(65536):
        counts[place] += len(data)
def end(*_):
    print("read", *counts, "asked", asked, flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
for place in range(readers):
    threading.Thread(target=follow, args=(place,), daemon=True).start()
begun.wait()
print("reading", flush=True)
while True:
    connection = http.client.HTTPConnection("127.0.0.1", 10249)
    connection.request("GET", "/status/explain?from=pod&dest=" + destination)
    answer = connection.getresponse()
    assert answer.status == 200, (answer.status, answer.read())
    answer.read()
    asked += 1
    time.sleep(1)
"""


class Readers:
    """An open page, three times."""

    def __init__(self, crowd):
        self.crowd = crowd
        argv = [sys.executable, '-c', READ, str(READERS), f'{text(SERVICES_FROM + 1)}:80']
        self.pid, self.log = crowd.node.spawn(*argv)
        self.log.wait_line('^reading')

    def close(self):
        """Bytes that the readers got together, and questions that were answered."""
        self.crowd.node.agent.call('kill', pid=self.pid, number=15)
        self.crowd.node.agent.call('wait', pid=self.pid, timeout=10)
        words = self.log.wait_line(r'^read [\d ]+ asked \d+')[0].split()
        return sum(map(int, words[1:-2])), int(words[-1])


def cpu_s(crowd):
    """Of the daemon."""
    fields = crowd.node.run('cat', f'/proc/{crowd.pid_of_daemon}/stat').rsplit(')', 1)[1].split()
    return sum(map(int, fields[11:13])) / os.sysconf('SC_CLK_TCK')


def syncs(crowd):
    """Seconds and number of syncs so far, of IPv4, by the daemon's own word."""
    metrics = crowd.metrics()
    return [next(value for name, value in metrics.items() if re.match(rf'{SYNCS}_{part}{{.*IPv4', name)) for part in ('sum', 'count')]


class Round:
    """So many changes, one after another, each waited for; the pauses spread them over the page's own rhythm."""

    def __init__(self, crowd, changes, pause):
        first = crowd.n_changes + 1
        begin, begin_cpu, begun = syncs(crowd), cpu_s(crowd), time.monotonic()
        for number in range(changes):
            crowd.wait_heard(crowd.change(number % MOVING), patience=60)
            time.sleep(pause.uniform(0.05, 0.25))
        end = syncs(crowd)
        self.late_ms = [late for late, _taken in crowd.lateness_ms(first)]
        self.sync_ms = 1000 * (end[0] - begin[0]) / (end[1] - begin[1])
        self.cpu = (cpu_s(crowd) - begin_cpu) / (time.monotonic() - begun)
        assert len(self.late_ms) == changes, f'{len(self.late_ms)} of {changes} changes were seen'


def measure(mode, services, rounds, changes):
    """Rounds without and with readers."""
    crowd = Crowd(services, MOVING, mode)
    found, pause, read, asked = {False: [], True: []}, random.Random(1), 0, 0
    try:
        crowd.begin(patience=300)
        crowd.listen()
        Round(crowd, changes, pause)  # warms up
        for number in range(2 * rounds):
            opened = number % 4 in (1, 2)  # off on on off: what drifts hits both
            readers = Readers(crowd) if opened else None
            found[opened].append(Round(crowd, changes, pause))
            if readers:
                more = readers.close()
                read, asked = read + more[0], asked + more[1]
    finally:
        crowd.close()
    print(f'{mode}: the readers got {read / 2**20:.1f} MiB, {asked} explanations', flush=True)
    return found


def figures(rounds):
    late = sorted(value for one in rounds for value in one.late_ms)
    return {'late': statistics.median(late), 'p90': late[len(late) * 9 // 10],
            'sync': statistics.median(one.sync_ms for one in rounds), 'cpu': statistics.mean(one.cpu for one in rounds), 'n': len(late)}


WHAT = (('late', 'change to kernel, median', 'ms', True), ('p90', 'change to kernel, 90 %', 'ms', False),
        ('sync', 'length of a sync, mean (median of the rounds)', 'ms', True), ('cpu', 'processor time, of one core', '%', False))


def rows(mode, services, found):
    """Lines of the table, and how many bars were missed."""
    off, on = figures(found[False]), figures(found[True])
    lines, missed = [], 0
    for key, words, unit, barred in WHAT:
        scale = 100 if unit == '%' else 1
        times = on[key] / off[key] if off[key] else 1
        met = times <= BAR or not barred
        missed += not met
        verdict = f'{100 * (BAR - 1):+.0f} %: {"met" if met else "**missed**"}' if barred else ''
        lines.append(f'| {services:,} | {mode} | {words} | {off[key] * scale:.1f} {unit} | {on[key] * scale:.1f} {unit} '
                     f'| {100 * (times - 1):+.0f} % | {verdict} |')
    return lines, missed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--build', type=pathlib.Path, default=ROOT / 'build-bench')
    parser.add_argument('--modes', default='iptables,nftables')
    parser.add_argument('--services', type=int, default=5000)
    parser.add_argument('--rounds', type=int, default=6, help='of each kind')
    parser.add_argument('--changes', type=int, default=20, help='in a round')
    parser.add_argument('--dry', action='store_true', help='do not write the page')
    given = parser.parse_args()
    os.environ['PORTOLAN'] = str((given.build / 'portolan').absolute())
    lines, missed = [f'{report.machine("bench-page")} {given.rounds} rounds of each kind, {given.changes} changes in each.', '',
                     '| services | mode | | no page | three pages | | bar |', '|---|---|---|---|---|---|---|'], 0
    for mode in given.modes.split(','):
        more, count = rows(mode, given.services, measure(mode, given.services, given.rounds, given.changes))
        print('\n'.join(more), flush=True)
        lines += more
        missed += count
    if not given.dry and not os.environ.get('CI'):
        report.write('page', 'bench-page', '\n'.join(lines) + '\n')
    return 1 if missed else 0


if __name__ == '__main__':
    sys.exit(main())

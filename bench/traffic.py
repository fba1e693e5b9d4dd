#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""make bench-traffic: what --service-metrics costs the data path, and what it costs the daemon.

A client sends through a node to a Service's pod, all in namespaces, with counting off and on in turn: connections a second,
packets a second, bytes a second. Off means that the kernel's accounting is off too. Then the table is filled, and the daemon
tells how long it takes to read it. Writes docs/performance.md.
"""
import argparse
import math
import os
import pathlib
import statistics
import sys

import report

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / 'tests')]

from lab import scrape  # noqa: E402
from lab.cluster import Cluster  # noqa: E402
from lab.manifests import Service  # noqa: E402
from lab.topology import wait_for  # noqa: E402

KINDS = {'connect': ('connections/s', 1), 'packets': ('datagrams of 64 bytes/s', 1), 'stream': ('MiB/s, one TCP connection', 2**20)}
PORT, FLOWS = 9090, 100000
ASK = "import sys, urllib.request as u; sys.stdout.write(u.urlopen('http://127.0.0.1:10249/metrics').read().decode())"


class World:
    def __init__(self, mode, load):
        self.load = load
        self.cluster = Cluster(mode=mode, pods=1, remote_pods=0)
        self.service = Service('bench', 99, self.cluster.pods[:1], port=80, target=PORT, families=(4,))
        self.datagrams = [Service(f'bench-{i}', 97 + i, self.cluster.pods[:1], proto='UDP', port=80 + i, target=PORT, families=(4,))
                          for i in range(2)]
        for one in self.datagrams:
            one.cluster_ip = dict(self.service.cluster_ip)
        self.cluster.daemon.write_services(self.service, *self.datagrams)
        self.cluster.pods[0].namespace.agent.call('spawn', [os.open(os.devnull, os.O_WRONLY)], argv=[load, 'serve', str(PORT)])
        self.flags = list(self.cluster.daemon.flags)

    def start(self, counting):
        daemon = self.cluster.daemon
        if daemon.pid is not None:
            daemon.stop()
        self.cluster.node.sysctl(net__netfilter__nf_conntrack_acct=0)
        self.cluster.node.run('conntrack', '-F')
        daemon.flags = self.flags + (['--service-metrics'] if counting else [])
        daemon.start()

    def run(self, kind, number):
        address = self.service.cluster_ip[4]
        return float(self.cluster.client.run(self.load, kind, address, '80', str(number), timeout=300))

    def metrics(self):
        return scrape.values(self.cluster.node.run(sys.executable, '-c', ASK))

    def round_cost(self):
        """Flows of the table, milliseconds of CPU time for a round over them."""
        self.start(True)
        self.cluster.node.sysctl(net__netfilter__nf_conntrack_udp_timeout=600)  # none ends meanwhile
        self.run('flows', FLOWS)
        rounds = ('portolan_service_traffic_rounds_total', ())
        seconds = ('portolan_service_traffic_seconds_total', ())
        first = self.metrics()
        wait_for(lambda: self.metrics()[rounds] >= first[rounds] + 2, timeout=120, step=0.5, what='two rounds')
        begin = self.metrics()
        wait_for(lambda: self.metrics()[rounds] >= begin[rounds] + 2, timeout=120, step=0.5, what='two more rounds')
        end = self.metrics()
        tracked = sum(value for (name, _labels), value in end.items() if name == 'portolan_service_tracked_connections')
        return tracked, 1000 * (end[seconds] - begin[seconds]) / (end[rounds] - begin[rounds])


def measure(world, runs, seconds):
    found = {(kind, on): [] for kind in KINDS for on in (False, True)}
    for number in range(runs):
        for on in (False, True) if number % 2 else (True, False):
            world.start(on)
            for kind in KINDS:
                found[kind, on].append(world.run(kind, seconds))
                world.cluster.node.run('conntrack', '-F')
    return found


def interval(values):
    """Where the true median is, with 95 % and more: between two of the values, by the sign test, however they are spread."""
    values, n, outside, place = sorted(values), len(values), 0, 0
    while (outside := outside + math.comb(n, place)) / 2**n <= 0.025:
        place += 1
    return values[max(place - 1, 0)], values[-max(place, 1)]


def row(mode, words, unit, off, on):
    """Runs off and on that followed each other are compared with one another."""
    differences = [100 * (counted / plain - 1) for plain, counted in zip(off, on)]
    low, high = interval(differences)
    verdict = 'none to be measured' if low <= 0 <= high else 'a real one'
    return (f'| {mode} | {words} | {statistics.median(off) / unit:,.0f} | {statistics.median(on) / unit:,.0f} | '
            f'{statistics.median(differences):+.1f} %, surely (95 %) between {low:+.1f} and {high:+.1f} | {verdict} |')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('load', help='the program bench-traffic')
    parser.add_argument('--runs', type=int, default=20)
    parser.add_argument('--seconds', type=float, default=1)
    parser.add_argument('--modes', default='iptables,nftables')
    parser.add_argument('--print', action='store_true', help='leave docs/performance.md alone')
    args = parser.parse_args()
    lines = [f'{report.machine("bench-traffic")} Medians of {args.runs} runs of {args.seconds:g} s each, off and on in turn.', '',
             '| mode | | off | on | difference of two runs that follow each other | a cost |', '|---|---|---|---|---|---|']
    for mode in args.modes.split(','):
        world = World(mode, str(pathlib.Path(args.load).resolve()))
        try:
            found = measure(world, args.runs, args.seconds)
            lines += [row(mode, words, unit, found[kind, False], found[kind, True]) for kind, (words, unit) in KINDS.items()]
            flows, cost = world.round_cost()
        finally:
            world.cluster.close()
        lines.append(f'| {mode} | CPU time of a round over {flows:,.0f} flows | | {cost:.0f} ms | | |')
    text = '\n'.join(lines) + '\n'
    print(text)
    if not args.print:
        report.write('traffic', 'bench-traffic', text)


if __name__ == '__main__':
    main()

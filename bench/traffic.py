#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""make bench-traffic: what --service-metrics costs the data path, and what it costs the daemon.

A client sends through a node to a Service's pod, all in namespaces, with counting off and on in turn: connections a second,
packets a second, bytes a second. Off means that the kernel's accounting is off too. What one of them costs is the time that
all processors were busy, of everybody together: the host of a virtual machine that takes processors away changes how many
there are in a second, and not this. That is with all processors at work, and with what is done beside the path, too; what a client
feels where they are not is how long it takes until a connection stands, at a rate of 1,000 a second. Then the table is filled, and the daemon tells how long it takes to read it. Writes
docs/performance.md.
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

KINDS = {'connect': ('connections', 1), 'packets': ('datagrams of 64 bytes', 1), 'stream': ('MiB in one TCP connection', 2**20)}
HANDSHAKES = 'handshakes', 'connections at 1,000 a second: time until one stands, median'
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


def busy_us():
    with open('/proc/stat', encoding='ascii') as file:
        user, nice, system, _idle, _waiting, irq, softirq, *_rest = map(int, file.readline().split()[1:])
    return (user + nice + system + irq + softirq) * 1e6 / os.sysconf('SC_CLK_TCK')


def measure(world, runs, seconds):
    """How many a second, and microseconds of processor time for one; of handshakes the microseconds that they take."""
    found = {(kind, on): [] for kind in (HANDSHAKES[0], *KINDS) for on in (False, True)}
    for number in range(runs):
        for on in (False, True) if number % 2 else (True, False):
            world.start(on)
            found[HANDSHAKES[0], on].append((1000, world.run(HANDSHAKES[0], seconds)))
            for kind, (_words, unit) in KINDS.items():
                begin = busy_us()
                rate = world.run(kind, seconds) / unit
                world.cluster.node.run('conntrack', '-F')  # the ends of connections cost, too
                world.metrics()  # the daemon has heard of them
                found[kind, on].append((rate, (busy_us() - begin) / (rate * seconds)))
    return found


def interval(values):
    """Where the true median is, with 95 % and more: between two of the values, by the sign test, however they are spread."""
    values, n, outside, place = sorted(values), len(values), 0, 0
    while (outside := outside + math.comb(n, place)) / 2**n <= 0.025:
        place += 1
    return values[max(place - 1, 0)], values[-max(place, 1)]


def row(mode, words, off, on):
    """Runs off and on that followed each other are compared with one another."""
    differences = [100 * (counted / plain - 1) for (_, plain), (_, counted) in zip(off, on)]
    middles = [statistics.median(values) for runs in (off, on) for values in zip(*runs)]
    low, high = interval(differences)
    return (f'| {mode} | {words} | {middles[0]:,.0f} | {middles[2]:,.0f} | {middles[1]:,.1f} us | {middles[3]:,.1f} us | '
            f'{statistics.median(differences):+.1f} % | {low:+.1f} to {high:+.1f} % |')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('load', help='the program bench-traffic')
    parser.add_argument('--runs', type=int, default=20)
    parser.add_argument('--seconds', type=float, default=1)
    parser.add_argument('--modes', default='iptables,nftables')
    parser.add_argument('--print', action='store_true', help='leave docs/performance.md alone')
    args = parser.parse_args()
    if args.runs < 6:
        parser.error('--runs: fewer than 6 tell nothing')
    lines = [f'{report.machine("bench-traffic")} Medians of {args.runs} runs of {args.seconds:g} s each, off and on in turn.', '',
             '| mode | | a second, off | on | processor time for one, off | on | difference of neighbours | 95 % interval of its median |',
             '|---|---|---|---|---|---|---|---|']
    for mode in args.modes.split(','):
        world = World(mode, str(pathlib.Path(args.load).resolve()))
        try:
            found = measure(world, args.runs, args.seconds)
            lines += [row(mode, words, found[kind, False], found[kind, True])
                      for kind, words in (HANDSHAKES, *((kind, words) for kind, (words, _unit) in KINDS.items()))]
            flows, cost = world.round_cost()
        finally:
            world.cluster.close()
        lines.append(f'| {mode} | processor time of a round over {flows:,.0f} flows | | | | {cost:.0f} ms | | |')
    text = '\n'.join(lines) + '\n'
    print(text)
    if not args.print:
        report.write('traffic', 'bench-traffic', text)


if __name__ == '__main__':
    main()

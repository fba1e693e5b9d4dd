#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How long foreign hands leave a mark: make bench-repair, which writes a part of docs/performance.md.

Rules are damaged in a namespace in which Portolan serves a folder of manifests. A process in it asks for the generation
of nf_tables all the time, which every transaction counts up: the first step is the foreign one, the last one the end of the
repair. Neither the tool that did the damage nor anything that Portolan says is part of a figure. Afterwards the rules
have to be what they were.
"""
import argparse
import json
import os
import pathlib
import random
import re
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / 'tests')]

import report as report_part  # noqa: E402
from lab.crowd import SERVICES_FROM, Crowd, text  # noqa: E402

SINGLE, FLUSHES = 9, 3
SINGLE_BAR_MS, FLUSH_BAR_MS, COLD_BAR = 200, 500, 1.5
QUIET = 2.0  # s without a transaction: it is over
TRIES = 5  # of a damage whose repair came before the watch, which had to wait for a core, had seen the damage
STORM, STORM_BAR = 300, 12

WATCH = """
import os, socket, struct, sys, time
ask = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12)
request, last, since = struct.pack("=IHHII4x", 20, 10 << 8 | 16, 1, 1, 0), None, time.monotonic()
print("watching", flush=True)
while True:
    ask.send(request)
    now, generation = time.monotonic(), struct.unpack_from(">I", ask.recv(4096), 24)[0]
    if generation != last:
        print("generation", generation, now, flush=True)
        last = generation
    time.sleep(0.0003)
"""


class Site:
    """A crowd with a watch on its generations."""

    def __init__(self, services, mode):
        self.crowd = Crowd(services, 1, mode)
        self.crowd.begin(patience=300)
        self.watch = self.crowd.node.spawn(sys.executable, '-c', WATCH)[1]
        self.watch.wait_line('^generation')
        self.settle()

    def settle(self):
        """Until there has been no transaction for QUIET seconds; the number of lines of the watch."""
        while True:
            count = len(self.watch.lines)
            time.sleep(QUIET)
            if len(self.watch.lines) == count:
                return count

    def generation(self, line):
        return int(self.watch.lines[line].split()[1])

    def times(self, since):
        return [float(line.split()[2]) for line in self.watch.lines[since:] if line.startswith('generation')]

    def damage(self, act):
        """How long it was felt, in ms, and how many transactions mended it."""
        for _ in range(TRIES):
            since = self.settle()
            act()
            self.settle()
            times = self.times(since)
            if len(times) > 1:
                return (times[-1] - times[0]) * 1000, len(times) - 1
            if self.generation(-1) < self.generation(since - 1) + 2:
                raise RuntimeError('nobody repaired it:\n' + '\n'.join(self.crowd.log.lines[-10:]))
        raise RuntimeError('the watch on the generations comes too late each time')

    def nft(self, script):
        self.crowd.node.run('nft', '-f', '-', stdin=script, timeout=120)

    def listing(self):
        """Rules, and in nftables mode elements, in no order that the kernel may choose."""
        if self.crowd.mode == 'nftables':
            listed = self.crowd.node.run('nft', 'list', 'table', 'ip', 'kube-proxy', timeout=120)
            words = re.sub(r'packets \d+ bytes \d+|elements =', '', listed)
            return sorted(word.strip(' {}\t') for word in re.split('[,\n]', words))
        return sorted(re.sub(r' \[\d+:\d+\]', '', line) for line in self.crowd.node.run('iptables-save', timeout=120).splitlines()
                      if not line.startswith('#'))


# -- single rules and chains


def pick_chains(site, count):
    """Names of KUBE-SVC chains."""
    names = re.findall(r'chain (KUBE-SVC-\S+)', site.crowd.node.run('nft', '-t', 'list', 'table', 'ip', 'nat', timeout=120))
    return random.Random(1).sample(names, count)


def pick_services(site, count):
    """Keys in the map of services."""
    numbers = random.Random(1).sample(range(site.crowd.services), count)
    return [service_key(number) for number in numbers]


def service_key(number):
    return f'{{ {text(SERVICES_FROM + number + 1)} . tcp . 80 }}'


def handles(site, chain, pattern, table='nat'):
    lines = site.crowd.node.run('nft', '-a', 'list', 'chain', 'ip', table, chain, timeout=120).splitlines()
    return [re.search(r'# handle (\d+)', line)[1] for line in lines if pattern in line and '# handle' in line]


def endpoint_chain(site, chain):
    listed = site.crowd.node.run('nft', 'list', 'chain', 'ip', 'nat', chain, timeout=120)
    return re.search(r'(KUBE-SEP-\S+)', listed)[1]


def rule_of_endpoint(site, chain):
    own = endpoint_chain(site, chain)
    return f'delete rule ip nat {own} handle {handles(site, own, "counter")[-1]}\n'


def rule_of_service(_site, chain):
    return f'flush chain ip nat {chain}\n'


def entry_of_service(site, chain):
    return f'delete rule ip nat KUBE-SERVICES handle {handles(site, "KUBE-SERVICES", chain)[0]}\n'


def whole_chain(site, chain):
    return entry_of_service(site, chain) + f'flush chain ip nat {chain}\ndelete chain ip nat {chain}\n'


def element_of_service(_site, key):
    return f'delete element ip kube-proxy service-ips {key}\n'


def element_of_another(_site, _key):
    return 'add element ip kube-proxy service-ips { 203.0.113.1 . tcp . 80 : drop }\n'


def rule_of_base_chain(site, _key):
    return f'delete rule ip kube-proxy nat-prerouting handle {handles(site, "nat-prerouting", "jump", "kube-proxy")[0]}\n'


def rules_of_chain(_site, _key):
    return 'flush chain ip kube-proxy services\n'


def elements_of_map(_site, _key):
    return 'flush map ip kube-proxy service-ips\n'


NFTABLES_KINDS = (('one element of map service-ips deleted', element_of_service), ('one foreign element added to it', element_of_another),
                  ('one rule of base chain nat-prerouting', rule_of_base_chain), ('all rules of chain services', rules_of_chain))
NFTABLES_MAP = (('all elements of map service-ips', elements_of_map),)

KINDS = (('one rule of an endpoint', rule_of_endpoint), ('all rules of a Service\'s chain', rule_of_service),
         ('a Service\'s entry in KUBE-SERVICES', entry_of_service), ('a Service\'s chain and its entry', whole_chain))


def singles(site, kinds, count):
    rows, pick = [], pick_services if site.crowd.mode == 'nftables' else pick_chains
    for what, make in kinds:
        found, wanted = [], site.listing()
        for victim in pick(site, count):
            found.append(site.damage(lambda victim=victim: site.nft(make(site, victim))))
        if site.listing() != wanted:
            raise RuntimeError(f'{what}: the rules are not what they were')
        rows.append((what, [ms for ms, _n in found]))
        print(f'  {what}: {statistics.median(rows[-1][1]):.0f} ms, {max(rows[-1][1]):.0f} at most', flush=True)
    return rows


# -- everything at once


def kernel_price_ms(site, program):
    """What the kernel takes to load the table nat as it stands, without any proxy."""
    return json.loads(site.crowd.node.run(program, 'load', 'nat', timeout=120))


def served(site):
    """A sample of cluster IPs, the last among them, is in the map of services."""
    numbers = [*range(0, site.crowd.services, max(1, site.crowd.services // 20)), site.crowd.services - 1]
    for number in numbers:
        site.crowd.node.run('nft', 'get', 'element', 'ip', 'kube-proxy', 'service-ips', service_key(number))


def flushes(site, count):
    wanted = site.listing() if site.crowd.mode == 'iptables' else None
    found = []
    for _ in range(count):
        found.append(site.damage(lambda: site.crowd.node.run('nft', 'flush', 'ruleset', timeout=120))[0])
    if wanted is None:
        served(site)
    elif site.listing() != wanted:
        raise RuntimeError('after a flush the rules are not what they were')
    return found


def storm(site):
    """So many foreign changes, 10 ms apart; how many repairs they led to."""
    metric = f'portolan_repairs_total{{ip_family="IPv4"}}'
    before = site.crowd.metrics().get(metric, 0)
    if site.crowd.mode == 'iptables':
        chain = pick_chains(site, 1)[0]
        script = f'flush chain ip nat {chain}\n'
    else:
        script = 'flush map ip kube-proxy service-ips\n'
    begun = time.monotonic()
    for number in range(STORM):
        site.crowd.node.run('nft', '-f', '-', stdin=script, check=False, timeout=60)  # fails while it is gone
        time.sleep(max(0, begun + (number + 1) * 0.01 - time.monotonic()))
    took = time.monotonic() - begun
    site.settle()
    return site.crowd.metrics().get(metric, 0) - before, took


# -- the page


def span(values):
    return f'{statistics.median(values):.0f} ms', f'{max(values):.0f} ms'


class Report:
    def __init__(self):
        self.rows, self.missed = [], 0

    def add(self, services, mode, what, values, bar, bar_text):
        met = max(values) <= bar
        self.missed += not met
        median, most = span(values)
        self.rows.append(f'| {services:,} | {mode} | {what} | {median} | {most} | {bar_text} | {"met" if met else "**missed**"} |')
        print(self.rows[-1], flush=True)

    def page(self, where):
        return '\n'.join([where, '', '| services | mode | what was done | median | most | bar | |', '|---|---|---|---|---|---|---|',
                          *self.rows]) + '\n'


def measure_iptables(report, services, program, singly):
    site = Site(services, 'iptables')
    try:
        for what, values in singles(site, KINDS, singly):
            report.add(services, 'iptables', what, values, SINGLE_BAR_MS, f'{SINGLE_BAR_MS} ms')
        price = kernel_price_ms(site, program)['load_ms']
        report.add(services, 'iptables', '`nft flush ruleset`', flushes(site, FLUSHES), COLD_BAR * price,
                   f'{COLD_BAR} x {price:.0f} ms, the kernel\'s price of a cold load')
        report_storm(report, site, services)
    finally:
        site.crowd.close()


def measure_nftables_singles(report, services, singly):
    site = Site(services, 'nftables')
    try:
        for what, values in singles(site, NFTABLES_KINDS, singly):
            report.add(services, 'nftables', what, values, SINGLE_BAR_MS, f'{SINGLE_BAR_MS} ms')
        for what, values in singles(site, NFTABLES_MAP, min(FLUSHES, singly)):
            report.add(services, 'nftables', what, values, FLUSH_BAR_MS, f'{FLUSH_BAR_MS} ms')
    finally:
        site.crowd.close()


def measure_nftables(report, services):
    site = Site(services, 'nftables')
    try:
        report.add(services, 'nftables', '`nft flush ruleset`', flushes(site, FLUSHES), FLUSH_BAR_MS, f'{FLUSH_BAR_MS} ms')
        report_storm(report, site, services)
    finally:
        site.crowd.close()


def report_storm(report, site, services):
    repairs, took = storm(site)
    met = repairs <= STORM_BAR
    report.missed += not met
    report.rows.append(f'| {services:,} | {site.crowd.mode} | {STORM} foreign changes in {took:.1f} s | {repairs:.0f} repairs | | '
                       f'{STORM_BAR} repairs | {"met" if met else "**missed**"} |')
    print(report.rows[-1], flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--build', type=pathlib.Path, default=ROOT / 'build-bench')
    parser.add_argument('--modes', default='iptables,nftables')
    parser.add_argument('--iptables-services', type=int, default=5000)
    parser.add_argument('--nftables-services', type=int, default=10000)
    parser.add_argument('--nftables-single-services', type=int, default=5000)
    parser.add_argument('--singles', type=int, default=SINGLE)
    parser.add_argument('--dry', action='store_true', help='do not write the page')
    given = parser.parse_args()
    os.environ['PORTOLAN'] = str((given.build / 'portolan').absolute())
    where, report = report_part.machine('bench-repair'), Report()
    if 'iptables' in given.modes:
        measure_iptables(report, given.iptables_services, str((given.build / 'bench' / 'bench-kernel-price').absolute()), given.singles)
    if 'nftables' in given.modes:
        measure_nftables_singles(report, given.nftables_single_services, given.singles)
        measure_nftables(report, given.nftables_services)
    if not given.dry:
        report_part.write('repair', 'bench-repair', report.page(where))
    return 1 if report.missed else 0


if __name__ == '__main__':
    sys.exit(main())

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""make bench-memory: the peak memory of kube-proxy and of Portolan below a real API server, in one run.

Fills an API server (see tests/cluster), then starts one proxy after the other, each on a node of its own and on the same
configuration file, and reads the largest resident size (VmHWM) when the first complete set of rules is out: kube-proxy has
handed it to iptables-restore, which is replaced by a program that only counts (it would take minutes, and its memory is not
kube-proxy's); Portolan says that it is in the kernel. Fails when the bar is missed; writes the figures into
docs/performance.md at full size.
"""
import argparse
import os
import pathlib
import platform
import re
import signal
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / 'tests'), str(ROOT / 'tests' / 'cluster')]

import configuration  # noqa: E402
from lab import objects  # noqa: E402
from lab.daemon import program  # noqa: E402
from lab.topology import wait_for  # noqa: E402
from stage import CLUSTER_CIDR, Process, Stage, version  # noqa: E402

BAR = 8
FULL = 10000
BATCH = 500
PAGE = ROOT / 'docs' / 'performance.md'
BEGIN, END = '<!-- memory: written by make bench-memory -->\n', '<!-- end of memory -->\n'
RESTORE = '''#!/bin/sh
case "$*" in *--version*) exec {real} "$@" ;; esac
wc -l >>"$COUNTS/{name}"
'''


def tools(stage):
    """A folder for PATH."""
    folder = pathlib.Path(stage.path('tools'))
    folder.mkdir()
    for name in ('iptables-restore', 'ip6tables-restore'):
        file = folder / name
        file.write_text(RESTORE.format(real=f'/usr/sbin/{name}', name=name), encoding='ascii')
        file.chmod(0o755)
    return folder


def fill(api, services, endpoints):
    api.create(objects.namespace('bench'))
    for first in range(0, services, BATCH):
        things = []
        for number in range(first, min(first + BATCH, services)):
            name = f'service-{number}'
            pods = [objects.away((number * endpoints + i) % 60000) for i in range(endpoints)]
            things += [objects.service('bench', name, families=(4,)),
                       objects.slice_of('bench', f'{name}-x7k2p', 4, pods, owner=name)]
        api.create_all(things)


def largest(path):
    return max([0, *map(int, path.read_text(encoding='ascii').split())]) if path.exists() else 0


def peak(stage, name, argv, env, is_done):
    """VmHWM in MiB."""
    node = stage.node(name)
    process = Process(node, *argv, env=env)
    try:
        wait_for(lambda: not process.running() or is_done(process), 180, step=0.1, what=f'{name} has written its rules')
        if not process.running():
            raise RuntimeError(process.tail())
        status = node.agent.call('read_file', path=f'/proc/{process.pid}/status')
    finally:
        if process.running():
            process.stop(signal.SIGKILL)
    return int(re.search(r'VmHWM:\s+(\d+) kB', status).group(1)) / 1024


def measure(services, endpoints):
    with Stage() as stage:
        stage.api.create(objects.node())
        fill(stage.api, services, endpoints)
        folder = tools(stage)
        counts = pathlib.Path(stage.path('counts'))
        counts.mkdir()
        config = stage.write('bench.conf', configuration.text(stage.kubeconfig(), [f'--cluster-cidr={CLUSTER_CIDR}']))
        arguments = configuration.arguments(config)
        lines = services * endpoints * 2  # at least: each endpoint has rules of its own
        counting = {'PATH': f'{folder}:{os.environ["PATH"]}:/usr/sbin:/sbin', 'COUNTS': str(counts)}

        def is_counted(_process):
            return largest(counts / 'iptables-restore') > lines and (counts / 'ip6tables-restore').exists()

        def is_told(process):
            return all(any('"First sync done"' in line and family in line for line in process.log.lines)
                       for family in ('IPv4', 'IPv6'))

        return (peak(stage, 'kube-proxy', [stage.program('kube-proxy'), *arguments], counting, is_counted),
                peak(stage, 'portolan', [program(), 'run', *arguments], {}, is_told))


def write_page(text):
    page = PAGE.read_text(encoding='utf-8')
    if BEGIN not in page:
        page += f'\n{BEGIN}{END}'
    head, rest = page.split(BEGIN)
    PAGE.write_text(f'{head}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}', encoding='utf-8')


def table(kube_proxy, portolan, services, endpoints):
    model = next((line.split(':', 1)[1].strip() for line in open('/proc/cpuinfo', encoding='ascii')
                  if line.startswith('model name')), platform.machine())
    return (f'Measured on {time.strftime("%Y-%m-%d", time.gmtime())} with `make bench-memory`: {model}, {os.cpu_count()} cores; '
            f'Linux {platform.release()}.\n\n'
            f'| below a real API server ({version()}), until the first rules are written | peak memory |\n|---|---|\n'
            f'| kube-proxy {version()}, {services:,} services x {endpoints} endpoints | {kube_proxy:.1f} MiB |\n'
            f'| Portolan, the same | **{portolan:.1f} MiB** (1/{kube_proxy / portolan:.1f}, bar 1/{BAR}) |\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--services', type=int, default=FULL)
    parser.add_argument('--endpoints', type=int, default=5)
    given = parser.parse_args()
    kube_proxy, portolan = measure(given.services, given.endpoints)
    is_met = portolan * BAR <= kube_proxy
    verdict = ('met' if is_met else 'missed') if given.services >= FULL else f'is for {FULL:,} services'
    print(f'{given.services:,} services x {given.endpoints} endpoints: kube-proxy {kube_proxy:.1f} MiB, Portolan '
          f'{portolan:.1f} MiB, 1/{kube_proxy / portolan:.1f} of it; bar 1/{BAR}: {verdict}')
    if given.services >= FULL:
        write_page(table(kube_proxy, portolan, given.services, given.endpoints))
    return 0 if is_met or given.services < FULL else 1


if __name__ == '__main__':
    sys.exit(main())

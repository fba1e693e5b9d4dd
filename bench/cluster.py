#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""make bench-cluster: kube-proxy and Portolan below the same API server, one after the other, each in fresh namespaces.

What is measured, and how, is written in docs/performance.md, which this program fills in together with the plots beside it.
A run may be split: each contestant at each size is an entry of the results file, and a newer entry takes the place of an
older one. --report only writes the page from what the file holds.

    bench/cluster.py --only kube-proxy-iptables-nft,portolan-iptables-nft --sizes 1000,5000
    bench/cluster.py --only portolan-nftables --sizes 100,30000 --source manifests
    bench/cluster.py --sizes 5006x50 --only kube-proxy-nftables,portolan-nftables
"""
import argparse
import json
import os
import pathlib
import platform
import resource
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import cluster_report  # noqa: E402
import stage  # noqa: E402
from cluster_measure import CONTESTANTS, Run  # noqa: E402
from cluster_world import ROOT, Size, Worlds, version  # noqa: E402

SIZES = '100,1000,5000,10000'
SMALL = 1000  # sizes below are there for the latency of connections
TOOLS = ('bench-backend', 'bench-probe', 'bench-kernel-price')


def options(arguments):
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    names = [contestant.name for contestant in CONTESTANTS]
    parser.add_argument('--sizes', default=SIZES, help='services, or services x endpoints (5006x50), comma separated')
    parser.add_argument('--only', default='', help='contestants, comma separated: ' + ', '.join(names))
    parser.add_argument('--source', choices=('api', 'manifests'), default='api', help='where Portolan gets its objects')
    parser.add_argument('--bound', type=int, default=400, help='seconds that a cold start may take')
    parser.add_argument('--changes', type=int, default=20)
    parser.add_argument('--change-bound', type=int, default=90, help='seconds that a change may take')
    parser.add_argument('--change-budget', type=int, default=60, help='no further change is begun after so many seconds')
    parser.add_argument('--bulk-from', type=int, default=SMALL, help='many services in one sync: from so many services on')
    parser.add_argument('--build', type=pathlib.Path, default=ROOT / 'build-bench', help='optimised build folder')
    parser.add_argument('--results', type=pathlib.Path, default=ROOT / 'build-bench' / 'cluster.json')
    parser.add_argument('--report', action='store_true', help='measure nothing, write the page from the results')
    parser.add_argument('--no-page', action='store_true', help='leave docs/ alone')
    given = parser.parse_args(arguments)
    wanted = given.only.split(',') if given.only else [one.name for one in CONTESTANTS if one.default]
    unknown = set(wanted) - set(names)
    if unknown:
        parser.error('no such contestant: ' + ', '.join(sorted(unknown)))
    given.contestants = [one for one in CONTESTANTS if one.name in wanted]
    given.sizes = sorted((Size.parse(word) for word in given.sizes.split(',')), key=lambda size: (size.endpoints, size.services))
    given.chosen = bool(given.only)
    return given


def build(folder):
    """portolan and the tools, as users get them."""
    if not (folder / 'build.ninja').exists():
        subprocess.run(['/usr/bin/python3', '/usr/bin/meson', 'setup', folder, '--buildtype=release', '-Doptimization=2',
                        '-Dtests=false'], check=True, stdout=subprocess.DEVNULL, cwd=ROOT)
    subprocess.run(['ninja', '-C', folder, 'portolan', *(f'bench/{tool}' for tool in TOOLS)], check=True,
                   stdout=subprocess.DEVNULL)


class Results:
    """Entries by contestant, size and source, in a file."""

    def __init__(self, path):
        self.path = path
        self.entries = json.loads(path.read_text(encoding='utf-8'))['entries'] if path.exists() else []

    def add(self, entry):
        key = ('contestant', 'size', 'source')
        self.entries = [old for old in self.entries if any(old[part] != entry[part] for part in key)] + [entry]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = self.path.with_suffix('.new')
        new.write_text(json.dumps({'entries': self.entries}, indent=1) + '\n', encoding='utf-8')
        new.rename(self.path)


def circumstances(given):
    """What stands beside every figure."""
    model = next((line.split(':', 1)[1].strip() for line in open('/proc/cpuinfo', encoding='utf-8')
                  if line.startswith('model name')), platform.machine())
    with open('/proc/meminfo', encoding='ascii') as file:
        memory = int(file.readline().split()[1]) / 2**20
    commit = subprocess.run(['git', 'rev-parse', '--short=12', 'HEAD'], cwd=ROOT, capture_output=True, text=True, check=False)
    return {'processor': f'{model}, {os.cpu_count()} cores, {memory:.0f} GiB', 'linux': f'Linux {platform.release()}',
            'iptables': version('/usr/sbin/iptables', '--version'), 'nft': version('/usr/sbin/nft', '--version'),
            'kubernetes': stage.version(), 'commit': commit.stdout.strip(), 'load_before': os.getloadavg()[0],
            'date': time.strftime('%Y-%m-%d %H:%M', time.gmtime()),
            'command': 'make bench-cluster' + (f" ARGS='{' '.join(sys.argv[1:])}'" if sys.argv[1:] else '')}


def takes_part(contestant, size, given):
    """Why not, or nothing."""
    if given.source == 'manifests' and not contestant.is_portolan:
        return 'kube-proxy reads no manifests'
    if size.services < SMALL and not given.chosen and not contestant.is_portolan:
        return f'only Portolan is measured below {SMALL:,} services'
    missing = contestant.missing(given.help_text)
    return f'this Portolan has no {missing}' if missing else ''


def measure(given, results, progress):
    session = time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())
    with Worlds(progress) as worlds:
        for size in given.sizes:
            for contestant in given.contestants:
                why = takes_part(contestant, size, given)
                if why:
                    progress(f'{contestant.name} at {size}: left out, {why}')
                    continue
                content = worlds.plain(size) if given.source == 'manifests' else worlds.get(size)
                progress(f'{contestant.name} at {size}')
                entry = circumstances(given)
                entry.update(Run(content, contestant, given, progress).measure(), session=session)
                results.add(entry)


def main():
    given = options(sys.argv[1:])
    begin = time.monotonic()

    def progress(text):
        print(f'{time.monotonic() - begin:7.1f} s  {text}', flush=True)

    results = Results(given.results)
    if not given.report:
        build(given.build)
        given.tools = (given.build / 'bench').resolve()
        given.portolan = pathlib.Path(os.environ.get('PORTOLAN') or given.build / 'portolan').resolve()
        given.help_text = subprocess.run([given.portolan, 'run', '--help'], capture_output=True, text=True, check=True).stdout
        measure(given, results, progress)
        used = resource.getrusage(resource.RUSAGE_SELF)
        progress(f'done; this program itself used {used.ru_utime + used.ru_stime:.1f} s of CPU')
    missed = cluster_report.write(results.entries, page=not given.no_page)
    return 1 if missed and not os.environ.get('CI') else 0


if __name__ == '__main__':
    sys.exit(main())

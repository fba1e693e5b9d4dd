#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""bench/footprint.py [PROGRAM...]: what a daemon costs that has nothing to do, and how soon it knows a cluster.

Starts each program (build/portolan if none is named) below a real API server (see tests/cluster), in turn and --rounds times: with
no Service, for the shared libraries and the resident size (VmRSS, a second after the first sync), then with --services of 5
endpoints each, for the time from the start to the first sync of both families. Prints medians.
"""
import argparse
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / 'tests'), str(ROOT / 'tests' / 'cluster'), str(ROOT / 'bench')]

from lab import objects  # noqa: E402
from cluster_memory import fill  # noqa: E402
from stage import CLUSTER_CIDR, NODE, Process, Stage  # noqa: E402

ENDPOINTS = 5


def libraries(program):
    return subprocess.run(['ldd', program], capture_output=True, text=True, check=True).stdout.count(' => ')


def run(stage, node, program):
    """Seconds to the first sync, and MiB a second later."""
    start = time.monotonic()
    process = Process(node, program, 'run', f'--kubeconfig={stage.kubeconfig()}', f'--hostname-override={NODE}', '--v=2',
                      f'--cluster-cidr={CLUSTER_CIDR}', '--conntrack-max-per-core=0')
    try:
        for family in (4, 6):
            process.log.wait_line(f'"First sync done" ipFamily="IPv{family}"', timeout=120)
        seconds = time.monotonic() - start
        time.sleep(1)  # until all that the start needed is given back
        status = node.agent.call('read_file', path=f'/proc/{process.pid}/status')
    finally:
        process.stop(signal.SIGKILL)
    return seconds, int(re.search(r'VmRSS:\s+(\d+) kB', status).group(1)) / 1024


def measure(stage, node, programs, rounds):
    """By program: medians of both."""
    found = {program: [] for program in programs}
    for _ in range(rounds):
        for program in programs:
            found[program].append(run(stage, node, program))
    return {program: [statistics.median(column) for column in zip(*rows)] for program, rows in found.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('programs', nargs='*', default=[str(ROOT / 'build' / 'portolan')])
    parser.add_argument('--services', type=int, default=5000)
    parser.add_argument('--rounds', type=int, default=5)
    arguments = parser.parse_args()
    with Stage() as stage:
        stage.api.create(objects.node())
        node = stage.node('footprint')
        empty = measure(stage, node, arguments.programs, arguments.rounds)
        fill(stage.api, arguments.services, ENDPOINTS)
        full = measure(stage, node, arguments.programs, arguments.rounds)
    for program in arguments.programs:
        print(f'{program}: {libraries(program)} libraries; no Service: {empty[program][1]:.1f} MiB; {arguments.services} services x '
              f'{ENDPOINTS}: first sync after {full[program][0]:.2f} s, then {full[program][1]:.1f} MiB')


if __name__ == '__main__':
    main()

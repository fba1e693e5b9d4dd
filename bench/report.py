# SPDX-License-Identifier: Apache-2.0
"""Where a measurement was made, and its part of docs/performance.md, between the marks that name its command."""
import datetime
import os
import pathlib
import platform
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / 'docs' / 'performance.md'


def machine(command):
    """When, what was measured, with which command, on what; one line."""
    model = next((line.split(':', 1)[1].strip() for line in open('/proc/cpuinfo', encoding='ascii', errors='replace')
                  if line.startswith('model name')), platform.machine())
    commit = subprocess.run(['git', 'rev-parse', '--short=12', 'HEAD'], capture_output=True, text=True, check=False, cwd=ROOT)
    with open('/proc/loadavg', encoding='ascii') as file:
        load = file.read().split()[0]
    now = datetime.datetime.now(datetime.timezone.utc)
    return (f'{now:%Y-%m-%d %H:%M} UTC, commit {commit.stdout.strip()}, `make {command}`: {model}, {os.cpu_count()} cores; '
            f'Linux {platform.release()}. Load before: {load}.')


def write(name, command, text):
    begin, end = f'<!-- {name}: written by make {command} -->\n', f'<!-- end of {name} -->\n'
    head, rest = PAGE.read_text(encoding='utf-8').split(begin)
    PAGE.write_text(head + begin + '\n' + text + '\n' + end + rest.split(end)[1], encoding='utf-8')

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""daemon.py PORTOLAN MANIFESTS [FLAG...]: lets the daemon write to an empty host over netlink, prints what iptables-save shows.

To be run in a network namespace of its own. Both families, with a NUL between them; comment lines with the time are left
out. The host has the addresses of the Node, as a dry run assumes. --node-name is called --hostname-override there.
"""
import os
import re
import subprocess
import sys

import oracle


def wait_synced(daemon):
    """Both families, or the end of the daemon."""
    missing, lines = {'4', '6'}, []
    for line in daemon.stderr:
        lines.append(line)
        found = re.search(r'"First sync done" ipFamily="IPv([46])"', line)
        if found:
            missing.discard(found[1])
        if not missing:
            return
    sys.exit('the daemon ended before its first sync:\n' + ''.join(lines))


def node_addresses(manifests):
    for thing in oracle.load(manifests):
        if thing['kind'] == 'Node':
            for entry in (thing.get('status') or {}).get('addresses') or ():
                if entry['type'].endswith('IP'):
                    yield entry['address']


def save(tool):
    done = subprocess.run([f'{tool}-save'], check=True, text=True, stdout=subprocess.PIPE)
    return ''.join(f'{line}\n' for line in done.stdout.splitlines() if not line.startswith('#'))


def main():
    program, manifests, *flags = sys.argv[1:]
    subprocess.run(['ip', 'link', 'set', 'lo', 'up'], check=True)
    for address in node_addresses(manifests):
        subprocess.run(['ip', 'address', 'add', address, 'dev', 'lo'], stderr=subprocess.DEVNULL, check=False)  # 127.0.0.1 is there
    flags = [flag.replace('--node-name', '--hostname-override') for flag in flags]
    command = [program, 'run', '--manifests', manifests, '--iptables-writer=netlink', '--conntrack-max-per-core=0',
               '--healthz-bind-address=', '--metrics-bind-address=', *flags]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as daemon:
        try:
            wait_synced(daemon)
            sys.stdout.write(save('iptables') + '\0' + save('ip6tables'))
        finally:
            daemon.terminate()


if __name__ == '__main__':
    os.environ['PATH'] = '/usr/sbin:/sbin:' + os.environ.get('PATH', '')
    main()

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""apply.py 4|6: applies the restore text on standard input to an empty host and prints what iptables-save shows.

To be run in a network namespace of its own. Does what a first sync does: ensures the jumps of the base chains one by
one, makes the canaries and the two nfacct counters that rules refer to, restores. Comment lines with the time are left out.
Exit status 77: the kernel has no nfacct.
"""
import os
import socket
import struct
import subprocess
import sys

import oracle

COUNTERS = ('ct_state_invalid_dropped_pkts', 'localhost_nps_accepted_pkts')
NETLINK_NETFILTER = 12
NFNL_SUBSYS_ACCT = 7
NLM_REQUEST_ACK_CREATE = 0x1 | 0x4 | 0x400
NLMSG_ERROR = 2


def make_counter(name):
    """nfacct add NAME"""
    value = name.encode() + b'\0'
    attribute = struct.pack('=HH', 4 + len(value), 1) + value + b'\0' * (-len(value) % 4)
    body = struct.pack('=BBH', 0, 0, 0) + attribute
    header = struct.pack('=IHHII', 16 + len(body), NFNL_SUBSYS_ACCT << 8, NLM_REQUEST_ACK_CREATE, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER) as link:
        link.send(header + body)
        answer = link.recv(65536)
    kind, = struct.unpack_from('=H', answer, 4)
    error, = struct.unpack_from('=i', answer, 16)
    return -error if kind == NLMSG_ERROR else 0


def run(*command, **more):
    return subprocess.run(command, check=True, text=True, **more)


def main():
    if any(make_counter(name) for name in COUNTERS):
        sys.exit(77)
    tool = {'4': 'iptables', '6': 'ip6tables'}[sys.argv[1]]
    for row in oracle.JUMPS:
        # The chain may be there already: exit status 1, which is fine.
        subprocess.run([tool, '-w', '5', '-N', row[2], '-t', row[0]], stderr=subprocess.DEVNULL, check=False)
        state = ['-m', 'conntrack', '--ctstate', row[3]] if row[3] else []
        words = ['-m', 'comment', '--comment', row[4]] if row[4] else []
        run(tool, '-w', '5', '-I', row[1], '-t', row[0], *state, *words, '-j', row[2])
    for table in oracle.BASE_CHAINS:
        run(tool, '-w', '5', '-N', oracle.CANARY, '-t', table)
    run(f'{tool}-restore', '-w', '5', '--noflush', '--counters', input=sys.stdin.read())
    lines = run(f'{tool}-save', stdout=subprocess.PIPE).stdout.splitlines()
    sys.stdout.write(''.join(f'{line}\n' for line in lines if not line.startswith('#')))


if __name__ == '__main__':
    os.environ['PATH'] = '/usr/sbin:/sbin:' + os.environ.get('PATH', '')
    main()

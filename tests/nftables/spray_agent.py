# SPDX-License-Identifier: Apache-2.0
"""Many small UDP flows, and who gets them. Runs in a namespace of a lab.

    spray_agent.py serve PORT                 answers every datagram with the address it was sent to, from that address
    spray_agent.py ask ADDRESS PORT CLIENTS FLOWS SOURCE_PORT BASE
        one datagram from each of CLIENTS addresses (BASE and those after it) and FLOWS source ports; prints
        {"client port": address} of those that were answered
"""
import ipaddress
import json
import select
import socket
import struct
import sys
import time

IP_PKTINFO, IPV6_RECVPKTINFO, IPV6_PKTINFO = 8, 49, 50
AT_A_TIME = 200
PATIENCE = 20


def open_server(family, port):
    sock = socket.socket(family, socket.SOCK_DGRAM)
    if family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.setsockopt(socket.IPPROTO_IPV6, IPV6_RECVPKTINFO, 1)
    else:
        sock.setsockopt(socket.IPPROTO_IP, IP_PKTINFO, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    sock.bind(('', port))
    return sock


def answer(sock):
    _data, control, _flags, peer = sock.recvmsg(64, 128)
    level, kind, data = control[0]
    if level == socket.IPPROTO_IPV6:
        address, back = data[:16], data[:16] + struct.pack('=I', 0)
    else:
        address, back = data[8:12], struct.pack('=I4s4s', 0, data[8:12], b'\0' * 4)
    sock.sendmsg([str(ipaddress.ip_address(address)).encode()], [(level, kind, back)], 0, peer)


def serve(port):
    socks = [open_server(family, int(port)) for family in (socket.AF_INET, socket.AF_INET6)]
    print('ready', flush=True)
    while True:
        for sock in select.select(socks, [], [])[0]:
            answer(sock)


def open_flow(source, port, target):
    sock = socket.socket(socket.AF_INET6 if ':' in source else socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind((source, port))
    sock.connect(target)
    sock.send(b'?')
    return sock


def ask(address, port, clients, flows, source_port, base):
    base = ipaddress.ip_address(base)
    jobs = [(str(base + client), int(source_port) + flow) for client in range(int(clients)) for flow in range(int(flows))]
    found = {}
    for at in range(0, len(jobs), AT_A_TIME):
        batch = [(job, open_flow(*job, (address, int(port)))) for job in jobs[at:at + AT_A_TIME]]
        deadline = time.monotonic() + PATIENCE
        for (source, number), sock in batch:
            with sock:
                sock.settimeout(max(0, deadline - time.monotonic()))
                try:
                    found[f'{source} {number}'] = sock.recv(64).decode()
                except OSError:
                    pass
    print(json.dumps(found))


if __name__ == '__main__':
    {'serve': serve, 'ask': ask}[sys.argv[1]](*sys.argv[2:])

# SPDX-License-Identifier: Apache-2.0
"""A client outside that sends what it likes to the node: all attacks at once, from a fixed seed, until it is stopped.

    hold       connections to HTTP ports that say nothing, opened again when they are closed
    drip       requests that never end, a byte at a time
    garbage    random bytes, broken and oversized requests
    flood      datagrams to Service addresses, each from another source address
    odd        packets of packets.py to Service addresses, NodePorts and HTTP ports
"""
import ipaddress
import random
import resource
import selectors
import socket
import struct
import threading
import time

import packets
from lab import arm

SOURCES = {4: int(ipaddress.ip_address("203.0.113.0")), 6: int(ipaddress.ip_address("2001:db8:113::"))}
REQUESTS = [
    b"GET /metrics HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    b"GET http://evil.example/healthz HTTP/1.1\r\nHost: x\r\n\r\n",
    b"POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 50\r\n\r\nhello",
    b"GET / HTTP/9.9\r\n\r\n",
    b"GET /" + b"a" * 70000 + b" HTTP/1.1\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\n" + b"X: y\r\n" * 3000 + b"\r\n",
    b"PUT /debug/flags/v HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n9",
    b"GET /livez HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"\r\n" * 2000,
]


class State:
    def __init__(self, node, seed):
        resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
        self.node, self.seed = node, seed
        self.stopping, self.threads, self.counts = threading.Event(), [], {}

    def begin(self, ports, held, flooded, datagrams, targets, odd):
        """ports: of HTTP servers; held: connections to each; flooded: [address, port] of UDP Services, with so many datagrams;
        targets: [address, port, protocol], with so many odd packets."""
        self.stopping.clear()
        self.counts = {"held": 0, "garbage": 0, "datagrams": 0, "segments": 0, "fragments": 0, "icmp": 0, "unsent": 0}
        for attack, arguments in ((self.hold, (ports, held)), (self.garbage, (ports,)), (self.flood, (flooded, datagrams)),
                                  (self.odd, (targets, odd))):
            self.threads.append(threading.Thread(target=attack, args=arguments, daemon=True))
            self.threads[-1].start()

    def end(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join()
        self.threads = []
        return self.counts

    def open(self, port):
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        sock.connect_ex((self.node, port))
        return sock

    def hold(self, ports, held):
        """Every third one drips. What the daemon closes is opened again, a few at a time."""
        draw, selector, wanted = random.Random(self.seed), selectors.DefaultSelector(), [port for port in ports for _ in range(held)]
        while not self.stopping.is_set():
            for port in wanted[:50]:
                selector.register(self.open(port), selectors.EVENT_READ, port)
                self.counts["held"] += 1
            wanted = wanted[50:]
            for key, _ in selector.select(0.02):
                selector.unregister(key.fileobj)
                key.fileobj.close()
                wanted.append(key.data)
            keys = list(selector.get_map().values())
            for key in draw.sample(keys, len(keys) // 30):
                try:
                    key.fileobj.send(draw.choice([b"G", b"X: y\r\n", b"GET /healthz HTTP/1.1\r\n"]))
                except OSError:
                    pass  # not connected yet, or no more
        for key in list(selector.get_map().values()):
            key.fileobj.close()

    def garbage(self, ports):
        draw = random.Random(self.seed + 1)
        while not self.stopping.is_set():
            try:
                with socket.create_connection((self.node, draw.choice(ports)), timeout=1) as sock:
                    sock.sendall(draw.choice([*REQUESTS, draw.randbytes(draw.choice([1, 100, 5000]))]))
                    if draw.random() < 0.5:
                        sock.recv(100)
            except OSError:
                pass  # refused, closed or too slow: all of it is allowed
            self.counts["garbage"] += 1

    def flood(self, flooded, datagrams):
        """One socket for each family sends from any address that leads here."""
        draw = random.Random(self.seed + 2)
        socks = {family: socket.socket(kind, socket.SOCK_DGRAM) for family, kind in ((4, socket.AF_INET), (6, socket.AF_INET6))}
        begun = time.monotonic()
        while flooded and self.counts["datagrams"] < datagrams and not self.stopping.is_set():
            address, port = draw.choice(flooded)
            family = 6 if ":" in address else 4
            source = (SOURCES[family] + draw.randrange(1, 255 if family == 4 else 1 << 40)).to_bytes(4 if family == 4 else 16, "big")
            info = (socket.IPPROTO_IP, 8, struct.pack("=i4s4s", 0, source, b"\0" * 4)) if family == 4 else (
                socket.IPPROTO_IPV6, socket.IPV6_PKTINFO, struct.pack("=16si", source, 0))
            try:
                socks[family].sendmsg([b"x"], [info], 0, (address, port))
            except OSError:
                pass  # nobody serves it at the moment
            self.counts["datagrams"] += 1
            self.pace(begun, self.counts["datagrams"], 4000)

    def odd(self, targets, count):
        """Whole packets, with any source address."""
        drawn = packets.Packets(random.Random(self.seed + 3), targets)
        kinds = {4: socket.AF_INET, 6: socket.AF_INET6}
        socks = {family: socket.socket(kind, socket.SOCK_RAW, socket.IPPROTO_RAW) for family, kind in kinds.items()}
        begun, sent = time.monotonic(), 0
        while sent < count and not self.stopping.is_set():
            kind, address, some = drawn.some()
            for packet in some:
                try:
                    socks[6 if ":" in address else 4].sendto(packet, (address, 0))
                    self.counts[kind] += 1
                except OSError:
                    self.counts["unsent"] += 1
                sent += 1
                self.pace(begun, sent, 1500)

    def pace(self, begun, done, rate):
        """So many a second, fifty at a time."""
        if done % 50 == 0:
            self.stopping.wait(max(0, begun + done / rate - time.monotonic()))


if __name__ == "__main__":
    arm.main(State)

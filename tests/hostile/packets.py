# SPDX-License-Identifier: Apache-2.0
"""Packets that no client's kernel would send, made by hand for a raw socket: drawn from tables, so that a seed repeats them.

    segments    every odd set of TCP flags, headers that lie about their length, wrong checksums
    fragments   first ones without a rest, rests without a first one, overlapping and tiny ones
    icmp        errors about connections that do not exist, with MTUs that cannot be, unknown types, cut off anywhere

Half of the sources answer with a reset to what comes back, from the others nothing is ever heard. There are few of them, so that
none is forgotten where a Service remembers its clients.
"""
import ipaddress
import socket
import struct

TCP, UDP, ICMP, ICMP6, FRAGMENT = 6, 17, 1, 58, 44
SOURCES = {4: ("203.0.113.200", "100.64.0.1"), 6: ("2001:db8:113::200", "2001:db8:64::1")}  # leads here, leads nowhere
SOURCES_EACH = 20
FIN, SYN, RST, PUSH, ACK, URGENT = (1 << bit for bit in range(6))
FLAGS = [SYN] * 6 + [RST, RST | ACK, ACK, FIN, SYN | FIN, SYN | RST, SYN | ACK, FIN | PUSH | URGENT, 0, 0xFF]
OFFSETS = [5] * 8 + [0, 4, 15]  # of TCP data, in words
MTUS = [0, 1, 68, 1279, 1280, 65535]
ICMP_TYPES = {4: [(3, 4), (3, 0), (3, 1), (3, 3), (3, 255), (4, 0), (5, 1), (11, 0), (12, 0), (13, 0), (17, 0), (8, 9), (0, 0), (255, 255)],
              6: [(2, 0), (1, 0), (1, 4), (1, 255), (3, 0), (4, 0), (128, 9), (129, 0), (130, 0), (137, 0), (139, 0), (200, 1), (255, 255)]}


def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data[:len(data) & ~1])) + (data[-1] << 8 if len(data) % 2 else 0)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def packed(address):
    return socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address)


def pseudo(source, target, proto, length):
    if len(source) == 4:
        return source + target + struct.pack("!BBH", 0, proto, length)
    return source + target + struct.pack("!II", length, proto)


def summed(proto, source, target, data, at):
    """With the checksum, which is `at` that place."""
    head = b"" if proto == ICMP else pseudo(source, target, proto, len(data))
    return data[:at] + struct.pack("!H", checksum(head + data)) + data[at + 2:]


def header(source, target, proto, length, identification=0, offset=0):
    """Of IPv4, in which the kernel writes the checksum, or of IPv6; offset: with IPv4's flags."""
    if len(source) == 4:
        return struct.pack("!BBHHHBBH", 0x45, 0, 20 + length, identification, offset, 64, proto, 0) + source + target
    return struct.pack("!IHBB", 0x60000000, length, proto, 64) + source + target


class Packets:
    """Packets for the destinations: [address, port, protocol]."""

    def __init__(self, draw, destinations):
        self.draw, self.destinations = draw, destinations
        self.kinds = {"segments": self.segments, "fragments": self.fragments, "icmp": self.icmp}

    def some(self):
        """The name of a kind, the address that it goes to, and the packets, some of which belong together."""
        kind = self.draw.choice(["segments", "segments", "fragments", "icmp"])
        address, port, proto = self.draw.choice(self.destinations)
        return kind, address, self.kinds[kind](self.source(6 if ":" in address else 4), packed(address), port, proto)

    def source(self, family):
        first = int(ipaddress.ip_address(self.draw.choice(SOURCES[family])))
        return (first + self.draw.randrange(SOURCES_EACH)).to_bytes(4 if family == 4 else 16, "big")

    def payload(self, source, target, port, proto):
        """What a Service of that protocol might get; its checksum is right, but for some."""
        draw, ours = self.draw, self.draw.randrange(1024, 65536)
        if proto == "UDP":
            head = struct.pack("!HHHH", ours, port, draw.choice([16, 16, 16, 0, 7, 65535]), 0)
            return summed(UDP, source, target, head + b"12345678", 6)
        segment = struct.pack("!HHIIBBHHH", draw.choice([ours, ours, ours, 0, port]), port, draw.getrandbits(32), draw.getrandbits(32),
                              draw.choice(OFFSETS) << 4, draw.choice(FLAGS), draw.choice([0, 1024, 65535]), 0, draw.choice([0, 7]))
        return segment + b"xx" if draw.random() < 0.1 else summed(TCP, source, target, segment, 16)

    def segments(self, source, target, port, proto):
        data = self.payload(source, target, port, proto)
        number = UDP if proto == "UDP" else TCP
        data = data[:self.draw.choice([len(data)] * 9 + [4])]
        return [header(source, target, number, len(data)) + data]

    def fragments(self, source, target, port, proto):
        """Pieces by their place and length, and whether more are to come."""
        data = self.payload(source, target, port, proto) + bytes(64)
        pieces = self.draw.choice([[(0, 8, 1)], [(8, 16, 0)], [(0, 24, 1), (8, 32, 0)], [(0, 8, 1), (8, 40, 0)], [(8, 40, 0), (0, 8, 1)],
                                   [(0, 24, 1), (0, 24, 1), (24, 16, 0)], [(65528, 8, 0)], [(0, 24, 0), (16, 8, 1)]])
        number, identification = UDP if proto == "UDP" else TCP, self.draw.getrandbits(32)
        return [self.piece(source, target, number, identification, at, more, data[at % 64:][:length]) for at, length, more in pieces]

    @staticmethod
    def piece(source, target, number, identification, at, more, data):
        if len(source) == 4:
            return header(source, target, number, len(data), identification & 0xFFFF or 1, at // 8 | more << 13) + data
        extension = struct.pack("!BBHI", number, 0, at & ~7 | more, identification)
        return header(source, target, FRAGMENT, len(extension) + len(data)) + extension + data

    def icmp(self, source, target, port, proto):
        """About a packet of the target's to the source, as if a router on the way had one."""
        draw, family = self.draw, 4 if len(source) == 4 else 6
        kind, code = draw.choice(ICMP_TYPES[family])
        about = struct.pack("!HHIIBBHHH", port, draw.randrange(1024, 65536), draw.getrandbits(32), 0, 5 << 4, ACK, 1024, 0, 0)
        inner = header(target, source, UDP if proto == "UDP" else TCP, len(about)) + about
        data = struct.pack("!BBHI", kind, code, 0, draw.choice(MTUS)) + inner[:draw.choice([len(inner)] * 6 + [0, 10, 20, 28, 44])]
        number = ICMP if family == 4 else ICMP6
        data = summed(number, source, target, data, 2)
        return [header(source, target, number, len(data)) + data]

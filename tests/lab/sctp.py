# SPDX-License-Identifier: Apache-2.0
"""SCTP by hand, for kernels without SCTP sockets: an INIT out of a raw socket, and who hears it.

        0                                31
       | source port | destination port |   common header
       | verification tag (0 in INIT)   |
       | CRC32c, little-endian          |
       | 1 | 0 | chunk length           |   INIT chunk
       | initiate tag                   |   by which the listener knows its packet
       | advertised window              |
       | streams out | streams in       |
       | initial TSN                    |
"""

import socket
import struct
import threading
import time

PROTO = 132
INIT = struct.Struct("!HHIIBBHIIHHI")


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def init_packet(source_port, port, tag):
    def pack(checksum):
        return INIT.pack(source_port, port, 0, checksum, 1, 0, 20, tag, 65536, 10, 10, 1)

    (checksum,) = struct.unpack("!I", struct.pack("<I", crc32c(pack(0))))
    return pack(checksum)


def raw(family):
    return socket.socket(socket.AF_INET if family == 4 else socket.AF_INET6, socket.SOCK_RAW, PROTO)


def send_init(address, port, source_port, tag):
    with raw(6 if ":" in address else 4) as sock:
        sock.sendto(init_packet(source_port, port, tag), (address, 0))


class Listener:
    """Hears the INITs that arrive in the namespace, from its construction until the lab ends."""

    def __init__(self, family):
        self._family = family
        self._sock = raw(family)
        self._heard = {}
        self._changed = threading.Condition()
        threading.Thread(target=self._loop, daemon=True).start()

    def _loop(self):
        while True:
            data, peer = self._sock.recvfrom(4096)
            if self._family == 4:
                data = data[(data[0] & 15) * 4 :]
            if len(data) < INIT.size:
                continue
            fields = INIT.unpack_from(data)
            good = data[: INIT.size] == init_packet(fields[0], fields[1], fields[7])
            with self._changed:
                self._heard[fields[7]] = {"source": peer[0], "port": fields[1], "checksum": good}
                self._changed.notify_all()

    def wait(self, tag, timeout):
        """Source address, destination port and the checksum's state of the INIT with this tag, or None."""
        deadline = time.monotonic() + timeout
        with self._changed:
            self._changed.wait_for(lambda: tag in self._heard, deadline - time.monotonic())
            return self._heard.get(tag)

# SPDX-License-Identifier: Apache-2.0
"""Messages between the test program and the processes of a lab.

A message is four bytes of length and that much JSON, over a stream socket. File descriptors ride on the
first byte. A request is {"id", "op", "args"}; its reply has the same id and either "result" or "error".
"""

import json
import socket
import struct
import threading

HEADER = struct.Struct("!I")
MAX_FDS = 4


class RemoteError(Exception):
    """What went wrong on the other side, with its traceback."""


def send(sock, message, fds=()):
    data = json.dumps(message).encode()
    header = HEADER.pack(len(data))
    if fds:
        socket.send_fds(sock, [header], list(fds))
    else:
        sock.sendall(header)
    sock.sendall(data)


def _read_exactly(sock, size):
    data = bytearray()
    while len(data) < size:
        piece = sock.recv(size - len(data))
        if not piece:
            raise EOFError
        data += piece
    return bytes(data)


def receive(sock):
    """One message and the file descriptors that came with it. EOFError at the end."""
    header, fds, _flags, _addr = socket.recv_fds(sock, HEADER.size, MAX_FDS)
    if not header:
        raise EOFError
    if len(header) < HEADER.size:
        header += _read_exactly(sock, HEADER.size - len(header))
    (size,) = HEADER.unpack(header)
    return json.loads(_read_exactly(sock, size)), fds


class Pending:
    """The reply that has not come yet."""

    def __init__(self, what):
        self._what = what
        self._done = threading.Event()
        self._reply = None

    def settle(self, reply):
        self._reply = reply
        self._done.set()

    def result(self, timeout=60):
        if not self._done.wait(timeout):
            raise TimeoutError(f"no answer to {self._what} within {timeout} s")
        if "error" in self._reply:
            raise RemoteError(f"{self._what}: {self._reply['error']}")
        return self._reply["result"]


class Channel:
    """The asking side: calls may overlap, each reply finds its caller."""

    def __init__(self, sock, name):
        self.name = name
        self._sock = sock
        self._lock = threading.Lock()
        self._pending = {}
        self._next = 0
        self._closed = False
        threading.Thread(target=self._read, name=f"channel {name}", daemon=True).start()

    def _read(self):
        try:
            while True:
                reply, _fds = receive(self._sock)
                with self._lock:
                    pending = self._pending.pop(reply["id"])
                pending.settle(reply)
        except (EOFError, OSError):
            with self._lock:
                self._closed = True
                left, self._pending = self._pending, {}
            for pending in left.values():
                pending.settle({"error": f"{self.name} went away"})

    def start(self, op, fds=(), **args):
        pending = Pending(f"{self.name}: {op}")
        with self._lock:
            if self._closed:
                raise RemoteError(f"{self.name} went away")
            self._next += 1
            self._pending[self._next] = pending
            send(self._sock, {"id": self._next, "op": op, "args": args}, fds)
        return pending

    def call(self, op, fds=(), within=60, **args):
        return self.start(op, fds, **args).result(within)

    def close(self):
        try:
            self._sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._sock.close()

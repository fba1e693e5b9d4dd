# SPDX-License-Identifier: Apache-2.0
"""exchange.py serve|connect ADDRESS PORT BYTES: one end of a connection on which both ends send that many bytes at once.

The client then ends its direction; the server answers with a few words more and ends the other. Each prints in JSON how
much it sent and got with a digest of it, and what came behind.
"""
import hashlib
import json
import socket
import sys
import threading

BLOCK = bytes(range(251)) * 1024  # no power of two: a piece that is lost or repeated shows
TAIL = b"the end"


class Stream:
    """Bytes that were sent, or that have come."""

    def __init__(self):
        self.n, self.digest = 0, hashlib.sha256()

    def add(self, data):
        self.n += len(data)
        self.digest.update(data)

    def words(self):
        return [self.n, self.digest.hexdigest()]


def send(sock, total, stream, then):
    while stream.n < total:
        data = memoryview(BLOCK)[stream.n % 251:][:total - stream.n]
        stream.add(data[:sock.send(data)])
    then()


def receive(sock, total, stream):
    """To the end; what comes behind the total."""
    tail = b""
    while data := sock.recv(1 << 18):
        own = data[:max(0, total - stream.n)]
        stream.add(own)
        tail += data[len(own):]
    return tail


def connection(role, address, port):
    if role == "connect":
        return socket.create_connection((address, port))
    listener = socket.create_server((address, port), family=socket.AF_INET6 if ":" in address else socket.AF_INET)
    print("listening", flush=True)
    return listener.accept()[0]


def main():
    role, address, port, total = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    sock, sent, got = connection(role, address, port), Stream(), Stream()
    then = (lambda: sock.shutdown(socket.SHUT_WR)) if role == "connect" else (lambda: None)
    sender = threading.Thread(target=send, args=(sock, total, sent, then))
    sender.start()
    tail = receive(sock, total, got)
    sender.join()
    if role == "serve":
        sock.sendall(TAIL)
        sock.close()
    print(json.dumps({"sent": sent.words(), "got": got.words(), "tail": tail.decode()}), flush=True)


if __name__ == "__main__":
    main()

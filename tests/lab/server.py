# SPDX-License-Identifier: Apache-2.0
"""What runs in a pod: HTTP over TCP, and UDP, on the same ports.

Every answer is one line, `POD SOURCE PORT`: who answered, and the client's address as the pod saw it.
When the constructor returns, all ports are open. TCP connections stay open for further requests until the
client closes them.
"""

import os
import selectors
import socket
import threading

BACKLOG = 1024


def listen(kind, address, port):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    sock = socket.socket(family, kind | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    sock.bind((address, port))
    if kind == socket.SOCK_STREAM:
        sock.listen(BACKLOG)
    return sock


class Server:
    def __init__(self, pod, addresses, ports):
        self._pod = pod
        self._selector = selectors.DefaultSelector()
        for address in addresses:
            for port in ports:
                self._watch(listen(socket.SOCK_STREAM, address, port), self._accept)
                self._watch(listen(socket.SOCK_DGRAM, address, port), self._datagram)
        stop, self._stop = os.pipe2(os.O_CLOEXEC)
        self._selector.register(stop, selectors.EVENT_READ, None)
        self._thread = threading.Thread(target=self._loop, daemon=True)
        self._thread.start()

    def close(self):
        """As when a pod is killed: ports closed, open connections reset."""
        os.close(self._stop)
        self._thread.join()

    def _watch(self, sock, action):
        self._selector.register(sock, selectors.EVENT_READ, action)

    def _loop(self):
        while True:
            for key, _events in self._selector.select():
                if key.data is None:
                    self._close_all()
                    return
                key.data(key.fileobj)

    def _close_all(self):
        for key in list(self._selector.get_map().values()):
            if key.data is None:
                os.close(key.fd)
                continue
            if key.data == self._serve:
                reset_on_close(key.fileobj)
            key.fileobj.close()
        self._selector.close()

    def _line(self, peer):
        return f"{self._pod} {peer[0]} {peer[1]}\n".encode()

    def _accept(self, listener):
        try:
            sock, _peer = listener.accept()
        except OSError:
            return
        sock.setblocking(False)
        self._watch(sock, self._serve)
        self._serve(sock)

    def _serve(self, sock):
        try:
            data = sock.recv(4096)
            if data:
                body = self._line(sock.getpeername())
                sock.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
                return
        except BlockingIOError:
            return
        except OSError:
            pass
        self._selector.unregister(sock)
        sock.close()

    def _datagram(self, sock):
        try:
            _data, peer = sock.recvfrom(4096)
            sock.sendto(self._line(peer), peer)
        except OSError:
            pass


def reset_on_close(sock):
    """Close with a reset: no TIME-WAIT on either side, so that thousands of connections reuse ports freely."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")

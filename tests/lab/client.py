# SPDX-License-Identifier: Apache-2.0
"""Requests to pods, and what came of them.

A result is [pod, source, port, error, start, seconds]: who answered and which address and port it saw, or the class
of the error: refused, timeout, unreachable, prohibited, reset, closed, or the errno's name. start is CLOCK_MONOTONIC,
which all processes of the machine share.
"""

import errno
import itertools
import socket
import threading
import time

from lab.log import PATIENCE, SLOWNESS
from lab.server import reset_on_close

CLASSES = {
    errno.ECONNREFUSED: "refused",
    errno.EHOSTUNREACH: "unreachable",
    errno.ENETUNREACH: "unreachable",
    errno.EACCES: "prohibited",
    errno.EPERM: "prohibited",  # what sendto() says when the rules of its own host drop or reject a datagram
    errno.ECONNRESET: "reset",
    errno.EPIPE: "reset",
    errno.ETIMEDOUT: "timeout",
}
#: A UDP request is a flow of its own. Ports that the kernel chose would come back while conntrack still knows them.
PORTS = itertools.cycle(range(10000, 60000))
#: Seconds that a change under load may cost a request; who asks once is as patient as all else.
PROMPT = 5.0 * SLOWNESS
REQUEST = b"GET / HTTP/1.1\r\nHost: lab\r\n\r\n"


def classify(error):
    if isinstance(error, TimeoutError):
        return "timeout"
    return CLASSES.get(error.errno, errno.errorcode.get(error.errno, str(error)))


def connect(address, port, proto, timeout, source=None):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    kind = socket.SOCK_STREAM if proto == "TCP" else socket.SOCK_DGRAM
    sock = socket.socket(family, kind)
    try:
        sock.settimeout(timeout)
        if source or proto == "UDP":
            sock.bind((source or "", next(PORTS) if proto == "UDP" else 0))
        sock.connect((address, port))
    except BaseException:
        sock.close()
        raise
    return sock


def ask(sock):
    """The words of the answering pod; empty when it closed the connection without one."""
    sock.send(REQUEST)
    data = sock.recv(4096)
    return data.decode().split("\r\n\r\n")[-1].split()


def once(address, port, proto, timeout, source):
    start = time.monotonic()
    words, error = [], None
    try:
        with connect(address, port, proto, timeout, source) as sock:
            words = ask(sock)
            if proto == "TCP":
                reset_on_close(sock)
            if not words:
                error = "closed"
    except OSError as problem:
        error = classify(problem)
    seconds = time.monotonic() - start
    if error:
        return [None, None, None, error, start, seconds]
    return [words[0], words[1], int(words[2]), None, start, seconds]


def request(address, port, proto="TCP", count=1, timeout=PATIENCE, sources=(None,), parallel=1):
    """count requests from each of the sources, in their order, shared among `parallel` threads."""
    jobs = [source for source in sources for _ in range(count)]
    results = [None] * len(jobs)

    def work(first):
        for i in range(first, len(jobs), parallel):
            results[i] = once(address, port, proto, timeout, jobs[i])

    threads = [threading.Thread(target=work, args=(first,)) for first in range(1, parallel)]
    for thread in threads:
        thread.start()
    work(0)
    for thread in threads:
        thread.join()
    return results


class Load:
    """Requests one after the other until told to stop."""

    def __init__(self, address, port, proto="TCP", timeout=PROMPT, source=None):
        self._args = (address, port, proto, timeout, source)
        self._changed = threading.Condition()
        self._stopping = False
        self._results = []
        self._thread = threading.Thread(target=self._loop, daemon=True)
        self._thread.start()

    def _loop(self):
        while not self._stopping:
            result = once(*self._args)
            with self._changed:
                self._results.append(result)
                self._changed.notify_all()

    def wait(self, count):
        """Until this many requests more than now are over; answers with how many there are then."""
        with self._changed:
            goal = len(self._results) + count
            self._changed.wait_for(lambda: len(self._results) >= goal)
            return len(self._results)

    def so_far(self):
        with self._changed:
            return list(self._results)

    def stop(self):
        self._stopping = True
        self._thread.join()
        return self._results


class Talk:
    """One connection that stays open. For UDP: one flow."""

    def __init__(self, address, port, proto="TCP", timeout=PATIENCE, source=None):
        self._sock = connect(address, port, proto, timeout, source)

    def ask(self):
        start = time.monotonic()
        try:
            words = ask(self._sock)
        except OSError as problem:
            return [None, None, None, classify(problem), start, time.monotonic() - start]
        if not words:
            return [None, None, None, "closed", start, time.monotonic() - start]
        return [words[0], words[1], int(words[2]), None, start, time.monotonic() - start]

    def close(self):
        self._sock.close()

# SPDX-License-Identifier: Apache-2.0
"""A program as a child of the test, which can trace it, limit it and kill it, and the lines that it logs.

Nothing reads the log but the test, when it waits: mark() is exact, and a program whose log is full is seen to have one.
"""
import os
import re
import select
import signal
import subprocess
import time

from lab.log import SLOWNESS

PATIENCE = 30 * SLOWNESS  # seconds that any single thing may take


class Child:
    def __init__(self, command, env=None):
        self.lines = []
        self._rest = b""
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=env)
        os.set_blocking(self.process.stderr.fileno(), False)

    def read(self, timeout):
        """Takes what there is of the log; False when it has ended."""
        fd = self.process.stderr.fileno()
        if not select.select([fd], [], [], timeout)[0]:
            return True
        data = os.read(fd, 65536)
        *lines, self._rest = (self._rest + data).split(b"\n")
        self.lines += [line.decode(errors="replace") for line in lines]
        return bool(data)

    def wait(self, find, what, patience=PATIENCE):
        """What find() says, which is asked again after each news of the log."""
        deadline = time.monotonic() + patience
        while not (found := find()):
            left = deadline - time.monotonic()
            if left < 0 or not self.read(left):
                raise TimeoutError(f"no {what} in the log:\n" + "\n".join(self.lines[-40:]))
        return found

    def wait_log(self, pattern, since=0, patience=PATIENCE):
        """Waits for a line of the log; returns its match."""
        return self.wait(lambda: next((match for line in self.lines[since:] if (match := re.search(pattern, line))), None),
                         f"line like {pattern!r}", patience)

    def mark(self):
        """A place in the log: what comes later is news."""
        while select.select([self.process.stderr.fileno()], [], [], 0)[0]:
            if not self.read(0):
                break
        return len(self.lines)

    def wait_synced(self):
        for family in "46":
            self.wait_log(rf'"First sync done" ipFamily="IPv{family}"')
        return self

    def said(self, pattern, since=0):
        """The lines of the log so far that are like this."""
        self.mark()
        return [line for line in self.lines[since:] if re.search(pattern, line)]

    def alive(self):
        return self.process.poll() is None

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)

    def close(self):
        if self.alive():
            self.end(signal.SIGKILL)
        self.process.stderr.close()

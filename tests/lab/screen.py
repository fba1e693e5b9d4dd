# SPDX-License-Identifier: Apache-2.0
"""A terminal for a program under test: `Screen(argv, width, height)` runs it in one and shows what a person would see.

It knows as much of a terminal as the program may use, and fails at all else.
"""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time

from lab.log import PATIENCE

SEQUENCE = re.compile(rb"\033\[(\??)([0-9;]*)([A-Za-z])")
MODES = {"1049": "other buffer", "25": "cursor", "7": "wrapping"}


class Screen:
    def __init__(self, argv, width=80, height=24, term="xterm"):
        ready, go = os.pipe()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.close(go)
            os.read(ready, 1)  # until the terminal was seen as it is without the program
            os.environ["TERM"] = term
            # the size is set before anything looks at it
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
            os.execv(argv[0], argv)
        self.before = self.flags()
        os.close(ready)
        os.close(go)
        self.width, self.height = width, height
        self.lines = [""] * height
        self.row = 0
        self.column = 0
        self.modes = {"cursor": True, "wrapping": True, "other buffer": False}
        self.pending = b""
        self.settings = None
        self.status = None

    # -- what the program writes

    def _sequence(self, private, numbers, letter):
        if private:
            self.modes[MODES[numbers.decode()]] = letter == b"h"
        elif letter == b"H" and not numbers:
            self.row = self.column = 0
        elif letter == b"K" and not numbers:
            self.lines[self.row] = self.lines[self.row][:self.column]
        elif letter == b"J" and numbers == b"2":
            self.lines = [""] * self.height
        elif letter != b"m":
            raise AssertionError(f"a sequence that no one expects: {private + numbers + letter}")

    def _text(self, text):
        for char in text:
            if char == "\r":
                self.column = 0
            elif char == "\n":
                self.row += 1
                assert self.row < self.height, "the screen would scroll"
            else:
                line = self.lines[self.row].ljust(self.column)
                self.lines[self.row] = line[:self.column] + char + line[self.column + 1:]
                self.column += 1
                assert self.column <= self.width, f"longer than {self.width}: {self.lines[self.row]}"

    def _take(self, data):
        self.pending += data
        while self.pending:
            found = SEQUENCE.match(self.pending)
            if found:
                self._sequence(*found.groups())
                self.pending = self.pending[found.end():]
            elif self.pending[:1] == b"\033":
                return  # the rest is on its way
            else:
                end = self.pending.find(b"\033")
                part = self.pending if end < 0 else self.pending[:end]
                self._text(part.decode())
                self.pending = self.pending[len(part):]

    def _read(self, seconds):
        """False when the program has closed the terminal."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            return False
        self._take(data)
        return bool(data)

    # -- what a test asks

    def wait(self, condition, what):
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline and self._read(0.1), f"before {what}:\n" + "\n".join(self.lines)

    def wait_line(self, pattern):
        self.wait(lambda: any(re.search(pattern, line) for line in self.lines), f"a line like {pattern!r}")

    def press(self, keys):
        os.write(self.fd, keys.encode())

    def resize(self, width, height):
        self.width, self.height = width, height
        self.lines = [""] * height
        self.row = self.column = 0
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def kill(self, number):
        os.kill(self.pid, number)

    def flags(self):
        """The settings of the terminal that a shell minds."""
        return termios.tcgetattr(self.fd)[:4]

    def end(self):
        """Waits for the end; the exit code, or minus the signal."""
        while self._read(0.1):
            pass
        self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.status

    def close(self):
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)

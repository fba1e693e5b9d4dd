# SPDX-License-Identifier: Apache-2.0
"""What a program says, and how long to wait for it."""

import os
import re
import threading
import time

#: How much longer than usual things may take on this machine.
SLOWNESS = float(os.environ.get("PORTOLAN_LAB_SLOWNESS", "1"))
#: Seconds within which something happens that is waited for.
PATIENCE = 20 * SLOWNESS


class Log:
    """Lines of a process, as they come."""

    def __init__(self, fd):
        self._fd = fd
        self.lines = []
        self.ended = False
        self._changed = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        with os.fdopen(self._fd, "r", encoding="utf-8", errors="replace") as file:
            for line in file:
                with self._changed:
                    self.lines.append(line.rstrip("\n"))
                    self._changed.notify_all()
        with self._changed:
            self.ended = True
            self._changed.notify_all()

    def wait(self, condition, what, timeout=PATIENCE):
        """Asks condition() now, after each new line and each second, until it says something true; once more when the time is over."""
        deadline = time.monotonic() + timeout
        while True:
            count, ended, left = len(self.lines), self.ended, deadline - time.monotonic()
            value = condition()
            if value:
                return value
            if ended or left <= 0:
                why = "the program ended" if ended else f"{timeout} s passed"
                raise TimeoutError(f"{why} before {what}; the log:\n" + "\n".join(self.lines[-40:]))
            with self._changed:
                self._changed.wait_for(lambda: self.ended or len(self.lines) > count, min(left, 1))

    def wait_line(self, pattern, since=0, timeout=PATIENCE):
        """The match of the first line from number `since` on."""
        return self.wait(lambda: self.find(pattern, since), f"a line like {pattern!r}", timeout)

    def find(self, pattern, since=0):
        return next((match for line in self.lines[since:] if (match := re.search(pattern, line))), None)

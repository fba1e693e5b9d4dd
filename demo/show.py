# SPDX-License-Identifier: Apache-2.0
"""What the demo writes on the terminal: colours where they can be seen, and checks that count."""

import os
import re
import sys
from collections import Counter

BAR = 40
POD_COLOURS = {"pod-a": "36", "pod-b": "33", "pod-c": "35"}


class Wrong(Exception):
    """Something shown is not as it should be."""


class Screen:
    def __init__(self):
        self.colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        self.checks = 0
        self.step = 0

    def paint(self, code, text):
        return f"\033[{code}m{text}\033[0m" if self.colour else text

    def pod(self, name, text=None):
        return self.paint(POD_COLOURS.get(name, "31"), text or name)

    def line(self, text=""):
        print(text, flush=True)

    def title(self, text):
        self.step += 1
        self.line()
        self.line(self.paint("1;34", f"── {self.step}. {text} " + "─" * max(0, 96 - len(text))))

    def note(self, text):
        self.line(self.paint("2", f"   {text}"))

    def command(self, text):
        self.line(f"   {self.paint('1', '$ ' + text)}")

    def check(self, truth, text):
        """A statement that the demo stands by."""
        self.checks += 1
        if not truth:
            self.line(f"   {self.paint('1;31', '✗')} {text}")
            raise Wrong(text)
        self.line(f"   {self.paint('1;32', '✓')} {text}")

    def yaml(self, text, indent="   "):
        for line in text.rstrip("\n").split("\n"):
            if line.lstrip().startswith("#"):
                self.line(indent + self.paint("2", line))
                continue
            self.line(indent + re.sub(r"([A-Za-z0-9./-]+)(: |:$)", lambda m: self.paint("36", m[1]) + m[2], line))

    def rule(self, line):
        """A rule of iptables-save, its chain names in colour."""
        line = re.sub(r"KUBE-(SVC|SEP|EXT)-\w+", lambda m: self.paint("1;33", m[0]), line)
        line = re.sub(r"KUBE-(SERVICES|NODEPORTS|MARK-MASQ|POSTROUTING)", lambda m: self.paint("1;36", m[0]), line)
        self.line("   " + re.sub(r'"[^"]*"', lambda m: self.paint("32", m[0]), line))

    def shares(self, answers):
        """A bar for each pod."""
        counts = Counter(answer.pod for answer in answers if not answer.error)
        for pod, count in sorted(counts.items()):
            share = count / len(answers)
            bar = ("█" if self.colour else "#") * max(1, round(share * BAR))
            self.line(f"     {pod}  {self.pod(pod, bar.ljust(BAR))} {share:6.1%}  {count:4}")
        for error, count in Counter(answer.error for answer in answers if answer.error).items():
            self.line(f"     {self.paint('31', error)}  {count}")

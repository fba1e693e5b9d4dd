# SPDX-License-Identifier: Apache-2.0
"""Asks bystander Services and the daemon's health all the time, and keeps what was not as it should be.

A question is a dict: name, address, port, proto, source, pods (who may answer), same (the first who answers has to stay),
or path (an HTTP page that has to be answered with 200). Each is asked in its turn.

An answer's time is measured twice. Its own: without the time in which the daemon or the asker were ready and got no processor, which on
a machine with other work is a matter of luck, and nothing that the daemon could do better. And the whole of it, but for what the host took
from this machine: who starves the daemon makes it wait for a processor too, and that must show.
"""
import http.client
import os
import threading
import time

from lab import arm
from lab import client
from lab.log import PATIENCE

PAUSE = 0.004  # s between two questions
FEW = 3  # answers to a question that mean nothing yet
TICKS = os.sysconf("SC_CLK_TCK")  # in a second of /proc/stat


def stolen():
    """Seconds that the host has kept from this machine's processors; all of them together, as it is not known whom it hit."""
    with open("/proc/stat", encoding="ascii") as file:
        return int(file.readline().split()[8]) / TICKS


class Stopwatch:
    def __init__(self, pid):
        self.paths = [f"/proc/{pid}/schedstat", "/proc/thread-self/schedstat"]
        self.start, self.waited, self.stolen = time.monotonic(), self.waiting(), stolen()

    def waiting(self):
        """Seconds that each of both has waited for a processor in its life."""
        found = []
        for path in self.paths:
            try:
                with open(path, encoding="ascii") as file:
                    found.append(int(file.read().split()[1]) / 1e9)
            except OSError:
                found.append(0)  # a kernel without them, or no daemon: everything counts
        return found

    def seconds(self):
        """The answer's own time, and the whole. Both may have waited at the same time: the longer wait counts."""
        passed = time.monotonic() - self.start
        waited = max(now - before for now, before in zip(self.waiting(), self.waited))
        return max(0, passed - waited), max(0, passed - (stolen() - self.stolen))


def ask_page(question):
    connection = http.client.HTTPConnection(question["address"], question["port"], timeout=PATIENCE)  # how long is too long is judged later
    try:
        connection.request("GET", question["path"])
        status = connection.getresponse().status
        return None if status == 200 else f"status {status}"
    except OSError as error:
        return type(error).__name__
    finally:
        connection.close()


class State:
    def __init__(self):
        self.stopping, self.threads = threading.Event(), []
        self.found, self.pid = {}, 0

    def begin(self, questions, pid):
        """pid: the daemon's."""
        self.pid = pid
        self.stopping.clear()
        self.found = {question["name"]: {"asked": 0, "wrong": [], "seconds": [], "pod": None} for question in questions}
        for kind in (True, False):  # pages wait for the daemon, packets do not: neither waits for the other
            some = [question for question in questions if ("path" in question) == kind]
            self.threads.append(threading.Thread(target=self.loop, args=(some,), daemon=True))
            self.threads[-1].start()

    def loop(self, questions):
        """To the end, and on a slow machine until there are answers enough."""
        while questions and (not self.stopping.is_set() or self.too_few(questions)):
            for question in questions:
                self.ask(question)
                time.sleep(PAUSE)  # the pace is part of the question

    def too_few(self, questions):
        some = [self.found[question["name"]] for question in questions]
        return any(found["asked"] <= FEW for found in some) and not any(found["wrong"] for found in some)

    def ask(self, question):
        found, watch = self.found[question["name"]], Stopwatch(self.pid)
        wrong = ask_page(question) if "path" in question else self.ask_pod(question, found)
        found["asked"] += 1
        found["seconds"].append(watch.seconds())
        if wrong:
            found["wrong"].append(wrong)

    def ask_pod(self, question, found):
        pod, _, _, error, _, _ = client.once(question["address"], question["port"], question.get("proto", "TCP"), client.PATIENCE,
                                             question.get("source"))
        if error or pod not in question["pods"]:
            return error or f"answered by {pod}"
        if question.get("same") and found["pod"] not in (None, pod):
            return f"{found['pod']} became {pod}"
        found["pod"] = pod
        return None

    def end(self):
        """Of each question: how often it was asked, what was wrong, and how long the longest answer took (its own time, the whole)."""
        self.stopping.set()
        for thread in self.threads:
            thread.join()
        self.threads = []
        return {name: [found["asked"], found["wrong"], *(max(times) for times in zip(*found["seconds"]))] for name, found in self.found.items()}

    def wait_pod(self, address, port, pod, patience, pid):
        """Seconds until that pod answers, its own and the whole; `patience` if it does not."""
        start, watch = time.monotonic(), Stopwatch(pid)
        while time.monotonic() - start < patience:
            if client.once(address, port, "TCP", 1, None)[0] == pod:
                return watch.seconds()
        return patience, patience


if __name__ == "__main__":
    arm.main(State)

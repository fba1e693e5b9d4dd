# SPDX-License-Identifier: Apache-2.0
"""Random changes, faults and foreign hands at 2,000 Services, and what must be true in the end.

Every step is drawn from a deck that has all of them: Services change, grow, shrink, go and come back; others delete a rule, a chain, a table
or everything; files are broken, the daemon is stopped for a moment, asked to death, or told to audit. In the middle
of a deck and at its end everything rests, and the kernel is compared with a twin: a namespace that looks the same, in which the program has just
started over nothing. Memory and descriptors are looked at there, too.

    soak.py [--seconds N] [--mode iptables|nftables] [--services N]      PORTOLAN_SEED=N repeats the draw
"""
import argparse
import os
import random
import re
import signal
import sys
import time

if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from lab import iptables_listing, nft_dump as dump  # noqa: E402
from lab.crowd import Crowd  # noqa: E402
from lab.daemon import program  # noqa: E402
from lab.host import ADDRESSES  # noqa: E402
from lab.seeds import any_seed  # noqa: E402
from lab.topology import wait_for  # noqa: E402
from lab.twin import Twin  # noqa: E402

SERVICES, MOVING = 2000, 200
REST_EVERY = 16  # steps, half of a deck; the first one ends the warm-up
GROWTH_KIB = 3072
PATIENCE = 60
SANITIZED = "PORTOLAN_SANITIZED" in os.environ

HANGERS = """
import socket
held = [socket.create_connection(("127.0.0.1", port)) for port in (10249, 10256) for _ in range(300)]
for one in held[::2]:
    try:
        one.sendall(b"GET /metrics HTTP/1.1\\r\\n" + b"x" * 20000)
    except OSError:
        pass
"""


def reader(mode):
    if mode == "nftables":
        return dump.read_both
    return lambda place: {family: place.run(tool) for family, tool in ((4, "iptables-save"), (6, "ip6tables-save"))}


def differences(mode, found, wanted):
    """In words, a few of them."""
    lines = []
    for family in (4, 6):
        if mode == "nftables":
            lines += dump.differences_of_grown(found[family], wanted[family])
        else:
            lines += iptables_listing.difference(wanted[family], found[family], names=("wanted", "found")).splitlines()
    return lines


class Soak:
    def __init__(self, crowd, seed):
        self.crowd, self.draw = crowd, random.Random(seed)
        self.twin, self.read = Twin(crowd, eth0=ADDRESSES), reader(crowd.mode)
        self.counts = {}
        self.warm = None
        self.removed = set()

    # -- steps; those whose name begins with "flush_" are foreign hands

    def change_some(self):
        for number in self.draw.sample(range(1, self.crowd.moving), self.draw.randint(1, 20)):
            self.crowd.change(number)

    def resize_some(self):
        for number in self.draw.sample(range(1, self.crowd.moving), self.draw.randint(1, 10)):
            self.crowd.change(number, endpoints=self.draw.choice([0, 1, 2, 5]))

    def move_ports(self):
        for number in self.draw.sample(range(1, self.crowd.moving), 3):
            self.crowd.change(number, port=self.draw.choice([80, 81, 443]))

    def remove_and_restore(self):
        for number in list(self.removed):
            self.crowd.change(number)
            self.removed.discard(number)
        for number in self.draw.sample(range(1, self.crowd.moving), 10):
            self.crowd.remove(number)
            self.removed.add(number)

    def flush_everything(self):
        self.crowd.node.run("nft", "flush", "ruleset")

    def _tables(self):
        return ["kube-proxy"] if self.crowd.mode == "nftables" else ["nat", "filter", "mangle"]

    def flush_table(self):
        family, verb = self.draw.choice(["ip", "ip6"]), self.draw.choice(["flush", "delete"])
        self.crowd.node.run("nft", verb, "table", family, self.draw.choice(self._tables()), check=False)

    def flush_chain(self):
        """Empties one that exists; an element of a map in nftables mode."""
        if self.crowd.mode == "nftables":
            self.crowd.node.run("nft", "flush", "map", "ip", "kube-proxy", self.draw.choice(["service-ips", "endpoints"]), check=False)
            return
        names = re.findall(r"chain (KUBE-\S+)", self.crowd.node.run("nft", "-t", "list", "table", "ip", "nat", check=False)[1])
        for chain in self.draw.sample(names, min(len(names), 3)):
            self.crowd.node.run("iptables", "-t", "nat", "-F", chain, check=False)

    def foreign_noise(self):
        """Other tables come and go: no business of ours."""
        lines = "".join(f"add table ip other{number}\nadd chain ip other{number} c\n" +
                        f"add rule ip other{number} c counter\n" * 50 for number in range(4))
        lines += "".join(f"delete table ip other{number}\n" for number in range(4))
        self.crowd.node.run("nft", "-f", "-", stdin=lines)

    def break_a_file(self):
        path = f"{self.crowd.folder}/manifests/s00001.json"
        with open(path, "w", encoding="utf-8") as file:
            file.write('{"kind": [broken')
        self.crowd.change(2)
        self.crowd.change(1)

    def stop_for_a_moment(self):
        """It hears nothing while others change what it wrote."""
        self.crowd.signal(signal.SIGSTOP)
        self.change_some()
        self.foreign_noise()
        self.flush_chain()
        self.crowd.signal(signal.SIGCONT)

    def ask_to_death(self):
        self.crowd.node.run(sys.executable, "-c", HANGERS)

    def hang_up_and_audit(self):
        self.crowd.signal(signal.SIGHUP)
        self.crowd.signal(signal.SIGUSR1)

    STEPS = {change_some: 10, resize_some: 6, move_ports: 3, remove_and_restore: 3, flush_everything: 1, flush_table: 1,
             flush_chain: 2, foreign_noise: 2, break_a_file: 1, stop_for_a_moment: 1, ask_to_death: 1, hang_up_and_audit: 1}

    # -- rests

    def rest(self):
        """Nothing happens until the kernel holds what a new start would write."""
        wanted = self.twin.after_first_sync([program(), *self.crowd.arguments[1:]], self.read)
        found = []

        def equal():
            found[:] = differences(self.crowd.mode, self.read(self.crowd.node), wanted)
            return not found

        try:
            wait_for(equal, timeout=PATIENCE, step=0.2, what="the kernel held what the files ask for")
        except (TimeoutError, AssertionError) as error:
            raise AssertionError("\n".join([f"{len(found)} differences", *found[:20], *self.crowd.log.lines[-20:]])) from error
        now = self.crowd.resident_kib(), self.crowd.descriptors()
        if not self.warm:
            self.warm = now
        return now

    def deck(self):
        """Every step as often as STEPS says, in a drawn order."""
        steps = [step for step, count in self.STEPS.items() for _ in range(count)]
        return self.draw.sample(steps, len(steps))

    def run(self, decks=1, seconds=0, say=print):
        """So many decks, and on until the time is up."""
        end = time.monotonic() + seconds
        while decks > 0 or time.monotonic() < end:
            decks -= 1
            for number, step in enumerate(self.deck(), 1):
                step(self)
                self.counts[step.__name__] = self.counts.get(step.__name__, 0) + 1
                self.crowd.wait_heard(self.crowd.change(0), PATIENCE)
                if number % REST_EVERY == 0:
                    say(f"{sum(self.counts.values())} steps, no difference; %d KiB, %d descriptors" % self.rest())
        # a connection or a sync has some for a moment; a leak stays
        wait_for(lambda: self.crowd.descriptors() <= self.warm[1] + 1, PATIENCE, what=f"there were no more than {self.warm[1]} descriptors")
        memory, descriptors = self.crowd.resident_kib(), self.crowd.descriptors()
        say(f"{self.crowd.mode}: {sum(self.counts.values())} steps {self.counts}, {self.crowd.n_changes} changes; {self.warm[0]} KiB "
            f"and {self.warm[1]} descriptors after the warm-up, {memory} KiB and {descriptors} at the end")
        if not SANITIZED:  # a sanitizer keeps what was freed, and finds leaks itself
            assert memory <= self.warm[0] + GROWTH_KIB, f"{memory} KiB, {self.warm[0]} after the warm-up"
        assert self.crowd.stop() == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--mode", choices=("iptables", "nftables"), default="iptables")
    parser.add_argument("--services", type=int, default=SERVICES)
    given = parser.parse_args()
    seed = any_seed()
    print(f"{given.mode} mode, {given.services:,} services, {given.seconds:.0f} s: PORTOLAN_SEED={seed}", flush=True)
    crowd = Crowd(given.services, MOVING, given.mode)
    try:
        soak = Soak(crowd.begin(), seed)
        crowd.listen()
        soak.run(seconds=given.seconds, say=lambda text: print(text, flush=True))
    except (AssertionError, TimeoutError) as error:
        print(error)
        return 1
    finally:
        crowd.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""A tenant who writes any Service and slice, an outsider who sends any packet, and both: what the bystanders keep."""
import os
import re
import time

import pytest

from lab import scrape
from lab.topology import wait_for
from siege import HEALTH, METRICS, slow
from watcher import FEW

SECONDS = float(os.environ.get("PORTOLAN_HOSTILE_SECONDS") or "8")
SANITIZED = "PORTOLAN_SANITIZED" in os.environ
LIVEZ_S = 1
ANSWER_S = 0.5  # less than the second after which a lost packet is sent again
MOVE_S = 0.5
# With all that the daemon and the asker waited for a processor, as a client sees it:
WHOLE_LIVEZ_S = 1
WHOLE_ANSWER_S = 1
WHOLE_MOVE_S = 2
LINES = 100  # of log, whatever an outsider does
LINES_OF_TENANT = 100 * SECONDS  # each tells something about another object
GROWTH_KIB = 4096
PACKETS = 1000 * SECONDS  # that no kernel would send


@pytest.fixture(autouse=True)
def log_is_shown(siege):
    """With a test that fails: its seed, and what the daemon said last."""
    since = len(siege.log.lines)
    yield
    print(f"PORTOLAN_SEED={siege.seed}")
    print("\n".join(line[:300] for line in siege.log.lines[since:][-40:]))


class Seen:
    """What was seen of the bystanders while something happened."""

    def __init__(self, siege, outside=False):
        self.siege, self.since, self.worked = siege, len(siege.log.lines), siege.worked()
        self.moves, self.packets, self.pages, self.counts = [], {}, {}, {}
        siege.watch(outside)

    def move(self):
        self.moves.append(self.siege.move())

    def move_for(self, seconds, meanwhile=lambda: None):
        begun = time.monotonic()
        while time.monotonic() - begun < seconds:
            meanwhile()
            self.move()

    def end(self):
        self.packets, self.pages = self.siege.watched()
        self.lines, self.worked = self.siege.log.lines[self.since:], self.siege.worked() - self.worked
        print(self.text())

    def text(self):
        siege, times = self.siege, {"moves": self.moves, "answers": [found[2:] for found in self.packets.values()],
                                    "pages": [found[2:] for found in self.pages.values()]}
        longest = ", ".join(f"{name} up to {max(own for own, _ in some):.3f} s ({max(whole for _, whole in some):.3f} in all)"
                            for name, some in times.items())
        return (f"{siege.mode}: {siege.tenant.steps} steps of the tenant, {self.counts}, {len(self.moves)} moves, {longest}, "
                f"{self.worked:.2f} s of a processor, {len(self.lines)} lines of log, {siege.api.call('count_posts')} Events, "
                f"{siege.status('VmRSS')} KiB, {siege.descriptors()} descriptors")

    def check(self):
        everything = {**self.packets, **self.pages}
        wrong = {name: found[1][:5] for name, found in everything.items() if found[1]}
        assert not wrong
        assert all(found[0] > FEW for found in everything.values()), everything
        for some, own, whole in ((self.packets, ANSWER_S, WHOLE_ANSWER_S), (self.pages, LIVEZ_S, WHOLE_LIVEZ_S)):
            assert max(found[2] for found in some.values()) < slow(own), some
            assert max(found[3] for found in some.values()) < slow(whole), some
        assert max(own for own, _ in self.moves) < slow(MOVE_S), self.moves
        assert max(whole for _, whole in self.moves) < slow(WHOLE_MOVE_S), self.moves


def attack(siege, *, tenant, outside):
    """Both, or one of them, for a while; then everything hostile goes. What was seen meanwhile."""
    seen = Seen(siege, outside)
    for objects in siege.tenant.claims() if tenant else ():
        siege.api.call("apply", items=objects)
    if outside:
        objects, flooded = siege.tenant.flooded([siege.pods[3]])
        siege.api.call("apply", items=objects)
        siege.outsider.call("begin", ports=[HEALTH, METRICS, 32021], held=500, flooded=flooded, datagrams=20000,
                            targets=list(siege.targets()), odd=PACKETS)

    def steps():
        for _ in range(10 if tenant else 0):
            siege.tenant.step(siege.api)

    seen.move_for(SECONDS, steps)
    seen.counts = siege.outsider.call("end") if outside else {}
    seen.end()
    all_go(siege)
    return seen


def all_go(siege):
    siege.tenant.remove_all(siege.api)
    wait_for(lambda: not siege.difference(), 60, what="the kernel had what a new start would write")


def write_anew(siege):
    """As after a reboot, when nobody was there first."""
    assert siege.stop() == 0
    siege.node.run("nft", "flush", "ruleset")
    siege.start()


def test_a_tenant_takes_nothing_from_the_others(siege):
    seen = attack(siege, tenant=True, outside=False)
    seen.check()
    assert len(seen.lines) < LINES_OF_TENANT, seen.lines[-20:]


def test_a_tenant_takes_nothing_when_all_rules_are_written_anew(siege):
    """Who owns an address must not depend on names, or on the order of writing."""
    for objects in siege.tenant.claims():
        siege.api.call("apply", items=objects)
    write_anew(siege)
    seen = Seen(siege)
    seen.move_for(SECONDS / 4)
    seen.end()
    siege.tenant.remove_all(siege.api)
    seen.check()


def test_an_older_tenant_takes_no_cluster_ip(siege):
    """Whether it comes late, as with a backup that is restored, or was there when all rules are written anew."""
    live = Seen(siege)
    for objects in siege.tenant.elders():
        siege.api.call("apply", items=objects)
    live.move_for(SECONDS / 4)
    live.end()
    write_anew(siege)
    anew = Seen(siege)
    anew.move_for(SECONDS / 4)
    anew.end()
    all_go(siege)
    live.check()
    anew.check()


def flows(siege, service):
    """What the kernel has of a bystander's cluster IP, by number: one that is deleted and made again has another."""
    listed = siege.node.run("conntrack", "-L", "-o", "id", "-p", service.proto.lower(), "--orig-dst", service.cluster_ip[4])
    return set(re.findall(r"\bid=(\d+)", listed))


def clean_ups(siege):
    name = "kubeproxy_conntrack_reconciler_sync_duration_seconds_count"
    return scrape.values(scrape.page_of(siege.node)).get((name, (("ip_family", "IPv4"),)), 0)


def test_a_tenant_has_no_connection_of_others_cut(siege, request):
    """Its Service asks for a bystander's addresses and for the end of connections, comes, changes its endpoints and goes."""
    for victim in (siege.web, siege.dns):
        earlier = flows(siege, victim)  # those of other tests, which expire meanwhile
        talk = siege.pods[0].talk(victim.cluster_ip[4], victim.port, victim.proto)
        request.addfinalizer(talk.close)
        pod, own = talk.ask().pod, flows(siege, victim) - earlier
        assert pod and own
        objects = siege.tenant.claim(victim, "aaa", f"cut-{victim.name}", {}, [siege.pods[3]])
        objects[0]["metadata"]["annotations"] = {"portolan.io/terminate-connections": "endpoint-removed"}
        left = [{**one, "endpoints": []} for one in objects[1:]]
        for call, items in (("apply", objects), ("apply", left), ("remove", objects)):
            count = clean_ups(siege)
            siege.api.call(call, items=items)
            if call == "apply" or victim.proto == "UDP":  # a Service of TCP that goes cuts nothing
                wait_for(lambda count=count: clean_ups(siege) > count, what="flows were looked at")
            assert own <= flows(siege, victim)
            assert talk.ask().pod == pod
    all_go(siege)


def test_a_crowd_that_shares_addresses_delays_nobody(siege):
    """Each of them asks for what all others ask for, and all change at once, again and again."""
    seen = Seen(siege)
    siege.api.call("apply", items=siege.tenant.crowd())
    seen.move()
    seen.move_for(SECONDS, lambda: siege.tenant.annotate(siege.api))
    seen.end()
    all_go(siege)
    write_anew(siege)  # the allocator keeps what the crowd needed, in which a later test would not see another's growth
    seen.check()
    assert len(seen.lines) < LINES_OF_TENANT, seen.lines[-20:]


def test_an_outside_client_stops_nothing(siege):
    seen = attack(siege, tenant=False, outside=True)
    seen.check()
    assert len(seen.lines) < LINES, seen.lines[-20:]
    assert all(seen.counts[kind] > 100 for kind in ("segments", "fragments", "icmp")), seen.counts


def test_both_at_once_leave_no_trace(siege):
    warm = siege.status("VmRSS"), siege.descriptors()
    seen = attack(siege, tenant=True, outside=True)
    seen.check()
    assert len(seen.lines) < LINES_OF_TENANT, seen.lines[-20:]
    wait_for(lambda: siege.descriptors() <= warm[1] + 1, 30, what="all descriptors were closed")
    if not SANITIZED:  # a sanitizer keeps what was freed, and finds leaks itself
        assert siege.status("VmRSS") <= warm[0] + GROWTH_KIB
    assert siege.stop() == 0

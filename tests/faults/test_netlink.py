# SPDX-License-Identifier: Apache-2.0
"""What goes wrong around the daemon while it writes rules over netlink."""

import signal

from node import WEB, service, until
from test_faults import OTHER, started

MANY = 300


def many(count):
    """Enough for several transactions, in one file."""
    return "---\n".join(
        service(f"many{i}", f"10.96.{1 + i // 250}.{i % 250}", [f"10.244.9.{n}" for n in range(5)]) for i in range(count)
    )


def test_no_tool_is_run_to_write_rules(netlink_node):
    """The programs only say, at the start, which version they are and that they work."""
    started(netlink_node)
    before = netlink_node.calls("")
    netlink_node.write("other.yaml", OTHER)
    netlink_node.wait_right()
    assert netlink_node.calls("") == before
    assert netlink_node.calls("iptables-restore") == netlink_node.calls("ip6tables-restore") == 0


def test_killed_while_rules_are_written(netlink_node):
    """At whatever point the kill comes, the next life makes it right."""
    netlink_node.serve()
    netlink_node.write("many.yaml", many(MANY))
    for life in range(6):
        netlink_node.write("web.yaml", service("web", "10.96.0.10", ["10.244.0.5", f"10.244.1.{life}"]))
        daemon = netlink_node.start()
        daemon.wait_log("written over netlink")
        until(lambda chains=life * 20: netlink_node.chains() >= chains, "some chains were there")
        daemon.end(signal.SIGKILL)
    netlink_node.write("web.yaml", WEB)
    netlink_node.start().wait_synced()
    netlink_node.wait_right()
    assert netlink_node.ask()


def test_a_new_life_over_the_same_rules_writes_nothing(netlink_node):
    daemon = started(netlink_node)
    assert daemon.end() == 0
    before = netlink_node.generation()
    netlink_node.start().wait_synced()
    assert netlink_node.generation() == before


def test_single_rules_and_chains_that_others_remove_are_put_back(netlink_node):
    daemon = started(netlink_node)
    for words in (
        "-t nat -D KUBE-POSTROUTING 1",
        "-t nat -F KUBE-SERVICES",
        "-t nat -D PREROUTING 1",
        "-t nat -F",
        "-F KUBE-FORWARD",
        "-t nat -I KUBE-SERVICES -j RETURN",
    ):
        mark = daemon.mark()
        netlink_node.run("iptables", *words.split())
        daemon.wait_log("Repair|Audit done", mark)
        netlink_node.wait_right()
        assert netlink_node.ask()
    assert not daemon.said("Sync failed")


def test_foreign_rules_stay(netlink_node):
    netlink_node.run("iptables", "-A", "INPUT", "-p", "tcp", "--dport", "22", "-j", "ACCEPT")
    daemon = started_beside(netlink_node)
    netlink_node.run("iptables", "-t", "nat", "-I", "PREROUTING", "-p", "tcp", "--dport", "1", "-j", "ACCEPT")
    netlink_node.write("other.yaml", OTHER)
    until(lambda: netlink_node.ask("10.96.0.11"), "the second Service works")
    saved = netlink_node.run("iptables-save")
    assert "-A INPUT -p tcp -m tcp --dport 22 -j ACCEPT" in saved
    assert "-A PREROUTING -p tcp -m tcp --dport 1 -j ACCEPT" in saved
    assert not daemon.said("Repair")


def started_beside(node):
    """As started(), where rules that are not ours are in the way of wait_right()."""
    node.write("web.yaml", WEB)
    node.serve()
    daemon = node.start().wait_synced()
    assert node.ask()
    return daemon


def test_an_audit_on_request_says_what_it_found(netlink_node):
    daemon = started(netlink_node)
    mark = daemon.mark()
    daemon.process.send_signal(signal.SIGUSR1)
    daemon.wait_log(r'"Audit done, all rules are right" ipFamily="IPv4"', mark)
    daemon.wait_log(r'"Audit done, all rules are right" ipFamily="IPv6"', mark)


def test_an_audit_on_request_is_a_full_sync_with_restore(node):
    daemon = started(node)
    mark = daemon.mark()
    daemon.process.send_signal(signal.SIGUSR1)
    daemon.wait_log(r'"Sync done" ipFamily="IPv4" full=true', mark)


def test_an_audit_on_request_is_a_full_sync_in_nftables_mode(netlink_node):
    netlink_node.write("web.yaml", WEB)
    netlink_node.serve()
    daemon = netlink_node.start("--proxy-mode", "nftables").wait_synced()
    mark = daemon.mark()
    daemon.process.send_signal(signal.SIGUSR1)
    daemon.wait_log(r'"Sync done" ipFamily="IPv4" full=true', mark)
    assert netlink_node.ask()


METRICS = "import urllib.request as r; print(r.urlopen('http://127.0.0.1:10249/metrics').read().decode())"


def test_the_repair_of_a_chain_is_counted(netlink_node):
    daemon = started(netlink_node)
    assert "portolan_repairs_total{" not in netlink_node.run("python3", "-c", METRICS)
    mark = daemon.mark()
    netlink_node.run("iptables", "-t", "nat", "-F", "KUBE-SERVICES")
    daemon.wait_log("Repairing a chain that another program changed", mark)
    netlink_node.wait_right()
    until(
        lambda: 'portolan_repairs_total{ip_family="IPv4"} 1' in netlink_node.run("python3", "-c", METRICS),
        "the repair was counted",
    )


def test_the_repair_of_an_element_is_counted_and_named_in_nftables_mode(netlink_node):
    netlink_node.write("web.yaml", WEB)
    netlink_node.serve()
    daemon = netlink_node.start("--proxy-mode", "nftables").wait_synced()
    assert netlink_node.ask()
    assert repairs(netlink_node) == 0
    mark = daemon.mark()
    netlink_node.run("nft", "delete", "element", "ip", "kube-proxy", "service-ips", "{ 10.96.0.10 . tcp . 80 }")
    daemon.wait_log(r'Rules were changed .* ipFamily="IPv4" what="element of map service-ips deleted"', mark)
    daemon.wait_log(r'"Sync done" ipFamily="IPv4" full=false', mark)
    assert netlink_node.ask()
    until(lambda: repairs(netlink_node) == 1, "the repair was counted")


STORM = 300


def storm(node, script):
    """Foreign transactions, one after the other without a pause, by one program."""
    return node.run("/usr/bin/python3", "-c", "import subprocess, sys, time\nbegun = time.monotonic()\n"
                    f"for _ in range({STORM}):\n"
                    "    subprocess.run(['nft', '-f', '-'], input=sys.argv[1], text=True, stderr=subprocess.DEVNULL)\n"
                    "print(time.monotonic() - begun)", script)


def repairs(node):
    lines = node.run("python3", "-c", METRICS).splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith('portolan_repairs_total{ip_family="IPv4"}'))


def test_a_storm_of_foreign_changes_is_no_storm_of_repairs(netlink_node):
    """At most one after 50, 100, 200 ms and so on, and the last one makes all right."""
    started(netlink_node)
    seconds = float(storm(netlink_node, "flush chain ip nat KUBE-SERVICES\nflush chain ip nat KUBE-POSTROUTING\n"))
    netlink_node.wait_right()
    assert 1 <= repairs(netlink_node) <= 12 + seconds / 5, f"in {seconds} s"
    assert netlink_node.ask()


def test_a_storm_of_foreign_changes_is_no_storm_of_repairs_in_nftables_mode(netlink_node):
    """The pauses between them double from 50 ms up to 5 s."""
    netlink_node.write("web.yaml", WEB)
    netlink_node.serve()
    daemon = netlink_node.start("--proxy-mode", "nftables").wait_synced()
    mark = daemon.mark()
    seconds = float(storm(netlink_node, "flush map ip kube-proxy service-ips\n"))
    until(netlink_node.ask, "the Service worked again")
    daemon.wait_log('"Sync done" ipFamily="IPv4"', mark)
    done = len(daemon.said('"Sync done" ipFamily="IPv4"', mark))
    assert done <= 10 + seconds / 5, f"{done} in {seconds} s"

# SPDX-License-Identifier: Apache-2.0
"""What goes wrong around the daemon: nothing that worked stops working, and the state is right afterwards."""

import os
import signal
import subprocess
import time

import node as nodes
import pytest
from node import WEB, service, until

RESTORE = "iptables-restore"
SYNC = "iptables-restore -w 5 --noflush --counters"
OTHER = service("other", "10.96.0.11", ["10.244.0.5"])


def started(node):
    """A node on which one Service works."""
    node.write("web.yaml", WEB)
    node.serve()
    daemon = node.start().wait_synced()
    node.wait_right()
    assert node.ask()
    return daemon


# -- iptables-restore fails --


def test_restore_fails_once_at_start(node):
    node.write("web.yaml", WEB)
    node.serve()
    node.control(RESTORE, "fail-once")
    daemon = node.start()
    daemon.wait_log(r'"Sync failed, keeping the previous rules" ipFamily="IPv4".*line 1 ')
    daemon.wait_synced()
    node.wait_right()
    assert node.ask()


def test_restore_fails_once_later(node):
    daemon = started(node)
    mark = daemon.mark()
    node.control(RESTORE, "fail-once")
    node.write("other.yaml", OTHER)
    daemon.wait_log(r'"Sync failed, keeping the previous rules" ipFamily="IPv4"', mark)
    assert node.ask()
    daemon.wait_log(r'"Sync works again" ipFamily="IPv4" full=true', mark)
    node.wait_right()
    assert node.ask() and node.ask("10.96.0.11")


def test_restore_fails_always_then_works(node):
    """The working rules stay, tries keep their distance, the daemon lives."""
    daemon = started(node)
    before = node.saved()
    failed = node.calls(f"failed {RESTORE}")
    node.control(RESTORE, "fail")
    start = time.monotonic()
    node.write("other.yaml", OTHER)
    node.wait_calls(f"failed {RESTORE}", failed + 5)
    took = time.monotonic() - start
    assert took >= 4 * 0.3, "five tries have four waits of the sync period between them"
    assert daemon.alive()
    assert node.saved() == before
    assert node.ask() and not node.ask("10.96.0.11")
    node.uncontrol(RESTORE, "fail")
    node.wait_right()
    assert node.ask() and node.ask("10.96.0.11")


def test_failure_of_one_family_leaves_the_other_alone(node):
    daemon = started(node)
    mark = daemon.mark()
    node.control("ip6tables-restore", "fail")
    node.write("other.yaml", OTHER)
    until(lambda: node.ask("10.96.0.11"), "IPv4 went on")
    node.control("ip6tables", "fail")  # the canaries too
    assert daemon.alive()
    node.uncontrol("ip6tables", "fail")
    node.uncontrol("ip6tables-restore", "fail")
    node.wait_right()
    assert not daemon.said('"Sync failed.*ipFamily="IPv4"', mark)


def test_dump_that_fails_is_tolerated(node):
    node.write("web.yaml", WEB)
    node.control("iptables-save", "fail-once")
    daemon = node.start().wait_synced()
    daemon.wait_log("stale ones are kept")
    node.wait_right()


def test_partial_failure_does_not_lose_a_removal(node):
    """A Service removed while restores fail is gone once they work."""
    daemon = started(node)
    node.write("other.yaml", OTHER)
    until(lambda: node.ask("10.96.0.11"), "the second Service works")
    mark = daemon.mark()
    node.control(RESTORE, "fail")
    node.remove("other.yaml")
    daemon.wait_log("Sync failed", mark)
    assert node.ask("10.96.0.11"), "what the kernel has is left"
    node.uncontrol(RESTORE, "fail")
    node.wait_right()
    assert not node.ask("10.96.0.11") and node.ask()


# -- tools that are not there --


def test_tools_missing_at_start(node):
    """One clear error, and the end."""
    for tool in nodes.TOOLS:
        node.remove_tool(tool)
    # nsenter must be found to get there; from there on only the empty folder is searched
    command = node.inside(["env", f"PATH={node.path('bin')}", nodes.PORTOLAN, "run", *node.flags])
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, timeout=nodes.PATIENCE)
    assert done.returncode == 1
    assert "program 'iptables' not found in PATH" in done.stderr


def test_tools_of_one_family_missing_at_start(any_node):
    """IPv4 is the primary family and enough."""
    any_node.write("web.yaml", WEB)
    any_node.serve()
    for tool in nodes.TOOLS:
        if tool.startswith("ip6"):
            any_node.remove_tool(tool)
    process = subprocess.Popen(
        any_node.inside(["env", f"PATH={any_node.path('bin')}:/usr/bin:/bin", nodes.PORTOLAN, "run", *any_node.flags]),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        until(any_node.ask, "the Service works")
    finally:
        process.terminate()
        process.wait(nodes.PATIENCE)


def test_tool_vanishes_and_comes_back(node):
    daemon = started(node)
    before = node.saved()
    mark = daemon.mark()
    node.remove_tool(RESTORE)
    node.write("other.yaml", OTHER)
    daemon.wait_log(r"Sync failed.*starting iptables-restore .*No such file or directory", mark)
    assert daemon.alive()
    assert node.saved() == before
    assert node.ask()
    node.restore_tool(RESTORE)
    node.wait_right()
    assert node.ask() and node.ask("10.96.0.11")


# -- the lock --


def test_slow_restore_blocks_nothing_else(node):
    """A restore that hangs (a lock of 10 seconds, seen from outside): the old rules serve, the other family goes on."""
    daemon = started(node)
    mark = daemon.mark()
    node.block(RESTORE)
    node.write("other.yaml", OTHER)
    node.wait_calls(f"blocked {RESTORE}", 1)
    assert node.ask() and not node.ask("10.96.0.11")
    node.write("six.yaml", service("six", "fd00:96::10", ["fd00:244::5"]))
    daemon.wait_log(r'"Sync done" ipFamily="IPv6" .*services=1', mark)
    node.write("third.yaml", service("third", "10.96.0.12", ["10.244.0.5"]))  # waits for its turn
    node.release(RESTORE)
    node.wait_right()
    assert node.ask() and node.ask("10.96.0.11") and node.ask("10.96.0.12")
    assert not daemon.said("Sync failed")


def legacy_tools(folder):
    """Names without "-legacy" for the legacy variant, or None where the kernel lacks it."""
    real = folder / "legacy"
    real.mkdir()
    for family in ("iptables", "ip6tables"):
        for kind in ("", "-save", "-restore"):
            target = f"/usr/sbin/{family}-legacy{kind}"
            if not os.path.exists(target):
                return None
            (real / f"{family}{kind}").symlink_to(target)
    probe = subprocess.run(
        ["unshare", "--net", "/usr/sbin/iptables-legacy", "-t", "nat", "-S"], stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    return str(real) if probe.returncode == 0 else None


def test_lock_held_for_ten_seconds(tmp_path):
    """The legacy variant waits 5 seconds for /run/xtables.lock and gives up; the sync is tried again until it is free."""
    real = legacy_tools(tmp_path)
    if not real:
        pytest.skip("no legacy iptables here")
    node = nodes.Node(tmp_path, real)
    lock = tmp_path / "xtables.lock"
    node.env["XTABLES_LOCKFILE"] = str(lock)  # of this test alone
    try:
        node.write("web.yaml", WEB)
        node.serve()
        daemon = node.start().wait_synced()
        until(node.ask, "the Service works")
        # for ten seconds at least: a machine that is slow holds it until it has looked
        holder = subprocess.Popen(["flock", str(lock), "sh", "-c", "echo held; sleep 10; read word"], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)
        assert holder.stdout.readline() == "held\n"
        mark = daemon.mark()
        node.write("other.yaml", OTHER)
        daemon.wait_log(r"Sync failed.*status 4: .*Another app is currently holding the xtables lock", mark)
        assert node.ask() and not node.ask("10.96.0.11")
        assert not daemon.said("gone"), "a held lock is not a flush"
        holder.communicate("enough\n", nodes.PATIENCE)
        until(lambda: node.ask("10.96.0.11"), "the change came through")
        assert daemon.alive() and node.ask()
        # legacy prints marks and tables alike but not the policy of unused tables: compare what is ours
        ours = [line for lines in node.saved().values() for line in lines if "KUBE-" in line]
        wanted = [line for lines in node.wanted().values() for line in lines if "KUBE-" in line]
        assert sorted(ours) == sorted(wanted)
    finally:
        node.close()


# -- kill -9 --


def test_killed_in_mid_sync_before_the_first_rules(node):
    node.write("web.yaml", WEB)
    node.serve()
    node.block(RESTORE)
    daemon = node.start()
    node.wait_calls(f"blocked {RESTORE}", 1)
    assert daemon.end(signal.SIGKILL) == -signal.SIGKILL
    os.unlink(node.path("control", f"{RESTORE}.block"))
    node.start().wait_synced()
    node.wait_right()
    assert node.ask()


def test_killed_in_mid_sync_with_rules_working(node):
    daemon = started(node)
    before = node.saved()
    node.block(RESTORE)
    node.remove("web.yaml")
    node.write("other.yaml", OTHER)
    node.wait_calls(f"blocked {RESTORE}", 1)
    daemon.end(signal.SIGKILL)
    assert node.saved() == before
    assert node.ask(), "what worked goes on working without a daemon"
    os.unlink(node.path("control", f"{RESTORE}.block"))
    node.start().wait_synced()
    node.wait_right()
    assert node.ask("10.96.0.11") and not node.ask()


def test_killed_while_jumps_are_ensured(node):
    node.write("web.yaml", WEB)
    node.serve()
    node.block("iptables")
    daemon = node.start()
    node.wait_calls("blocked iptables", 1)  # asks for the version
    daemon.end(signal.SIGKILL)
    os.unlink(node.path("control", "iptables.block"))
    node.start().wait_synced()
    node.wait_right()
    assert node.ask()


def test_killed_again_and_again(node):
    """At whatever point the kill comes, the next life makes it right."""
    node.serve()
    for life in range(6):
        node.write("web.yaml", service("web", "10.96.0.10", ["10.244.0.5", f"10.244.1.{life}"]))
        before = node.calls("iptables")
        daemon = node.start()
        node.wait_calls("iptables", before + 1 + 11 * life)
        daemon.end(signal.SIGKILL)
    node.write("web.yaml", WEB)
    node.start().wait_synced()
    node.wait_right()
    assert node.ask()


def test_ending_in_good_order_leaves_the_rules(any_node):
    daemon = started(any_node)
    before = any_node.saved()
    assert daemon.end() == 0
    assert any_node.saved() == before
    assert any_node.ask()


# -- foreign hands --


def test_flush_by_somebody_else_is_repaired(any_node):
    daemon = started(any_node)
    mark = daemon.mark()
    any_node.run("nft", "flush", "ruleset")
    daemon.wait_log(r'"Sync done" ipFamily="IPv4" full=true', mark)
    any_node.wait_right()
    assert any_node.ask()


# -- manifests --


def test_folder_vanishes_and_comes_back(any_node):
    daemon = started(any_node)
    before = any_node.saved()
    mark = daemon.mark()
    any_node.hide_manifests()
    daemon.wait_log("manifest", mark)
    assert any_node.saved() == before
    assert any_node.ask() and daemon.alive()
    any_node.show_manifests()
    any_node.write("other.yaml", OTHER)
    any_node.wait_right()
    assert any_node.ask() and any_node.ask("10.96.0.11")


def test_folder_is_deleted_and_made_anew(any_node):
    daemon = started(any_node)
    mark = daemon.mark()
    any_node.drop_manifests()
    daemon.wait_log("manifest", mark)
    assert any_node.ask() and daemon.alive()
    os.mkdir(any_node.manifests)
    any_node.write("web.yaml", WEB)
    any_node.write("other.yaml", OTHER)
    any_node.wait_right()
    assert any_node.ask() and any_node.ask("10.96.0.11")


def test_broken_manifest_keeps_what_was_read_from_it(any_node):
    daemon = started(any_node)
    before = any_node.saved()
    mark = daemon.mark()
    any_node.write("web.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: web\n")
    daemon.wait_log(r"web\.yaml:\d+:\d+", mark)
    any_node.write("other.yaml", OTHER)  # the rest goes on
    until(lambda: any_node.ask("10.96.0.11"), "the other file is read")
    assert any_node.ask() and daemon.alive()
    any_node.remove("other.yaml")
    until(lambda: any_node.saved() == before, "the state is the one from before")
    any_node.write("web.yaml", WEB)
    any_node.wait_right()

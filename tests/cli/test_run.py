# SPDX-License-Identifier: Apache-2.0
"""The daemon's life in a network namespace of its own: start, Node, changes, signals, end.

Every wait is for a line of the daemon's log, never for a while.
"""

import os
import shutil
import signal
import subprocess
import time

import pytest

from lab.child import Child
from lab.topology import wait_for
from test_cli import NODE, PORTOLAN, SERVICE, SLICE, run

#: The limit is the whole machine's, a namespace cannot set it.
NO_LIMIT = "--conntrack-max-per-core=0"
UNSHARE = ["unshare", "-n"] if os.geteuid() == 0 else ["unshare", "-rn"]
DEADLINE = 60

pytestmark = pytest.mark.skipif(
    subprocess.run([*UNSHARE, "iptables", "-S"], capture_output=True).returncode != 0,
    reason="no network namespace with iptables can be made here")


class Daemon(Child):
    """`portolan run` in a namespace of its own; its pid is that of the namespace's first process."""

    def __init__(self, folder, *flags, through=()):
        super().__init__([*UNSHARE, *through, PORTOLAN, "run", "--manifests", str(folder), "--node-name=node-a",
                          "--iptables-min-sync-period=0", NO_LIMIT, "-v2", *flags])
        self.at = 0

    def wait_for(self, *parts):
        """The next log line that has all parts; every line is looked at once."""
        def find():
            while self.at < len(self.lines):
                self.at += 1
                if all(part in self.lines[self.at - 1] for part in parts):
                    return self.lines[self.at - 1]
            return None

        return self.wait(find, f"line with {parts}", DEADLINE)

    def wait_for_first_syncs(self):
        for _ in range(2):
            self.wait_for("First sync done")

    def enter(self, *command):
        """A command line that runs in the daemon's namespaces."""
        user = ["-U", "--preserve-credentials"] if os.geteuid() else []
        return ["nsenter", "-t", str(self.process.pid), *user, "-n", *command]

    def inside(self, *command):
        return subprocess.run(self.enter(*command), capture_output=True, text=True, check=True).stdout

    def wait_nat(self, *parts):
        """Rules of table nat, once they have all parts. What the log has said within ten seconds it holds back: rules tell earlier."""
        def find():
            rules = self.inside("iptables-save", "-t", "nat")
            return rules if all(part in rules for part in parts) else None

        return wait_for(find, DEADLINE, what=f"rules with {parts}")


@pytest.fixture
def folder(tmp_path):
    manifests = tmp_path / "manifests"
    manifests.mkdir()
    (manifests / "nginx.yaml").write_text(SERVICE + "---\n" + SLICE)
    return manifests


@pytest.fixture
def start(folder):
    daemons = []

    def starter(*flags, **how):
        daemons.append(Daemon(folder, *flags, **how))
        return daemons[-1]

    yield starter
    for daemon in daemons:
        daemon.close()


def replace(path, text):
    """As editors and `kubectl ... > file` users should: the new file takes the name of the old in one step."""
    temporary = path.with_name("." + path.name)
    temporary.write_text(text)
    temporary.rename(path)


def only_rules(text):
    return [line for line in text.splitlines() if line.startswith("-A")]


def test_rules_are_written_followed_and_left_behind(start, folder):
    daemon = start()
    daemon.wait_for("Starting Portolan", 'node="node-a"', 'mode="iptables"')
    daemon.wait_for("The Node is not known")
    daemon.wait_for_first_syncs()
    assert "-d 10.96.7.7/32" in daemon.inside("iptables-save", "-t", "nat")
    replace(folder / "nginx.yaml", SERVICE.replace("10.96.7.7", "10.96.8.8") + "---\n" + SLICE)
    daemon.wait_for("Sync done", 'ipFamily="IPv4"', "full=false")
    rules = daemon.inside("iptables-save", "-t", "nat")
    assert "-d 10.96.8.8/32" in rules and "10.96.7.7" not in rules
    before = daemon.inside("iptables-save", "-t", "nat")
    # a process that stands in the namespace already can still look at it when the daemon is gone
    watcher = subprocess.Popen(daemon.enter("sh", "-c", "echo in; read go; iptables-save -t nat"),
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert watcher.stdout.readline() == "in\n"
    assert daemon.end() == 0
    after, _ = watcher.communicate("go\n", timeout=DEADLINE)
    assert only_rules(after) == only_rules(before)


def test_hangup_loses_nothing_and_interrupt_ends(start, folder):
    daemon = start()
    daemon.wait_for_first_syncs()
    before = daemon.inside("iptables-save", "-t", "nat")
    daemon.process.send_signal(signal.SIGHUP)
    daemon.wait_for("nothing needs reloading")
    assert only_rules(daemon.inside("iptables-save", "-t", "nat")) == only_rules(before)
    replace(folder / "nginx.yaml", SERVICE.replace("10.96.7.7", "10.96.8.8") + "---\n" + SLICE)
    daemon.wait_for("Sync done", 'ipFamily="IPv4"', "full=false")
    assert "-d 10.96.8.8/32" in daemon.inside("iptables-save", "-t", "nat")
    assert daemon.end(signal.SIGINT) == 0
    daemon.wait_for("Ending, rules stay", "SIGINT")


def test_a_zone_change_leads_to_a_full_sync(start, folder):
    (folder / "node.yaml").write_text(NODE)
    daemon = start()
    daemon.wait_for_first_syncs()
    replace(folder / "node.yaml", NODE.replace("{name: node-a}",
            "{name: node-a, labels: {topology.kubernetes.io/zone: zone-a}}"))
    for _ in range(2):
        daemon.wait_for("Sync done", "full=true")
    assert daemon.end() == 0


def test_node_cidr_mode_waits_for_the_node_and_ends_when_its_pod_cidrs_change(start, folder):
    daemon = start("--detect-local-mode=NodeCIDR")
    daemon.wait_for("Waiting for the Node's podCIDRs", 'node="node-a"', "seconds=300")
    replace(folder / "node.yaml", NODE)
    daemon.wait_for_first_syncs()
    assert "! -s 10.244.1.0/24" in daemon.inside("iptables-save", "-t", "nat")
    replace(folder / "node.yaml", NODE.replace("10.244.1.0/24", "10.244.9.0/24"))
    daemon.wait_for("podCIDRs changed")
    assert daemon.process.wait(timeout=DEADLINE) == 1


FLUSHES = {
    # at once, as a firewall's reload does it: the kernel tells of it
    "netlink": "nft flush ruleset",
    # nobody tells: the loss of the canaries does
    "restore": "for t in mangle nat filter; do iptables -t $t -F; iptables -t $t -X; done",
}

FLUSHED = {"netlink": "table nat deleted", "restore": 'what="chain KUBE-PROXY-CANARY deleted"'}


@pytest.mark.parametrize("writer", FLUSHES)
def test_removed_rules_come_back(start, writer):
    daemon = start("--iptables-sync-period=1s", f"--iptables-writer={writer}")
    daemon.wait_for_first_syncs()
    # only once the canaries stand, the last of them in filter, can their loss be seen
    deadline = time.monotonic() + DEADLINE
    while "KUBE-PROXY-CANARY" not in daemon.inside("iptables-save", "-t", "filter"):
        assert time.monotonic() < deadline
    daemon.inside("sh", "-c", FLUSHES[writer])
    daemon.wait_for("Rules were changed by another program", 'ipFamily="IPv4"', FLUSHED[writer])
    daemon.wait_for("Sync done", 'ipFamily="IPv4"', "full=true")
    assert "-d 10.96.7.7/32" in daemon.inside("iptables-save", "-t", "nat")
    assert daemon.end() == 0


def test_init_only_sets_sysctls_and_writes_no_rule(folder):
    script = (f"{PORTOLAN} run --manifests {folder} {NO_LIMIT} --init-only"
              " && cat /proc/sys/net/ipv4/conf/all/route_localnet && iptables-save")
    result = subprocess.run([*UNSHARE, "sh", "-c", script], capture_output=True, text=True, timeout=DEADLINE)
    assert result.returncode == 0
    assert result.stdout.startswith("1\n")
    assert "KUBE" not in result.stdout
    assert result.stderr.count('"No mode is given, using iptables"') == 1


@pytest.mark.parametrize("instead", ["--cleanup", "--write-config-to=/dev/null"])
def test_who_does_not_run_needs_no_mode(folder, instead):
    result = subprocess.run([*UNSHARE, PORTOLAN, "run", f"--manifests={folder}", instead], capture_output=True, text=True, timeout=DEADLINE)
    assert result.returncode == 0
    assert "No mode is given" not in result.stderr


VARIANT = '"Chose the variant of iptables"'
needs_legacy = pytest.mark.skipif(
    subprocess.run([*UNSHARE, "iptables-legacy", "-t", "mangle", "-S"], capture_output=True).returncode != 0,
    reason="no legacy iptables here")


@needs_legacy
def test_kubelets_chain_decides_the_variant(folder):
    """It is in the legacy variant, the program iptables is of the other: rules go where kubelet has its own."""
    script = (f"iptables-legacy -t mangle -N KUBE-IPTABLES-HINT && {{ {PORTOLAN} run --manifests {folder} {NO_LIMIT} & }}"
              " && until iptables-legacy-save -t nat | grep -q 'A KUBE-SERVICES -d 10.96.7.7/32'; do sleep 0.1; done"
              f" && kill $! && wait $! && iptables-nft-save && {PORTOLAN} cleanup && iptables-legacy-save")
    result = subprocess.run([*UNSHARE, "sh", "-c", script], capture_output=True, text=True, timeout=DEADLINE)
    assert result.returncode == 0
    log = [line for line in result.stderr.splitlines() if VARIANT in line]
    assert len(log) == 1
    assert 'variant="legacy" reason="chain KUBE-IPTABLES-HINT of IPv4 is in table mangle"' in log[0]
    assert "KUBE-SERVICES" not in result.stdout
    assert "KUBE-IPTABLES-HINT" in result.stdout


@needs_legacy
def test_variant_flag_decides_against_kubelets_chain(folder):
    script = (f"iptables-legacy -t mangle -N KUBE-IPTABLES-HINT && {PORTOLAN} run --manifests {folder} --init-only"
              f" {NO_LIMIT} --iptables-variant=nft")
    result = subprocess.run([*UNSHARE, "sh", "-c", script], capture_output=True, text=True, timeout=DEADLINE)
    assert result.returncode == 0
    assert 'variant="nft" reason="--iptables-variant says so"' in result.stderr


def test_cleanup_removes_what_run_left(start, folder):
    daemon = start()
    daemon.wait_for_first_syncs()
    foreign = ["iptables", "-t", "nat", "-A", "POSTROUTING", "-s", "203.0.113.7", "-j", "ACCEPT"]
    daemon.inside(*foreign)
    daemon.process.send_signal(signal.SIGSTOP)  # it keeps the namespace, and cannot write meanwhile
    daemon.inside(PORTOLAN, "cleanup")
    for tool in ("iptables-save", "ip6tables-save"):
        left = {line for line in daemon.inside(tool).splitlines() if "KUBE" in line and "KUBE-FIREWALL" not in line}
        assert left == set()
    assert "203.0.113.7" in daemon.inside("iptables-save", "-t", "nat")
    daemon.inside(PORTOLAN, "run", "--cleanup")  # once more finds nothing, and that is no error
    daemon.process.send_signal(signal.SIGCONT)
    assert daemon.end() == 0


def test_cleanup_names_the_foreign_rule_that_holds_a_chain():
    script = (f"iptables -t nat -N KUBE-SERVICES && iptables -t nat -N KUBE-NODEPORTS"
              f" && iptables -t nat -A OUTPUT -s 192.0.2.9 -j KUBE-NODEPORTS && {PORTOLAN} cleanup; echo $?"
              f"; iptables-save -t nat")
    result = subprocess.run([*UNSHARE, "sh", "-c", script], capture_output=True, text=True, timeout=DEADLINE)
    assert result.stdout.startswith("1\n")
    assert result.stderr.startswith("portolan cleanup: removing the IPv4 rules: chain KUBE-NODEPORTS of table nat")
    assert "-A OUTPUT -s 192.0.2.9/32 -j KUBE-NODEPORTS" in result.stderr
    assert "KUBE-NODEPORTS" in result.stdout and "KUBE-SERVICES" not in result.stdout


def test_cleanup_says_which_familys_tools_fail(tmp_path):
    for name in ("iptables", "iptables-save", "iptables-restore"):
        (tmp_path / name).symlink_to(shutil.which(name))
    result = subprocess.run([*UNSHARE, "env", f"PATH={tmp_path}", PORTOLAN, "cleanup"],
                            capture_output=True, text=True, timeout=DEADLINE)
    assert result.returncode == 0
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("portolan cleanup: no IPv6 rules can be read on this host: ")


def test_without_the_primary_familys_tool_it_cannot_start(folder, tmp_path):
    result = subprocess.run([*UNSHARE, "env", "PATH=" + str(tmp_path), PORTOLAN, "run", "--manifests", folder, NO_LIMIT],
                            capture_output=True, text=True, timeout=DEADLINE)
    assert result.returncode == 1
    assert "cannot proxy the primary family, IPv4" in result.stderr.splitlines()[-1]
    assert run("version").returncode == 0


def test_closed_standard_files_are_nobody_elses(start):
    """Otherwise the event loop's own files get their numbers, and output meant for a person goes there."""
    daemon = start(through=["sh", "-c", 'exec "$0" "$@" <&- >&-'])
    daemon.wait_for_first_syncs()
    for number in (0, 1):
        assert os.readlink(f"/proc/{daemon.process.pid}/fd/{number}") == "/dev/null"
    assert "-d 10.96.7.7/32" in daemon.inside("iptables-save", "-t", "nat")
    assert daemon.end() == 0


def test_a_limit_that_cannot_be_set_ends_the_start(folder):
    """As kube-proxy: a table smaller than asked for would drop connections silently."""
    flags = ["--manifests", folder, "--conntrack-min=12345", "--conntrack-max-per-core=1"]
    result = subprocess.run([*UNSHARE, PORTOLAN, "run", *flags], capture_output=True, text=True, timeout=DEADLINE)
    assert result.returncode == 1
    assert "nf_conntrack_max" in result.stderr and "--conntrack-max-per-core=0" in result.stderr


def test_times_of_connection_tracking_and_the_oom_score_are_set(start):
    daemon = start("--conntrack-tcp-timeout-established=1h", "--conntrack-udp-timeout=17s", "--conntrack-tcp-be-liberal",
                   "--oom-score-adj=500")
    daemon.wait_for_first_syncs()
    values = daemon.inside("cat", *(f"/proc/sys/net/netfilter/nf_conntrack_{name}" for name in (
        "tcp_timeout_established", "tcp_timeout_close_wait", "udp_timeout", "tcp_be_liberal")))
    assert values.split() == ["3600", "3600", "17", "1"]
    with open(f"/proc/{daemon.process.pid}/oom_score_adj", encoding="ascii") as file:
        assert file.read() == "500\n"
    assert "INVALID" not in daemon.inside("iptables-save", "-t", "filter"), "liberal, so nothing is invalid"

# SPDX-License-Identifier: Apache-2.0
"""What the daemon keeps of its privileges, and that all it has to do goes on without the rest.

That suites run in the sandbox at all, where it is on unless a flag says otherwise, is the other half of the proof.
"""

import os
import re
import select
import shutil
import stat
import subprocess
import tempfile
import time

import pytest

from test_cli import SERVICE, SLICE, run
from test_run import DEADLINE, PORTOLAN, UNSHARE, Daemon, needs_legacy, pytestmark  # noqa: F401

NET_ADMIN = 1 << 12
NET_BIND_SERVICE = 1 << 10
NET_RAW = 1 << 13
NOBODY = "65534"
ENTERED = '"Entered the sandbox"'
#: A sanitizer traces the process at its end, so that there nothing is refused.
ON = 'seccomp="log"' if "PORTOLAN_SANITIZED" in os.environ else 'seccomp="on"'

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has privileges to give up")


@pytest.fixture
def open_folder():
    """A manifest folder that all may read; pytest's own are for root alone."""
    path = tempfile.mkdtemp(prefix="portolan-sandbox-")
    os.chmod(path, 0o755)
    with open(os.path.join(path, "nginx.yaml"), "w", encoding="utf-8") as file:
        file.write(SERVICE + "---\n" + SLICE)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def start(open_folder):
    daemons = []

    def starter(*flags, folder=open_folder, **how):
        daemons.append(Daemon(folder, *flags, **how))
        return daemons[-1]

    yield starter
    for daemon in daemons:
        daemon.close()


def status(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)


def capabilities(facts):
    return {name: int(facts[f"Cap{name}"], 16) for name in ("Inh", "Prm", "Eff", "Bnd", "Amb")}


def launcher_of(line):
    return int(re.search(r"launcher=(\d+)", line)[1])


def answer(daemon, port, path):
    return daemon.inside("python3", "-c", "import sys, urllib.request as r; print(r.urlopen(sys.argv[1], timeout=20).read().decode())",
                         f"http://127.0.0.1:{port}{path}")


MODES = {
    "iptables over netlink": ("--iptables-writer=netlink", "--iptables-variant=nft"),
    "iptables-restore": ("--iptables-writer=restore", "--iptables-variant=nft"),
    "nftables": ("--proxy-mode=nftables",),
}


@as_root
@pytest.mark.parametrize("mode", MODES)
def test_only_net_admin_is_left(start, open_folder, mode):
    daemon = start(*MODES[mode])
    line = daemon.wait_for(ENTERED)
    daemon.wait_for_first_syncs()
    facts = status(daemon.process.pid)
    assert facts["Uid"].split() == facts["Gid"].split() == [NOBODY] * 4
    assert facts["Groups"].strip() == ""
    assert capabilities(facts) == {"Inh": 0, "Prm": NET_ADMIN, "Eff": NET_ADMIN, "Bnd": NET_ADMIN, "Amb": 0}
    assert (facts["NoNewPrivs"], facts["Seccomp"]) == ("1", "2")
    assert f'user={NOBODY} capabilities="NET_ADMIN" {ON}' in line
    assert (launcher_of(line) != 0) == (mode == "iptables-restore")
    # and the work goes on
    replace_text(open_folder, SERVICE.replace("10.96.7.7", "10.96.8.8") + "---\n" + SLICE)
    daemon.wait_for("Sync done", 'ipFamily="IPv4"')
    rules = daemon.inside("nft", "list", "ruleset") if mode == "nftables" else daemon.inside("iptables-save", "-t", "nat")
    assert "10.96.8.8" in rules and "10.96.7.7" not in rules
    assert daemon.end() == 0


def replace_text(folder, text):
    new = os.path.join(folder, ".new")
    with open(new, "w", encoding="utf-8") as file:
        file.write(text)
    os.rename(new, os.path.join(folder, "nginx.yaml"))


@as_root
@needs_legacy
@pytest.mark.parametrize("variant", ["nft", "legacy"])
def test_the_launcher_keeps_what_programs_need(start, variant):
    daemon = start("--iptables-writer=restore", f"--iptables-variant={variant}")
    launcher = launcher_of(daemon.wait_for(ENTERED))
    daemon.wait_for_first_syncs()
    needed = NET_ADMIN | (NET_RAW if variant == "legacy" else 0)
    facts = status(launcher)
    assert facts["Name"] == "portolan-launch"
    assert capabilities(facts) == dict.fromkeys(("Inh", "Prm", "Eff", "Bnd", "Amb"), needed)
    assert (facts["NoNewPrivs"], facts["Seccomp"]) == ("1", "2")
    assert capabilities(status(daemon.process.pid))["Prm"] == NET_ADMIN
    assert "-d 10.96.7.7/32" in daemon.inside(f"iptables-{variant}-save", "-t", "nat")
    assert daemon.end() == 0
    deadline = time.monotonic() + DEADLINE  # the daemon waits a second for it, and then it dies with the daemon
    while os.path.exists(f"/proc/{launcher}"):
        assert time.monotonic() < deadline


@as_root
def test_a_daemon_without_its_launcher_ends_to_be_started_again(start):
    daemon = start("--iptables-writer=restore")
    launcher = launcher_of(daemon.wait_for(ENTERED))
    daemon.wait_for_first_syncs()
    os.kill(launcher, 9)
    daemon.wait_for('"The launcher of programs ended, a new start is needed"')
    assert daemon.process.wait(timeout=60) == 1


@as_root
def test_the_launcher_dies_with_a_daemon_that_is_killed(start):
    daemon = start("--iptables-writer=restore")
    launcher = os.pidfd_open(launcher_of(daemon.wait_for(ENTERED)))
    daemon.process.kill()
    daemon.process.wait()
    assert select.select([launcher], [], [], 60)[0]
    os.close(launcher)


@as_root
def test_root_stays_for_files_that_only_root_can_read(start, open_folder):
    os.chmod(os.path.join(open_folder, "nginx.yaml"), 0o600)
    daemon = start()
    daemon.wait_for(ENTERED, 'user=0 capabilities="NET_ADMIN"')
    daemon.wait_for('"Stays root in the sandbox"', "nginx.yaml can be read by root alone")
    daemon.wait_for_first_syncs()
    facts = status(daemon.process.pid)
    assert facts["Uid"].split() == ["0"] * 4
    assert capabilities(facts) == {"Inh": 0, "Prm": NET_ADMIN, "Eff": NET_ADMIN, "Bnd": NET_ADMIN, "Amb": 0}
    assert daemon.end() == 0


@as_root
def test_a_port_below_1024_keeps_the_right_to_it(start):
    daemon = start("--healthz-bind-address=127.0.0.1:256")
    daemon.wait_for(ENTERED, 'capabilities="NET_ADMIN,NET_BIND_SERVICE"')
    daemon.wait_for_first_syncs()
    assert capabilities(status(daemon.process.pid))["Prm"] == NET_ADMIN | NET_BIND_SERVICE
    assert daemon.end() == 0


@as_root
def test_servers_and_later_ports_answer(start, open_folder):
    """The health check port of a Service that comes later is opened inside the sandbox."""
    daemon = start("--service-metrics", through=("sh", "-c", 'ip link set lo up && exec "$@"', "sh"))
    daemon.wait_for(ENTERED)
    daemon.wait_for_first_syncs()
    local = SERVICE.replace("type: NodePort", "type: LoadBalancer\n  externalTrafficPolicy: Local\n  healthCheckNodePort: 32123")
    replace_text(open_folder, local + "---\n" + SLICE)
    daemon.wait_for("Sync done", 'ipFamily="IPv4"')
    assert "process_open_fds" in answer(daemon, 10249, "/metrics")
    assert "Service" in daemon.inside("python3", "-c", HEALTH_CHECK)
    assert daemon.inside("cat", "/proc/sys/net/netfilter/nf_conntrack_acct").strip() == "1"
    assert daemon.end() == 0


HEALTH_CHECK = """
import http.client, time
deadline = time.monotonic() + 30
while True:
    try:
        connection = http.client.HTTPConnection("127.0.0.1", 32123, timeout=10)
        connection.request("GET", "/")
        text = connection.getresponse().read().decode()
        break
    except ConnectionRefusedError:
        assert time.monotonic() < deadline
assert "localEndpoints" in text
print("Service", text)
"""

CONFIG = """apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: {mode}
nodePortAddresses: [{ports}]
conntrack: {{maxPerCore: 0}}
"""


@as_root
@pytest.mark.parametrize("mode,writer", [("iptables", "auto"), ("iptables", "restore"), ("nftables", "auto")])
def test_a_changed_configuration_is_applied_inside(start, open_folder, mode, writer):
    """The new node ports include those of localhost, which takes a sysctl; the rules' owner is made anew."""
    config = os.path.join(open_folder, ".config")  # hidden from the source, readable by all
    with open(config, "w", encoding="utf-8") as file:
        file.write(CONFIG.format(mode=mode, ports="192.0.2.0/24"))
    daemon = start(f"--config={config}", f"--iptables-writer={writer}")
    daemon.wait_for(ENTERED, f"user={NOBODY}")
    daemon.wait_for_first_syncs()
    if mode == "iptables":
        assert daemon.inside("cat", "/proc/sys/net/ipv4/conf/all/route_localnet").strip() == "0"
    with open(config + ".new", "w", encoding="utf-8") as file:
        file.write(CONFIG.format(mode=mode, ports="127.0.0.0/8"))
    os.rename(config + ".new", config)
    for _ in range(2):  # which is logged before or behind the line about the file
        daemon.wait_for("nc done", "full=true") if mode == "iptables" else daemon.wait_for("First sync done")
    if mode == "iptables":
        assert daemon.inside("cat", "/proc/sys/net/ipv4/conf/all/route_localnet").strip() == "1"
    assert daemon.end() == 0


@as_root
@needs_legacy
@pytest.mark.parametrize("variant", ["nft", "legacy"])
def test_what_another_mode_left_is_removed_from_inside(start, open_folder, variant):
    """Mode nftables needs iptables' programs once, for rules of a former life that only they remove."""
    script = f'iptables-{variant} -t nat -N KUBE-SERVICES && exec "$@"'
    daemon = start("--proxy-mode=nftables", through=("sh", "-c", script, "sh"))
    line = daemon.wait_for(ENTERED, f"user={NOBODY}")
    daemon.wait_for('"Removed what another mode left"', 'mode="iptables"')
    assert "KUBE-SERVICES" not in daemon.inside(f"iptables-{variant}-save", "-t", "nat")
    expected = NET_ADMIN | (NET_RAW if variant == "legacy" else 0)
    assert capabilities(status(launcher_of(line)))["Prm"] == expected
    assert daemon.end() == 0


@as_root
@pytest.mark.parametrize("flag", ["--no-sandbox", "--sandbox=off"])
def test_without_the_sandbox_all_is_kept(start, flag):
    before = capabilities(status("self"))
    daemon = start(flag)
    daemon.wait_for_first_syncs()
    facts = status(daemon.process.pid)
    assert facts["Uid"].split() == ["0"] * 4
    assert capabilities(facts)["Prm"] == before["Prm"]
    assert (facts["NoNewPrivs"], facts["Seccomp"]) == ("0", "0")
    assert not [line for line in daemon.lines if ENTERED in line]
    assert daemon.end() == 0


def test_with_log_the_filter_is_there_and_refuses_nothing(start):
    daemon = start("--sandbox=log")
    daemon.wait_for(ENTERED, 'seccomp="log"')
    daemon.wait_for_first_syncs()
    assert status(daemon.process.pid)["Seccomp"] == "2"
    assert daemon.end() == 0


def test_a_user_namespace_with_one_user_is_enough(open_folder):
    """The user cannot be changed there; all else is given up, and the start goes on."""
    script = ["unshare", "-rn", "--kill-child", PORTOLAN, "run", "--manifests", open_folder, "--node-name=node-a",
              "--conntrack-max-per-core=0", "--proxy-mode=nftables"]
    process = subprocess.Popen(script, stderr=subprocess.PIPE, text=True)
    log = ""
    try:
        for line in process.stderr:
            log += line
            if "First sync done" in line:
                break
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
    assert f'{ENTERED} user=0 capabilities="NET_ADMIN" {ON}' in log
    assert '"Stays root in the sandbox" reason="user 65534 cannot be taken on here"' in log
    assert "First sync done" in log


@as_root
def test_a_file_capability_is_all_that_another_user_needs(open_folder):
    """As the DaemonSet has it: user 65534, a bounding set of NET_ADMIN, and a program whose file has it."""
    program = os.path.join(open_folder, ".portolan")
    shutil.copy(PORTOLAN, program)
    os.chmod(program, os.stat(program).st_mode | stat.S_IXOTH)
    if subprocess.run(["setcap", "cap_net_admin=p", program], capture_output=True).returncode != 0:
        pytest.skip("capabilities of files cannot be set here")
    script = [*UNSHARE, "setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--bounding-set", "-all,+net_admin",
              "--inh-caps", "-all", program, "run", "--manifests", open_folder, "--node-name=node-a", "--conntrack-max-per-core=0",
              "--iptables-localhost-nodeports=false", "--iptables-writer=restore", "--iptables-variant=nft", "-v2"]
    process = subprocess.Popen(script, stderr=subprocess.PIPE, text=True)
    log, synced = "", 0
    try:
        for line in process.stderr:
            log += line
            synced += "First sync done" in line
            if synced == 2:
                break
        facts = status(process.pid)
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
    assert synced == 2, log
    assert f'{ENTERED} user={NOBODY} capabilities="NET_ADMIN" {ON}' in log
    assert "not complete" not in log
    assert capabilities(facts)["Prm"] == NET_ADMIN


def test_a_wrong_mode_is_an_error():
    result = run("run", "--manifests=/", "--sandbox=maybe")
    assert result.returncode == 1
    assert '--sandbox: "maybe" is not on, log or off' in result.stderr

# SPDX-License-Identifier: Apache-2.0
"""The configuration file: written, read, judged, and followed while the daemon runs.

Every wait is for a line of the daemon's log, never for a while.
"""

import subprocess

import pytest

from test_cli import NODE, PORTOLAN, SERVICE, SLICE, run
from test_run import DEADLINE, UNSHARE, Daemon, replace

HEAD = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n"
#: A namespace cannot set the limit of connection tracking, which is the whole machine's.
RUNNING = HEAD + "conntrack: {maxPerCore: 0}\n"

needs_namespace = pytest.mark.skipif(
    subprocess.run([*UNSHARE, "iptables", "-S"], capture_output=True).returncode != 0,
    reason="no network namespace with iptables can be made here")


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "etc" / "config.conf"
    path.parent.mkdir()
    path.write_text(RUNNING)
    return path


@pytest.fixture
def folder(tmp_path):
    manifests = tmp_path / "manifests"
    manifests.mkdir()
    (manifests / "nginx.yaml").write_text(SERVICE + "---\n" + SLICE)
    (manifests / "node.yaml").write_text(NODE)
    return manifests


@pytest.fixture
def start(folder):
    daemons = []

    def starter(config, *flags):
        daemons.append(Daemon(folder, f"--config={config}", *flags))
        return daemons[-1]

    yield starter
    for daemon in daemons:
        daemon.close()


def write_config(tmp_path, *flags):
    target = tmp_path / "written.yaml"
    result = run("run", f"--write-config-to={target}", *flags)
    assert result.returncode == 0, result.stderr
    return target.read_text()


# Files and flags


def test_write_config_round_trip(tmp_path):
    for flags in ([], ["--proxy-mode=nftables", "--masquerade-all"], ["--proxy-mode=ipvs", "--ipvs-scheduler=rr"],
                  ["--feature-gates=AllBeta=true,AllowServiceExternalIPs=false", "--bind-address=::1"],
                  ["--cluster-cidr=10.0.0.0/8,fd00::/64", "--nodeport-addresses=primary", "--kube-api-qps=0.1"]):
        once = write_config(tmp_path, *flags)
        assert once.startswith("apiVersion: kubeproxy.config.k8s.io/v1alpha1\nbindAddress: ")
        again = tmp_path / "again.yaml"
        again.write_text(once)
        assert write_config(tmp_path, f"--config={again}") == once


def test_write_config_is_that_of_kube_proxy(tmp_path):
    text = write_config(tmp_path)
    assert "  tcpEstablishedTimeout: 24h0m0s\n" in text
    assert 'ipvs:\n  excludeCIDRs: null\n  minSyncPeriod: 0s\n  scheduler: ""\n' in text
    assert 'infoBufferSize: "0"' in text
    assert "featureGates" not in text and "windowsRunAsService" not in text
    assert "metricsBindAddress: '[::1]:10249'\n" in write_config(tmp_path, "--metrics-bind-address=[::1]:10249")


def test_a_file_replaces_flags_but_not_those_about_logs(tmp_path, config):
    config.write_text(HEAD + "mode: iptables\nlogging: {verbosity: 1}\nhostnameOverride: a\n")
    text = write_config(tmp_path, f"--config={config}", "--proxy-mode=ipvs", "-v4", "--hostname-override=B",
                        "--healthz-port=1", "--iptables-masquerade-bit=99")
    assert "mode: iptables\n" in text and "  verbosity: 4\n" in text and "hostnameOverride: b\n" in text
    assert "healthzBindAddress: 0.0.0.0:10256\n" in text and "masqueradeBit: 14\n" in text
    result = run("run", f"--config={config}", "--proxy-mode=ipvs", f"--write-config-to={tmp_path}/x")
    assert "--proxy-mode has no effect beside --config" in result.stderr


def test_all_errors_at_once_with_their_places(config, folder):
    config.write_text(HEAD + "conntrack:\n  maxPerCore: -1\n  min: -2\noomScoreAdj: 2000\nclusterCIDR: x\n")
    result = run("run", f"--config={config}", "--manifests", folder, "--logging-format=xml")
    assert result.returncode == 1
    assert result.stderr.splitlines() == [f"portolan run: {line}" for line in (
        f"{config}:4:15: conntrack.maxPerCore: Invalid value: -1: must be greater than or equal to 0",
        f"{config}:5:8: conntrack.min: Invalid value: -2: must be greater than or equal to 0",
        f"{config}:6:14: oomScoreAdj: Invalid value: 2000: must be within the range [-1000, 1000]",
        f'{config}:7:14: clusterCIDR: Invalid value: "x": must be a valid CIDR block (e.g. 10.100.0.0/16 or '
        "fde4:8dba:82e1::/48)",
        '--logging-format: Invalid value: "xml": Unsupported log format')]


@pytest.mark.parametrize("text, says", [
    ("kind: [", "config.conf:2:1: "),
    ("apiVersion: v1\nkind: Pod\n", "config.conf:2:7: kind: expected KubeProxyConfiguration"),
    (HEAD + "mode: 5\n", "config.conf:3:7: KubeProxyConfiguration: mode: expected a string, found the integer 5"),
    ("", "config.conf:1:1: apiVersion and kind are missing"),
])
def test_what_cannot_be_decoded_is_an_error_with_its_place(config, folder, text, says):
    config.write_text(text)
    result = run("run", f"--config={config}", "--manifests", folder)
    assert result.returncode == 1
    assert says in result.stderr and result.stderr.count("\n") == 1


def test_a_missing_file_is_an_error(tmp_path, folder):
    result = run("run", f"--config={tmp_path}/nowhere", "--manifests", folder)
    assert result.returncode == 1 and "nowhere" in result.stderr


def test_unknown_and_repeated_fields_are_warnings(tmp_path, config):
    config.write_text(HEAD + "foo: 1\nmode: ipvs\nmode: nftables\n")
    result = run("run", f"--config={config}", f"--write-config-to={tmp_path}/out")
    assert result.returncode == 0
    assert f"{config}:3:1: KubeProxyConfiguration: foo: unknown field" in result.stderr
    assert f"{config}:5:1: KubeProxyConfiguration: mode: given twice" in result.stderr
    assert "mode: nftables\n" in (tmp_path / "out").read_text()


def test_settings_without_effect_are_logged_once(tmp_path):
    result = run("run", f"--write-config-to={tmp_path}/out", "--ipvs-scheduler=rr", "--kube-api-burst=9", "-v1")
    assert result.stderr.count("Accepted settings that change nothing here") == 1
    assert 'fields="clientConnection.burst,ipvs.scheduler"' in result.stderr


def test_render_reads_the_file_too(config, folder):
    config.write_text(HEAD + "clusterCIDR: 10.99.0.0/16\niptables: {masqueradeBit: 3}\nhostnameOverride: node-a\n")
    result = run("render", "--manifests", folder, f"--config={config}", "--ip-family=ipv4")
    assert result.returncode == 0
    assert "! -s 10.99.0.0/16" in result.stdout and "0x00000008" in result.stdout


# Changes while running


def put_config_map(mount, number, text):
    """As the kubelet does: a new folder, and `..data` is moved to it in one step."""
    (mount / f"..{number}").mkdir()
    (mount / f"..{number}" / "config.conf").write_text(text)
    (mount / "..data_tmp").symlink_to(f"..{number}")
    (mount / "..data_tmp").rename(mount / "..data")
    if not (mount / "config.conf").is_symlink():
        (mount / "config.conf").symlink_to("..data/config.conf")


@needs_namespace
def test_live_changes_are_applied_with_a_full_sync(start, config):
    daemon = start(config)
    daemon.wait_for_first_syncs()
    config.write_text(RUNNING + "clusterCIDR: 10.244.0.0/16\niptables: {minSyncPeriod: 100ms}\n")  # in place
    daemon.wait_for("The configuration file changed, applying it", 'fields="clusterCIDR,iptables.minSyncPeriod"')
    daemon.wait_nat("! -s 10.244.0.0/16")
    replace(config, RUNNING + "nodePortAddresses: [192.0.2.0/24]\ndetectLocalMode: BridgeInterface\n"
            "detectLocal: {bridgeInterface: cni0}\n")
    daemon.wait_for("applying it", "detectLocal.bridgeInterface", "detectLocalMode", "nodePortAddresses")
    rules = daemon.wait_nat("! -i cni0")
    assert "10.244.0.0/16" not in rules
    assert "--dst-type LOCAL" not in rules.split("KUBE-NODEPORTS")[-1]
    assert daemon.end() == 0
    assert len(daemon.said('"First sync done" ipFamily="IPv4" full=true')) > 1


@needs_namespace
def test_words_for_node_ports_are_replaced_again_at_each_change(start, config):
    local = '-d 127.0.0.1/32 -m comment --comment "kubernetes service nodeports'
    config.write_text(RUNNING + "nodePortAddresses: [all]\n")
    daemon = start(config)
    daemon.wait_for_first_syncs()
    daemon.inside("ip", "link", "set", "lo", "up")
    assert "--dst-type LOCAL" in daemon.inside("iptables-save", "-t", "nat")
    replace(config, RUNNING + "nodePortAddresses: [localhost]\n")
    daemon.wait_for("applying it", 'fields="nodePortAddresses"')
    assert "--dst-type LOCAL" not in daemon.wait_nat(local)
    replace(config, RUNNING + "nodePortAddresses: [localhost, localhost]\n")
    daemon.wait_for("keeping the old configuration", 'nodePortAddresses: [1]: Duplicate value: \\"localhost\\"')
    replace(config, RUNNING + "nodePortAddresses: [10.0.0.0/8, all, localhost]\n")
    assert local not in daemon.wait_nat("--dst-type LOCAL")
    assert daemon.end() == 0


@needs_namespace
def test_a_file_that_no_longer_names_the_default_mode_changes_nothing(start, config):
    config.write_text(RUNNING + "mode: iptables\n")
    daemon = start(config)
    daemon.wait_for_first_syncs()
    replace(config, RUNNING)
    replace(config, RUNNING + "clusterCIDR: 10.244.0.0/16\n")
    daemon.wait_for("applying it", 'fields="clusterCIDR"')
    assert daemon.end() == 0
    assert daemon.said("No mode is given") == []


@needs_namespace
def test_the_log_level_changes_live(start, config, folder):
    daemon = start(config)
    daemon.wait_for_first_syncs()
    daemon.end()
    plain = subprocess.Popen([*UNSHARE, PORTOLAN, "run", "--manifests", folder, f"--config={config}"],
                             stderr=subprocess.PIPE, text=True)
    try:
        lines = iter(plain.stderr.readline, "")
        firsts = 0
        while firsts < 2:
            firsts += "First sync done" in next(lines)
        replace(config, RUNNING + "logging: {verbosity: 2}\n")
        while "applying it" not in (line := next(lines)):
            pass
        assert 'fields="logging.verbosity"' in line
        firsts = 0
        while firsts < 2:
            firsts += "First sync done" in next(lines)
        replace(folder / "nginx.yaml", SERVICE.replace("10.96.7.7", "10.96.8.8") + "---\n" + SLICE)
        while '"Sync done"' not in next(lines):
            pass
    finally:
        plain.terminate()
        assert plain.wait(timeout=DEADLINE) == 0


@needs_namespace
def test_any_other_change_ends_with_exit_code_1(start, config):
    daemon = start(config)
    daemon.wait_for_first_syncs()
    replace(config, RUNNING + "iptables: {masqueradeBit: 15}\nclusterCIDR: 10.244.0.0/16\n")
    daemon.wait_for("a new start is needed", 'fields="clusterCIDR,iptables.masqueradeBit"')
    assert daemon.process.wait(timeout=DEADLINE) == 1


@needs_namespace
def test_a_broken_file_is_told_once_and_changes_nothing(start, config):
    daemon = start(config)
    daemon.wait_for_first_syncs()
    replace(config, "nonsense: [")
    daemon.wait_for("keeping the old configuration", "config.conf:")
    replace(config, RUNNING + "oomScoreAdj: 5000\nclusterCIDR: x\n")
    daemon.wait_for("keeping the old configuration", "oomScoreAdj: Invalid value", "clusterCIDR: Invalid value")
    replace(config, RUNNING)
    daemon.wait_for("can be used again, nothing in it changed")
    replace(config, RUNNING + "clusterCIDR: 10.244.0.0/16\n")
    daemon.wait_for("applying it")
    daemon.wait_nat("! -s 10.244.0.0/16")
    assert daemon.end() == 0
    assert sum("keeping the old configuration" in line for line in daemon.lines) == 2


@needs_namespace
def test_a_config_maps_symlink_swap_is_noticed(start, tmp_path):
    mount = tmp_path / "mount"
    mount.mkdir()
    put_config_map(mount, 1, RUNNING)
    daemon = start(mount / "config.conf")
    daemon.wait_for_first_syncs()
    put_config_map(mount, 2, RUNNING + "clusterCIDR: 10.244.0.0/16\n")
    daemon.wait_for("applying it", 'fields="clusterCIDR"')
    daemon.wait_nat("! -s 10.244.0.0/16")
    put_config_map(mount, 3, RUNNING + "mode: ipvs\n")
    daemon.wait_for("keeping the old configuration", "ipvs is not available")
    put_config_map(mount, 4, RUNNING + "hostnameOverride: other\nclusterCIDR: 10.244.0.0/16\n")
    # --node-name wins, so this is no change
    put_config_map(mount, 5, RUNNING + "oomScoreAdj: 1\nclusterCIDR: 10.244.0.0/16\n")
    daemon.wait_for("a new start is needed", 'fields="oomScoreAdj"')
    assert daemon.process.wait(timeout=DEADLINE) == 1


@needs_namespace
def test_a_change_of_the_mode_of_waiting_ends_the_wait(start, config, folder):
    (folder / "node.yaml").unlink()
    config.write_text(RUNNING + "detectLocalMode: NodeCIDR\n")
    daemon = start(config)
    daemon.wait_for("Waiting for the Node's podCIDRs")
    replace(config, RUNNING)
    daemon.wait_for("applying it", 'fields="detectLocalMode"')
    daemon.wait_for_first_syncs()
    replace(config, RUNNING + "detectLocalMode: NodeCIDR\n")
    daemon.wait_for("a new start is needed", 'fields="detectLocalMode"')
    assert daemon.process.wait(timeout=DEADLINE) == 1


@needs_namespace
def test_the_file_behind_a_link_is_followed(start, config, tmp_path):
    link = tmp_path / "links" / "config.conf"
    link.parent.mkdir()
    link.symlink_to(config)
    daemon = start(link)
    daemon.wait_for_first_syncs()
    config.write_text(RUNNING + "clusterCIDR: 10.244.0.0/16\n")
    daemon.wait_for("applying it", 'fields="clusterCIDR"')
    daemon.wait_nat("! -s 10.244.0.0/16")
    assert daemon.end() == 0

# SPDX-License-Identifier: Apache-2.0
"""The command line as a person meets it: commands, flags, exit codes, and `render` on a small folder."""

import json
import os
import re
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from lab.daemon import program

PORTOLAN = program()
SOURCE = Path(os.environ.get("PORTOLAN_SOURCE", Path(__file__).resolve().parents[2]))

SERVICE = """\
apiVersion: v1
kind: Service
metadata: {namespace: default, name: nginx-svc}
spec:
  clusterIP: 10.96.7.7
  ports: [{name: http, port: 80, nodePort: 30080}]
  type: NodePort
"""
SLICE = """\
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  namespace: default
  name: nginx-svc-1
  labels: {kubernetes.io/service-name: nginx-svc}
addressType: IPv4
ports: [{name: http, port: 8080, protocol: TCP}]
endpoints:
- {addresses: [10.244.1.2], nodeName: node-a, conditions: {ready: true}}
- {addresses: [10.244.2.2], nodeName: node-b, conditions: {ready: true}}
"""
NODE = """\
apiVersion: v1
kind: Node
metadata: {name: node-a}
spec: {podCIDRs: [10.244.1.0/24]}
status:
  addresses: [{type: InternalIP, address: 192.0.2.5}]
"""


def run(*args, program=PORTOLAN):
    return subprocess.run([program, *map(str, args)], capture_output=True, text=True, timeout=60)


@pytest.fixture
def folder(tmp_path):
    manifests = tmp_path / "manifests"
    manifests.mkdir()
    (manifests / "nginx.yaml").write_text(SERVICE + "---\n" + SLICE)
    (manifests / "node.yaml").write_text(NODE)
    return manifests


@pytest.fixture
def kube_proxy(tmp_path):
    link = tmp_path / "kube-proxy"
    link.symlink_to(PORTOLAN)
    return link


def assert_error(result, code, *parts):
    """One line on stderr, nothing on stdout."""
    assert result.returncode == code
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    for part in parts:
        assert part in result.stderr


# Commands


def test_help_lists_every_command():
    for words in ([], ["--help"], ["-h"]):
        result = run("help", *words)
        assert (result.returncode, result.stderr) == (0, "")
        for command in ("run", "render", "explain", "trace", "list", "chart", "cleanup", "version", "help"):
            assert re.search(rf"^  {command} ", result.stdout, re.M)
    assert run("--help").stdout == run("help").stdout == run("-h").stdout


@pytest.mark.parametrize("command", ["run", "render", "cleanup"])
def test_help_of_a_command_lists_its_flags(command):
    result = run("help", command)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith(f"Usage: portolan {command}")
    assert "--logging-format text|json" in result.stdout
    assert ("--ip-family" in result.stdout) == (command == "render")
    assert ("--init-only" in result.stdout) == (command == "run")
    assert run(command, "--help").stdout == result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_manual_page_names_every_flag():
    manual = (SOURCE / "docs" / "portolan.8").read_text()
    for command in ("run", "render", "explain", "trace", "list", "chart", "cleanup"):
        for name in re.findall(r"^  (?:-\w, )?--([a-z-]+)", run("help", command).stdout, re.M):
            assert f"Fl -{name}" in manual, name


def test_version():
    result = run("version")
    assert (result.returncode, result.stderr) == (0, "")
    assert re.fullmatch(r"Portolan v\d+\.\d+\.\d+ \(kube-proxy of Kubernetes v1\.37\)\n", result.stdout)
    assert run("--version").stdout == result.stdout
    assert run("run", "--version").stdout == result.stdout
    assert run("run", "--version=true").stdout == result.stdout


def test_version_raw_has_the_details():
    result = run("run", "--version=raw")
    assert result.returncode == 0
    assert "kubernetes: v1.37" in result.stdout
    assert_error(run("run", "--version=old"), 1, "--version")


def test_no_command_is_wrong_usage():
    assert_error(run(), 2, "command is missing")


def test_unknown_command_gets_a_suggestion():
    assert_error(run("redner"), 2, 'unknown command "redner"', 'did you mean "render"?')
    assert_error(run("frobnicate"), 2, "portolan help")
    assert_error(run("help", "clean"), 2, "clean")


def test_flag_before_the_command_is_explained():
    assert_error(run("--manifests=x"), 2, "portolan run --manifests=x")


# Flags and exit codes


def test_unknown_flag_gets_a_suggestion():
    assert_error(run("run", "--manifest=x"), 1, "--manifest", "did you mean --manifests?")
    assert_error(run("render", "--node-nam=x"), 2, "--node-nam", "did you mean --node-name?")
    assert_error(run("cleanup", "--everything"), 2, "--everything")
    assert_error(run("version", "--everything"), 2, "--everything")


def test_arguments_are_refused():
    assert_error(run("run", "stray"), 1, '"stray"')
    assert_error(run("render", "stray"), 2, '"stray"')


def test_a_source_is_needed():
    assert_error(run("render"), 2, "no source: give --manifests DIR")
    for words in ([], ["--manifests="]):
        result = run("run", *words)
        assert result.returncode == 1
        assert "KUBERNETES_SERVICE_HOST" in result.stderr and "no kubeconfig is given" in result.stderr
    assert_error(run("run", "--manifests=x", "--kubeconfig=y"), 1, "--manifests cannot be combined")


def test_all_problems_are_reported_at_once(folder):
    result = run("run", "--manifests", folder, "--proxy-mode=ipvs", "--iptables-masquerade-bit=99",
                 "--cluster-cidr=nowhere")
    assert result.returncode == 1
    lines = result.stderr.splitlines()
    assert len(lines) == 3
    assert all(line.startswith("portolan run: --") for line in lines)
    assert any("ipvs is not available" in line for line in lines)


def test_render_refuses_unknown_formats_and_families(folder):
    assert_error(run("render", "--manifests", folder, "--format=xml"), 2, "--format", '"xml"')
    assert_error(run("render", "--manifests", folder, "--ip-family=ipx"), 2, "--ip-family", '"ipx"')


def test_a_folder_that_is_not_there_fails(tmp_path):
    assert_error(run("render", "--manifests", tmp_path / "nowhere"), 1, "nowhere")
    result = run("run", "--manifests", tmp_path / "nowhere")
    assert result.returncode == 1
    assert "nowhere" in result.stderr


def test_run_logs_json_lines(tmp_path):
    result = run("run", "--manifests", tmp_path / "nowhere", "--logging-format=json")
    assert result.returncode == 1
    lines = [json.loads(line) for line in result.stderr.splitlines()]
    assert "nowhere" in lines[-1]["err"]


# Called as kube-proxy


def test_called_as_kube_proxy_it_is_run(kube_proxy):
    assert run("--help", program=kube_proxy).stdout == run("run", "--help").stdout
    assert run("--version", program=kube_proxy).stdout == run("version").stdout
    assert "no kubeconfig is given" in run(program=kube_proxy).stderr
    assert_error(run("render", program=kube_proxy), 1, '"render"')
    assert_error(run("--nodeport_addresses=x", "--manifests=y", program=kube_proxy), 1, "--nodeport-addresses")


# render


def render(folder, *flags):
    result = run("render", "--manifests", folder, "--node-name=node-a", *flags)
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout


def test_render_prints_the_restore_input(folder):
    text = render(folder, "--ip-family=ipv4", "--cluster-cidr=10.244.0.0/16")
    assert text.startswith("*filter\n:KUBE-SERVICES - [0:0]\n")
    assert text.endswith("COMMIT\n")
    assert text.count("COMMIT\n") == 2
    lines = text.splitlines()
    assert not [line for line in lines if line.startswith("#") or not line]
    assert ":KUBE-SVC-ELCM5PCEQWBTUJ2I - [0:0]" in lines
    assert ("-A KUBE-SERVICES -m comment --comment \"default/nginx-svc:http cluster IP\" -m tcp -p tcp "
            "-d 10.96.7.7 --dport 80 -j KUBE-SVC-ELCM5PCEQWBTUJ2I") in lines
    assert any("! -s 10.244.0.0/16 -j KUBE-MARK-MASQ" in line for line in lines)
    assert "10.244.1.2:8080" in text and "10.244.2.2:8080" in text


@pytest.mark.parametrize("mode", ["iptables", "nftables"])
def test_render_prints_the_same_each_time(mode):
    cases = Path(__file__).parent.parent / "golden" / "cases"
    texts = {render(cases / "affinity" / "manifests", f"--proxy-mode={mode}") for _ in range(10)}
    assert len(texts) == 1


def test_render_prints_what_save_would_show(folder):
    text = render(folder, "--ip-family=ipv4", "--format=save")
    lines = text.splitlines()
    assert ":PREROUTING ACCEPT [0:0]" in lines
    assert ("-A KUBE-SERVICES -d 10.96.7.7/32 -p tcp -m comment --comment \"default/nginx-svc:http cluster IP\" "
            "-m tcp --dport 80 -j KUBE-SVC-ELCM5PCEQWBTUJ2I") in lines
    assert "-A PREROUTING -m comment --comment \"kubernetes service portals\" -j KUBE-SERVICES" in lines


@pytest.mark.parametrize("format", ["restore", "save"])
def test_render_of_both_families_names_the_tools(folder, format):
    both = render(folder, f"--format={format}")
    ipv4 = render(folder, f"--format={format}", "--ip-family=ipv4")
    ipv6 = render(folder, f"--format={format}", "--ip-family=ipv6")
    assert both == f"# iptables-{format}\n{ipv4}# ip6tables-{format}\n{ipv6}"
    assert "10.96.7.7" not in ipv6


def test_render_is_reproducible(folder):
    assert render(folder) == render(folder)


def test_render_takes_the_flags_of_run(folder):
    flags = ["--masquerade-all", "--iptables-masquerade-bit=13", "--iptables-sync-period=1m",
             "--iptables_min_sync_period", "0", "-v4", "--ip-family=ipv4"]
    text = render(folder, *flags)
    assert "0x00002000" in text
    assert "0x00004000" not in text


def test_render_limits_node_ports_to_the_nodes_addresses(folder):
    text = render(folder, "--ip-family=ipv4", "--nodeport-addresses=192.0.2.0/24")
    assert "-d 192.0.2.5 -j KUBE-NODEPORTS" in text
    assert text == render(folder, "--ip-family=ipv4", "--nodeport-addresses=primary")
    assert "--dst-type LOCAL -j KUBE-NODEPORTS" in render(folder, "--ip-family=ipv4")


def test_render_takes_pod_cidrs_from_the_node(folder):
    text = render(folder, "--ip-family=ipv4", "--detect-local-mode=NodeCIDR")
    assert "! -s 10.244.1.0/24" in text


def test_render_goes_on_without_broken_files(folder):
    whole = render(folder)
    (folder / "broken.yaml").write_text("apiVersion: v1\nkind: Service\nmetadata: {name: [\n")
    result = run("render", "--manifests", folder, "--node-name=node-a")
    assert result.returncode == 1
    assert result.stdout == whole
    assert result.stderr.count("\n") == 1
    assert re.search(r"broken\.yaml:\d+:\d+", result.stderr)


def test_render_reports_a_full_disk(folder):
    with open("/dev/full", "w") as full:
        result = subprocess.run([PORTOLAN, "render", "--manifests", folder], stdout=full, stderr=subprocess.PIPE,
                                text=True, timeout=60)
    assert result.returncode == 1
    assert "standard output" in result.stderr


# Charts


def chart(*args):
    return run("chart", "--manifests", str(SOURCE / "examples"), "--node-name", "node1", *args)


def test_a_chart_is_a_picture_of_all_services():
    result = chart()
    assert (result.returncode, result.stderr) == (0, "")
    root = ElementTree.fromstring(result.stdout.encode())
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    texts = {text.text for text in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"10.96.10.10:80", "node:30080", "198.51.100.7:80", "10.244.1.11:8080", "1/3"} <= texts


def test_a_chart_of_some_services_has_no_others():
    result = chart("web-lb", "svc/default/web-nodeport", "--format=dot")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("digraph services {") and result.stdout.endswith("}\n")
    assert "default/web-lb:http" in result.stdout and "default/web-nodeport:http" in result.stdout
    assert "default/web:http" not in result.stdout


def test_a_chart_in_other_formats():
    assert chart("--format=mermaid").stdout.startswith("flowchart LR\n")
    page = chart("--format=html").stdout
    assert page.startswith("<!doctype html>") and "<svg " in page


def test_a_chart_of_a_service_that_is_not_there():
    result = chart("web", "shop/cart")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == "portolan chart: there is no Service shop/cart\n"
    result = chart("--namespace=shop")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == "portolan chart: --namespace: there is no Service in shop\n"


def test_a_chart_in_an_unknown_format_is_refused():
    result = chart("--format=png")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == 'portolan chart: --format: "png" is not svg, html, dot or mermaid\n'


# All of these end before anything is armed.


@pytest.mark.parametrize(("words", "problem"), [
    ([], "which connection? Give ADDRESS:PORT, service/NAMESPACE/NAME[:PORT] or :NODEPORT"),
    (["10.96.7.7:80", "--count=0"], "--count: 0 is not within 1 and 1000"),
    (["10.96.7.7:80", "--seconds=3601"], "--seconds: 3601 is not within 1 and 3600"),
    (["10.96.7.7:80", "--from=pod"], '--from: "pod" is not an IP address'),
    (["10.96.7.7:80", "--from=fd00::1"], "--from is of another IP family than the destination"),
], ids=["nothing", "count", "seconds", "sender", "family"])
def test_a_trace_that_is_asked_for_wrongly(folder, words, problem):
    result = run("trace", *words, "--manifests", folder, "--node-name=node-a", "--iptables-variant=nft")
    assert (result.returncode, result.stdout, result.stderr) == (2, "", f"portolan trace: {problem}\n")


def test_a_trace_of_a_service_that_is_not_there(folder):
    result = run("trace", "svc/shop/cart", "--manifests", folder, "--node-name=node-a", "--iptables-variant=nft")
    assert (result.returncode, result.stdout) == (4, "")
    assert "there is no service shop/cart" in result.stderr


def test_the_legacy_variant_cannot_be_traced(folder):
    result = run("trace", ":30080", "--manifests", folder, "--node-name=node-a", "--iptables-variant=legacy")
    assert (result.returncode, result.stdout) == (6, "")
    assert '"portolan explain" tells the same' in result.stderr

# SPDX-License-Identifier: Apache-2.0
"""make bench-cluster on a cluster so small that its figures mean nothing: they must be there, and judged rightly."""
import pathlib
import subprocess
import sys
from types import SimpleNamespace

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / 'bench'))

import cluster_bars  # noqa: E402
import cluster_plot  # noqa: E402
import cluster_report  # noqa: E402
from cluster_measure import CONTESTANTS, Run  # noqa: E402
from cluster_world import Content, Size, service_ip  # noqa: E402
from lab.daemon import program  # noqa: E402


@pytest.fixture(scope='module')
def content(stage):
    content = Content(stage, None)
    content.fill(Size(20), print)
    return content


def options(**more):
    portolan = pathlib.Path(program()).resolve()
    help_text = subprocess.run([portolan, 'run', '--help'], capture_output=True, text=True, check=True).stdout
    return SimpleNamespace(**{'tools': portolan.parent / 'bench', 'portolan': portolan, 'help_text': help_text, 'source': 'api',
                              'bound': 60, 'changes': 3, 'change_bound': 20, 'change_budget': 60, 'bulk_from': 1000, **more})


@pytest.mark.parametrize('name', ['portolan-iptables-nft', 'portolan-iptables-legacy', 'kube-proxy-nftables'])
def test_all_that_the_tables_show_is_measured(content, name):
    contestant = next(one for one in CONTESTANTS if one.name == name)
    result = Run(content, contestant, options(), print).measure()
    assert 'failure' not in result
    assert result['connect']['connections'] == 2000 and result['connect']['failed'] == result['connect']['wrong'] == 0
    assert result['change_ms']['n'] == 3
    assert 0 < result['change_ms']['min'] <= result['change_ms']['median'] <= result['change_ms']['max'] < 20000
    assert 0 < result['cold_s'] < 60 and 0 < result['cold_cpu_s'] <= result['cpu_s'] and result['peak_mib'] > 1
    if name == 'portolan-iptables-nft':
        assert result['kernel']['rules'] > 20 * 17 and result['kernel']['replace_ms'] > 0 and result['kernel']['load_ms'] > 0


def test_a_cold_start_that_takes_too_long_is_said_to(content):
    contestant = next(one for one in CONTESTANTS if one.name == 'kube-proxy-iptables-nft')
    result = Run(content, contestant, options(bound=0), print).measure()
    assert result['failure'] == 'not done after 0 s' and 'cold_s' not in result and result['peak_mib'] > 0


def test_manifests_are_a_source_too(content):
    contestant = next(one for one in CONTESTANTS if one.name == 'portolan-iptables-nft')
    result = Run(content, contestant, options(source='manifests'), print).measure()
    assert 'failure' not in result and 'change_ms' not in result and result['connect']['connections'] == 2000


def test_cluster_ips_are_all_different_and_leave_the_api_server_its_own():
    ips = Size(100000).ips()
    assert len({*ips, '10.96.0.0', '10.96.0.1', '10.111.255.255'}) == 100003
    assert service_ip(0) == ips[0]


def entry(contestant, services, **figures):
    return {'contestant': contestant, 'size': f'{services}x5', 'services': services, 'endpoints': 5, 'source': 'api', 'session': 's',
            'processor': 'p', 'linux': 'l', 'iptables': 'i', 'nft': 'n', 'commit': 'c', 'load_before': 0, 'date': '2026-01-01 00:00',
            'command': 'make bench-cluster', **figures}


def bars(*entries):
    return {bar.text: bar for bar in cluster_bars.judge(cluster_bars.Entries(entries))}


COLD_BAR = 'nft variant, cold start at 5,000: at least 25 times faster'


@pytest.mark.parametrize('theirs, verdict', [
    ({'cold_s': 25}, 'met'), ({'cold_s': 24.9}, '**missed**'), ({'not_done_after_s': 400}, 'met'), ({}, 'open')])
def test_a_bar_is_met_missed_or_open(theirs, verdict):
    judged = bars(entry('kube-proxy-iptables-nft', 5000, **theirs), entry('portolan-iptables-nft', 5000, cold_s=1))
    assert judged[COLD_BAR].verdict() == verdict


def test_the_page_shows_the_ratio_to_kube_proxy():
    found = cluster_bars.Entries([entry('kube-proxy-iptables-nft', 5000, not_done_after_s=400),
                                  entry('portolan-iptables-nft', 5000, cold_s=2)])
    made = cluster_report.text(found, cluster_bars.judge(found))
    assert 'not done after 400 s' in made and '2.00 s (>200x)' in made


def test_a_plot_stands_alone_and_has_both_themes():
    line = cluster_plot.Line('one & two', [(1000, 2, False), (5000, 400, True)], 0)
    picture = cluster_plot.draw('title', 'unit', [line])
    assert 'prefers-color-scheme: dark' in picture and 'one &amp; two' in picture and picture.count('http') == 1
    assert cluster_plot.draw('title', 'unit', []) == ''

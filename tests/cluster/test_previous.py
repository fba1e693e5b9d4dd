# SPDX-License-Identifier: Apache-2.0
"""kube-proxy of the version before, beside Portolan. Rules, fates of packets and the written configuration are the same
(test_metrics.py: metrics, too); what differs is what docs/modes.md lists, row by row, and nothing else.
"""
import os
import subprocess

import pytest

from lab import objects, scrape
from lab.daemon import SOURCE, program
from lab.objects import addresses, away, here, port
from lab.topology import wait_for
from proxies import FAMILIES, PATIENCE, Pair
from stage import NODE, binaries
from test_nftables import MODE, NftPair
from test_settings import CIDRS
from world import PORTS, TARGETS, World

PEER = 'kube-proxy-previous'
HEADING = '## Beside kube-proxy v1.36'


# ---- the same

def test_the_same_rules(stage, filled):
    with Pair(stage, CIDRS, peer=PEER) as pair:
        pair.agree()
        filled.pods('plain-both', away(2), here(3), ports=TARGETS)
        filled.service('sticky-both', *PORTS, type='NodePort', externalTrafficPolicy='Local', externalIPs=addresses('external', [9]))
        filled.zone('east')
        pair.agree()
        pair.swap()
        pair.agree()
        filled.zone(None)


def test_packets_have_the_same_fate(stage, filled):
    with NftPair(stage, MODE, CIDRS, peer=PEER) as pair:
        assert pair.agree() >= 500


def run(path, *flags):
    return subprocess.run([path, *flags], capture_output=True, text=True, timeout=60)


def written(path, folder, *flags):
    """What --write-config-to writes; None: it is refused."""
    target = folder / 'written'
    target.unlink(missing_ok=True)
    run(path, f'--write-config-to={target}', *flags)
    return target.read_text() if target.exists() else None


@pytest.fixture
def both(tmp_path):
    """The two programs, Portolan by the other's name."""
    link = tmp_path / 'kube-proxy'
    link.symlink_to(os.path.abspath(program()))
    return os.path.join(binaries(), PEER), str(link)


@pytest.mark.parametrize('flags', [
    [], [MODE, '--masquerade-all', '--nodeport-addresses=192.0.2.0/24'],
    ['--proxy-mode=iptables', CIDRS, '--iptables-min-sync-period=2s', '--detect-local-mode=NodeCIDR', '-v=3', '--hostname-override=a'],
], ids=['nothing', 'nftables', 'iptables'])
def test_the_same_configuration_is_written(both, tmp_path, flags):
    theirs, ours = (written(path, tmp_path, *flags) for path in both)
    assert ours == theirs is not None


# ---- what differs, and is listed

def listed():
    """The first column of the table."""
    with open(os.path.join(SOURCE, 'docs', 'modes.md'), encoding='utf-8') as file:
        section = file.read().split(HEADING + '\n')[1].split('\n## ')[0]
    rows = [line.split(' | ')[0].lstrip('| ') for line in section.splitlines() if line.startswith('| ')]
    return rows[1:]  # without the head


DIFFERENCES = []


def difference(row):
    """Of which row a test is."""
    def note(function):
        DIFFERENCES.append(row)
        return function
    return note


def test_every_difference_is_listed_and_every_row_is_one():
    assert listed() == DIFFERENCES


@pytest.fixture
def pair(stage, filled):
    with Pair(stage, CIDRS, source='api', peer=PEER) as pair:
        pair.agree()
        yield pair
        for proxy in pair.proxies:
            proxy.kill()
        pair.proxies = []  # Portolan has ended, which is no failure


def ended(proxy):
    """Its exit code."""
    return proxy.namespace.agent.call('wait', pid=proxy.process.pid, timeout=PATIENCE)


def end_of_one(pair, words, ours):
    """The other logs something and goes on, Portolan ends with 1 and says why."""
    theirs, portolan = pair.proxies
    theirs.process.log.wait_line(words)
    assert ended(portolan) == 1
    assert portolan.process.log.wait_line(ours)
    assert theirs.process.running()


@difference('another address of the Node')
def test_another_address_of_the_node(stage, pair):
    changed = objects.node(addresses=['192.0.2.99'])
    try:
        stage.api.set_status(changed)
        end_of_one(pair, 'NodeIPs changed for the node', "The Node's addresses changed, a new start is needed")
    finally:
        stage.api.set_status(objects.node())


@difference('the Node is deleted')
def test_the_node_is_deleted(stage, pair):
    stage.api.delete(('Node', '', NODE))
    try:
        end_of_one(pair, 'Node is being deleted', 'The Node was deleted, a new start is needed')
    finally:
        stage.api.create(objects.node())


@difference('UDP to a Service without endpoints')
def test_udp_to_a_service_without_endpoints(stage):
    """The flow is made by hand, on both nodes; a sync in which a Service with UDP changed looks for such."""
    pair = Pair(stage, CIDRS, source='api', peer=PEER)
    world = World(pair, 'flows')
    address = world.service('dns', PORTS[1])['spec']['clusterIP']
    flow = f'-p udp -s 192.0.2.50 -d {address} --sport 4000 --dport 53 -r 10.244.9.9 -q 192.0.2.50'.split()
    world.raw_slice('dns-4', 4, [{'addresses': ['10.244.9.9']}], 'dns', TARGETS[1:])
    with pair:
        pair.agree()
        for proxy in pair.proxies:
            proxy.namespace.run('conntrack', '-I', *flow, '--reply-port-src', '5353', '--reply-port-dst', '4000', '-t', '600')

        def flows(proxy):
            return 'src=10.244.9.9' in proxy.namespace.run('conntrack', '-L', '-p', 'udp', '-d', address)

        assert all(flows(proxy) for proxy in pair.proxies)
        world.raw_slice('dns-4', 4, [], 'dns', TARGETS[1:])
        pair.agree()
        wait_for(lambda: not flows(pair.proxies[1]), PATIENCE, what='Portolan forgets the flow')
        assert flows(pair.proxies[0])
    world.close()


@difference('a long name of a Service without endpoints, nftables mode')
def test_a_long_name_of_a_service_without_endpoints(stage, filled):
    """The comment of its element: namespace, name and port have more than 128 bytes together."""
    pair = NftPair(stage, MODE, CIDRS, source='api', peer=PEER)
    world = World(pair, 'n' * 63)
    world.service('s' * 63, port('p' * 15))
    theirs, ours = pair.proxies
    try:
        pair.markers.write()
        pair.start()
        theirs.process.log.wait_line('sync failed', timeout=PATIENCE)
        for family in FAMILIES:
            pair._table(ours, family)  # pylint: disable=protected-access
        assert not ours.process.log.find('Sync failed')
    finally:
        for proxy in pair.proxies:
            proxy.kill()
        world.close()


@difference('words in `nodePortAddresses`')
def test_words_in_node_port_addresses(both, tmp_path):
    for flag in ('--nodeport-addresses=primary,localhost', '--nodeport-addresses=all', '--nodeport-addresses=10.0.0.0/8,primary'):
        theirs, ours = (written(path, tmp_path, flag) for path in both)
        assert theirs is None and ours is not None, flag


@difference('feature gates')
def test_feature_gates(both, tmp_path):
    for name, which in (('KubeProxyIPVS', [False, True]), ('KubeProxyNFTablesLocalhostNodePorts', [False, True]),
                        ('SidecarContainers', [True, True])):
        texts = [written(path, tmp_path, f'--feature-gates={name}=true') for path in both]
        assert [text is not None for text in texts] == which, name


@difference('`showHiddenMetricsForVersion`')
def test_show_hidden_metrics_for_version(both, tmp_path):
    for version, which in (('1.35', [True, True]), ('1.36', [False, True]), ('1.33', [False, False])):
        texts = [written(path, tmp_path, f'--show-hidden-metrics-for-version={version}') for path in both]
        assert [text is not None for text in texts] == which, version


@difference('no mode is given')
def test_no_mode_is_given(stage, filled):
    with Pair(stage, CIDRS, '--proxy-mode=', source='api', peer=PEER) as pair:
        theirs, ours = (proxy.process.log for proxy in pair.proxies)
        theirs.wait_line('^I.*"Using iptables proxy"')
        ours.wait_line(r'^E.*1\.40')
        pair.agree()


@difference('the version, in `/metrics`, `/statusz` and `version`')
def test_the_version(stage, filled):
    def minor(proxy):
        page = wait_for(lambda: proxy.ask('metrics'), PATIENCE, what=f'{proxy.name} answers')
        return next(dict(labels)['minor'] for name, labels in scrape.values(page) if name == 'kubernetes_build_info')

    with Pair(stage, CIDRS, source='api', peer=PEER) as pair:
        assert [minor(proxy) for proxy in pair.proxies] == ['36', '37']

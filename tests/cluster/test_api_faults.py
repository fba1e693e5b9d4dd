# SPDX-License-Identifier: Apache-2.0
"""An API server that is away, lies or forgets: working rules stay as they are, and afterwards Portolan agrees with kube-proxy.

PORTOLAN_OUTAGE=N makes the long outage N seconds, instead of 10.
"""
import base64
import itertools
import os
import re
import signal
import time

import pytest

from lab import iptables_listing as rules, scrape
from lab import objects
from lab.daemon import program
from lab.objects import away, here, port
from lab.required import made_or_skipped
from lab.topology import wait_for
from proxies import FAMILIES, FLAGS as OWN_FLAGS, Pair, Proxy
from stage import API, CLUSTER_CIDR, MEDDLER_PORT, PORT, Stage, old_etcd
from world import World

OUTAGE = float(os.environ.get('PORTOLAN_OUTAGE', '10'))
FLAGS = (f'--cluster-cidr={CLUSTER_CIDR}',)
#: Both may have waited longer and longer before they try again.
PATIENCE = 90 + OUTAGE
CHANGES = itertools.count()
#: Objects in a page: with more, a list has to go on in another.
PAGE = 500


class Plain:
    def __init__(self, api):
        self.api = api


def filled(stage):
    world = World(Plain(stage.api), 'faults')
    for number in range(40):
        world.service(f's{number}', port('http'), type='NodePort' if number % 3 else 'ClusterIP')
        world.pods(f's{number}', here(number * 2), away(number * 2 + 1), ports=[port('http', number=8080)])
    return world


@pytest.fixture(scope='module')
def world(stage):
    return filled(stage)


@pytest.fixture(scope='module')
def meddler(stage):
    """Its channel, and the kubeconfig."""
    return stage.start_meddler()


@pytest.fixture(autouse=True)
def alive(stage):
    """A test that failed half-way leaves the next one a server."""
    yield
    if not stage.api_server.running():
        stage.resume_api_server()


def saved(pair):
    """What Portolan has in force, in both families."""
    return [rules.lines(pair.proxies[1].begin_save(family)()) for family in FAMILIES]


def happened(channel, what, count):
    """Whether the meddler did it so often, within what anybody waits before the next try."""
    return channel.call('wait', within=PATIENCE + 20, what=what, count=count, timeout=PATIENCE)


def portolan(pair):
    return pair.proxies[1].process


def changed(world, number=0):
    """Something is new, so that agreeing takes news; no two Services have the same address."""
    address = 200 * number + next(CHANGES) % 200
    world.service(f's{number}', port('http'), type='NodePort', externalIPs=objects.addresses('external', [address]))


def test_server_away_for_a_while(stage, world):
    with Pair(stage, *FLAGS) as pair:
        pair.agree()
        before, line = saved(pair), len(portolan(pair).log.lines)
        stage.stop_api_server()
        time.sleep(OUTAGE)  # the length of the outage is what is tested
        assert saved(pair) == before
        said = [text for text in portolan(pair).log.lines[line:] if re.match('[WE]', text)]
        assert 1 <= len(said) <= 6, 'once for each kind of failure, not for each try:\n' + '\n'.join(said)
        stage.resume_api_server()
        changed(world)
        pair.agree(patience=PATIENCE)


COMPRESSED = """
import sys, urllib.request
with urllib.request.urlopen(urllib.request.Request(sys.argv[1], headers={'Accept-Encoding': 'gzip'}), timeout=20) as answer:
    answer.read()
"""


def test_no_answer_is_compressed_unless_it_is_asked_for(stage, world, meddler):
    """Portolan does not ask. An API server of v1.37 would compress lists that are streamed, too."""
    channel, kubeconfig = meddler
    channel.call('set', rules=[])
    with Pair(stage, *FLAGS, kubeconfig=kubeconfig) as pair:
        pair.agree()
    assert not channel.call('wait', what='encoded', count=1, timeout=0)
    words = 'watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=1'
    stage.control_plane.run('/usr/bin/python3', '-c', COMPRESSED, f'http://{API}:{MEDDLER_PORT}/api/v1/services?{words}')
    assert channel.call('wait', what='encoded', count=1, timeout=0)


def test_versions_compacted_and_objects_gone_while_away(stage, world, meddler):
    """Resuming is refused (410), and the new list lacks what nobody announced as deleted."""
    channel, kubeconfig = meddler
    channel.call('set', rules=[])
    with Pair(stage, *FLAGS, kubeconfig=kubeconfig) as pair:
        pair.agree()
        stage.stop_api_server()
        for key in ('services/specs/faults/s5', 'endpointslices/faults/s6-4'):
            gone = stage.ask_etcd('kv/deleterange', key=base64.b64encode(f'/registry/{key}'.encode()).decode())
            assert gone['deleted'] == '1', key
        revision = gone['header']['revision']
        stage.ask_etcd('kv/compaction', revision=revision, physical=True)
        before = saved(pair)
        stage.resume_api_server()
        assert 'faults/s5' in str(before)
        world.known -= {('Service', 'faults', 's5'), ('EndpointSlice', 'faults', 's6-4')}
        assert 'faults/s5:' not in pair.agree(patience=PATIENCE)
        assert channel.call('wait', what='expired', count=1, timeout=0), 'the API server did not refuse to resume'


def test_server_killed_in_the_middle_of_the_first_list(stage, world, meddler):
    channel, kubeconfig = meddler
    channel.call('set', rules=[{'match': '/services?', 'stall_after': 5000}])
    with Pair(stage, *FLAGS, kubeconfig=kubeconfig) as pair:
        assert happened(channel, 'stalled', 1)
        for path in ('livez', 'healthz'):  # as kube-proxy, whose servers do not wait for lists either
            wait_for(lambda path=path: pair.proxies[1].ask(path, 10256), 60, what=f'/{path} is answered')
        stage.stop_api_server()
        assert 'faults/' not in str(saved(pair)), 'half of a list is no list'
        channel.call('set', rules=[])
        stage.resume_api_server()
        pair.agree(patience=PATIENCE)


def test_connections_from_before_the_start_are_not_counted_as_new(stage, world, meddler):
    """However late Services are listed: the first round through the table knows whose they are."""
    channel, kubeconfig = meddler
    channel.call('set', rules=[{'match': '/services?', 'stall_after': 0}])
    proxy = Proxy(stage, 'counting', [program(), 'run', f'--kubeconfig={kubeconfig}', *OWN_FLAGS, *FLAGS, '--service-metrics'])
    ip = stage.api.call('GET', '/api/v1/namespaces/faults/services/s0')['spec']['clusterIP']
    proxy.namespace.run('conntrack', '-I', '-p', 'tcp', '-s', '10.244.1.9', '-d', ip, '--sport', '40000', '--dport', '80', '--timeout', '600',
                        '--state', 'ESTABLISHED', '--dst-nat', '10.244.2.7:8080')

    def value(name, **labels):
        return sum(value for (metric, pairs), value in scrape.values(proxy.ask('metrics') or '').items()
                   if metric == f'portolan_service_{name}' and labels.items() <= dict(pairs).items())

    proxy.start()
    try:
        assert happened(channel, 'stalled', 1)
        wait_for(lambda: proxy.ask('metrics'), 60, what='metrics are served')
        channel.call('set', rules=[])
        for family in FAMILIES:
            proxy.process.log.wait_line(f'"First sync done" ipFamily="IPv{family}"', timeout=PATIENCE)
        rounds = value('traffic_rounds_total')
        wait_for(lambda: value('traffic_rounds_total') >= rounds + 2, 60, step=0.2, what='a round that knows all Services')
        assert value('connections_total', service='s0') == 0
    finally:
        proxy.kill()


def test_new_list_cut_in_the_middle_changes_nothing(stage, world, meddler):
    """After a 410 in a watch, everything is listed anew; that list never ends, then it is cut."""
    channel, kubeconfig = meddler
    channel.call('set', rules=[])
    with Pair(stage, *FLAGS, kubeconfig=kubeconfig) as pair:
        pair.agree()
        before = saved(pair)
        lists = [{'match': part, 'stall_after': 3000} for part in ('sendInitialEvents=true', 'limit=')]
        channel.call('set', rules=[*lists, {'match': 'resourceVersion=', 'status': 410}])
        assert happened(channel, 'stalled', 2)
        assert saved(pair) == before
        channel.call('set', rules=[{'match': 'watch=', 'status': 503}, {'match': 'limit=', 'status': 503}])
        assert happened(channel, 'meddled', 2)
        assert saved(pair) == before
        channel.call('set', rules=[])
        changed(world, 1)
        pair.agree(patience=PATIENCE)


def body(data):
    return base64.b64encode(data).decode()


PROTOBUF = {'Content-Type': 'application/vnd.kubernetes.protobuf;stream=watch'}
#: The last is one that cannot do harm: it gives the one before it the time to do some.
NONSENSE = {
    'server error': [{'status': 500}],
    'too many requests': [{'status': 429, 'headers': {'Retry-After': '1'}}],
    'forbidden': [{'status': 403, 'body': body(b'{"kind":"Status","message":"no"}')}],
    'not found': [{'status': 404}],
    'a web page': [{'status': 200, 'headers': {'Content-Type': 'text/html'}, 'body': body(b'<html>Log in</html>')}],
    'nothing': [{'status': 200, 'headers': PROTOBUF}],
    'noise': [{'status': 200, 'headers': PROTOBUF, 'body': body(bytes(range(256)) * 50)}],
    'a frame without end': [{'status': 200, 'headers': PROTOBUF, 'body': body(b'\xff' * 4000)}],
    'a frame that says too little': [{'status': 200, 'headers': PROTOBUF, 'body': body(b'\0\0\0\x08k8s\0\x0a\x02\x0a\0')}],
    'not available': [{'status': 503, 'body': body(b'upstream connect error')}],
}


def test_nonsense_instead_of_answers(stage, world, meddler):
    channel, kubeconfig = meddler
    channel.call('set', rules=[])
    with Pair(stage, *FLAGS, kubeconfig=kubeconfig) as pair:
        pair.agree()
        before = saved(pair)
        for name, answers in NONSENSE.items():
            channel.call('set', rules=answers)
            assert happened(channel, 'meddled', 1), name
            assert saved(pair) == before, name
        channel.call('set', rules=[])
        changed(world, 2)
        pair.agree(patience=PATIENCE)


def test_token_rotated(stage, world):
    """The old one is refused until the file has the new one."""
    file = stage.write('token', stage.proxy_token)
    kubeconfig = stage.kubeconfig('rotating', user={'tokenFile': file})
    with Pair(stage, *FLAGS, kubeconfig=kubeconfig) as pair:
        pair.agree()
        before = saved(pair)
        stage.stop_api_server()
        stage.proxy_token = 'rotated' + stage.proxy_token
        line = len(portolan(pair).log.lines)
        stage.resume_api_server()
        portolan(pair).log.wait_line('401|nauthorized', line, timeout=PATIENCE)
        assert saved(pair) == before
        os.rename(stage.write('token.new', stage.proxy_token), file)
        changed(world, 3)
        pair.agree(patience=PATIENCE)


def test_connections_that_lead_nowhere(stage, world):
    """Packets of the connections that there are get lost, both ways: nobody is told, so it must be found out."""
    with Pair(stage, *FLAGS) as pair:
        pair.agree()
        before = saved(pair)
        ports = re.findall(rf'172\.30\.0\.\d+:(\d+) +{re.escape(API)}:{PORT}', pair.proxies[1].namespace.run('ss', '-Htn'))
        assert ports
        for number in ports:
            for chain, side in (('INPUT', '--sport'), ('OUTPUT', '--dport')):
                stage.control_plane.run('iptables', '-w', '-A', chain, '-p', 'tcp', side, number, '-j', 'DROP')
        assert saved(pair) == before
        changed(world, 4)
        pair.agree(patience=PATIENCE)
        stage.control_plane.run('iptables', '-F')


def test_reader_that_stops_reading(stage, world):
    with Pair(stage, *FLAGS) as pair:
        pair.agree()
        process = portolan(pair)
        process.namespace.agent.call('kill', pid=process.pid, number=signal.SIGSTOP)
        for round_ in range(2):
            for number in range(10, 40):
                annotations = {'text': f'{round_}' * 100_000}
                stage.api.patch(('Service', 'faults', f's{number}'), {'metadata': {'annotations': annotations}})
        changed(world, 5)
        process.namespace.agent.call('kill', pid=process.pid, number=signal.SIGCONT)
        pair.agree(patience=PATIENCE)


def test_old_etcd_without_streamed_lists():
    """A list in pages instead, in the end the same."""
    with made_or_skipped(lambda: Stage(etcd=old_etcd())) as stage:
        stage.api.create(objects.node())
        world = filled(stage)
        stage.api.create_all([objects.service('faults', f'more{number}', families=(4,)) for number in range(PAGE)])
        channel, kubeconfig = stage.start_meddler()
        with Pair(stage, *FLAGS, kubeconfig=kubeconfig) as pair:
            assert 'faults/s7:http' in pair.agree()
            assert channel.call('wait', what='continued', count=1, timeout=0), 'the list came in one piece'
            changed(world, 6)
            world.remove('Service', 's8')
            pair.agree()

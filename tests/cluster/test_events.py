# SPDX-License-Identifier: Apache-2.0
"""What goes wrong on a node is told to the API server, as Events about the Service or the Node that it concerns."""
import pytest

from lab.topology import wait_for
from proxies import PATIENCE, Pair
from stage import NODE
from test_settings import CIDRS
from world import World

LIMIT = 100
MAX = '/proc/sys/net/netfilter/nf_conntrack_max'
HEALTH_PORT = 30055
OWN_PORTS = {10256: 'FailedToStartProxierHealthcheck', 10249: 'FailedToStartMetricServer'}
HOLD = """
import socket, sys, time
holders = [socket.create_server((address, int(port)), family=family)
           for family, address in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")) for port in sys.argv[1:]]
time.sleep(300)
"""
FLOWS = """
import socket
for source in range(20000, 20088):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind(("127.0.0.1", source))
        one.sendto(b"x", ("127.0.0.1", 9))
"""


def events(namespace):
    return f'/apis/events.k8s.io/v1/namespaces/{namespace}/events'


def event(api, namespace, reason):
    return next((event for event in api.call('GET', events(namespace))['items'] if event['reason'] == reason), None)


def hold(node, *ports):
    """Another program has them."""
    node.agent.start('run', argv=['python3', '-c', HOLD, *map(str, ports)])
    wait_for(lambda: all(node.run('ss', '-Hltn').count(f':{port} ') == 2 for port in ports), PATIENCE, what='the ports are held')


def birth_cry(api, proxy):
    """The Event that a start makes, but for names and times."""
    api.call('DELETE', events('default'))
    proxy.start()
    try:
        told = wait_for(lambda: event(api, 'default', 'Starting'), PATIENCE, what=f'the Event of {proxy.name}')
    finally:
        proxy.kill()
    return {name: value for name, value in told.items() if name not in ('metadata', 'eventTime')}


def test_a_start_is_told_as_kube_proxy_tells_it(stage):
    theirs, ours = (birth_cry(stage.api, proxy) for proxy in Pair(stage, '--proxy-mode=iptables', CIDRS, source='api').proxies)
    assert (ours['type'], ours['reportingController'], ours['regarding']['kind']) == ('Normal', 'kube-proxy', 'Node')
    assert ours == theirs


def test_ports_of_its_own_that_are_taken_are_told_before_a_hard_failure(stage):
    proxy = Pair(stage, '--proxy-mode=iptables', '--bind-address-hard-fail', CIDRS, source='api').proxies[1]
    node = proxy.namespace
    stage.api.call('DELETE', events('default'))
    hold(node, *OWN_PORTS)
    proxy.start()
    try:
        assert node.agent.call('wait', pid=proxy.process.pid, timeout=40) == 1
    finally:
        log = proxy.process.tail()
        proxy.kill()
    for port, reason in OWN_PORTS.items():
        told = event(stage.api, 'default', reason)
        assert told, f'no {reason}\n{log}'
        assert (told['type'], told['regarding']['kind'], told['regarding']['name']) == ('Warning', 'Node', NODE)
        assert told['reportingController'] == 'kube-proxy'
        assert str(port) in told['note'] and 'in use' in told['note'], told['note']


@pytest.mark.parametrize('mode', ['iptables', 'nftables'])
def test_a_health_check_port_that_is_taken_and_a_table_that_fills_up(stage, mode):
    pair = Pair(stage, f'--proxy-mode={mode}', CIDRS, source='api')
    proxy = pair.proxies[1]
    world = World(pair, f'events-{mode}')
    node = proxy.namespace
    node.agent.call('write_file', path='/run/max', text=f'{LIMIT}\n', atomic=False)
    node.run('mount', '--bind', '/run/max', MAX)
    hold(node, HEALTH_PORT)
    try:
        proxy.start()
        world.service('web', type='LoadBalancer', externalTrafficPolicy='Local', healthCheckNodePort=HEALTH_PORT,
                      ingress=['203.0.113.55'])
        told = wait_for(lambda: event(stage.api, f'events-{mode}', 'FailedToStartServiceHealthcheck'), PATIENCE, what='the Event about the port')
        assert (told['type'], told['regarding']['kind'], told['regarding']['name']) == ('Warning', 'Service', 'web')
        assert str(HEALTH_PORT) in told['note'] and 'in use' in told['note'], told['note']
        node.run('python3', '-c', FLOWS)
        told = wait_for(lambda: event(stage.api, 'default', 'ConntrackTableFilling'), PATIENCE, what='the Event about the table')
        assert (told['type'], told['regarding']['kind'], told['regarding']['name']) == ('Warning', 'Node', NODE)
        assert 'conntrack.maxPerCore' in told['note'], told['note']
        stage.api.call('DELETE', f'{events("default")}/{told["metadata"]["name"]}')
        proxy.stop()
    finally:
        proxy.kill()
        world.close()

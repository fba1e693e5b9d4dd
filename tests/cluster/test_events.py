# SPDX-License-Identifier: Apache-2.0
"""What goes wrong on a node is told to the API server, as Events about the Service or the Node that it concerns."""
import pytest

from lab.topology import wait_for
from proxies import Pair
from stage import NODE
from test_settings import CIDRS
from world import World

LIMIT = 100
MAX = '/proc/sys/net/netfilter/nf_conntrack_max'
HEALTH_PORT = 31055
HOLD = f"""
import socket, time
holders = [socket.create_server((address, {HEALTH_PORT}), family=family)
           for family, address in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::"))]
time.sleep(300)
"""
FLOWS = """
import socket
for source in range(20000, 20088):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind(("127.0.0.1", source))
        one.sendto(b"x", ("127.0.0.1", 9))
"""


def event(api, namespace, reason):
    events = api.call('GET', f'/apis/events.k8s.io/v1/namespaces/{namespace}/events')['items']
    return next((event for event in events if event['reason'] == reason), None)


@pytest.mark.parametrize('mode', ['iptables', 'nftables'])
def test_a_health_check_port_that_is_taken_and_a_table_that_fills_up(stage, mode):
    pair = Pair(stage, f'--proxy-mode={mode}', CIDRS, source='api')
    proxy = pair.proxies[1]
    world = World(pair, f'events-{mode}')
    node = proxy.namespace
    node.agent.call('write_file', path='/run/max', text=f'{LIMIT}\n', atomic=False)
    node.run('mount', '--bind', '/run/max', MAX)
    node.agent.start('run', argv=['python3', '-c', HOLD])
    wait_for(lambda: str(HEALTH_PORT) in node.run('ss', '-Hltn'), what='the port is held')
    try:
        proxy.start()
        world.service('web', type='LoadBalancer', externalTrafficPolicy='Local', healthCheckNodePort=HEALTH_PORT,
                      ingress=['203.0.113.55'])
        told = wait_for(lambda: event(stage.api, f'events-{mode}', 'FailedToStartServiceHealthcheck'), what='the Event about the port')
        assert (told['type'], told['regarding']['kind'], told['regarding']['name']) == ('Warning', 'Service', 'web')
        assert str(HEALTH_PORT) in told['note'] and 'in use' in told['note'], told['note']
        node.run('python3', '-c', FLOWS)
        told = wait_for(lambda: event(stage.api, 'default', 'ConntrackTableFilling'), what='the Event about the table')
        assert (told['type'], told['regarding']['kind'], told['regarding']['name']) == ('Warning', 'Node', NODE)
        assert 'conntrack.maxPerCore' in told['note'], told['note']
        stage.api.call('DELETE', f'/apis/events.k8s.io/v1/namespaces/default/events/{told["metadata"]["name"]}')
        proxy.stop()
    finally:
        proxy.kill()
        world.close()

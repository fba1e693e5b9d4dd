# SPDX-License-Identifier: Apache-2.0
"""The metrics of kube-proxy, of both versions, and of Portolan after the same life: the same names, help, labels and buckets, and
where it is no matter of time the same values. tests/serving/kube-proxy.metrics, which other tests are held to, is what kube-proxy says here.
"""
import datetime
import os
import time

import pytest
from lab import scrape
from lab.daemon import program
from lab.topology import wait_for

import configuration
from lab import objects
from lab.objects import away, port
from proxies import PATIENCE, Proxy

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, 'serving', 'kube-proxy.metrics')
TRIGGER = 'endpoints.kubernetes.io/last-change-trigger-time'
EQUAL = ('kubeproxy_sync_proxy_rules_iptables_total', 'kubeproxy_sync_proxy_rules_no_local_endpoints_total')


#: A health check port that somebody else has, and how /proc shows it listening
HEALTH_PORT = 30034
HELD = f':{HEALTH_PORT:04X} 00000000000000000000000000000000:0000 0A'
HOLD = """
import socket, sys
held = socket.create_server(('::', int(sys.argv[1])), family=socket.AF_INET6, dualstack_ipv6=True)
while True:
    held.accept()[0].close()
"""


def port_events(api, service):
    """What is recorded about a port that cannot be opened."""
    found = api.call('GET', '/apis/events.k8s.io/v1/namespaces/default/events')['items']
    return [(event['type'], event['reason'], event['action'], event['reportingController'], event['regarding']['kind'])
            for event in found if event['regarding'].get('name') == service]


def golden(mode):
    """The lines of a mode, or of both; those behind `?` only appear once something went wrong."""
    found = {}
    with open(GOLDEN, encoding='utf-8') as file:
        for line in file:
            modes, _, rest = line.rstrip('\n').partition(' ')
            if not line.startswith('#') and mode in modes.strip('?').split(','):
                name, _, words = rest.partition(' ')
                found[name] = words, modes.startswith('?')
    return found


def pods(api, name, *list_, time=None):
    for family in objects.BOTH:
        made = objects.slice_of('default', f'{name}-{family}', family, list_, owner=name,
                                ports=[port('http', number=8080), port('dns', 'UDP', 5353)])
        if time:
            made['metadata']['annotations'] = {TRIGGER: time}
        yield made


def value(proxy, name, **labels):
    return scrape.values(proxy.ask('metrics')).get((name, tuple(sorted(labels.items()))), 0)


def synced(proxy, kind, count):
    return all(value(proxy, f'kubeproxy_sync_{kind}proxy_rules_duration_seconds_count', ip_family=family) >= count
               for family in ('IPv4', 'IPv6'))


@pytest.mark.parametrize('mode, peer', [('iptables', 'kube-proxy'), ('nftables', 'kube-proxy'), ('iptables', 'kube-proxy-previous')])
def test_the_same_metrics(stage, mode, peer):
    """The gates are compared with those of the version that Portolan stands in for."""
    api = stage.api
    text = configuration.text(stage.kubeconfig(), ['--cluster-cidr=10.244.0.0/16,fd00:10:244::/48'])
    text = text.replace('"mode": "iptables"', f'"mode": "{mode}"')
    config = stage.write(f'metrics-{mode}', text)
    link = os.path.join(stage.path(f'ours-{mode}-{peer}'), 'kube-proxy')
    os.mkdir(os.path.dirname(link))
    os.symlink(os.path.abspath(program()), link)
    both = [Proxy(stage, name, [path, *configuration.arguments(config)])
            for name, path in (('theirs', stage.program(peer)), ('ours', link))]
    api.create(objects.service('default', 'web', [port('http'), port('dns', 'UDP', 53)], internalTrafficPolicy='Local'))
    for one in pods(api, 'web', away(1)):
        api.create(one)
    balanced = f'balanced-{mode}-{peer}'
    api.create(objects.service('default', balanced, [port('http')], type='LoadBalancer', externalTrafficPolicy='Local',
                               healthCheckNodePort=HEALTH_PORT))
    try:
        for proxy in both:
            proxy.namespace.agent.start('run', argv=['python3', '-c', HOLD, str(HEALTH_PORT)], timeout=600)
            wait_for(lambda proxy=proxy: HELD in proxy.namespace.run('cat', '/proc/net/tcp6'), PATIENCE, what='the port is taken')
            proxy.start()
        for proxy in both:
            wait_for(lambda proxy=proxy: proxy.process.running() and proxy.ask('metrics'), PATIENCE, what=f'{proxy.name} answers')
            wait_for(lambda proxy=proxy: synced(proxy, 'full_', 1), PATIENCE, what=f'{proxy.name} has synced')
        for one in pods(api, 'web', away(1), away(2), time=_soon()):
            api.replace(one)
        for proxy in both:
            wait_for(lambda proxy=proxy: synced(proxy, 'partial_', 1), PATIENCE, what=f'{proxy.name} has synced a change')
            wait_for(lambda proxy=proxy: value(proxy, 'kubeproxy_network_programming_duration_seconds_count',
                                               ip_family='IPv6') > 0, PATIENCE, what=f'{proxy.name} has timed it')
            for path in ('healthz', 'livez'):
                assert proxy.ask(path, 10256)
        theirs, ours = (proxy.ask('metrics') for proxy in both)
        wait_for(lambda: len(port_events(api, balanced)) >= 2, PATIENCE, what='both have recorded an Event')
        events = port_events(api, balanced)
    finally:
        for proxy in both:
            proxy.kill()
        for one in [objects.service('default', 'web'), objects.service('default', balanced), *pods(api, 'web')]:
            api.delete((one['kind'], 'default', one['metadata']['name']))
    if os.environ.get('PORTOLAN_PRINT_METRICS'):
        print('\n'.join(f'{mode} {name} {words}' for name, words in sorted(scrape.describe(theirs).items())))
    wanted = {name: words for name, (words, rare) in golden(mode).items() if not rare}
    assert scrape.describe(theirs) == wanted
    assert scrape.describe(ours) == wanted
    assert scrape.describe(ours, 'rest_client_requests') == scrape.describe(theirs, 'rest_client_requests') != {}
    assert scrape.describe(ours, 'rest_client_request_duration') == scrape.describe(theirs, 'rest_client_request_duration')
    assert [event for event in events if event != events[0]] == [], 'whoever it is, an owner reads the same of it'
    assert events[0] == ('Warning', 'FailedToStartServiceHealthcheck', 'Listen', 'kube-proxy', 'Service')
    assert {key: one for key, one in scrape.values(ours).items() if key[0] in EQUAL} == \
           {key: one for key, one in scrape.values(theirs).items() if key[0] in EQUAL}
    if peer != 'kube-proxy':
        return
    gates = scrape.describe(theirs, 'kubernetes_feature_enabled')
    assert scrape.describe(ours, 'kubernetes_feature_enabled') == gates
    assert {key: one for key, one in scrape.values(ours).items() if key[0] == 'kubernetes_feature_enabled'} == \
           {key: one for key, one in scrape.values(theirs).items() if key[0] == 'kubernetes_feature_enabled'}


def _soon():
    """Times of triggers are whole seconds, and one of the second in which a proxy began is too old for it: the next second."""
    began = time.time()
    wait_for(lambda: int(time.time()) > int(began), what='a new second')
    return datetime.datetime.now(datetime.timezone.utc).strftime('%Y-%m-%dT%H:%M:%SZ')

# SPDX-License-Identifier: Apache-2.0
"""`explain`, `list`, `diff`, `conntrack` and `top` on a live node: objects from a real API server, rules of the kernel, whichever proxy wrote them."""
import json

from lab import objects
from lab.daemon import program
from proxies import Pair
from stage import CLUSTER_CIDR, NODE

FLAGS = (f'--cluster-cidr={CLUSTER_CIDR}', f'--hostname-override={NODE}')


def ask(stage, namespace, *words):
    code, out, err = namespace.run(program(), *words, '-o', 'json', f'--kubeconfig={stage.kubeconfig()}', *FLAGS, check=False)
    assert code in (0, 1), (code, out, err)
    return json.loads(out)


def test_the_rules_of_both_proxies_are_those_explained(stage):
    stage.api.create(objects.namespace('shop'))
    web = objects.service('shop', 'web', type='NodePort')
    stage.api.create(web)
    for family in (4, 6):
        pods = [objects.here(1), objects.away(2), objects.away(3, state='notready')]
        stage.api.create(objects.slice_of('shop', f'web-{family}', family, pods, owner='web'))
    with Pair(stage, f'--cluster-cidr={CLUSTER_CIDR}') as pair:
        pair.agree()
        for proxy in pair.proxies:
            for family in ('ipv4', 'ipv6'):
                found = ask(stage, proxy.namespace, 'explain', 'service/shop/web:http', f'--ip-family={family}')
                assert found['kernel'] == {'state': 'same', 'notes': []}
                assert [outcome['share'] for outcome in found['outcomes']] == ['1/2', '1/2']
                assert [left['reason'] for left in found['leftOut']] == ['notReady', *['otherFamily'] * 3]
            differences = ask(stage, proxy.namespace, 'diff')['differences']
            assert differences == [], proxy.name
            assert ask(stage, proxy.namespace, 'conntrack', 'shop/web')['total']['flows'] == 0
            assert ask(stage, proxy.namespace, 'top', '--count=1', '--interval=100ms')['servicePorts'] == []
        listed = ask(stage, pair.proxies[0].namespace, 'list', '-n', 'shop')['services']
        assert [(row['name'], row['type'], row['endpoints']['ready']) for row in listed] == [('web', 'NodePort', 2)]

# SPDX-License-Identifier: Apache-2.0
"""Every feature, one scenario after the other, over one pair of proxies: they see changes, never a fresh start.

At the end every row of rules must have been seen.
"""
import re

import pytest

import scenarios
from proxies import Pair
from stage import CLUSTER_CIDR
from world import World

#: A trace that each row of a service port's rules leaves in a listing.
ROWS = {
    'A1': r'-A KUBE-SERVICES .* cluster IP" .*-j KUBE-SV[CL]-',
    'A1 to the local chain': r'-A KUBE-SERVICES .* cluster IP" .*-j KUBE-SVL-',
    "A1' without endpoints": r'-A KUBE-SERVICES .* has no endpoints" .*-j REJECT',
    "A1' without local endpoints": r'-A KUBE-SERVICES .* has no local endpoints" .*-j DROP',
    'A2': r'-A KUBE-SERVICES .* external IP" .*-j KUBE-EXT-',
    "A2' without endpoints": r'-A KUBE-EXTERNAL-SERVICES -d (198\.18|2001:db8:18:).* has no endpoints" .*-j REJECT',
    "A2' without local endpoints": r'-A KUBE-EXTERNAL-SERVICES -d (198\.18|2001:db8:18:).* has no local endpoints" .*-j DROP',
    'A3': r'-A KUBE-SERVICES .* loadbalancer IP" .*-j KUBE-EXT-',
    'A3 through the firewall': r'-A KUBE-SERVICES .* loadbalancer IP" .*-j KUBE-FW-',
    'A3f': r'-A KUBE-PROXY-FIREWALL .* traffic not accepted by KUBE-FW-.* -j DROP',
    'A4 without endpoints': r'-A KUBE-EXTERNAL-SERVICES -d (198\.51|2001:db8:51:).* has no endpoints" .*-j REJECT',
    'A4 without local endpoints': r'-A KUBE-EXTERNAL-SERVICES -d (198\.51|2001:db8:51:).* has no local endpoints" .*-j DROP',
    'A5': r'-A KUBE-NODEPORTS -d 127\.0\.0\.0/8 .*localhost_nps_accepted_pkts -j KUBE-EXT-',
    'A6': r'-A KUBE-NODEPORTS -p .*-j KUBE-EXT-',
    'A7 without endpoints': r'-A KUBE-EXTERNAL-SERVICES .* has no endpoints" -m addrtype --dst-type LOCAL',
    'A7 without local endpoints': r'-A KUBE-EXTERNAL-SERVICES .* has no local endpoints" -m addrtype --dst-type LOCAL',
    'A8': r'-A KUBE-NODEPORTS .* health check node port" .*-j ACCEPT',
    "B1'": r'-A KUBE-SVC-\S+ ! -s .* cluster IP" .*-j KUBE-MARK-MASQ',
    "B1' in the local chain": r'-A KUBE-SVL-\S+ ! -s .* cluster IP" .*-j KUBE-MARK-MASQ',
    'B3': r'-A KUBE-EXT-.*"masquerade traffic for',
    'B4': r'-A KUBE-EXT-.*"pod traffic for',
    'B5': r'-A KUBE-EXT-.*"masquerade LOCAL traffic for',
    'B6': r'-A KUBE-EXT-.*"route LOCAL traffic for',
    'B7': r'-A KUBE-EXT-\S+ -j KUBE-SV[CL]-',
    'B8': r'-A KUBE-FW-\S+ -s (203|2001:db8:113).*-j KUBE-EXT-',
    'B9': r'-A KUBE-FW-\S+ -s (198\.51|2001:db8:51:).*-j KUBE-EXT-',
    'B10': r'-A KUBE-FW-\S+ -m comment --comment "other traffic to .* will be dropped by KUBE-PROXY-FIREWALL"$',
    'B11': r'-A KUBE-SVC-\S+ .*-j KUBE-SEP-',
    'B12': r'-A KUBE-SVL-\S+ .*-j KUBE-SEP-',
    'E1': r'-A KUBE-SV[CL]-\S+ .* -m recent --rcheck .*-j KUBE-SEP-',
    'E2': r'-A KUBE-SV[CL]-\S+ .* -m statistic .*-j KUBE-SEP-',
    'E3': r'-A KUBE-SV[CL]-\S+ -m comment --comment "[^"]*" -j KUBE-SEP-',
    'S1': r'-A KUBE-SEP-\S+ -s .*-j KUBE-MARK-MASQ',
    'S2': r'-A KUBE-SEP-\S+ -p .*-j DNAT',
    'S2 with affinity': r'-A KUBE-SEP-\S+ -p .* -m recent --set .*-j DNAT',
}
seen, done = set(), set()


@pytest.fixture(scope='module')
def pair(stage):
    with Pair(stage, f'--cluster-cidr={CLUSTER_CIDR}') as pair:
        yield pair


def complaint(words, listing, namespace):
    for word in [words] if isinstance(words, str) else words:
        wanted = word.lstrip('!').replace('{}', namespace)
        if (wanted in listing) == word.startswith('!'):
            return f'kube-proxy and Portolan agree, but: {word}'
    return ''


def note(listing):
    seen.update(row for row, pattern in ROWS.items() if re.search(pattern, listing, re.MULTILINE))


@pytest.mark.parametrize('name', scenarios.ALL)
def test_scenario(pair, name):
    world = World(pair, name.replace('_', '-'))
    try:
        for words in scenarios.ALL[name](world):
            note(pair.agree(complaint=lambda listing, words=words: complaint(words, listing, world.namespace)))
    finally:
        world.zone(None)
        world.close()
    done.add(name)


def test_what_a_scenario_leaves_is_nothing(pair):
    assert set(re.findall(r'--comment "?([^/ "]+/[^: "]+)', pair.agree())) <= {'default/kubernetes', 'default/marker'}


def test_every_row_was_seen():
    if done != set(scenarios.ALL):
        pytest.skip('not all scenarios ran, or not all passed')
    assert set(ROWS) - seen == set()

# SPDX-License-Identifier: Apache-2.0
"""Chain names that the world knows: those printed in well-read articles on kube-proxy must come out of ours."""
import pytest

from cases import Case
from harness import run_render

# case: {chain: words that one of its rules, or a rule that jumps to it, must hold}
KNOWN = {
    'articles-many-services': {
        'KUBE-SVC-ERIFXISQEP7F7OF4': 'kube-system/kube-dns:dns-tcp cluster IP',
        'KUBE-SVC-VS7JYC4FNXA3J2IX': 'default/nginx-clusterip:http cluster IP',
        'KUBE-SVC-FM36JLW72KLVJK5C': 'default/nginx-clusterip-session-affinity:http cluster IP',
        'KUBE-SVC-N5ZJHSRAEYPG7OUW': 'kube-system/cern-magnum-metrics-server:https cluster IP',
        'KUBE-SVC-427AMIOYDD4NPRJC': 'kube-system/cern-magnum-openstack-manila-csi-controllerplugin:dummy cluster IP',
        'KUBE-SVC-WFJRZMUCT6Y67XI4': 'kube-system/cern-magnum-traefik:http cluster IP',
        'KUBE-SVC-NX3A3B4B5B3WMIRB': 'default/nginx-nodeport:http cluster IP',
        'KUBE-SVC-6AJOFW3SKWPNURS5': 'default/nginx-loadbalancer:http cluster IP',
        'KUBE-SEP-5EH7HXPWCMEFZ7MM': '--to-destination 10.100.126.81:80',
        'KUBE-SEP-CSPARMQUUTD7R4QK': '--to-destination 10.100.126.82:80',
        'KUBE-SEP-YREZEDGGIC5RK7NN': '--to-destination 10.100.155.149:80',
    },
    'articles-nginx-nodeport': {
        'KUBE-SVC-NPX46M4PTMTKRN6Y': 'default/kubernetes:https cluster IP',
        'KUBE-SEP-AJDQ5GXJFICQGLFW': '--to-destination 192.168.205.10:6443',
        'KUBE-SVC-TCOU7JCQXEZGVUNU': 'kube-system/kube-dns:dns cluster IP',
        'KUBE-SEP-TCIZBYBD3WWXNWF5': '-m udp -p udp -j DNAT --to-destination 10.244.2.2:53',
        'KUBE-SVC-ERIFXISQEP7F7OF4': 'kube-system/kube-dns:dns-tcp cluster IP',
        'KUBE-SEP-H7FN6LU3RSH6CC2T': '-m tcp -p tcp -j DNAT --to-destination 10.244.2.2:53',
        'KUBE-SVC-ELCM5PCEQWBTUJ2I': 'default/nginx-svc:http cluster IP',
        'KUBE-SEP-KGZD7PWTNPWPM76Z': '--to-destination 10.244.1.2:80',
        'KUBE-SEP-FUXUN3DWXBWDLOEM': '--to-destination 10.244.2.3:80',
    },
    'articles-kind-clusterip': {
        'KUBE-SVC-2CMXP7HKUVJN7L6M': 'default/nginx cluster IP',
        'KUBE-SEP-HUXRPHBUO34UVPEF': '--to-destination 10.244.2.2:80',
    },
    # One article (Kubernetes 1.12) shows KUBE-SVC-M42ZCW2EYUCRBVAF for a port without a name of "default/testsvc". That is
    # the hash neither of today's identity "default/testsvc" nor of the one of those days, "default/testsvc:": the
    # listing's names were changed before it was printed. v1.37 hashes "default/testsvctcp":
    'articles-seven-endpoints': {
        'KUBE-SVC-QAIWDPZBWUTCVGO3': 'default/testsvc cluster IP',
        'KUBE-EXT-QAIWDPZBWUTCVGO3': 'default/testsvc loadbalancer IP',
        'KUBE-SEP-O56CIUC4DMMSMPI2': '--to-destination 172.31.9.52:80',
    },
    'articles-app-service': {
        'KUBE-SVC-HVXLY56DFZMBQN5Y': 'default/app-service cluster IP',
    },
    'worked-example': {
        'KUBE-SVC-I5LIAMPLWKMBJ54B': 'shop/cart:http cluster IP',
        'KUBE-SEP-27VOFYQ7SVOL37XI': '--to-destination 10.244.1.5:8080',
        'KUBE-SEP-BQDHVMWANCT6EYGM': '--to-destination 10.244.2.9:8080',
    },
}


@pytest.mark.parametrize('name', KNOWN)
def test_known_chain_names(name):
    case = Case(name)
    lines = run_render(case.manifests, 4, case.arguments).splitlines()
    for chain, words in KNOWN[name].items():
        assert f':{chain} - [0:0]' in lines
        assert any(chain in line and words in line for line in lines if line.startswith('-A')), (chain, words)


def test_affinity_of_the_api_server_is_three_hours():
    case = Case('articles-nginx-nodeport')
    text = run_render(case.manifests, 4, case.arguments)
    assert ('-m recent --name KUBE-SEP-AJDQ5GXJFICQGLFW --rcheck --seconds 10800 --reap '
            '-j KUBE-SEP-AJDQ5GXJFICQGLFW') in text


def test_seven_endpoints_have_the_well_known_shares():
    """1/7, 1/6, ... 1/2 and the rest, now with ten decimals."""
    case = Case('articles-seven-endpoints')
    text = run_render(case.manifests, 4, case.arguments)
    shares = [line.split('--probability ')[1].split()[0] for line in text.splitlines() if '--probability' in line]
    assert shares == ['0.1428571429', '0.1666666667', '0.2000000000', '0.2500000000', '0.3333333333', '0.5000000000']

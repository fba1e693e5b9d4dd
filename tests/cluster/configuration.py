# SPDX-License-Identifier: Apache-2.0
"""A KubeProxyConfiguration from flags: tests speak in flags, which are short; both proxies read one file, as on a cluster."""
import json

import stage


def _pairs(text):
    return {name: value == 'true' for name, value in (word.split('=') for word in text.split(','))}


def _list(text):
    return text.split(',')


def _truth(text):
    return text != 'false'


#: Where a flag's value goes, and what it is there.
FIELDS = {
    '--bind-address': ('bindAddress', str),
    '--bind-address-hard-fail': ('bindAddressHardFail', _truth),
    '--cluster-cidr': ('clusterCIDR', str),
    '--detect-local-mode': ('detectLocalMode', str),
    '--feature-gates': ('featureGates', _pairs),
    '--iptables-localhost-nodeports': ('iptables.localhostNodePorts', _truth),
    '--iptables-masquerade-bit': ('iptables.masqueradeBit', int),
    '--iptables-min-sync-period': ('iptables.minSyncPeriod', str),
    '--iptables-sync-period': ('iptables.syncPeriod', str),
    '--masquerade-all': ('iptables.masqueradeAll', _truth),  # and of the other modes
    '--nodeport-addresses': ('nodePortAddresses', _list),
    '--proxy-mode': ('mode', str),
    '--pod-bridge-interface': ('detectLocal.bridgeInterface', str),
    '--pod-interface-name-prefix': ('detectLocal.interfaceNamePrefix', str),
}


def base(kubeconfig):
    """The size of the connection table belongs to the whole machine, so it is left alone. A period of 0 would mean 1 s."""
    return {
        'apiVersion': 'kubeproxy.config.k8s.io/v1alpha1', 'kind': 'KubeProxyConfiguration', 'mode': 'iptables',
        'clientConnection': {'kubeconfig': kubeconfig}, 'conntrack': {'maxPerCore': 0, 'min': 0},
        'iptables': {'minSyncPeriod': '1ms'}, 'nftables': {'minSyncPeriod': '1ms'}, 'logging': {'verbosity': 2},
    }


def text(kubeconfig, flags):
    made = base(kubeconfig)
    for flag in flags:
        name, _equals, value = flag.partition('=')
        path, read = FIELDS[name]
        *outer, last = path.split('.')
        place = made
        for word in outer:
            place = place.setdefault(word, {})
        place[last] = read(value)
        if name == '--masquerade-all':
            made['nftables']['masqueradeAll'] = read(value)
    return json.dumps(made, indent=1)


def arguments(file):
    """As kubeadm's DaemonSet starts kube-proxy."""
    return [f'--config={file}', f'--hostname-override={stage.NODE}']

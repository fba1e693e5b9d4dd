# SPDX-License-Identifier: Apache-2.0
"""A Service with up to a thousand endpoints and ten thousand clients, in two namespaces of a lab."""
import ipaddress
import json
import os
import sys

from lab.manifests import Service
from lab.topology import REMOTE

AGENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'spray_agent.py')
PORT = 5353
ENDPOINTS = {4: ('10.244.128.0', 17), 6: ('fd00:10:244:80::', 64)}
CLIENTS = {4: ('10.200.0.0', 16), 6: ('2001:db8:200::', 64)}


class Endpoint:
    """What manifests.Service wants of a pod."""

    def __init__(self, number):
        self.name, self.node = f'endpoint-{number}', 'elsewhere'
        self.address = {family: str(ipaddress.ip_address(net) + 1 + number) for family, (net, _bits) in ENDPOINTS.items()}


class Spray:
    def __init__(self, cluster):
        self.cluster, self.source_port = cluster, 10000
        remote, client, node = cluster.lab.remote, cluster.client, cluster.node
        for family in (4, 6):
            network = '{}/{}'.format(*ENDPOINTS[family])
            remote.ip(f'route add local {network} dev lo')
            node.ip(f'route add {network} via {REMOTE[family]}')
            client.ip('route add local {}/{} dev lo'.format(*CLIENTS[family]))
        remote.sysctl(net__ipv6__ip_nonlocal_bind=1)
        # flows of one question must not be known to the connection tracking of the next
        node.sysctl(net__netfilter__nf_conntrack_udp_timeout=5)
        self.numbers = {Endpoint(number).address[family]: number for number in range(1000) for family in (4, 6)}
        remote.spawn(sys.executable, '-B', AGENT, 'serve', str(PORT))[1].wait_line('ready')

    def serve(self, size, affinity=0):
        self.service = Service('spray', 80, [Endpoint(n) for n in range(size)], proto='UDP', port=53, target=PORT,
                               affinity=affinity)
        self.cluster.serve(self.service)

    def restart(self):
        self.cluster.daemon.stop()
        self.cluster.daemon.start()

    def ask(self, family, clients, flows):
        """{(client, flow): number of the endpoint} of the flows that were answered."""
        if self.source_port + flows > 60000:
            self.source_port = 10000
        first, self.source_port = self.source_port, self.source_port + flows
        base = str(ipaddress.ip_address(CLIENTS[family][0]) + 1)
        words = [self.service.cluster_ip[family], 53, clients, flows, first, base]
        found = json.loads(self.cluster.client.run(sys.executable, '-B', AGENT, 'ask', *map(str, words), timeout=120))
        return {(key.split()[0], int(key.split()[1]) - first): self.numbers[address] for key, address in found.items()}

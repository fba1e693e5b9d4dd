# SPDX-License-Identifier: Apache-2.0
"""What the tests of this folder share: running `portolan render`, and short ways to write objects."""
import difflib
import json
import pathlib
import subprocess

from lab.daemon import program

HERE = pathlib.Path(__file__).resolve().parent
PORTOLAN = program()
NODE = 'node'


def run_render(folder, family, arguments=(), output='restore'):
    """Standard output of `portolan render` for one family; AssertionError with its words when it fails."""
    command = [PORTOLAN, 'render', '--manifests', str(folder), f'--ip-family=ipv{family}',
               f'--format={output}', *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: exit {done.returncode}\n{done.stderr}"
    return done.stdout


def same(expected, got, names=('expected', 'portolan render')):
    """Compares texts; a failure shows a unified diff."""
    if expected != got:
        lines = difflib.unified_diff(expected.splitlines(), got.splitlines(), *names, lineterm='', n=2)
        raise AssertionError('\n' + '\n'.join(lines))


def write_objects(folder, objects):
    """Objects as one JSON List, which is a manifest too."""
    path = pathlib.Path(folder) / 'objects.json'
    path.write_text(json.dumps({'apiVersion': 'v1', 'kind': 'List', 'items': objects}, indent=1))
    return folder


def service(key, cluster_ip, ports=None, status_ips=(), **spec):
    """A Service; ports as dicts, by default p80 to TCP 80; status_ips are LoadBalancer addresses."""
    namespace, name = key.split('/')
    ips = [cluster_ip] if isinstance(cluster_ip, str) else list(cluster_ip)
    thing = {'apiVersion': 'v1', 'kind': 'Service', 'metadata': {'namespace': namespace, 'name': name},
             'spec': {'clusterIP': ips[0], 'clusterIPs': ips,
                      'ports': ports or [{'name': 'p80', 'port': 80, 'protocol': 'TCP'}], **spec}}
    if status_ips:
        thing['status'] = {'loadBalancer': {'ingress': [
            {'ip': ip} if isinstance(ip, str) else ip for ip in status_ips]}}
    return thing


def endpoint(address, node='remote', **more):
    """One endpoint of a slice. Conditions by name: ready=, serving=, terminating=; zones=, nodes= are hints."""
    entry = {'addresses': [address]}
    if node:
        entry['nodeName'] = node
    conditions = {k: v for k, v in more.items() if k in ('ready', 'serving', 'terminating')}
    if conditions:
        entry['conditions'] = conditions
    hints = {}
    if more.get('zones'):
        hints['forZones'] = [{'name': z} for z in more['zones']]
    if more.get('nodes'):
        hints['forNodes'] = [{'name': n} for n in more['nodes']]
    if hints:
        entry['hints'] = hints
    return entry


def slice_of(key, endpoints, ports=None, suffix='1'):
    """An EndpointSlice of the Service `key`; its family is that of the first address."""
    namespace, name = key.split('/')
    family = 6 if endpoints and ':' in endpoints[0]['addresses'][0] else 4
    return {'apiVersion': 'discovery.k8s.io/v1', 'kind': 'EndpointSlice',
            'metadata': {'namespace': namespace, 'name': f'{name}-{suffix}',
                         'labels': {'kubernetes.io/service-name': name}},
            'addressType': f'IPv{family}', 'endpoints': endpoints,
            'ports': ports or [{'name': 'p80', 'port': 80, 'protocol': 'TCP'}]}


def node_object(name=NODE, addresses=(), zone=None, pod_cidrs=()):
    return {'apiVersion': 'v1', 'kind': 'Node',
            'metadata': {'name': name, 'labels': {'topology.kubernetes.io/zone': zone} if zone else {}},
            'spec': {'podCIDRs': list(pod_cidrs)},
            'status': {'addresses': [{'type': 'InternalIP', 'address': a} for a in addresses]}}

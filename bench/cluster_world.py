# SPDX-License-Identifier: Apache-2.0
"""The cluster that make bench-cluster measures on: objects by number, an API server that holds them, and nodes.

                 client                        node (a proxy runs here)                     backends
             10.191.255.2 ── eth0 ── client0 10.191.255.1    pods 172.31.0.1 ── eth0 ── 172.31.0.2
                                                                                         10.128.0.0/10, all of it, port 8080
                                                                                         10.96.0.0/12, all of it, nothing listens

Service number i has a cluster IP of its own, scattered over the service range as an API server scatters them, and its own
endpoints, all different, as in a real cluster. Every one of them is alive: the namespace `backends` accepts connections for
any pod address, and tells the client which address it was led to. A connection to a cluster IP for which there is no rule
yet is routed there too and refused at once, so nobody waits for a timeout.

An endpoint's address says whose it is and of which generation: 10.128.0.0 + generation * REGION + i * endpoints + j + 1. A
change moves a service to its next generation: all its endpoints get new addresses, so one connection tells old from new.
"""
import hashlib
import ipaddress
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / 'tests'), str(ROOT / 'tests' / 'cluster')]

from lab import objects  # noqa: E402
from lab.topology import Namespace  # noqa: E402
from stage import Process, Stage, binaries  # noqa: E402

PORT, POD_PORT = 80, 8080
SERVICES_FROM, SERVICES_BITS, SCATTER = int(ipaddress.ip_address('10.96.0.0')), 20, 0x9e3b1
PODS_FROM, REGION, GENERATIONS = int(ipaddress.ip_address('10.128.0.0')), 1 << 19, 7
CLUSTER_CIDR = '10.128.0.0/10,fd00:10:244::/48'
NAMESPACES = 10
BATCH = 600
#: Changes when other objects are made, so that no old cache is used.
CACHE_VERSION = 1


def text(number):
    return str(ipaddress.ip_address(number))


def service_ip(number):
    return text(SERVICES_FROM + (number + 1) * SCATTER % (1 << SERVICES_BITS))


class Size:
    """So many services with so many endpoints each."""

    def __init__(self, services, endpoints=5):
        self.services, self.endpoints = services, endpoints
        if services * endpoints >= REGION:
            raise ValueError(f'{self}: more than {REGION - 1:,} endpoints')

    @classmethod
    def parse(cls, word):
        services, _x, endpoints = word.lower().partition('x')
        return cls(int(services), int(endpoints or 5))

    def __str__(self):
        return f'{self.services}x{self.endpoints}'

    def ips(self):
        return [service_ip(number) for number in range(self.services)]


def region(generation):
    """The first and the last address of a generation."""
    first = PODS_FROM + generation * REGION
    return text(first), text(first + REGION - 1)


def name_of(number):
    return f'team-{number % NAMESPACES}', f'service-{number:05}'


def service(number):
    namespace, name = name_of(number)
    return objects.service(namespace, name, families=(4,), labels={'app': name}, selector={'app': name},
                           clusterIP=service_ip(number))


def endpoint(number, place, size, generation):
    namespace, name = name_of(number)
    first = PODS_FROM + generation * REGION + number * size.endpoints + 1
    pod = f'{name}-{generation}-{place}'
    uid = hashlib.md5(pod.encode(), usedforsecurity=False).hexdigest()
    return {'addresses': [text(first + place)], 'conditions': {'ready': True, 'serving': True, 'terminating': False},
            'nodeName': f'worker-{(number + place) % 200}',
            'targetRef': {'kind': 'Pod', 'namespace': namespace, 'name': pod,
                          'uid': f'{uid[:8]}-{uid[8:12]}-{uid[12:16]}-{uid[16:20]}-{uid[20:]}'}}


def endpoint_slice(number, size, generation=0):
    namespace, name = name_of(number)
    return {'apiVersion': 'discovery.k8s.io/v1', 'kind': 'EndpointSlice', 'addressType': 'IPv4',
            'metadata': {'namespace': namespace, 'name': f'{name}-x7k2p', 'labels': {'kubernetes.io/service-name': name}},
            'endpoints': [endpoint(number, place, size, generation) for place in range(size.endpoints)],
            'ports': [objects.port(number=POD_PORT)]}


class Content:
    """What an API server holds: the objects of a size, and the generation that each service has come to."""

    def __init__(self, stage, size, generations=None):
        self.stage, self.size, self.generations = stage, size, generations or {}
        self.exchanged = set()  # services with one endpoint of the next generation

    def fill(self, size, progress):
        """Adds what is missing; many requests at a time."""
        first = self.size.services if self.size else 0
        if not first:
            self.stage.api.create_all([objects.namespace(f'team-{number}') for number in range(NAMESPACES)])
        for begin in range(first, size.services, BATCH):
            numbers = range(begin, min(begin + BATCH, size.services))
            self.stage.api.create_all([service(number) for number in numbers] +
                                      [endpoint_slice(number, size) for number in numbers])
            progress(f'  {numbers[-1] + 1:,} of {size.services:,} services written')
        self.size = size

    def generation(self, number):
        return self.generations.get(number, 0)

    def begin_change(self, number):
        """Moves a service to its next generation; the answer comes with the times of the request."""
        self.generations[number] = (self.generation(number) + 1) % GENERATIONS
        thing = endpoint_slice(number, self.size, self.generation(number))
        return self.stage.api.begin_replace(thing)


    def begin_exchange(self, number):
        """One endpoint of a service is replaced, or comes back, as in a rolling update: any of them, as numbers go."""
        thing = endpoint_slice(number, self.size, self.generation(number))
        self.exchanged ^= {number}
        if number in self.exchanged:
            place = number % self.size.endpoints
            thing['endpoints'][place] = endpoint(number, place, self.size, (self.generation(number) + 1) % GENERATIONS)
        return self.stage.api.begin_replace(thing)

    def exchange_back(self):
        for pending in [self.begin_exchange(number) for number in sorted(self.exchanged)]:
            pending.result()


class CachedStage(Stage):
    """A control plane whose etcd starts with a copy of a folder."""

    def __init__(self, cached=None):
        self.cached = cached
        super().__init__()

    def _start_etcd(self):
        if self.cached:
            self.control_plane.run('cp', '-r', str(self.cached), '/run/lab/etcd')
        return super()._start_etcd()

    def keep_etcd(self, folder):
        """As it would be found after a sudden end, which etcd can start from."""
        new = pathlib.Path(f'{folder}.new')
        shutil.rmtree(new, ignore_errors=True)
        call = self.control_plane.agent.call
        call('kill', pid=self.etcd.pid, number=signal.SIGSTOP)
        try:
            self.control_plane.run('cp', '-r', '/run/lab/etcd', str(new))
        finally:
            call('kill', pid=self.etcd.pid, number=signal.SIGCONT)
        shutil.rmtree(folder, ignore_errors=True)
        new.rename(folder)


def cache_folder(size, program):
    """Named after the size, the API server and what this file makes."""
    name = f'{CACHE_VERSION}-{os.path.basename(os.path.dirname(program))}'
    base = os.environ.get('XDG_CACHE_HOME') or os.path.join(os.environ.get('HOME', '/tmp'), '.cache')
    return pathlib.Path(base) / 'portolan' / 'bench' / name / str(size)


class Worlds:
    """API servers with contents, one at a time. A larger size grows out of a smaller one, or out of the cache."""

    def __init__(self, progress):
        self.progress, self.stage, self.content = progress, None, None

    def __enter__(self):
        return self

    def __exit__(self, *_exc):
        self.close()

    def close(self):
        if self.stage:
            self.stage.close()
        self.stage = self.content = None

    def get(self, size):
        if not (self.content and str(self.content.size) == str(size)):
            self._prepare(size)
        return self.content

    def plain(self, size):
        """For a proxy that reads no API server; one is there all the same, because a stage has one."""
        if not self.stage:
            self.stage = CachedStage()
        self.content = Content(self.stage, size)
        return self.content

    def _grows(self, size):
        return self.content and self.content.size.endpoints == size.endpoints and \
            self.content.size.services < size.services

    def _prepare(self, size):
        folder = cache_folder(size, self._program())
        if folder.exists():
            self.close()
            self.progress(f'starting an API server that holds {size} (kept from an earlier run)')
            self.stage = CachedStage(folder)
            kept = json.loads(self._generations(folder).read_text(encoding='ascii'))
            self.content = Content(self.stage, size, {int(number): generation for number, generation in kept.items()})
            return
        if not self._grows(size):
            self.close()
            self.progress('starting an API server')
            self.stage = CachedStage()
            self.stage.api.create(objects.node())
            self.content = Content(self.stage, None)
        self.content.fill(size, self.progress)
        folder.parent.mkdir(parents=True, exist_ok=True)
        self._generations(folder).write_text(json.dumps(self.content.generations), encoding='ascii')
        self.stage.keep_etcd(folder)

    @staticmethod
    def _generations(folder):
        return folder.with_name(f'{folder.name}.json')

    def _program(self):
        return os.path.join(binaries(), 'kube-apiserver')


class Site:
    """A fresh node with a client and backends around it. close() ends its namespaces."""

    count = 0

    def __init__(self, stage, tools):
        Site.count += 1
        self.stage, self.processes = stage, []
        self.node = stage.node('bench')
        self.client = Namespace(stage, f'client-{Site.count}')
        self.backends = Namespace(stage, f'backends-{Site.count}')
        self._link()
        self.start(self.backends, str(tools / 'bench-backend'), str(POD_PORT)).log.wait_line('^ready$')

    def _link(self):
        for namespace in (self.node, self.client, self.backends):
            namespace.sysctl(net__ipv4__conf__all__rp_filter=0, net__ipv4__conf__default__rp_filter=0)
        self.node.sysctl(net__ipv4__ip_forward=1)
        self.node.ip(
            f'link add client0 type veth peer name eth0 netns {self.client.name}', 'addr add 10.191.255.1/24 dev client0',
            'link set client0 up', f'link add pods type veth peer name eth0 netns {self.backends.name}',
            'addr add 172.31.0.1/30 dev pods', 'link set pods up', 'route add 10.128.0.0/10 via 172.31.0.2',
            'route add 10.96.0.0/12 via 172.31.0.2')
        self.client.ip('link set lo up', 'addr add 10.191.255.2/24 dev eth0', 'link set eth0 up',
                       'route add default via 10.191.255.1')
        self.backends.ip('link set lo up', 'addr add 172.31.0.2/30 dev eth0', 'link set eth0 up',
                         'route add default via 172.31.0.1', 'route add 10.191.255.0/24 via 172.31.0.1',
                         'route add local 10.128.0.0/10 dev lo table main', 'route add local 10.96.0.0/12 dev lo table main')

    def start(self, namespace, *argv, env=None):
        process = Process(namespace, *argv, env=env)
        self.processes.append(process)
        return process

    def close(self):
        for process in self.processes:
            if process.running():
                process.stop(signal.SIGKILL)
        for namespace in (self.node, self.client, self.backends):
            self.stage.control_plane.run('umount', '-l', f'/run/netns/{namespace.name}')
            namespace.agent.close()


def version(program, *arguments):
    """The first line that a program prints, or nothing."""
    try:
        done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=20, check=False)
    except OSError:
        return ''
    return (done.stdout or done.stderr).strip().partition('\n')[0]

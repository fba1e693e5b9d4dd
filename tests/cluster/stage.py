# SPDX-License-Identifier: Apache-2.0
"""A real control plane, and as many nodes as a test wants, in namespaces that end with this process.

       api                              a node (one namespace for each proxy that runs)
    etcd, kube-apiserver                   lo    127.0.0.1, ::1
    links 172.30.0.1 ──────── uplink ──── 172.30.0.2, .3, ...
                                           eth0  192.0.2.11, 2001:db8:2::11        the Node's addresses
                                           eth1  203.0.113.11, .12, 2001:db8:3::11

Every node has the same interfaces and addresses, save for the uplink's, so that what a proxy reads from its host is
the same everywhere. etcd's files are in memory.
"""
import base64
import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap

from api import Api
from lab import arm
from lab.objects import NODE  # noqa: F401: of all stages
from lab.topology import CLUSTER_CIDR, NODE as ADDRESSES, Lab, Namespace, Refused, quick_ipv6, wait_for  # noqa: F401

HERE = os.path.dirname(os.path.abspath(__file__))
SERVICE_CIDR = '10.96.0.0/12,fd00:10:96::/108'
API = '172.30.0.1'
PORT = 6443
MEDDLER_PORT = 8080
TUNNEL_PORT = 3128
TOKEN = secrets.token_hex(16)


def version():
    """That of the API server and of kube-proxy, "v1.37.1"."""
    with open(os.path.join(HERE, 'go.mod'), encoding='ascii') as file:
        return re.search(r'k8s\.io/kubernetes (v[\d.]+)', file.read())[1]


class Missing(Refused):
    """A program that cannot be had here, such as a Go tool chain to build Kubernetes with."""


def binaries():
    """The folder of etcd, kube-apiserver and both kube-proxies; builds them if need be."""
    done = subprocess.run([os.path.join(HERE, 'binaries')], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode == 77:
        raise Missing('no Go tool chain here, so kube-proxy and the API server cannot be built')
    if done.returncode != 0:
        raise RuntimeError('tests/cluster/binaries failed')
    return done.stdout.strip()


def old_etcd():
    """Debian's etcd (3.4), which cannot do all that newer ones can. Unpacked beside the other programs, not installed."""
    cache = os.path.join(os.path.dirname(binaries()), 'etcd-debian')
    path = os.path.join(cache, 'usr/bin/etcd')
    if os.path.exists(path):
        return path
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)  # apt-get downloads as a user of its own
        download = ['apt-get', 'download', 'etcd-server']
        for command in (download, ['apt-get', 'update', '-q'], download):
            subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
            packages = [name for name in os.listdir(folder) if name.endswith('.deb')]
            if packages:
                break
        else:
            raise Missing('the package etcd-server cannot be fetched here')
        subprocess.run(['dpkg', '-x', os.path.join(folder, packages[0]), cache], check=True)
    return path


def ec_private_key():
    """A P-256 key in PEM, as RFC 5915 has it; the public half may be left out."""
    scalar = b'\0' + secrets.token_bytes(31)
    curve = bytes.fromhex('a00a06082a8648ce3d030107')
    content = b'\x02\x01\x01\x04\x20' + scalar + curve
    text = base64.b64encode(bytes([0x30, len(content)]) + content).decode()
    return '-----BEGIN EC PRIVATE KEY-----\n' + '\n'.join(textwrap.wrap(text, 64)) + '\n-----END EC PRIVATE KEY-----\n'


class Process:
    """A program in a namespace, and what it says."""

    def __init__(self, namespace, *argv, env=None):
        self.namespace, self.argv = namespace, argv
        self.pid, self.log = namespace.spawn(*argv, env=env)

    def running(self):
        return not self.log.ended

    def stop(self, number):
        """Its exit code; negative for a signal."""
        self.namespace.agent.call('kill', pid=self.pid, number=number)
        code = self.namespace.agent.call('wait', pid=self.pid, timeout=40)
        assert code is not None, f'{self.argv[0]} did not end'
        return code

    def tail(self, count=30):
        return f'{os.path.basename(self.argv[0])}{"" if self.running() else " (ended)"}:\n' + '\n'.join(self.log.lines[-count:])


class Stage(Lab):
    """The control plane. Nodes are added with node(). etcd: the program, if not the one that is built."""

    def __init__(self, etcd=None):
        self.binaries = binaries()
        self.etcd_program = etcd or self.program('etcd')
        self.proxy_token = secrets.token_hex(16)
        self._start_holder()
        self.folder = tempfile.mkdtemp(prefix='portolan-cluster-')
        try:
            self._build_stage()
        except BaseException:
            self.close()
            raise

    def close(self):
        super().close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _build_stage(self):
        self.nodes = 0
        self.control_plane = Namespace(self, 'api', own_network=False)
        self.control_plane.ip(
            'link set lo up', 'link add links type bridge forward_delay 0 mcast_snooping 0', f'addr add {API}/24 dev links',
            'link set links up')
        self.etcd = self._start_etcd()
        self.api_server = self.start_api_server()
        self._start_agent()
        self.wait_ready()

    def wait_ready(self):
        wait_for(self._ready, 180, what='the API server is ready')

    def _ready(self):
        for process in (self.etcd, self.api_server):
            if not process.running():
                raise RuntimeError(process.tail())
        return os.path.exists(self.path('certificates/apiserver.crt')) and self.api.ready()

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), 'w', encoding='utf-8') as file:
            file.write(text)
        return self.path(name)

    def program(self, name):
        return os.path.join(self.binaries, name)

    def _start_etcd(self):
        return Process(
            self.control_plane, self.etcd_program, '--data-dir=/run/lab/etcd', '--unsafe-no-fsync', '--log-level=error',
            '--listen-client-urls=http://127.0.0.1:2379', '--advertise-client-urls=http://127.0.0.1:2379',
            '--listen-peer-urls=http://127.0.0.1:2380')

    def start_api_server(self, *more):
        """One that still takes the untidy addresses that were fine when old clusters were filled."""
        key = self.write('service-account.key', ec_private_key())
        users = f'{TOKEN},tester,1,system:masters\n{self.proxy_token},proxy,2,system:masters\n'
        tokens = self.write('tokens.csv', users)
        return Process(
            self.control_plane, self.program('kube-apiserver'), '--etcd-servers=http://127.0.0.1:2379',
            f'--bind-address={API}', f'--advertise-address={API}', f'--secure-port={PORT}',
            f'--cert-dir={self.path("certificates")}', f'--service-account-key-file={key}',
            f'--service-account-signing-key-file={key}', '--service-account-issuer=https://kubernetes.default.svc',
            f'--service-cluster-ip-range={SERVICE_CIDR}', '--authorization-mode=AlwaysAllow', f'--token-auth-file={tokens}',
            '--feature-gates=StrictIPCIDRValidation=false', '--allow-privileged=true', *more)

    def stop_api_server(self, number=signal.SIGKILL):
        self.api_server.stop(number)

    def resume_api_server(self):
        self.api_server = self.start_api_server()
        self.wait_ready()

    def ask_etcd(self, path, **body):
        """A request to etcd's own API, in JSON."""
        code = ('import sys, urllib.request as r; '
                'print(r.urlopen(r.Request(sys.argv[1], sys.stdin.buffer.read()), timeout=20).read().decode())')
        url = f'http://127.0.0.1:2379/v3/{path}'
        return json.loads(self.control_plane.run(sys.executable, '-c', code, url, stdin=json.dumps(body)))

    def _spawn_arm(self, module):
        """A child in the control plane that does what it is told over a channel."""
        return arm.spawn(self.control_plane, module, server={
            'host': API, 'port': PORT, 'token': TOKEN, 'ca': self.path('certificates/apiserver.crt'), 'meddler_port': MEDDLER_PORT,
            'tunnel_port': TUNNEL_PORT})

    def _start_agent(self):
        self.api = Api(self._spawn_arm('api_agent'))

    def start_meddler(self):
        """The channel to it, and a kubeconfig that leads through it."""
        return self._spawn_arm('meddler'), self.kubeconfig('meddled', server=f'http://{API}:{MEDDLER_PORT}')

    def start_tunnel(self):
        """The channel to a proxy for proxy-url, and its URL."""
        return self._spawn_arm('tunnel'), f'http://{API}:{TUNNEL_PORT}'

    def node(self, name):
        """A namespace that looks like the node, with a way to the API server."""
        self.nodes += 1
        host = f'{name}-{self.nodes}'
        namespace = Namespace(self, host)
        quick_ipv6(namespace)
        link = f'link{self.nodes}'
        self.control_plane.ip(
            f'link add {link} type veth peer name uplink netns {host}', f'link set {link} master links addrgenmode none',
            f'link set {link} up')
        namespace.ip(
            'link set lo up', 'link set uplink addrgenmode none', f'addr add 172.30.0.{1 + self.nodes}/24 dev uplink',
            'link set uplink up', 'link add eth0 type bridge', 'link set eth0 addrgenmode none',
            f'addr add {ADDRESSES[4]}/24 dev eth0', f'addr add {ADDRESSES[6]}/64 dev eth0 nodad', 'link set eth0 up',
            'link add eth1 type bridge', 'link set eth1 addrgenmode none', 'addr add 203.0.113.11/24 dev eth1',
            'addr add 203.0.113.12/24 dev eth1', 'addr add 2001:db8:3::11/64 dev eth1 nodad', 'link set eth1 up')
        return namespace

    def kubeconfig(self, name='kubeconfig', server=f'https://{API}:{PORT}', cluster=None, user=None):
        """cluster: what else it says about that. user: what it says about the user, instead of the tester's token."""
        cluster = {'server': server, **(cluster or {})}
        if server.startswith('https:'):
            with open(self.path('certificates/apiserver.crt'), 'rb') as file:
                cluster['certificate-authority-data'] = base64.b64encode(file.read()).decode()
        return self.write(name, json.dumps({
            'apiVersion': 'v1', 'kind': 'Config', 'current-context': 'stage',
            'clusters': [{'name': 'stage', 'cluster': cluster}],
            'users': [{'name': 'tester', 'user': user or {'token': TOKEN}}],
            'contexts': [{'name': 'stage', 'context': {'cluster': 'stage', 'user': 'tester'}}]}))

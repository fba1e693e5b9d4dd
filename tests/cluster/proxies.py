# SPDX-License-Identifier: Apache-2.0
"""kube-proxy and Portolan under the same flags, each on a node of its own, and the question whether they agree.

Nobody sleeps to be sure. The last thing that every step writes is a marker: a dual-stack Service whose only port gets a new
name each time, and its two EndpointSlices. The chain of its endpoint in a family exists once the proxy has seen the
Service and the slice, and since a watch keeps its order, all Services and slices that were written before. Only the
Node comes on a watch of its own, so a difference is final only when it lasts.

Portolan takes kube-proxy's place as it would on a cluster: by that name, with the same arguments and the same
configuration file. PORTOLAN_TEST_WRITER=restore, or writer='restore', has it write rules with iptables-restore instead of
over netlink. With source='manifests', which PORTOLAN_CLUSTER_SOURCE sets for all, it gets its objects through a
folder that mirrors the API server, and its settings as flags.
"""
import base64
import hashlib
import json
import os
import shutil
import signal
import time

import configuration
import stage as stages
from api import Refusal, key_of
from lab import iptables_listing as rules
from lab.daemon import WRITER, program
from stage import Process

SOURCE = os.environ.get('PORTOLAN_CLUSTER_SOURCE', 'api')
TOOLS = {4: 'iptables', 6: 'ip6tables'}
FAMILIES = tuple(TOOLS)
PATIENCE = 90
PERSISTENCE = 30
MARKER = ('Service', 'default', 'marker')
MARKER_PORT = 9

#: What each says when it has written all rules of a family.
SYNCED = {'kube-proxy': r'"SyncProxyRules complete" ipFamily="IPv{}"', 'portolan': r'"First sync done" ipFamily="IPv{}"'}

#: What Portolan is started with where it reads no configuration file; a test adds its own.
FLAGS = (f'--hostname-override={stages.NODE}', '--iptables-min-sync-period=0s', '--conntrack-max-per-core=0',
         '--v=2')


def chain_name(prefix, text):
    return f'KUBE-{prefix}-' + base64.b32encode(hashlib.sha256(text.encode()).digest()).decode()[:16]


def marker_endpoint(family):
    return '10.244.99.99' if family == 4 else 'fd00:10:244:99::99'


def marker_chain(family, generation):
    address = marker_endpoint(family) if family == 4 else f'[{marker_endpoint(family)}]'
    return chain_name('SEP', f'default/marker:m{generation}tcp{address}:{MARKER_PORT}')


class Markers:
    """Writes the marker and remembers its generation."""

    def __init__(self, api):
        self.api = api
        self.generation = 0

    def objects(self):
        port = {'name': f'm{self.generation}', 'protocol': 'TCP', 'port': MARKER_PORT}
        yield {'apiVersion': 'v1', 'kind': 'Service', 'metadata': {'namespace': 'default', 'name': 'marker'},
               'spec': {'ipFamilyPolicy': 'RequireDualStack', 'ports': [port]}}
        for family in FAMILIES:
            yield {'apiVersion': 'discovery.k8s.io/v1', 'kind': 'EndpointSlice', 'addressType': f'IPv{family}',
                   'metadata': {'namespace': 'default', 'name': f'marker-{family}',
                                'labels': {'kubernetes.io/service-name': 'marker'}},
                   'ports': [port], 'endpoints': [{'addresses': [marker_endpoint(family)], 'nodeName': 'elsewhere'}]}

    def write(self):
        self.generation += 1
        for thing in self.objects():
            if self.generation == 1:
                self.api.create(thing)
            else:
                self.api.replace(thing)


class Mirror:
    """A folder that holds what the API server holds, a file for each object, each replaced in one step."""

    def __init__(self, api, folder):
        self.api, self.folder, self.known = api, folder, {}
        os.makedirs(folder, exist_ok=True)

    def file(self, key):
        return os.path.join(self.folder, '_'.join(key) + '.json')

    def write(self, key, thing):
        new = self.folder + '.new'
        with open(new, 'w', encoding='utf-8') as file:
            json.dump(thing, file)
        os.rename(new, self.file(key))

    def update(self):
        """The marker comes last, as in the API server."""
        things = {key_of(thing): thing for kind in ('Node', 'ServiceCIDR', 'Service', 'EndpointSlice') for thing in self.api.list(kind)}
        for key in [key for key in self.known if key not in things]:
            os.unlink(self.file(key))
            del self.known[key]
        for key in sorted(things, key=lambda key: (key[2].startswith('marker'), key)):
            version = things[key]['metadata']['resourceVersion'], things[key]['metadata']['uid']
            if self.known.get(key) != version:
                self.write(key, things[key])
                self.known[key] = version


class Proxy:
    """A program that proxies, on a node of its own."""

    def __init__(self, stage, name, argv):
        self.name, self.argv = name, argv
        self.namespace = stage.node(name)
        self.process = None

    def start(self):
        self.process = Process(self.namespace, *self.argv)

    def kill(self):
        if self.process:
            self.process.stop(signal.SIGKILL)
        self.process = None

    def stop(self):
        """As an operator would; it must have been well until then."""
        code, log = self.process.stop(signal.SIGTERM), self.process.tail()
        self.process = None
        assert code in (0, -signal.SIGTERM), f'{self.name} ended with {code}\n{log}'

    def begin_save(self, family):
        """What iptables-save prints; call the answer for it."""
        pending = self.namespace.agent.start('run', argv=[f'{TOOLS[family]}-save'], timeout=60)

        def text():
            done = pending.result(70)
            assert done['code'] == 0, f'{TOOLS[family]}-save on the node of {self.name}: {done["stderr"]}'
            return done['stdout']

        return text

    def ask(self, path, number=10249):
        """What its server says to that; None while it does not listen, or says no."""
        answer = self.namespace.ask_http(f'/{path}', number)
        return answer.body if answer.status == 200 else None

    def has_chain(self, family, chain):
        code, _out, _err = self.namespace.run(TOOLS[family], '-w', '-t', 'nat', '-S', chain, check=False)
        return code == 0


class Pair:
    """Both, with the same settings, which are given as flags. Use it with `with`.

    kubeconfig: a way of Portolan's own to the API server. writer: how Portolan writes rules. peer: the program beside it.
    more: flags of that one alone.
    """

    def __init__(self, stage, *flags, families=FAMILIES, source=SOURCE, kubeconfig=None, writer=WRITER, peer='kube-proxy', more=()):
        self.stage, self.families = stage, families
        self.api = stage.api
        if not hasattr(stage, 'markers'):
            stage.markers = Markers(self.api)
        self.markers = stage.markers
        self.mirror = None
        theirs = self._configured('config', stage.kubeconfig(), [*flags, *more])
        ours = self._configured('config-portolan', kubeconfig or stage.kubeconfig(), flags)
        portolan = [self._drop_in(), *ours, f'--iptables-writer={writer}', '--sync-guard=off']  # every list counts, as for kube-proxy
        if source == 'manifests':
            self.mirror = Mirror(self.api, stage.path(f'manifests-{stage.nodes}'))
            portolan = [program(), 'run', '--manifests', self.mirror.folder, f'--iptables-writer={writer}', *FLAGS,
                        *flags]
        self.proxies = [Proxy(stage, 'kube-proxy', [stage.program(peer), *theirs]),
                        Proxy(stage, 'portolan', portolan)]

    def _configured(self, name, kubeconfig, flags):
        """The arguments for a configuration file."""
        text = configuration.text(kubeconfig, flags)
        return configuration.arguments(self.stage.write(f'{name}-{self.stage.nodes}.conf', text))

    def _drop_in(self):
        """Portolan by kube-proxy's name."""
        path = self.stage.path('kube-proxy')
        if not os.path.islink(path):
            os.symlink(os.path.abspath(program()), path)
        return path

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, *_exc):
        for proxy in self.proxies:
            if kind:
                proxy.kill()  # that there was an error is known already
            else:
                proxy.stop()
        if self.mirror:
            shutil.rmtree(self.mirror.folder, ignore_errors=True)

    def start(self):
        if self.mirror:
            self.mirror.update()
        for proxy in self.proxies:
            proxy.start()
        return self

    def restart(self, name):
        """Kills one and starts it again over the rules that it left."""
        if self.mirror:
            self.mirror.update()
        proxy = next(proxy for proxy in self.proxies if proxy.name == name)
        proxy.kill()
        proxy.start()

    def swap(self):
        """Kills both; each starts again where the other was."""
        for proxy in self.proxies:
            proxy.kill()
        one, other = self.proxies
        one.namespace, other.namespace = other.namespace, one.namespace
        if self.mirror:
            self.mirror.update()
        for proxy in self.proxies:
            proxy.start()

    def agree(self, large=False, patience=PATIENCE, complaint=lambda listing: ''):
        """Waits until both have seen everything written so far and compares.

        What kube-proxy wrote, both families together, is the answer; complaint() says what is wrong with it.
        """
        self.markers.write()
        if self.mirror:
            self.mirror.update()
        deadline = time.monotonic() + patience
        for proxy in self.proxies:
            for family in self.families:
                chain = marker_chain(family, self.markers.generation)
                proxy.process.log.wait(
                    lambda proxy=proxy, family=family, chain=chain: proxy.has_chain(family, chain),
                    f'{proxy.name} had seen the last change (IPv{family})', max(1, deadline - time.monotonic()))
        return self._compare(large, complaint, time.monotonic() + PERSISTENCE)

    def _compare(self, large, complaint, deadline):
        """Again and again while there is a difference: nothing announces that a change of the Node has been seen."""
        while True:
            begun = {family: [proxy.begin_save(family) for proxy in self.proxies] for family in self.families}
            listings = {family: [text() for text in texts] for family, texts in begun.items()}
            differences = {family: rules.difference(*texts, large) for family, texts in listings.items()}
            listing = '\n'.join(texts[0] for texts in listings.values())
            wrong = self._report(differences) if any(differences.values()) else complaint(listing)
            if not wrong:
                return listing
            if time.monotonic() > deadline:
                raise AssertionError(wrong)

    def _report(self, differences):
        parts = [f'IPv{family}:\n{text}' for family, text in differences.items() if text]
        tails = [f'{proxy.name}: {proxy.process.tail()}' for proxy in self.proxies]
        return '\n\n'.join(['kube-proxy and Portolan differ', *parts, *tails])


def forget(api, keys):
    """Deletes what is still there."""
    for pending in [api.begin_delete(key) for key in keys]:
        try:
            pending.result()
        except Refusal as refusal:
            if refusal.status != 404:
                raise

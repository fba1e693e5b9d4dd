# SPDX-License-Identifier: Apache-2.0
"""Ways to an API server that lets nobody in without a name: each is used by Portolan until its rules agree with kube-proxy's."""
import base64
import os
import subprocess

import pytest

from lab import objects
from lab.required import made_or_skipped
from lab.topology import wait_for
from proxies import Pair
from stage import CLUSTER_CIDR, PORT, Stage

FLAGS = (f'--cluster-cidr={CLUSTER_CIDR}',)
#: Both may have waited longer and longer before they try again.
PATIENCE = 90
#: Leads to the API server, and is not in its certificate.
OTHER_ADDRESS = '172.30.0.250'
PLUGIN = """#!/bin/sh
cat /proc/$PPID/comm >>{runs}
expiry=$(date -u -d '+12 seconds' +%Y-%m-%dT%H:%M:%SZ)
cat <<EOF
{{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
 "status": {{"token": "$(cat {token})", "expirationTimestamp": "$expiry"}}}}
EOF
"""


class Authority:
    """Signs certificates of clients."""

    def __init__(self, folder):
        self.folder, self.issued = folder, 0
        os.makedirs(folder)
        self._openssl('req', '-x509', *self._key('ca.key'), '-out', 'ca.crt', '-subj', '/CN=clients', '-days', '2')

    def _openssl(self, *arguments):
        subprocess.run(['openssl', *arguments], cwd=self.folder, check=True, capture_output=True)

    @staticmethod
    def _key(name):
        return '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', name

    def read(self, name):
        with open(os.path.join(self.folder, name), encoding='ascii') as file:
            return file.read()

    def issue(self):
        """A new certificate for kube-proxy's user, and its key."""
        self.issued += 1
        self._openssl('req', *self._key('client.key'), '-out', 'client.csr',
                      '-subj', '/O=system:node-proxier/CN=system:kube-proxy')
        self._openssl('x509', '-req', '-in', 'client.csr', '-CA', 'ca.crt', '-CAkey', 'ca.key',
                      '-set_serial', str(self.issued), '-days', '2', '-out', 'client.crt')
        return self.read('client.crt'), self.read('client.key')


class Strict(Stage):
    """An API server that asks everyone who they are, and takes the certificates of self.authority."""

    authority = None

    def start_api_server(self, *more):
        if not self.authority:
            self.authority = Authority(self.path('clients'))
        file = self.write('client-ca.crt', self.authority.read('ca.crt'))
        return super().start_api_server(
            '--anonymous-auth=false', f'--client-ca-file={file}', '--bind-address=0.0.0.0', *more)


@pytest.fixture(scope='module')
def stage():
    with made_or_skipped(Strict) as stage:
        stage.control_plane.ip(f'addr add {OTHER_ADDRESS}/24 dev links')
        stage.api.create(objects.node())
        yield stage


def coded(text):
    return base64.b64encode(text.encode()).decode()


def replace(stage, name, text):
    """As a rotation does it: in one step."""
    os.rename(stage.write(f'{name}.new', text), stage.path(name))


def portolan(pair):
    return pair.proxies[1].process


def refused(pair, since=0):
    portolan(pair).log.wait_line('does not accept our credentials', since, timeout=PATIENCE)


def test_client_certificate_in_the_kubeconfig(stage):
    certificate, key = stage.authority.issue()
    kubeconfig = stage.kubeconfig('certified', user={
        'client-certificate-data': coded(certificate), 'client-key-data': coded(key)})
    with Pair(stage, *FLAGS, kubeconfig=kubeconfig) as pair:
        pair.agree()


def test_client_certificate_in_files_is_rotated(stage):
    """The server trusts another authority from one moment on; the old certificate is refused until the files are new."""
    certificate, key = stage.authority.issue()
    kubeconfig = stage.kubeconfig('certified-by-files', user={
        'client-certificate': stage.write('proxy.crt', certificate), 'client-key': stage.write('proxy.key', key)})
    with Pair(stage, *FLAGS, kubeconfig=kubeconfig) as pair:
        pair.agree()
        stage.stop_api_server()
        stage.authority = Authority(stage.path('clients-2'))
        line = len(portolan(pair).log.lines)
        stage.resume_api_server()
        refused(pair, line)
        certificate, key = stage.authority.issue()
        replace(stage, 'proxy.crt', certificate)
        replace(stage, 'proxy.key', key)
        pair.agree(patience=PATIENCE)


def test_without_a_name_nobody_gets_in(stage):
    """What the others show rests on this."""
    nameless = stage.kubeconfig('nameless', user={'username': 'nobody', 'password': 'x'})
    with Pair(stage, *FLAGS, kubeconfig=nameless) as pair:
        refused(pair)


def test_proxy_url_leads_to_a_name_that_only_the_proxy_knows(stage):
    channel, url = stage.start_tunnel()
    kubeconfig = stage.kubeconfig('proxied', f'https://kubernetes.default.svc:{PORT}', cluster={'proxy-url': url})
    with Pair(stage, *FLAGS, kubeconfig=kubeconfig) as pair:
        pair.agree()
        assert set(channel.call('targets')) == {f'kubernetes.default.svc:{PORT}'}


def test_tls_server_name_stands_in_for_an_address_that_the_certificate_lacks(stage):
    server = f'https://{OTHER_ADDRESS}:{PORT}'
    kubeconfig = stage.kubeconfig('elsewhere', server)
    with Pair(stage, *FLAGS, kubeconfig=kubeconfig) as pair:
        portolan(pair).log.wait_line('No secure connection to the API server', 0, timeout=PATIENCE)
        stage.kubeconfig('elsewhere.new', server, cluster={'tls-server-name': 'kubernetes.default.svc'})
        os.rename(stage.path('elsewhere.new'), kubeconfig)
        pair.agree(patience=PATIENCE)


def confined(pair):
    """Is Portolan in its sandbox, with a process beside it that starts the plugin?"""
    line = portolan(pair).log.wait_line('Entered the sandbox').string
    return 'capabilities="NET_ADMIN" seccomp=' in line and 'launcher=0' not in line


def test_plugin_is_asked_again_when_its_token_expires(stage):
    """Not when it is refused: the server that takes only the second token never sees the first."""
    runs, token = stage.path('runs'), stage.write('plugin-token', stage.proxy_token)
    plugin = stage.write('plugin', PLUGIN.format(runs=runs, token=token))
    os.chmod(plugin, 0o755)
    kubeconfig = stage.kubeconfig('plugged', user={'exec': {
        'apiVersion': 'client.authentication.k8s.io/v1', 'command': plugin, 'interactiveMode': 'Never'}})

    def count():
        """Runs by Portolan's launcher: kube-proxy asks the same plugin, when it sees fit."""
        with open(runs, encoding='ascii') as file:
            return sum(line.startswith('portolan-launch') for line in file)

    with Pair(stage, *FLAGS, kubeconfig=kubeconfig) as pair:
        pair.agree()
        assert confined(pair)
        pid = portolan(pair).pid
        stage.stop_api_server()
        stage.proxy_token = 'second' + stage.proxy_token
        replace(stage, 'plugin-token', stage.proxy_token)
        first = count()  # a run that begins later gives the second token
        wait_for(lambda: count() > first, 90, what='the plugin has been run again')
        stage.resume_api_server()
        pair.agree(patience=PATIENCE)
        assert portolan(pair).pid == pid
        assert not [line for line in portolan(pair).log.lines if 'does not accept' in line]


def test_another_plugin_needs_a_new_start(stage):
    """The sandbox knows the plugin of the start, with its arguments; what the kubeconfig says later is not run."""
    runs, token = stage.path('other-runs'), stage.write('other-token', stage.proxy_token)
    plugin = stage.write('other-plugin', PLUGIN.format(runs=runs, token=token))
    os.chmod(plugin, 0o755)
    user = {'exec': {'apiVersion': 'client.authentication.k8s.io/v1', 'command': plugin, 'interactiveMode': 'Never'}}
    kubeconfig = stage.kubeconfig('plugged-once', user=user)
    with Pair(stage, *FLAGS, kubeconfig=kubeconfig) as pair:
        pair.agree()
        assert confined(pair)
        line = len(portolan(pair).log.lines)
        user['exec']['args'] = ['other']
        stage.kubeconfig('plugged-once.new', user=user)
        os.rename(stage.path('plugged-once.new'), kubeconfig)
        stage.stop_api_server()
        stage.resume_api_server()
        portolan(pair).log.wait_line('differs from what was allowed before the sandbox was entered', line, timeout=PATIENCE)

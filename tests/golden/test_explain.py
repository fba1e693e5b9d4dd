# SPDX-License-Identifier: Apache-2.0
"""What `explain` and `list` print about the Services of well-read articles on kube-proxy, letter by letter.

    PORTOLAN=build/portolan python3 tests/golden/test_explain.py --update

writes the expected files anew; read the difference before you keep it.
"""
import json
import os
import pathlib
import subprocess
import sys

import pytest
import yaml

HERE = pathlib.Path(__file__).resolve().parent
FOLDER = HERE / 'explain'
NODE = ['--bind-address', '192.168.205.12']  # where the manifests have no Node
QUESTIONS = {
    # file: (case, words)
    'app-service-from-pod': ('articles-app-service', ['explain', 'service/default/app-service']),
    'kind-nginx-from-outside': ('articles-kind-clusterip', ['explain', '10.96.34.82:80', '--from', 'outside']),
    'nginx-node-port': ('articles-nginx-nodeport', ['explain', ':31245', *NODE]),
    'nginx-node-port-nftables': ('articles-nginx-nodeport', ['explain', ':31245', '--proxy-mode', 'nftables', *NODE]),
    'kubernetes-affinity-from-node': ('articles-nginx-nodeport', ['explain', 'svc/default/kubernetes', '--from', 'node',
                                                                  *NODE]),
    'dns-udp': ('articles-nginx-nodeport', ['explain', '10.96.0.10:53', '--proto', 'udp']),
    'seven-endpoints-json': ('articles-seven-endpoints', ['explain', 'svc/default/testsvc', '-o', 'json']),
    'seven-endpoints-nftables-yaml': ('articles-seven-endpoints',
                                      ['explain', 'svc/default/testsvc', '-o', 'yaml', '--proxy-mode', 'nftables']),
    'unused-port': ('articles-nginx-nodeport', ['explain', '10.102.69.101:81']),
    'many-services': ('articles-many-services', ['list']),
    'many-services-endpoints-yaml': ('articles-many-services', ['list', 'endpoints', '-o', 'yaml', '-n', 'default']),
}


def answer(case, words):
    folder = HERE / 'cases' / case
    flags = (folder / 'arguments').read_text().split()
    argv = [os.environ['PORTOLAN'], words[0], *words[1:], '--manifests', folder / 'manifests', *flags]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    assert done.stderr == ''
    return f'{done.stdout}exit status {done.returncode}\n'


@pytest.mark.parametrize('name', QUESTIONS)
def test_expected_text(name):
    assert answer(*QUESTIONS[name]) == (FOLDER / f'{name}.txt').read_text()


# where NodePort 31080 is answered: by the words of --nodeport-addresses, for the node itself
ANSWERED = {
    ('all', 'iptables'): {'192.0.2.11', '198.51.100.1', '127.0.0.1', '[2001:db8::11]'},
    ('all', 'nftables'): {'192.0.2.11', '198.51.100.1', '[2001:db8::11]'},
    ('localhost', 'iptables'): {'127.0.0.1'},
    ('localhost', 'nftables'): set(),
    ('primary-localhost', 'iptables'): {'192.0.2.11', '127.0.0.1'},
    ('primary-localhost', 'nftables'): {'192.0.2.11'},
}


@pytest.mark.parametrize('words,mode', ANSWERED)
def test_node_ports_are_answered_where_the_words_say(words, mode):
    def is_answered(address):
        said = answer(f'node-port-addresses-{words}',
                      ['explain', f'{address}:31080', '--from', 'node', '--proxy-mode', mode])
        assert said.endswith(('exit status 0\n', 'exit status 1\n'))
        assert ('node port of service shop/cart:http' in said) == said.endswith('0\n')
        assert (f'No rule concerns {address}:31080/tcp' in said) == said.endswith('1\n')
        return said.endswith('0\n')

    everywhere = ('192.0.2.11', '198.51.100.1', '127.0.0.1', '[2001:db8::11]', '[::1]')
    assert {address for address in everywhere if is_answered(address)} == ANSWERED[words, mode]


def test_every_file_is_expected():
    assert {path.stem for path in FOLDER.iterdir()} == set(QUESTIONS)


@pytest.mark.parametrize('mode', ['iptables', 'nftables'])
def test_yaml_and_json_are_the_same_document(mode):
    case, words = QUESTIONS['nginx-node-port']
    as_json, as_yaml = (answer(case, [*words, '--proxy-mode', mode, '-o', form]).rsplit('exit status', 1)[0]
                        for form in ('json', 'yaml'))
    assert json.loads(as_json) == yaml.safe_load(as_yaml)


if __name__ == '__main__':
    if sys.argv[1:] != ['--update']:
        sys.exit(__doc__)
    for key, question in QUESTIONS.items():
        (FOLDER / f'{key}.txt').write_text(answer(*question))

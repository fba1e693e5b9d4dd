# SPDX-License-Identifier: Apache-2.0
"""What deploy/ has is what an API server takes: each object is created there as a server-side dry run, strictly."""
import glob
import os

import pytest
import yaml
from lab.topology import wait_for

DEPLOY = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'deploy')
GROUPS = {
    'ServiceAccount': '/api/v1/namespaces/{}/serviceaccounts',
    'ConfigMap': '/api/v1/namespaces/{}/configmaps',
    'DaemonSet': '/apis/apps/v1/namespaces/{}/daemonsets',
    'ClusterRole': '/apis/rbac.authorization.k8s.io/v1/clusterroles',
    'ClusterRoleBinding': '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings',
}


def documents():
    for path in sorted(glob.glob(os.path.join(DEPLOY, '*.yaml'))):
        with open(path, encoding='utf-8') as file:
            for thing in yaml.safe_load_all(file):
                if 'groups' not in thing and thing['kind'] != 'Kustomization':  # alerts are no object of the API
                    yield os.path.basename(path), thing


def names():
    return [f'{file} {thing["kind"]}' for file, thing in documents()]


def kube_system(stage):
    return any(thing['metadata']['name'] == 'kube-system' for thing in stage.api.list('Namespace'))


@pytest.mark.parametrize('file,thing', documents(), ids=names())
def test_the_server_takes_it(stage, file, thing):
    wait_for(lambda: kube_system(stage), 90, what='the API server has made its namespaces')
    path = GROUPS[thing['kind']].format(thing['metadata'].get('namespace'))
    made = stage.api.call('POST', path + '?dryRun=All&fieldValidation=Strict', thing)
    assert made['metadata']['name'] == thing['metadata']['name'], file


def test_a_misspelt_field_would_be_seen(stage):
    thing = next(thing for _file, thing in documents() if thing['kind'] == 'DaemonSet')
    thing['spec']['template']['spec']['hostNetwrk'] = True
    with pytest.raises(Exception, match='hostNetwrk'):
        stage.api.call('POST', GROUPS['DaemonSet'].format('kube-system') + '?dryRun=All&fieldValidation=Strict', thing)


def test_what_stays_has_the_least_privilege():
    """The first container has all, and ends before the other begins."""
    pod = next(thing for _file, thing in documents() if thing['kind'] == 'DaemonSet')['spec']['template']['spec']
    first, = pod['initContainers']
    assert first['args'] == ['--init-only']
    container, = pod['containers']
    context = container['securityContext']
    assert context['capabilities'] == {'drop': ['ALL'], 'add': ['NET_ADMIN']}
    assert (context['runAsNonRoot'], context['runAsUser'], context['readOnlyRootFilesystem']) == (True, 65534, True)
    assert context['seccompProfile'] == {'type': 'RuntimeDefault'}
    assert 'privileged' not in context
    # with it the kernel would ignore the capability of the image's file
    assert 'allowPrivilegeEscalation' not in context
    with open(os.path.join(DEPLOY, 'Containerfile'), encoding='utf-8') as file:
        assert 'setcap cap_net_admin=p /usr/local/bin/portolan' in file.read()
    assert 'memory' in container['resources']['limits']


def test_the_kustomization_names_every_file():
    with open(os.path.join(DEPLOY, 'kustomization.yaml'), encoding='utf-8') as file:
        named = set(yaml.safe_load(file)['resources'])
    assert named == {file for file, _thing in documents()}

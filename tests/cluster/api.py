# SPDX-License-Identifier: Apache-2.0
"""A small client for the API server of a stage, in terms of whole objects."""
import json
from urllib.parse import quote

PATHS = {
    'Namespace': '/api/v1/namespaces',
    'Node': '/api/v1/nodes',
    'Service': '/api/v1/namespaces/{}/services',
    'EndpointSlice': '/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices',
    'ServiceCIDR': '/apis/networking.k8s.io/v1/servicecidrs',
}
VERSIONS = {'EndpointSlice': 'discovery.k8s.io/v1', 'ServiceCIDR': 'networking.k8s.io/v1'}
MERGE = 'application/merge-patch+json'


class Refusal(Exception):
    """The server's answer was not a success; its own words say why."""

    def __init__(self, what, status, message):
        super().__init__(f'{what}: {status} {message}')
        self.status = status


def key_of(thing):
    metadata = thing['metadata']
    return thing['kind'], metadata.get('namespace', ''), metadata['name']


def collection(kind, namespace=''):
    return PATHS[kind].format(quote(namespace))


def path_of(key):
    kind, namespace, name = key
    return f'{collection(kind, namespace)}/{quote(name)}'


class Pending:
    """times: when the request was sent and answered, once there is a result."""

    def __init__(self, what, reply):
        self.what, self.reply, self.times = what, reply, None

    def result(self):
        answer = self.reply.result(60)
        self.times = answer['sent_ns'], answer['answered_ns']
        body = json.loads(answer['body'] or '{}')
        if answer['status'] >= 300:
            raise Refusal(self.what, answer['status'], body.get('message', answer['body']))
        return body


class Api:
    """Every call has a twin with begin=True that answers at once with something to ask for its result()."""

    def __init__(self, channel):
        self.channel = channel

    def begin(self, method, path, body=None, content_type='application/json'):
        text = None if body is None else json.dumps(body)
        reply = self.channel.start('request', method=method, path=path, body=text, content_type=content_type)
        return Pending(f'{method} {path}', reply)

    def call(self, method, path, body=None, content_type='application/json'):
        return self.begin(method, path, body, content_type).result()

    def begin_create(self, thing):
        kind, namespace, _name = key_of(thing)
        return self.begin('POST', collection(kind, namespace), thing)

    def create(self, thing):
        """Creates it with its status, if it has one."""
        made = self.begin_create(thing).result()
        return self.set_status(thing) if thing.get('status') else made

    def create_all(self, things):
        """As create() for each, but many at a time and in no order."""
        for pending in [self.begin_create(thing) for thing in things]:
            pending.result()
        with_status = [thing for thing in things if thing.get('status')]
        for pending in [self.begin_status(thing) for thing in with_status]:
            pending.result()

    def get(self, key):
        return self.call('GET', path_of(key))

    def begin_replace(self, thing):
        return self.begin('PUT', path_of(key_of(thing)), thing)

    def replace(self, thing):
        """Whatever the server holds becomes this; its status too, if it has one."""
        made = self.begin_replace(thing).result()
        return self.set_status(thing) if thing.get('status') else made

    def patch(self, key, change):
        return self.call('PATCH', path_of(key), change, MERGE)

    def begin_status(self, thing):
        return self.begin('PATCH', path_of(key_of(thing)) + '/status', {'status': thing['status']}, MERGE)

    def set_status(self, thing):
        return self.begin_status(thing).result()

    def begin_delete(self, key):
        return self.begin('DELETE', path_of(key))

    def delete(self, key):
        return self.begin_delete(key).result()

    def delete_all(self, keys):
        for pending in [self.begin_delete(key) for key in keys]:
            pending.result()

    def list(self, kind):
        """All objects of a kind, as a get would give them."""
        path = collection(kind).replace('/namespaces//', '/')
        version = VERSIONS.get(kind, 'v1')
        return [{'apiVersion': version, 'kind': kind, **thing} for thing in self.call('GET', path)['items']]

    def ready(self):
        try:
            return self.channel.call('request', method='GET', path='/readyz', body=None, content_type='')['status'] == 200
        except Exception:  # not listening yet, or certificates not written yet
            return False

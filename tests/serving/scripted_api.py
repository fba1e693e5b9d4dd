# SPDX-License-Identifier: Apache-2.0
"""An API server that tells what it is told to, however wrong: plain HTTP, protobuf made by hand.

Runs as a child in the daemon's namespace. PUT /script has a list of steps, each a list of a name and arguments:

    put RESOURCE NAME BYTES       an object (base64) is there from now on; watches are told
    delete RESOURCE NAME          it is gone; watches are told
    slip RESOURCE NAME BYTES      likewise, or with null it is gone; watches are not told, only a new list has it
    show RESOURCE COUNT           lists have only so many of the objects, the first ones; null: all
    expire RESOURCE               watches are told that their version is too old, which makes clients list anew
    version NUMBER                the resourceVersion goes on from here, backwards too
    paged TOKEN                   streaming lists are refused, and every page names this token for the next; null: as usual

GET /script answers with what came: lists by resource, and the Events that were posted.
"""
import base64
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

KINDS = {'services': 'Service', 'endpointslices': 'EndpointSlice', 'nodes': 'Node', 'servicecidrs': 'ServiceCIDR'}


def varint(number):
    data = bytearray()
    while True:
        data.append(number & 0x7f | (0x80 if number > 0x7f else 0))
        number >>= 7
        if not number:
            return bytes(data)


def message(*fields):
    """Pairs of number and value: text, bytes, a whole number, or a list of these; None is left out."""
    data = b''
    for number, value in fields:
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, int):
                data += varint(number << 3) + varint(one)
            elif one is not None:
                one = one.encode() if isinstance(one, str) else one
                data += varint(number << 3 | 2) + varint(len(one)) + one
    return data


def envelope(kind, content):
    return b'k8s\0' + message((1, message((1, 'v1'), (2, kind))), (2, content))


def frame(event, kind, content):
    data = message((1, event), (2, message((1, envelope(kind, content)))))
    return len(data).to_bytes(4, 'big') + data


class State:
    def __init__(self):
        self.changed = threading.Condition()
        self.version = 100
        self.objects = {resource: {} for resource in KINDS}
        self.shown = dict.fromkeys(KINDS)
        self.lists = dict.fromkeys(KINDS, 0)
        self.log = {resource: [] for resource in KINDS}  # frames, for watches
        self.token, self.events = None, []

    def put(self, resource, name, content):
        self.tell(resource, 'MODIFIED' if name in self.objects[resource] else 'ADDED', base64.b64decode(content))
        self.objects[resource][name] = base64.b64decode(content)

    def delete(self, resource, name):
        self.tell(resource, 'DELETED', self.objects[resource].pop(name))

    def slip(self, resource, name, content):
        if content is None:
            del self.objects[resource][name]
        else:
            self.objects[resource][name] = base64.b64decode(content)

    def show(self, resource, count):
        self.shown[resource] = count

    def expire(self, resource):
        self.log[resource].append(frame('ERROR', 'Status', message((3, 'too old resource version'), (6, 410))))

    def set_version(self, number):
        self.version = number

    def set_token(self, token):
        self.token = token

    STEPS = {'put': put, 'delete': delete, 'slip': slip, 'show': show, 'expire': expire, 'version': set_version,
             'paged': set_token}

    def tell(self, resource, event, content):
        self.version += 1
        # a field that comes again adds to the message that was there: this is the object's own version
        self.log[resource].append(frame(event, KINDS[resource], content + message((1, message((6, str(self.version)))))))

    def listed(self, resource):
        return list(self.objects[resource].values())[:self.shown[resource]]


class Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    state = State()

    def log_message(self, *_args):
        pass

    def answer(self, status, content, kind='application/json'):
        self.send_response(status)
        self.send_header('Content-Type', kind)
        self.send_header('Content-Length', str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def chunk(self, data):
        self.wfile.write(b'%x\r\n%s\r\n' % (len(data), data))
        self.wfile.flush()

    def do_PUT(self):
        steps = json.loads(self.rfile.read(int(self.headers['Content-Length'])))
        with self.state.changed:
            for name, *arguments in steps:
                self.state.STEPS[name](self.state, *arguments)
            self.state.changed.notify_all()
        self.answer(200, b'{}')

    def do_POST(self):
        event = json.loads(self.rfile.read(int(self.headers['Content-Length'])))
        with self.state.changed:
            self.state.events.append(event)
        self.answer(201, b'{}')

    def do_GET(self):
        url = urlsplit(self.path)
        query = parse_qs(url.query)
        resource = url.path.rsplit('/', 1)[1]
        if url.path == '/script':
            with self.state.changed:
                self.answer(200, json.dumps({'lists': self.state.lists, 'events': self.state.events}).encode())
        elif resource not in KINDS:
            self.answer(404, b'{}')
        elif 'sendInitialEvents' in query and self.state.token:
            self.answer(400, b'{}')
        elif 'watch' in query:
            self.stream(resource, 'sendInitialEvents' in query)
        else:
            self.page(resource)

    def page(self, resource):
        with self.state.changed:
            self.state.lists[resource] += 1
            meta = message((2, str(self.state.version)), (3, self.state.token))
            content = message((1, meta), (2, self.state.listed(resource)))
        self.answer(200, envelope(KINDS[resource] + 'List', content), 'application/vnd.kubernetes.protobuf')

    def stream(self, resource, initial):
        state, kind = self.state, KINDS[resource]
        with state.changed:
            at = len(state.log[resource])
            first = []
            if initial:
                state.lists[resource] += 1
                mark = message((6, str(state.version)), (12, message((1, 'k8s.io/initial-events-end'), (2, 'true'))))
                first = [frame('ADDED', kind, one) for one in state.listed(resource)]
                first.append(frame('BOOKMARK', kind, message((1, mark))))
        self.send_response(200)
        self.send_header('Content-Type', 'application/vnd.kubernetes.protobuf;stream=watch')
        self.send_header('Transfer-Encoding', 'chunked')
        self.end_headers()
        try:
            while True:
                self.chunk(b''.join(first))
                with state.changed:
                    state.changed.wait_for(lambda: len(state.log[resource]) > at)
                    first = state.log[resource][at:]
                    at = len(state.log[resource])
        except OSError:
            self.close_connection = True


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64


if __name__ == '__main__':
    server = Server(('127.0.0.1', int(sys.argv[1])), Handler)
    print('listening', file=sys.stderr, flush=True)
    server.serve_forever()

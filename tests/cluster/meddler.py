# SPDX-License-Identifier: Apache-2.0
"""Stands between a proxy and the API server: passes requests on, and meddles with those that it is told to.

Runs as a child in the API server's namespace (lab/arm.py) and speaks plain HTTP to the proxy. A rule is a dict:

    match          a part of the path and query that it is for; all without it
    status, headers, body (base64)      what to answer, instead of the API server
    stall_after    pass so many bytes of the API server's answer on, then hold the rest back until release(), then hang up

It counts what it passed on: lists that went on where a page ended, answers of the API server's that a version is too old, and
those that are compressed.
"""
import base64
import http.client
import socket
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from lab import arm

HOP_BY_HOP = ('host', 'connection', 'authorization', 'transfer-encoding', 'content-length')


class State:
    def __init__(self, server):
        self.server = server
        self.lock = threading.Condition()
        self.rules, self.connections = [], set()
        self.meddled = self.stalled = self.continued = self.expired = self.encoded = 0
        self.released = threading.Event()
        Handler.state = self
        listen(server['host'], server['meddler_port'], Handler)

    def rule_for(self, path):
        with self.lock:
            rule = next((rule for rule in self.rules if rule.get('match', '') in path), None)
            if rule and 'status' in rule:
                self.meddled += 1
                self.lock.notify_all()
            return rule

    def set(self, rules):
        """From now on, and for what is under way: every connection is closed."""
        with self.lock:
            self.rules = rules
            self.meddled = self.stalled = self.continued = self.expired = self.encoded = 0
            self.released.set()
            self.released = threading.Event()
            for connection in self.connections:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass  # closed already

    def wait(self, what, count, timeout):
        """Whether so many were answered ('meddled'), held back ('stalled') or counted in time."""
        with self.lock:
            return self.lock.wait_for(lambda: getattr(self, what) >= count, timeout)

    def count(self, what):
        with self.lock:
            setattr(self, what, getattr(self, what) + 1)
            self.lock.notify_all()

    def stall(self):
        released = self.released
        self.count('stalled')
        released.wait(120)


class Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    state = None

    def setup(self):
        super().setup()
        with self.state.lock:
            self.state.connections.add(self.connection)

    def finish(self):
        with self.state.lock:
            self.state.connections.discard(self.connection)
        super().finish()

    def log_message(self, *_args):
        pass

    def do_GET(self):
        rule = self.state.rule_for(self.path)
        self.close_connection = True
        try:
            if rule and 'status' in rule:
                self.answer(rule)
            else:
                self.forward((rule or {}).get('stall_after'))
        except (OSError, http.client.HTTPException):
            pass  # either side went away

    do_POST = do_PATCH = do_GET

    def answer(self, rule):
        body = base64.b64decode(rule.get('body', ''))
        self.send_response(rule['status'])
        for name, value in {'Content-Length': len(body), **rule.get('headers', {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def ask(self):
        server = self.state.server
        context = ssl.create_default_context(cafile=server['ca'])
        link = http.client.HTTPSConnection(server['host'], server['port'], context=context)
        body = self.rfile.read(int(self.headers.get('Content-Length', 0)))
        link.putrequest(self.command, self.path, skip_accept_encoding=True)
        link.putheader('Authorization', 'Bearer ' + server['token'])
        link.putheader('Content-Length', len(body))
        for name, value in self.headers.items():
            if name.lower() not in HOP_BY_HOP:
                link.putheader(name, value)
        link.endheaders(body or None)
        return link.getresponse()

    def forward(self, stall_after):
        answer = self.ask()
        self.send_response(answer.status)
        self.send_header('Content-Type', answer.headers.get('Content-Type', ''))
        if encoding := answer.headers.get('Content-Encoding'):
            self.send_header('Content-Encoding', encoding)
            self.state.count('encoded')
        self.send_header('Transfer-Encoding', 'chunked')
        self.end_headers()
        left = stall_after
        if answer.status == 200 and '&continue=' in self.path:
            self.state.count('continued')
        while piece := answer.read1(4096):
            if b'Expired' in piece and b'too old resource version' in piece:
                self.state.count('expired')
            if left is not None and len(piece) >= left:
                self.chunk(piece[:left])
                self.state.stall()
                return
            self.chunk(piece)
            left = None if left is None else left - len(piece)
        self.chunk(b'')

    def chunk(self, piece):
        self.wfile.write(b'%x\r\n%s\r\n' % (len(piece), piece))


def listen(host, port, handler):
    server = ThreadingHTTPServer((host, port), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()


if __name__ == '__main__':
    arm.main(State)

# SPDX-License-Identifier: Apache-2.0
"""The test program's arm in the API server's namespace: sends the HTTP requests that it is told to.

Runs as a child there (lab/arm.py). Requests that come while others are
under way get connections of their own, a few at most.
"""
import http.client
import ssl
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from lab import arm, rpc

WORKERS = 6
OWN = threading.local()


def connection(server):
    kept = getattr(OWN, 'connection', None)
    if kept is None:
        context = ssl.create_default_context(cafile=server['ca'])
        OWN.connection = kept = http.client.HTTPSConnection(server['host'], server['port'], timeout=30, context=context)
    return kept


def forget():
    OWN.connection.close()
    OWN.connection = None


def request(server, method, path, body, content_type):
    """The answer, and when the request was sent and answered (CLOCK_MONOTONIC)."""
    headers = {'Authorization': 'Bearer ' + server['token'], 'Accept': 'application/json'}
    if body is not None:
        headers['Content-Type'] = content_type
    for last in (False, True):
        link = connection(server)
        sent = time.monotonic_ns()
        try:
            link.request(method, path, body=body, headers=headers)
            answer = link.getresponse()
            text = answer.read().decode()
            return {'status': answer.status, 'body': text, 'sent_ns': sent, 'answered_ns': time.monotonic_ns()}
        except (http.client.HTTPException, ConnectionError, ssl.SSLEOFError):  # a connection that went idle may have been closed
            forget()
            if last:
                raise


def serve(sock, server):
    lock = threading.Lock()

    def answer(message):
        reply = {'id': message['id']}
        try:
            reply['result'] = request(server, **message['args'])
        except Exception as error:  # the asker's to judge
            reply['error'] = f'{type(error).__name__}: {error}'
        with lock:
            rpc.send(sock, reply)

    with ThreadPoolExecutor(WORKERS) as pool:
        while True:
            try:
                message, _fds = rpc.receive(sock)
            except (EOFError, ConnectionResetError):
                return
            pool.submit(answer, message)


if __name__ == '__main__':
    serve(arm.own_socket(), **arm.settings())

# SPDX-License-Identifier: Apache-2.0
"""A proxy as proxy-url names one: CONNECT, then bytes both ways. Whatever host is asked for, it leads to the API server.

Runs as a child in the API server's namespace, as meddler.py does.
"""
import socket
import threading
from http.server import BaseHTTPRequestHandler

from lab import arm
from meddler import listen


class State:
    def __init__(self, server):
        self.server = server
        self.asked = []
        Handler.state = self
        listen(server['host'], server['tunnel_port'], Handler)

    def targets(self):
        """What was asked for, "host:port" each, in the order of asking."""
        return self.asked


class Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    state = None

    def log_message(self, *_args):
        pass

    def do_CONNECT(self):
        self.close_connection = True
        self.state.asked.append(self.path)
        with socket.create_connection((self.state.server['host'], self.state.server['port'])) as link:
            self.send_response(200)
            self.end_headers()
            back = threading.Thread(target=self.pump, args=(link, self.connection), daemon=True)
            back.start()
            self.pump(self.connection, link)
            back.join()

    @staticmethod
    def pump(source, sink):
        try:
            while piece := source.recv(65536):
                sink.sendall(piece)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # either side went away


if __name__ == '__main__':
    arm.main(State)

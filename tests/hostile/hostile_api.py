# SPDX-License-Identifier: Apache-2.0
"""An API server that admits everything: watches only, in protobuf, of whatever objects the test sets.

It speaks as a real one does to a client that asks for the initial events: all objects, a bookmark, then changes. It has no
admission, so that words and values arrive which a real one of this version would refuse, and one of a later version would not.
"""
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import arm
import protobuf

PORT = 6443
KINDS = {"services": "Service", "endpointslices": "EndpointSlice", "nodes": "Node", "servicecidrs": "ServiceCIDR"}
END = {"k8s.io/initial-events-end": "true"}


class State:
    def __init__(self, schema):
        self.schema = protobuf.Schema(schema)
        self.changed = threading.Condition()
        self.version = 1
        self.posts = 0
        self.objects = {kind: {} for kind in KINDS.values()}  # by key, envelopes
        self.events = {kind: [] for kind in KINDS.values()}  # (version, frame)
        Handler.state = self
        listener = ThreadingHTTPServer(("127.0.0.1", PORT), Handler)
        listener.daemon_threads = True
        threading.Thread(target=listener.serve_forever, daemon=True).start()

    def count_posts(self):
        return self.posts

    def _key(self, item):
        return item["kind"], (item["metadata"].get("namespace", ""), item["metadata"]["name"])

    def _tell(self, event, item):
        kind, key = self._key(item)
        self.version += 1
        envelope = self.schema.envelope(kind, {**item, "metadata": {**item["metadata"], "resourceVersion": str(self.version)}})
        self.events[kind].append((self.version, protobuf.frame(event, envelope)))
        return kind, key, envelope

    def apply(self, items):
        with self.changed:
            for item in items:
                known = self._key(item)[1] in self.objects[item["kind"]]
                kind, key, envelope = self._tell("MODIFIED" if known else "ADDED", item)
                self.objects[kind][key] = envelope
            self.changed.notify_all()

    def remove(self, items):
        with self.changed:
            for item in items:
                kind, key, _ = self._tell("DELETED", item)
                self.objects[kind].pop(key, None)
            self.changed.notify_all()

    def initial(self, kind):
        """All frames, and the version that they stand for."""
        with self.changed:
            frames = [protobuf.frame("ADDED", envelope) for envelope in self.objects[kind].values()]
            metadata = {"resourceVersion": str(self.version), "annotations": END}
            frames.append(protobuf.frame("BOOKMARK", self.schema.envelope(kind, {"metadata": metadata})))
            return frames, self.version

    def later(self, kind, version):
        """Frames behind that version; waits for one."""
        def news():
            events = self.events[kind]
            at = len(events)
            while at > 0 and events[at - 1][0] > version:
                at -= 1
            return events[at:]

        with self.changed:
            self.changed.wait_for(lambda: self.events[kind] and self.events[kind][-1][0] > version)
            found = news()
            return [frame for _, frame in found], found[-1][0]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    state = None

    def log_message(self, *_args):
        pass

    def do_POST(self):
        """An Event of the daemon's: counted, and given back."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with self.state.changed:
            self.state.posts += 1
        self.close_connection = True
        self.answer(201, body)

    do_PATCH = do_PUT = do_POST

    def answer(self, status, body=b""):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        path, _, query = self.path.partition("?")
        kind = KINDS.get(path.split("/")[-1])
        if not kind or "watch=1" not in query:
            self.answer(404)
            return
        self.send_response(200)
        self.send_header("Content-Type", "application/vnd.kubernetes.protobuf;stream=watch")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            self.follow(kind, query)
        except OSError:
            self.close_connection = True

    def follow(self, kind, query):
        words = dict(word.partition("=")[::2] for word in query.split("&"))
        if "sendInitialEvents" in words:
            frames, version = self.state.initial(kind)
        else:
            frames, version = [], int(words["resourceVersion"])
        while True:
            for piece in frames:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            frames, version = self.state.later(kind, version)


if __name__ == "__main__":
    arm.main(State)

# SPDX-License-Identifier: Apache-2.0
"""An API server that tells what it is told to, however wrong: plain HTTP, protobuf, no admission.

It speaks as a real one does to a client that asks for the initial events: all objects, a bookmark, then changes. What a real one of
this version would refuse, and one of a later version would not, arrives as it is.

    api = fake_api.spawn(namespace)
    api.call("apply", items=[...])                 these are there from now on; watches are told
    api.call("remove", items=[...])                these are gone; watches are told
    api.call("slip", items=[...], there=True)      the one or the other; watches are not told, only a new list knows
    api.call("show", kind=..., count=...)          lists have only so many of the objects, the first ones; None: all
    api.call("expire", kind=...)                   watches are told that their version is too old, which makes clients list anew
    api.call("go_on_from", version=...)            the resourceVersion goes on from here, backwards too
    api.call("page", token=...)                    streaming lists are refused, and every page names this token for the next; None: as usual
    api.call("refuse", kind=...)                   requests for these are answered with 403; None: none is
    api.call("told")                               lists by kind, and the Events that came
"""
import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from lab import arm, protobuf
from lab.daemon import SOURCE

PORT = 6443
KINDS = {"services": "Service", "endpointslices": "EndpointSlice", "nodes": "Node", "servicecidrs": "ServiceCIDR"}
END = {"k8s.io/initial-events-end": "true"}


def spawn(namespace):
    return arm.spawn(namespace, "lab.fake_api", schema=os.path.join(SOURCE, "src", "sources", "k8s.proto"))


def key_of(item):
    return item["metadata"].get("namespace", ""), item["metadata"]["name"]


class State:
    def __init__(self, schema):
        self.schema = protobuf.Schema(schema)
        self.changed = threading.Condition()
        self.version = 100
        self.objects = {kind: {} for kind in KINDS.values()}  # by key, bytes
        self.log = {kind: [] for kind in KINDS.values()}  # for watches: (version, frame)
        self.shown = dict.fromkeys(KINDS.values())
        self.lists = dict.fromkeys(KINDS.values(), 0)
        self.token, self.refused, self.events = None, None, []
        Handler.state = self
        listener = Server(("127.0.0.1", PORT), Handler)
        threading.Thread(target=listener.serve_forever, daemon=True).start()

    def told(self):
        return {"lists": self.lists, "events": self.events}

    def count_posts(self):
        return len(self.events)

    def _tell(self, event, item):
        self.version += 1
        content = self.schema.encode(item["kind"], {**item, "metadata": {**item["metadata"], "resourceVersion": str(self.version)}})
        self.log[item["kind"]].append((self.version, protobuf.frame(event, item["kind"], content)))
        return content

    def apply(self, items):
        with self.changed:
            for item in items:
                known = self.objects[item["kind"]]
                known[key_of(item)] = self._tell("MODIFIED" if key_of(item) in known else "ADDED", item)
            self.changed.notify_all()

    def remove(self, items):
        with self.changed:
            for item in items:
                self._tell("DELETED", item)
                self.objects[item["kind"]].pop(key_of(item), None)
            self.changed.notify_all()

    def slip(self, items, there):
        with self.changed:
            for item in items:
                if there:
                    self.objects[item["kind"]][key_of(item)] = self.schema.encode(item["kind"], item)
                else:
                    del self.objects[item["kind"]][key_of(item)]

    def show(self, kind, count):
        self.shown[kind] = count

    def expire(self, kind):
        with self.changed:
            status = self.schema.encode("Status", {"message": "too old resource version", "code": 410})
            self.log[kind].append((self.version, protobuf.frame("ERROR", "Status", status)))
            self.changed.notify_all()

    def go_on_from(self, version):
        self.version = version

    def page(self, token):
        self.token = token

    def refuse(self, kind):
        self.refused = kind

    # -- what clients ask for

    def listed(self, kind):
        self.lists[kind] += 1
        return list(self.objects[kind].values())[:self.shown[kind]]

    def whole_page(self, kind):
        with self.changed:
            metadata = self.schema.encode("ListMeta", {"resourceVersion": str(self.version), "continue": self.token})
            return protobuf.envelope(f"{kind}List", protobuf.data(1, metadata) + b"".join(protobuf.data(2, one) for one in self.listed(kind)))

    def initial(self, kind):
        """All frames, and the place in the log that comes next."""
        with self.changed:
            metadata = {"resourceVersion": str(self.version), "annotations": END}
            frames = [protobuf.frame("ADDED", kind, content) for content in self.listed(kind)]
            frames.append(protobuf.frame("BOOKMARK", kind, self.schema.encode(kind, {"metadata": metadata})))
            return frames, len(self.log[kind])

    def behind(self, kind, version):
        """The place in the log behind that version."""
        with self.changed:
            known = [place for place, (told, _frame) in enumerate(self.log[kind]) if told == version]
            return known[-1] + 1 if known else len(self.log[kind])

    def later(self, kind, place):
        """Frames from that place on; waits for one."""
        with self.changed:
            self.changed.wait_for(lambda: len(self.log[kind]) > place)
            return [frame for _version, frame in self.log[kind][place:]], len(self.log[kind])


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    state = None

    def log_message(self, *_args):
        pass

    def answer(self, status, body=b"{}", kind="application/json"):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        """An Event of the daemon's: kept, and given back."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with self.state.changed:
            self.state.events.append(json.loads(body))
        self.close_connection = True
        self.answer(201, body)

    do_PATCH = do_PUT = do_POST

    def do_GET(self):
        url = urlsplit(self.path)
        query = parse_qs(url.query)
        kind = KINDS.get(url.path.rsplit("/", 1)[1])
        if not kind:
            self.answer(404)
        elif kind == self.state.refused:
            self.answer(403)
        elif "sendInitialEvents" in query and self.state.token:
            self.answer(400)
        elif "watch" in query:
            self.stream(kind, query)
        else:
            self.answer(200, self.state.whole_page(kind), "application/vnd.kubernetes.protobuf")

    def stream(self, kind, query):
        if "sendInitialEvents" in query:
            frames, place = self.state.initial(kind)
        else:
            frames, place = [], self.state.behind(kind, int(query["resourceVersion"][0]))
        self.send_response(200)
        self.send_header("Content-Type", "application/vnd.kubernetes.protobuf;stream=watch")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            while True:
                for piece in frames:
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                frames, place = self.state.later(kind, place)
        except OSError:
            self.close_connection = True


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64


if __name__ == "__main__":
    arm.main(State)

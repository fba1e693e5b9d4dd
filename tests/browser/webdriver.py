# SPDX-License-Identifier: Apache-2.0
"""Chromium on a lab's node, driven over W3C WebDriver by nothing but Python's own library.

chromedriver and the browser run in the node's namespace, which has no way out. A relay there brings their connections
to a socket in a folder, where we ask from outside:

    test ── HTTP ── folder/driver ── relay ── 127.0.0.1:9515 chromedriver ── chromium
"""

import base64
import http.client
import json
import os
import shutil
import socket
import sys
import time

from lab.log import PATIENCE

PORT = 9515
PROGRAMS = ("chromium", "chromedriver")

RELAY = """
import os, socket, subprocess, sys, threading, time
path, port, *driver = sys.argv[1:]
def copy(source, target):
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass
subprocess.Popen(driver, stdin=subprocess.DEVNULL)
ear = socket.socket(socket.AF_UNIX)
ear.bind(path)
ear.listen(16)
print("relaying", flush=True)
while True:
    ours, theirs = ear.accept()[0], None
    while theirs is None:
        try:
            theirs = socket.create_connection(("127.0.0.1", int(port)))
        except ConnectionRefusedError:
            time.sleep(0.02)
    for pair in ((ours, theirs), (theirs, ours)):
        threading.Thread(target=copy, args=pair, daemon=True).start()
"""

ARGUMENTS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--window-size=1280,900",
)  # fmt: skip

#: Keys as WebDriver writes them.
KEYS = {"Tab": "\ue004", "Enter": "\ue007", "Shift": "\ue008", "Escape": "\ue00c", "PageDown": "\ue00f", "End": "\ue010",
        "Home": "\ue011", "ArrowUp": "\ue013", "ArrowDown": "\ue015"}  # fmt: skip


def missing():
    """Which of the programs are not there."""
    return [name for name in PROGRAMS if not shutil.which(name)]


class DriverError(Exception):
    """What the driver said."""


class Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("127.0.0.1", PORT, timeout=4 * PATIENCE)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Browser:
    """One window."""

    def __init__(self, host):
        self.host = host
        self.folder = f"{host.folder}/browser"
        os.makedirs(self.folder)
        environment = {"HOME": self.folder, "XDG_CONFIG_HOME": self.folder, "XDG_CACHE_HOME": self.folder}
        driver = ["chromedriver", f"--port={PORT}", "--log-level=SEVERE"]
        argv = [sys.executable, "-c", RELAY, f"{self.folder}/driver", str(PORT), *driver]
        self.output = host.node.spawn(*argv, env=environment)[1]
        self.output.wait_line("^relaying")
        self.connection = Connection(f"{self.folder}/driver")
        self.session = self._begin()

    def _begin(self):
        options = {"binary": shutil.which("chromium"), "args": [*ARGUMENTS, f"--user-data-dir={self.folder}/profile"]}
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        answer = self._send("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        return answer["sessionId"]

    def _send(self, method, path, body=None):
        data = None if body is None else json.dumps(body)
        self.connection.request(method, path, data, {"Content-Type": "application/json"})
        value = json.loads(self.connection.getresponse().read())["value"]
        if isinstance(value, dict) and "error" in value:
            raise DriverError(f"{value['error']}: {value['message']}")
        return value

    def post(self, command, **body):
        return self._send("POST", f"/session/{self.session}/{command}", body)

    def get(self, command):
        return self._send("GET", f"/session/{self.session}/{command}")

    def close(self):
        self._send("DELETE", f"/session/{self.session}")
        self.connection.close()

    # -- the page

    def go(self, url):
        self.post("url", url=url)

    def run(self, code, *arguments):
        """What a function with this body returns."""
        return self.post("execute/sync", script=code, args=list(arguments))

    def run_async(self, code, *arguments):
        """What it gives to done(...)."""
        return self.post("execute/async", script=f"const done = arguments[arguments.length - 1];\n{code}", args=list(arguments))

    def wait(self, expression, what=None, patience=PATIENCE):
        """The value of an expression of JavaScript, as soon as it is true."""
        deadline = time.monotonic() + patience
        while not (value := self.run(f"return {expression}")):
            assert time.monotonic() < deadline, f"still not: {what or expression}\n{self.run('return document.body.innerText')[:2000]}"
            time.sleep(0.02)
        return value

    def text(self, selector):
        return self.run("const found = document.querySelector(arguments[0]); return found && found.innerText", selector)

    def click(self, selector):
        """With the mouse, in the middle of it."""
        x, y = self.run("const at = document.querySelector(arguments[0]).getBoundingClientRect(); "
                        "return [at.x + at.width / 2, at.y + at.height / 2].map(Math.round)", selector)
        steps = [{"type": "pointerMove", "x": x, "y": y, "duration": 0}, {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
        self.post("actions", actions=[{"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": steps}])

    def press(self, *keys):
        """Keys by name, or characters, one after the other, to whatever has the focus."""
        steps = []
        for key in keys:
            steps += [{"type": kind, "value": KEYS.get(key, key)} for kind in ("keyDown", "keyUp")]
        self.post("actions", actions=[{"type": "key", "id": "keyboard", "actions": steps}])

    def type(self, text):
        self.press(*text)

    # -- what is not on it

    def tell(self, command, **parameters):
        """A command of the DevTools protocol."""
        return self.post("goog/cdp/execute", cmd=command, params=parameters)

    def console(self):
        """Lines of the console since the last time, complaints of the security policy among them."""
        return self.post("se/log", type="browser")

    def requests(self):
        """Addresses that the page asked for."""
        return self.run("return performance.getEntries().filter(entry => /^(navigation|resource)$/.test(entry.entryType)).map(entry => entry.name)")

    def screenshot(self, path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.get("screenshot")))

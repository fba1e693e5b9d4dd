# SPDX-License-Identifier: Apache-2.0
"""One process for each network namespace: it holds the namespace and does there what it is asked to.

Every request runs in a thread of its own, so that a load can go on while the same namespace answers others.
Thousands of connections cost no process each.
"""

import contextlib
import http.client
import os
import signal
import subprocess
import threading
import traceback

from lab import client, rpc, sctp, server

OPERATIONS = {}


def operation(function):
    OPERATIONS[function.__name__] = function
    return function


class State:
    """What an agent keeps between requests, under names that the asker chose."""

    def __init__(self, name):
        self.name = name
        self.kept = {}
        self.children = {}


@operation
def ping(_state, _fds):
    return None


@operation
def run(_state, _fds, argv, stdin=None, timeout=60):
    done = subprocess.run(argv, input=stdin, capture_output=True, text=True, timeout=timeout, check=False)
    return {"code": done.returncode, "stdout": done.stdout, "stderr": done.stderr}


@operation
def spawn(state, fds, argv, env=None, log_file=None):
    """A child whose output goes to the file descriptor that came along; its pid (in the lab) is the answer."""
    output, copy = fds[0], None
    if log_file:
        copy = subprocess.Popen(["tee", "-a", log_file], stdin=subprocess.PIPE, stdout=fds[0], start_new_session=True)
        output = copy.stdin
    child = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        env={**os.environ, **(env or {})},
        start_new_session=True,
    )
    if copy:
        copy.stdin.close()
    state.children[child.pid] = child
    return child.pid


@operation
def kill(state, _fds, pid, number):
    state.children[pid].send_signal(number)


@operation
def wait(state, _fds, pid, timeout):
    """The exit code, negative for a signal; None when the child is still there."""
    try:
        return state.children[pid].wait(timeout)
    except subprocess.TimeoutExpired:
        return None


@operation
def read_file(_state, _fds, path):
    with open(path, encoding="utf-8") as file:
        return file.read()


@operation
def write_file(_state, _fds, path, text, mode=0o644, atomic=True):
    """As an API machinery or a careful editor does it: a new file, renamed over the old one."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    target = f"{os.path.dirname(path)}.new" if atomic else path
    with open(target, "w", encoding="utf-8") as file:
        file.write(text)
        os.fchmod(file.fileno(), mode)
    if atomic:
        os.rename(target, path)


@operation
def remove_file(_state, _fds, path):
    os.unlink(path)


@operation
def sysctl(_state, _fds, values):
    """Sets what exists and says what does not."""
    missing = []
    for name, value in values.items():
        try:
            with open(f"/proc/sys/{name}", "w", encoding="ascii") as file:
                file.write(str(value))
        except FileNotFoundError:
            missing.append(name)
    return missing


@operation
def ask_http(_state, _fds, address, port, path, method="GET", headers=None, body=None):
    """Status, headers and body; 0 and what went wrong instead of the body when there is no answer."""
    with contextlib.closing(http.client.HTTPConnection(address, port, timeout=20)) as connection:
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return [answer.status, dict(answer.getheaders()), answer.read().decode()]
        except OSError as error:
            return [0, {}, type(error).__name__]


@operation
def serve_pod(state, _fds, pod, addresses, ports):
    state.kept[f"server {pod}"] = server.Server(pod, addresses, ports)


@operation
def stop_pod(state, _fds, pod):
    state.kept.pop(f"server {pod}").close()


@operation
def request(_state, _fds, **args):
    return client.request(**args)


@operation
def load_start(state, _fds, key, **args):
    state.kept[key] = client.Load(**args)


@operation
def load_wait(state, _fds, key, count):
    return state.kept[key].wait(count)


@operation
def load_so_far(state, _fds, key):
    return state.kept[key].so_far()


@operation
def load_stop(state, _fds, key):
    return state.kept.pop(key).stop()


@operation
def talk_open(state, _fds, key, **args):
    state.kept[key] = client.Talk(**args)


@operation
def talk(state, _fds, key):
    return state.kept[key].ask()


@operation
def talk_close(state, _fds, key):
    state.kept.pop(key).close()


@operation
def sctp_listen(state, _fds, key, family):
    state.kept[key] = sctp.Listener(family)


@operation
def sctp_heard(state, _fds, key, tag, timeout):
    return state.kept[key].wait(tag, timeout)


@operation
def sctp_send(_state, _fds, **args):
    sctp.send_init(**args)


def answer(sock, lock, state, message, fds):
    reply = {"id": message["id"]}
    try:
        reply["result"] = OPERATIONS[message["op"]](state, fds, **message["args"])
    except Exception:  # whatever it was belongs to the asker
        reply["error"] = traceback.format_exc()
    finally:
        for fd in fds:
            os.close(fd)
    with lock:
        rpc.send(sock, reply)


def serve(sock, name):
    """Ends with the socket."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    state = State(name)
    lock = threading.Lock()
    while True:
        try:
            message, fds = rpc.receive(sock)
        except (EOFError, ConnectionResetError):
            return
        threading.Thread(target=answer, args=(sock, lock, state, message, fds), daemon=True).start()

# SPDX-License-Identifier: Apache-2.0
"""A child process in a namespace of the lab that does what it is told over a channel.

    channel = arm.spawn(namespace, "watcher", address=...)     in the test
    channel.call("begin", ...)                                 calls State.begin() there

A module that can be spawned has a class State, made from the settings, and ends in `arm.main(State)`.
"""
import json
import os
import socket
import sys
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)

if TESTS not in sys.path:
    sys.path.insert(0, TESTS)

from lab import rpc  # noqa: E402


def spawn(namespace, module, **settings):
    ours, theirs = socket.socketpair()
    with theirs:
        namespace.agent.call(
            "spawn", [theirs.fileno()], argv=[sys.executable, "-B", "-m", module, json.dumps(settings)],
            env={"PYTHONPATH": os.pathsep.join([HERE, TESTS])})
    return rpc.Channel(ours, module)


def main(state_class):
    sock = socket.socket(fileno=os.dup(1))
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    state = state_class(**json.loads(sys.argv[1]))
    while True:
        try:
            message, _fds = rpc.receive(sock)
        except (EOFError, ConnectionResetError):
            return
        try:
            reply = {"result": getattr(state, message["op"])(**message["args"])}
        except Exception:  # whatever it was belongs to the asker
            reply = {"error": traceback.format_exc()}
        rpc.send(sock, {"id": message["id"], **reply})
